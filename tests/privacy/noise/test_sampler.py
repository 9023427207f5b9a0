"""Exact noise: distribution, independence, freshness, and no effect of buffering.

False alarms: every statistical check below rejects at level 1e-6 (``LEVEL``). There are 51 of them,
so the whole file fails by chance with probability about 5e-5, and below 1e-4 including the
large-sample approximations of the p-values. The secure sampler cannot be seeded, so these are real
probabilities and nothing is fixed to hide them.
"""

import copy
import decimal
import hashlib
import io
import math
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
from hushfit.kernels import noise
from hushfit.privacy.noise import _sampler
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
@pytest.mark.parametrize("log2_variance", range(9))
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


def share_of(V, odd):
    """Probability, in 64ths, of proposing V widths."""
    return Fraction(noise.PROPOSAL_WEIGHTS[odd][V]) if V < 3 else Fraction(1, 2 ** (V - 2))


@pytest.mark.parametrize("log2_variance", range(63))
def test_share_times_chance_is_the_weight_of_the_gaussian(log2_variance):
    k, odd = (log2_variance + 1) // 2, log2_variance % 2
    for V in (0, 1, 2, 3, 5):
        for U in {0, 1 % 2**k, 2**k // 3, 2**k - 1}:
            acceptance = Fraction(noise.acceptance_in_units(V, U, k, odd, 120), 2**120)
            weight = exp_minus(Fraction((V * 2**k + U) ** 2, 2 * 2**log2_variance))
            assert abs(
                share_of(V, odd) * acceptance - noise.PROPOSAL_WEIGHTS[odd][0] * weight
            ) < Fraction(64, 2**120)


@pytest.mark.parametrize("odd", [0, 1])
def test_widths_are_proposed_by_their_shares_and_no_chance_exceeds_one(odd):
    assert np.bincount(noise.WIDTHS[odd]).tolist() == [*noise.PROPOSAL_WEIGHTS[odd], 1]
    assert len(noise.WIDTHS[odd]) == 64
    assert all(noise.acceptance_in_units(V, 0, 0, odd, 40) <= 2**40 for V in range(100))


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("k", [0, 1, 9, 31])
def test_the_kernel_knows_chances_to_within_its_bound(k, odd):
    rng = np.random.default_rng(k)
    worst = 0.0
    for V in range(10):
        for U in {0, 1 % 2**k, 2**k // 2, 2**k - 1, *rng.integers(0, 2**k, size=100).tolist()}:
            error = noise._acceptance_probability(V, U, k, odd) - Fraction(
                noise.acceptance_in_units(V, U, k, odd, 60), 2**29
            )
            worst = max(worst, abs(error))
    assert 0 < worst <= 11 < noise.ACCEPTANCE_ERROR


@pytest.mark.parametrize("log2_variance", [0, 1, 2, 7, 20, 61, 62])
def test_the_kernel_draws_what_the_definition_draws_from_the_same_bits(log2_variance):
    words = np.frombuffer(stream()(20_000), np.uint32)
    at, also_at, out = np.zeros(1, np.int64), np.zeros(1, np.int64), np.empty(300, np.int64)
    assert noise.fill_gaussian(words, at, out, 0, log2_variance) == 300
    defined = [
        exact_gaussian(lambda bits: int(noise.take(words, also_at, bits)), log2_variance)
        for _ in out
    ]
    assert out.tolist() == defined
    assert at[0] == also_at[0]


def scripted(*draws):
    """A stream of the given bits, as (number of bits, value) pairs; zeros follow."""
    everything, position = 0, 0
    for bits, value in draws:
        everything |= value << position
        position += bits
    whole = io.BytesIO(everything.to_bytes(4000, "little"))
    return whole.read


def proposal_bits(U, V, digits, *more):
    """Bits of one proposal of +(V + U / 2**31) widths, and of the digits that decide it."""
    proposal = noise.WIDTHS[0].tolist().index(V)
    return [(31, U), (31, digits << 7 | proposal << 1), *((24, group) for group in more)]


@pytest.mark.parametrize("words_at_once", [1, 2, 7, 500])
@pytest.mark.parametrize(("U", "V"), [(12_345, 0), (2**31 - 1, 0), (2**30 + 7, 1), (99, 2)])
def test_close_calls_are_decided_by_the_digits_that_follow(U, V, words_at_once):
    """If 24 digits equal those of the acceptance probability, the following ones decide."""
    acceptance = noise.acceptance_in_units(V, U, 31, 0, 96)
    first, second, third = acceptance >> 72, (acceptance >> 48) % 2**24, (acceptance >> 24) % 2**24
    wanted, other = (V << 31) + U, 5
    for more, drawn in [
        ([second - 1000], wanted),
        ([second + 1000], other),
        ([second, third - 1000], wanted),
        ([second, third + 1000], other),
    ]:
        bits = [
            *proposal_bits(U, V, first, *more),
            *proposal_bits(other, 0, 0),
            *proposal_bits(7, 0, 0),
        ]
        noisy = _sampler._draw(
            noise.fill_gaussian, 62, 2 if drawn == other else 3, scripted(*bits), words_at_once
        )
        assert noisy.tolist() == ([other, 7] if drawn == other else [wanted, other, 7])


@pytest.mark.parametrize("words_at_once", [1, 2, 7, 500])
@pytest.mark.parametrize("above", [1, 2])
def test_a_close_call_does_not_open_what_was_rejected_before_it(above, words_at_once):
    """A proposal just above its acceptance probability is rejected by 24 digits.

    With more digits it would wrongly use those of the next proposal.
    """
    rejected, undecided = (noise.acceptance_in_units(0, U, 31, 0, 48) for U in (2**30, 12_345))
    before = proposal_bits(2**30, 0, (rejected >> 24) + above)
    close = proposal_bits(12_345, 0, undecided >> 24, undecided % 2**24 - 1000)
    noisy = _sampler._draw(
        noise.fill_gaussian,
        62,
        3,
        scripted(*before, *close, *proposal_bits(5, 0, 0), *proposal_bits(7, 0, 0)),
        words_at_once,
    )
    assert noisy.tolist() == [12_345, 5, 7]


def test_the_kernel_reports_a_close_call_and_stands_at_its_start():
    acceptances = [noise.acceptance_in_units(0, U, 31, 0, 24) for U in (2**30, 12_345)]
    bits = [
        *proposal_bits(8, 0, 0),
        *proposal_bits(2**30, 0, acceptances[0] + 2),
        *proposal_bits(12_345, 0, acceptances[1]),
    ]
    words = np.frombuffer(scripted(*bits)(400), np.uint32)
    at, out = np.zeros(1, np.int64), np.full(3, -1)
    assert noise.fill_gaussian(words, at, out, 0, 62) == ~1
    assert at[0] == 2 * 62
    assert out.tolist() == [8, -1, -1]


def test_chances_do_not_depend_on_the_decimal_settings_of_the_application():
    wanted = noise.acceptance_in_units(7, 12_345, 31, 0, 48)
    with decimal.localcontext(decimal.Context(prec=5, Emin=-3, Emax=3, rounding=decimal.ROUND_UP)):
        assert noise.acceptance_in_units(7, 12_345, 31, 0, 48) == wanted


def test_kernels_hold_no_floating_point(tmp_path):
    """Compiled again in another process, because numba shows no code for cached functions."""
    printed = run_python(
        "from hushfit.kernels import noise; from hushfit.privacy.noise._sampler import "
        "SecureSampler as S;"
        "S().gaussian(3, 1); S().laplace(3, 1);"
        "print(*(code for f in (noise.fill_gaussian, noise.fill_laplace) for code in "
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


@pytest.mark.parametrize(
    "fill", [noise.fill_gaussian, noise.fill_laplace], ids=["gaussian", "laplace"]
)
@pytest.mark.parametrize("exponent", [0, 1, 7, 30])
def test_buffer_size_does_not_change_the_output(fill, exponent):
    """The same byte stream in any pieces gives the same noise: a restart introduces no bias."""
    whole = _sampler._draw(fill, exponent, 300, entropy=stream(), words_at_once=20_000)
    for words_at_once in (1, 2, 3, 7, 64):
        pieces = _sampler._draw(fill, exponent, 300, entropy=stream(), words_at_once=words_at_once)
        np.testing.assert_array_equal(pieces, whole)


@pytest.mark.parametrize("log2_variance", [3, 8])
def test_gaussian_keeps_its_law_with_a_buffer_of_three_words(log2_variance):
    draws = _sampler._draw(noise.fill_gaussian, log2_variance, 50_000, words_at_once=3)
    assert p_value(draws, gaussian_pmf(log2_variance)) > LEVEL


def test_interrupted_call_reports_what_is_done_and_where_it_stands():
    words = np.frombuffer(stream()(40), np.uint32).copy()
    at, out = np.zeros(1, np.int64), np.full(100, -(2**40))
    done = noise.fill_gaussian(words, at, out, 0, 20)
    assert 0 < done < 100
    assert 0 < at[0] <= 32 * len(words)
    assert (out[done:] == -(2**40)).all()


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
