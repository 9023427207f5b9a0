"""Exact noise: distribution, independence, freshness, and no effect of buffering.

False alarms: every statistical check below rejects at level 1e-6 (``LEVEL``). There are 59 of them,
so the whole file fails by chance with probability about 6e-5, and below 1e-4 including the
large-sample approximations of the p-values. The secure sampler cannot be seeded, so these are real
probabilities and nothing is fixed to hide them.
"""

import copy
import decimal
import hashlib
import io
import math
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from hushfit.errors import InvalidArgument
from hushfit.kernels import gaussian, noise
from hushfit.privacy.noise import _exact_gaussian, _sampler
from hushfit.privacy.noise._exact_gaussian import exact_gaussian
from hushfit.privacy.noise._sampler import (
    DiscreteNoise,
    OpenDPSampler,
    SecureSampler,
    SeededSampler,
    discretisation_loss,
    sampler_for,
)

LEVEL = 1e-6
# OpenDP takes 15 us per draw.
EXACT = [(SecureSampler(), 200_000), (OpenDPSampler(), 20_000)]
EXACT_IDS = ["secure", "opendp"]


def gaussian_pmf(log2_variance):
    """Support and probabilities of the discrete Gaussian, cut at 40 standard deviations."""
    sigma = 2.0 ** (log2_variance / 2)
    x = np.arange(-int(40 * sigma) - 1, int(40 * sigma) + 2)
    weight = np.exp(-(x.astype(float) ** 2) / (2 * sigma**2))
    return x, weight / weight.sum()


def laplace_pmf(log2_scale):
    """Support and probabilities of the discrete Laplace, cut at 700 scales."""
    x = np.arange(-700 * 2**log2_scale, 700 * 2**log2_scale + 1)
    weight = np.exp(-np.abs(x) / 2.0**log2_scale)
    return x, weight / weight.sum()


def bins_of(x, probability, size, least=50):
    """Bins that expect at least ``least`` of ``size`` draws, as edges and probabilities."""
    edges, masses, mass = [], [], 0.0
    for value, p in zip(x, probability, strict=True):
        mass += p
        if mass * size >= least:
            edges.append(value)
            masses.append(mass)
            mass = 0.0
    masses[-1] += mass
    return np.array(edges[:-1]), np.array(masses)


def p_value(draws, pmf):
    """Chi-square p-value of the draws against an exact pmf."""
    edges, masses = bins_of(*pmf, len(draws))
    counts = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(masses))
    return stats.chisquare(counts, masses / masses.sum() * len(draws)).pvalue


def stream(seed=b"hushfit"):
    """A fixed byte stream, read in pieces like os.urandom."""
    everything, position = hashlib.shake_256(seed).digest(400_000), 0

    def read(count):
        nonlocal position
        position += count
        assert position <= len(everything)
        return everything[position - count : position]

    return read


def run_python(code, **environment):
    """What a fresh interpreter prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout


# --- The distribution


@pytest.mark.parametrize(("sampler", "size"), EXACT, ids=EXACT_IDS)
@pytest.mark.parametrize("log2_variance", [*range(9), 11, 12, 13, 14])
def test_gaussian_has_the_exact_law(sampler, size, log2_variance):
    assert p_value(sampler.gaussian(log2_variance, size), gaussian_pmf(log2_variance)) > LEVEL


@pytest.mark.parametrize(("sampler", "size"), EXACT, ids=EXACT_IDS)
@pytest.mark.parametrize("log2_scale", range(6))
def test_laplace_has_the_exact_law(sampler, size, log2_scale):
    assert p_value(sampler.laplace(log2_scale, size), laplace_pmf(log2_scale)) > LEVEL


@pytest.mark.parametrize("wrong", [6, 7, 9, 10])
def test_the_law_test_notices_a_wrong_variance(wrong):
    """Halved noise is log2_variance 6 where 8 was requested."""
    assert p_value(SecureSampler().gaussian(wrong, 20_000), gaussian_pmf(8)) < LEVEL


def test_secure_and_opendp_agree():
    """Two-sample chi-square on common bins at level 1e-6."""
    edges, masses = bins_of(*gaussian_pmf(8), 30_000)
    table = [
        np.bincount(
            np.searchsorted(edges, sampler.gaussian(8, 30_000), side="left"), minlength=len(masses)
        )
        for sampler in (SecureSampler(), OpenDPSampler())
    ]
    assert stats.chi2_contingency(table).pvalue > LEVEL


@pytest.mark.parametrize("log2_variance", [40, 61, 62])
def test_large_gaussian_has_the_right_moments(log2_variance):
    size = 200_000
    z = SecureSampler().gaussian(log2_variance, size) / 2.0 ** (log2_variance / 2)
    limit = stats.norm.isf(LEVEL / 2)
    assert abs(z.mean()) * np.sqrt(size) < limit
    assert abs(np.mean(z**2) - 1) * np.sqrt(size / 2) < limit
    assert abs(np.mean(z**4) - 3) * np.sqrt(size / 96) < limit
    assert stats.kstest(z, "norm").pvalue > LEVEL


@pytest.mark.parametrize("log2_scale", [20, 31])
def test_large_laplace_has_the_right_law(log2_scale):
    z = SecureSampler().laplace(log2_scale, 200_000) / 2.0**log2_scale
    assert stats.kstest(z, "laplace").pvalue > LEVEL


def test_low_bits_of_large_noise_are_uniform():
    """A sampler that scales up a coarse draw would pass the moment tests and fail here."""
    counts = np.bincount(SecureSampler().gaussian(60, 100_000) % 64, minlength=64)
    assert stats.chisquare(counts).pvalue > LEVEL


# --- The steps, exactly


@pytest.mark.parametrize("bits", range(32))
def test_every_bit_is_read_once_and_in_order(bits):
    raw = stream()(4 * 64)
    words, at, everything = (
        np.frombuffer(raw, np.uint32).copy(),
        np.zeros(1, np.int64),
        int.from_bytes(raw, "little"),
    )
    for step in range(50):
        assert noise.take(words, at, bits) == (everything >> (bits * step)) % 2**bits
    assert at[0] == 50 * bits


@pytest.mark.parametrize("bits", [1, 5, 9, 11])
def test_comparison_succeeds_on_exactly_its_share_of_bit_strings(bits):
    """Over all strings of ``bits`` bits, Bernoulli(m / 2**bits) must succeed exactly m times."""
    words = [np.array([pattern, 0, 0], np.uint32) for pattern in range(2**bits)]
    for numerator in {0, 1, 2 ** (bits - 1), 2**bits // 3, 2**bits - 1, 2**bits}:
        successes = sum(noise._below(w, np.zeros(1, np.int64), numerator, bits) for w in words)
        assert successes == numerator


def exp_minus(x, digits=200):
    """exp(-x) of a fraction by the integer series of exp(x), to about ``digits`` binary digits."""
    term = total = 1 << 2 * digits
    for i in range(1, 600):
        term = term * x.numerator // (x.denominator * i)
        total += term
    return Fraction(1 << 2 * digits, total)


@pytest.mark.parametrize("log2_variance", range(63))
def test_weights_are_those_of_the_gaussian(log2_variance):
    k, odd = (log2_variance + 1) // 2, log2_variance % 2
    for V in (0, 1, 2, 3, 5):
        for U in {0, 1 % 2**k, 2**k // 3, 2**k - 1}:
            y = V * 2**k + U
            for factor in (1, Fraction(7, 3)):
                weight = Fraction(gaussian.weight_in_units(factor, y, k, odd, 120), 2**120)
                wanted = factor * exp_minus(Fraction(y**2, 2 * 2**log2_variance))
                assert abs(weight - wanted) < Fraction(2, 2**120)


def weight_of(x, odd):
    """The density at x widths, relative to that at zero."""
    return exp_minus(x**2 if odd else x**2 / 2)


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("fine", range(gaussian.MAX_FINE + 1))
def test_slots_cover_the_density_and_those_taken_whole_lie_below_it(fine, odd):
    """All ranks from zero to a top above the density, for each cell: what a slot lets through is
    then the density itself, wherever it is cut.
    """
    slots, widths = gaussian.slots_for(fine, odd), gaussian.CELL_WIDTHS[odd]
    cells, count = slots.cells.tolist(), widths << fine
    assert len(cells) == 2**gaussian.SLOT_BITS
    assert len(slots.firsts) == count + 1
    ends = [weight_of(Fraction(i, 2**fine), odd) for i in range(count + 1)]
    for cell in range(count):
        column = cells[slots.firsts[cell] : slots.firsts[cell + 1]]
        whole = column.count(cell)
        assert column == [cell] * whole + [~cell] * (len(column) - whole)
        assert len(column) >= slots.height * ends[cell] > len(column) - 1
        assert whole <= slots.height * ends[cell + 1] < whole + 1
    assert cells[slots.firsts[count] :] == [~count] * slots.beyond
    for run in range(100):
        share = Fraction(slots.beyond, 2 ** (run + 1))
        chance = (slots.height << fine) * weight_of(Fraction(widths + run), odd) / share
        assert chance <= 1
        assert widths + run < gaussian._MAX_WIDTHS or chance < Fraction(1, 2**30)


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("k", [0, 1, 9, 31])
def test_the_kernel_knows_weights_to_within_its_bound(k, odd):
    rng = np.random.default_rng(k)
    worst = 0.0
    for V in range(gaussian._MAX_WIDTHS):
        for U in {0, 1 % 2**k, 2**k // 2, 2**k - 1, *rng.integers(0, 2**k, size=100).tolist()}:
            y = (V << k) + U
            error = gaussian._weight(y, k, odd) - Fraction(
                gaussian.weight_in_units(1, y, k, odd, 60), 2**29
            )
            worst = max(worst, abs(error))
    assert 0 < worst <= 11 < gaussian.WEIGHT_ERROR


def filled(words, size, log2_variance):
    """What the kernel fills from these words, how far it came, and where it stands."""
    k, odd = (log2_variance + 1) // 2, log2_variance % 2
    slots = gaussian.slots_for(gaussian.fine_bits(k), odd)
    at, out = np.zeros(1, np.int64), np.full(size, -(2**40))
    words = np.array(words, np.uint64)
    return out, gaussian.fill_gaussian(words, at, out, 0, k, odd, *slots), int(at[0])


@pytest.mark.parametrize("log2_variance", [0, 1, 2, 7, 11, 12, 13, 20, 61, 62])
def test_the_kernel_draws_what_the_definition_draws_from_the_same_words(log2_variance):
    words = np.frombuffer(stream()(80_000), np.uint64)
    out, done, at = filled(words, 3000, log2_variance)
    following = iter(words.tolist())
    assert done == 3000
    assert out.tolist() == [exact_gaussian(following.__next__, log2_variance) for _ in out]
    assert next(following) == words[at]


@pytest.mark.parametrize("log2_variance", [0, 1, 2, 7, 11, 12, 13, 20, 61, 62])
def test_the_definition_and_the_kernel_agree_where_the_density_cuts_slots(log2_variance):
    """Words whose slots are cut, or lie beyond the cells, with all bits of a second word set as
    often as not.
    """
    rng = np.random.default_rng(log2_variance)
    k, odd = (log2_variance + 1) // 2, log2_variance % 2
    slots = gaussian.slots_for(gaussian.fine_bits(k), odd)
    cut = np.flatnonzero(slots.cells < 0)
    words = rng.integers(0, 2**64, 4000, np.uint64) & ~np.uint64(2**gaussian.SLOT_BITS - 1)
    words |= np.where(
        rng.random(4000) < 0.3, 2**gaussian.SLOT_BITS - 1, rng.choice(cut, 4000)
    ).astype(np.uint64)
    out, done, _ = filled(words, 4000, log2_variance)
    assert done > 100
    following = iter(words.tolist())
    for drawn in out[:done]:
        assert exact_gaussian(following.__next__, log2_variance) == drawn


BEYOND = 2**gaussian.SLOT_BITS - 1  # a slot beyond all cells


def script(*words):
    """A stream of the given words; zeros follow."""
    return io.BytesIO(b"".join(word.to_bytes(8, "little") for word in words) + bytes(4000)).read


def word_of(slot, place=0, height=0, minus=0):
    """The word that proposes a place in a slot."""
    place_at = gaussian.SLOT_BITS + 1
    return slot | minus << place_at - 1 | place << place_at | height << place_at + 25


def surely(cell, place):
    """A word that draws a place of a cell at once, on the grid of releases."""
    first = int(gaussian.slots_for(6, 0).firsts[cell])
    assert gaussian.slots_for(6, 0).cells[first] == cell
    return word_of(first, place)


# The first 24 digits of a height, and two words of further ones, as 152 digits of the density.
CUT = [(0, 12_345), (1, 2**25 - 1), (70, 2**24 + 7), (130, 99), (200, 5)]


def cut_slot(cell, place):
    """A slot that the density cuts at this place, and the digits of its height there."""
    slots = gaussian.slots_for(6, 0)
    density = gaussian.weight_in_units(slots.height, (cell << 25) + place, 31, 0, 152)
    slot = int(slots.firsts[cell]) + (density >> 152)
    assert slots.cells[slot] == ~cell
    digits = density % 2**152
    return slot, digits >> 128, (digits >> 64) % 2**64, digits % 2**64


@pytest.mark.parametrize("words_at_once", [1, 2, 7, 500])
@pytest.mark.parametrize(("cell", "place"), CUT)
def test_close_calls_are_decided_by_the_digits_that_follow(cell, place, words_at_once):
    """If 24 digits equal those of the density, the following ones decide."""
    slot, first, second, third = cut_slot(cell, place)
    wanted, other = (cell << 25) + place, 5
    for more, drawn in [
        ([second - 1000], wanted),
        ([second + 1000], other),
        ([second, third - 1000], wanted),
        ([second, third + 1000], other),
    ]:
        words = script(word_of(slot, place, first), *more, surely(0, other), surely(0, 7))
        noisy = _sampler._gaussian(62, 2 if drawn == other else 3, words, words_at_once)
        assert noisy.tolist() == ([other, 7] if drawn == other else [wanted, other, 7])


@pytest.mark.parametrize("words_at_once", [1, 2, 7, 500])
@pytest.mark.parametrize("above", [1, 2, 3, 20, 30, 1000])
def test_a_close_call_does_not_open_what_was_rejected_before_it(above, words_at_once):
    """A proposal above the density, by little or by more, is rejected by its own digits as soon as
    they suffice: the next ones belong to the next proposal.
    """
    slot, first, _, _ = cut_slot(230, 2**24)
    rejected = [word_of(slot, 2**24, first + above), *([2**63] if above <= 2 else [])]
    slot, first, second, _ = cut_slot(0, 12_345)
    close = word_of(slot, 12_345, first), second - 1000
    words = script(*rejected, *close, surely(0, 5), surely(0, 7))
    noisy = _sampler._gaussian(62, 3, words, words_at_once)
    assert noisy.tolist() == [12_345, 5, 7]


@pytest.mark.parametrize("height", [0, 1, 2, 3, 4])
def test_far_places_are_rejected_by_as_many_words_as_the_definition_reads(height):
    tail = [word_of(BEYOND, 9, height), 0b1111111 << 6, 2**63, *(surely(0, i) for i in range(4))]
    noisy = _sampler._gaussian(62, 2, script(*tail))
    following = iter(tail)
    assert noisy.tolist() == [exact_gaussian(following.__next__, 62) for _ in range(2)]


def test_the_kernel_reports_a_close_call_and_stands_at_its_start():
    slot, first, _, _ = cut_slot(70, 99)
    words = [surely(0, 8), word_of(slot, 99, 2**24 - 1), word_of(slot, 99, first), 0]
    out, done, at = filled(words, 3, 62)
    assert done == ~1
    assert at == 2
    assert out.tolist() == [8, -(2**40), -(2**40)]


@pytest.mark.parametrize("words_at_once", [1, 2, 7, 500])
@pytest.mark.parametrize("run", [0, 1, 3, 4, 57, 58, 59, 130])
def test_places_beyond_the_cells_are_counted_in_widths(run, words_at_once):
    """A run of ones, over several words if it has to be: accepted if the height, and all digits
    that follow, are zero.
    """
    ones = (2**run - 1) << 6 | 37
    tail = [ones >> 64 * i & (2**64 - 1) for i in range((run + 7 + 63) // 64)]
    assert _exact_gaussian._tail(iter(tail).__next__) == (37, run)
    words = script(word_of(BEYOND, 12_345, 2**24 - 1), *tail, surely(0, 7))
    assert _sampler._gaussian(62, 1, words, words_at_once).tolist() == [7]
    if run < 5:  # far out, thousands of digits would be compared
        words = script(word_of(BEYOND, 12_345, 0, minus=1), *tail)
        drawn = _sampler._gaussian(62, 2, words, words_at_once)
        assert drawn.tolist() == [-((4 + run << 31) + (37 << 25) + 12_345), 0]


@pytest.mark.parametrize("log2_variance", [0, 1, 12, 13, 62])
def test_minus_zero_is_rejected(log2_variance):
    """Or zero would be twice as likely as it should be: whole slots and cut ones."""
    slots = gaussian.slots_for(gaussian.fine_bits((log2_variance + 1) // 2), log2_variance % 2)
    for slot in (0, slots.height - 1):
        out, done, at = filled([word_of(slot, minus=1), word_of(slot)], 2, log2_variance)
        assert (done, at, out[0]) == (1, 2, 0)


def test_weights_do_not_depend_on_the_decimal_settings_of_the_application():
    wanted = gaussian.weight_in_units(7, 12_345, 31, 0, 48)
    with decimal.localcontext(decimal.Context(prec=5, Emin=-3, Emax=3, rounding=decimal.ROUND_UP)):
        assert gaussian.weight_in_units(7, 12_345, 31, 0, 48) == wanted


def test_kernels_hold_no_floating_point(tmp_path):
    """Compiled again in another process, because numba shows no code for cached functions."""
    printed = run_python(
        "from hushfit.kernels import gaussian, noise; from hushfit.privacy.noise._sampler import "
        "SecureSampler as S;"
        "S().gaussian(3, 1); S().laplace(3, 1);"
        "print(*(code for f in (gaussian.fill_gaussian, noise.fill_laplace) for code in "
        "f.inspect_llvm().values()))",
        NUMBA_CACHE_DIR=str(tmp_path),
    )
    words = set(re.findall(r"[a-z0-9_]+", printed))
    assert "fill_gaussian" in printed
    assert "fill_laplace" in printed
    assert {"i64", "icmp"} <= words
    assert not words & {
        "double",
        "float",
        "half",
        "fadd",
        "fmul",
        "fdiv",
        "fcmp",
        "sitofp",
        "uitofp",
        "fptosi",
    }


# --- Buffering


@pytest.mark.parametrize("draw", [_sampler._gaussian, _sampler._laplace])
@pytest.mark.parametrize("exponent", [0, 1, 7, 30])
def test_buffer_size_does_not_change_the_output(draw, exponent):
    """The same byte stream in any pieces gives the same noise: a restart introduces no bias."""
    whole = draw(exponent, 300, entropy=stream(), words_at_once=20_000)
    for words_at_once in (1, 2, 3, 7, 64):
        pieces = draw(exponent, 300, entropy=stream(), words_at_once=words_at_once)
        np.testing.assert_array_equal(pieces, whole)


@pytest.mark.parametrize("log2_variance", [3, 8])
def test_gaussian_keeps_its_law_with_a_buffer_of_three_words(log2_variance):
    draws = _sampler._gaussian(log2_variance, 50_000, words_at_once=3)
    assert p_value(draws, gaussian_pmf(log2_variance)) > LEVEL


def test_interrupted_call_reports_what_is_done_and_where_it_stands():
    words = np.frombuffer(stream()(40 * 8), np.uint64)
    out, done, at = filled(words, 100, 20)
    assert 0 < done < 100
    assert at == len(words)
    assert (out[done:] == -(2**40)).all()
    out, done, at = filled([surely(0, 3), word_of(BEYOND)], 2, 62)
    assert (done, at) == (1, 1)  # the second proposal needs another word


# --- Independence and freshness


def test_consecutive_coordinates_are_independent():
    size = 200_000
    z = SecureSampler().gaussian(40, size) / 2.0**20
    limit = stats.norm.isf(LEVEL / 2) / np.sqrt(size)
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < limit
    assert abs(np.corrcoef(np.abs(z[:-1]), np.abs(z[1:]))[0, 1]) < limit
    quartile = np.searchsorted(stats.norm.ppf([0.25, 0.5, 0.75]), z)
    pairs = np.bincount(4 * quartile[::2] + quartile[1::2], minlength=16)
    assert stats.chisquare(pairs).pvalue > LEVEL


def test_every_call_is_fresh():
    sampler = SecureSampler()
    draws = [
        s.gaussian(40, 8)
        for s in (sampler, sampler, copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler)))
    ]
    assert len({tuple(draw) for draw in draws}) == 4


def test_many_bytes_come_from_a_generator_that_was_just_seeded(monkeypatch):
    """From OpenSSL, and never from a state that a copy of the process has too."""
    seeds, honest = [], _sampler.ssl.RAND_add
    monkeypatch.setattr(
        _sampler.ssl, "RAND_add", lambda seed, bits: (seeds.append(seed), honest(seed, bits))
    )
    assert len(_sampler.secure_bytes(64)) == 64
    assert not seeds
    assert len({_sampler.secure_bytes(1 << 17) for _ in range(3)}) == 3
    SecureSampler().gaussian(62, 100_000)
    assert len(seeds) >= 3 + 6
    assert len(set(seeds)) == len(seeds)
    assert {len(seed) for seed in seeds} == {64}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_shares_no_noise_of_either_generator():
    def first(size):
        return SecureSampler().gaussian(62, size)[:4].tobytes()

    context = multiprocessing.get_context("fork")
    for size in (8, 100_000):
        answers = context.Queue()
        child = context.Process(target=lambda size=size, to=answers: to.put(first(size)))
        child.start()
        theirs = answers.get(timeout=60)
        child.join()
        assert theirs != first(size)


def test_two_processes_differ():
    code = (
        "from hushfit.privacy.noise._sampler import SecureSampler; "
        "print(SecureSampler().gaussian(40, 8).tolist())"
    )
    first, second = run_python(code), run_python(code)
    assert first.startswith("[")
    assert second.startswith("[")
    assert first != second


# --- Choosing a sampler


@pytest.mark.parametrize("random_state", [3, np.int64(3), np.random.SeedSequence(3)], ids=repr)
def test_seed_makes_noise_reproducible_and_insecure(random_state):
    a, b = sampler_for(random_state), sampler_for(random_state)
    np.testing.assert_array_equal(a.gaussian(20, 5), b.gaussian(20, 5))
    np.testing.assert_array_equal(a.laplace(20, 5), b.laplace(20, 5))
    assert not a.secure


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_is_used_as_it_is(make):
    generator = make(5)
    first = sampler_for(generator).gaussian(20, 4)
    second = sampler_for(generator).gaussian(20, 4)
    assert (first != second).any()
    np.testing.assert_array_equal(
        np.concatenate([first, second]), sampler_for(make(5)).gaussian(20, 8)
    )


def test_no_seed_means_secure():
    assert isinstance(sampler_for(None), SecureSampler)
    assert sampler_for(None).secure


@pytest.mark.parametrize("log2_variance", [0, 20, 62])
def test_seeded_noise_has_the_right_scale(log2_variance):
    """Seeded, so no false alarms. Rounding adds 1/12 to the variance."""
    draws = SeededSampler(0).gaussian(log2_variance, 100_000).astype(float)
    assert draws.var() / (2.0**log2_variance + 1 / 12) == pytest.approx(1, abs=0.02)
    draws = SeededSampler(0).laplace(log2_variance // 2, 100_000).astype(float)
    assert draws.var() / (2 * 2.0 ** (2 * (log2_variance // 2)) + 1 / 12) == pytest.approx(
        1, abs=0.05
    )


@pytest.mark.parametrize("seed", [-1, True, "7", 1.5], ids=repr)
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InvalidArgument, match="random_state="):
        sampler_for(seed)


@pytest.mark.parametrize(
    "sampler", [SecureSampler(), OpenDPSampler(), SeededSampler(0)], ids=lambda s: type(s).__name__
)
def test_bad_requests_are_refused(sampler):
    for log2_variance in (-1, 63):
        with pytest.raises(InvalidArgument, match=f"log2_variance={log2_variance}"):
            sampler.gaussian(log2_variance, 1)
    for log2_scale in (-1, 32):
        with pytest.raises(InvalidArgument, match=f"log2_scale={log2_scale}"):
            sampler.laplace(log2_scale, 1)
    with pytest.raises(InvalidArgument, match=r"log2_variance=3\.0"):
        sampler.gaussian(3.0, 1)
    with pytest.raises(InvalidArgument, match="size=-1"):
        sampler.gaussian(3, -1)
    assert sampler.gaussian(3, 0).shape == (0,)
    assert sampler.laplace(3, 2).dtype == np.int64


def test_without_opendp_its_sampler_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(InvalidArgument, match=r"hushfit\[reference\]"):
        OpenDPSampler().gaussian(3, 1)
    assert SecureSampler().gaussian(3, 2).shape == (2,)


# --- The cost of discrete noise


def log_laws(log2_variance, deviations=40):
    """Integers, and the logarithms of their probabilities under the discrete Gaussian P and the
    rounded one R, from scipy's log-cdf.
    """
    sigma = 2.0 ** (log2_variance / 2)
    x = np.arange(0, int(deviations * sigma) + 1, dtype=float)
    log_P = -(x**2) / (2 * sigma**2) - np.log(
        np.exp(-(gaussian_pmf(log2_variance)[0] ** 2) / (2 * sigma**2)).sum()
    )
    # log(cdf(b) - cdf(a)) on the left side, where the log-cdf is accurate in the tail.
    upper, lower = stats.norm.logcdf((-x + 0.5) / sigma), stats.norm.logcdf((-x - 0.5) / sigma)
    return x, log_P, upper + np.log1p(-np.exp(lower - upper))


@pytest.mark.parametrize("log2_variance", [0, 1, 4, 8])
def test_discrete_and_rounded_gaussian_differ_by_no_more_than_the_lemma(log2_variance):
    """The bounds on log P(x)/R(x) hold; for large variances they are tight."""
    variance = 2.0**log2_variance
    x, log_P, log_R = log_laws(log2_variance)
    rounding = 1e-12 * np.abs(log_P)
    assert np.all(log_P - log_R <= 1 / (24 * variance) + rounding)
    assert np.all(log_R - log_P <= x**2 / (24 * variance**2) + 1e-8 / variance + rounding)
    if log2_variance >= 8:
        assert (log_P - log_R)[0] > 0.99 / (24 * variance)
        assert (log_R - log_P)[-1] > 0.95 * x[-1] ** 2 / (24 * variance**2)


@pytest.mark.parametrize("log2_variance", [0, 1, 4])
@pytest.mark.parametrize("coordinates", [1, 30, 1000, 10**6])
def test_long_noise_differs_by_no_more_than_its_loss(log2_variance, coordinates):
    """The probability, under R, that log R/P of a vector exceeds the loss is below 1e-340, by
    Chernoff's bound from the exact law; for one coordinate a fifth of the loss is too little.
    """
    x, log_P, log_R = log_laws(log2_variance)
    weights = log_R + np.where(x > 0, math.log(2), 0)
    lost = discretisation_loss(coordinates, log2_variance) - coordinates / (24 * 2.0**log2_variance)

    def log_probability(limit):
        tilts = np.linspace(0.1, 11, 100)[:, None] * 2.0**log2_variance
        moments = logsumexp(weights + tilts * (log_R - log_P), axis=1)
        return np.min(coordinates * moments - tilts[:, 0] * limit) / math.log(10)

    assert log_probability(lost) < -340
    if coordinates == 1:
        assert log_probability(lost / 5) > -340


def test_discretisation_loss_counts_all_noise_and_the_finest_once():
    assert discretisation_loss(5, 0) == 201
    assert discretisation_loss(10**6, 60) < 1e-12
    assert discretisation_loss(10, 59) == 2 * discretisation_loss(10, 60)
    mixed = DiscreteNoise().with_more(10, 4).with_more(20, 2).with_more(40, 3)
    assert mixed.loss == pytest.approx(0.2 * (10 / 16 + 20 / 4 + 40 / 8) + 200 / 4)
