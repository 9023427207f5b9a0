"""Records depend on one row each, in every layout; sampling is uniform and never repeats a row.

False alarms: the statistical checks reject at level 1e-6 each (``LEVEL``). Secure random bits
cannot be seeded, so for them false alarms do occur: fourteen checks, about 1.4e-5 for the file.
Seeded random bits always give the same result.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.optimize import brentq

from _support import SOURCES, records_of, source_of, table
from hushfit.data import (
    FeatureBounds,
    SecureCoins,
    SeededCoins,
    as_source,
    fixed_size_units,
    poisson_units,
)
from hushfit.data.rows import _sampling
from hushfit.data.schema._schema import CategoricalColumn, NumericColumn, Schema, encode
from hushfit.errors import InvalidArgument
from hushfit.kernels.coins import zero_in_all
from hushfit.privacy import FixedSizeGaussianCost, Relation, epsilon_of

LEVEL = 1e-6
COINS = {"secure": SecureCoins(), "seeded": SeededCoins(0)}
SAMPLERS = {
    "poisson": lambda n, rate, coins: poisson_units(n, rate, coins),
    "fixed size": lambda n, rate, coins: fixed_size_units(n, round(rate * n), coins),
}

over_layouts = pytest.mark.parametrize("layout", SOURCES.values(), ids=SOURCES)
over_intercepts = pytest.mark.parametrize(
    "fit_intercept", [True, False], ids=["intercept", "no intercept"]
)
over_coins = pytest.mark.parametrize("coins", COINS.values(), ids=COINS)
# Sampling by digits, and by gaps.
over_rates = pytest.mark.parametrize("rate", [0.25, 0.025])
over_samplers = pytest.mark.parametrize("draw", SAMPLERS.values(), ids=SAMPLERS)


@over_layouts
@over_intercepts
def test_blocks_answer_as_plain_numpy(layout, fit_intercept):
    X, y = table(), np.ones(60)
    Z = records_of(X, fit_intercept)
    full = Z if fit_intercept else np.column_stack([Z, np.zeros(60)])
    A, w = np.random.default_rng(0).normal(size=(6, 6)), np.arange(6.0)
    A = A + A.T
    (block,) = source_of(layout(X), y, fit_intercept).blocks()
    steps = 2.0**20
    rounded = np.rint(full * steps)
    np.testing.assert_array_equal(block.second_moment(steps), rounded.T @ rounded)
    np.testing.assert_allclose(block.lengths(A), np.linalg.norm(full @ A, axis=1), rtol=1e-12)
    filled = np.abs(full).sum(axis=1) > 0
    np.testing.assert_allclose(block.margins(w)[filled], (full @ w)[filled], rtol=1e-12, atol=1e-14)
    assert np.isnan(block.margins(w)[~filled]).all()


@over_layouts
@over_intercepts
@pytest.mark.parametrize(
    "newcomer", [[np.nan] * 5, [np.inf, 0, 0, 0, 1], [1e20, 0, 0, 0, 0], [0.0] * 5], ids=str
)
def test_replacing_one_row_moves_no_other_record(layout, fit_intercept, newcomer):
    X, y = table(), np.ones(60)
    other = X.copy()
    other[17] = newcomer
    before, after = (source_of(layout(rows), y, fit_intercept) for rows in (X, other))
    rest = np.arange(60) != 17
    assert (after.n_units, after.n_features) == (before.n_units, before.n_features) == (60, 5)
    np.testing.assert_array_equal(before.scale[rest], after.scale[rest])


@over_layouts
@over_intercepts
def test_no_record_is_longer_than_one(layout, fit_intercept):
    """Rows of norm one already, to which the intercept's 1 is appended before scaling."""
    X = records_of(table(), fit_intercept=False)
    X[0], X[1], X[2] = 1e15, 1e-15, [1, 0, 0, 0, 0]
    source = source_of(layout(X), np.ones(60), fit_intercept)
    stored = np.asarray(
        layout(X).todense() if sparse.issparse(layout(X)) else layout(X), dtype=float
    )
    full = np.column_stack([stored, np.full(60, source.unit)]) * source.scale[:, None]
    length = np.linalg.norm(full, axis=1)
    assert length.max() <= 1 + 1e-12
    np.testing.assert_allclose(length[source.scale > 0], 1.0, rtol=1e-12)


SCHEMA = Schema(
    (NumericColumn("age", 0, 100, fill=40), CategoricalColumn("colour", ("red", "blue")))
)
TABLE = {"age": [10.0, 20.0, 30.0, 40.0], "colour": ["red", "blue", "red", "mauve"]}
NEWCOMERS = [
    (np.nan, "red"),
    (np.inf, "blue"),
    (1e300, "green"),
    (None, None),
    (-5.0, "a category nobody else has"),
]


@pytest.mark.parametrize("newcomer", NEWCOMERS, ids=str)
def test_encoding_moves_no_other_row_and_keeps_its_width(newcomer):
    before, names = encode(TABLE, SCHEMA)
    changed = {
        name: [*column[:2], value, *column[3:]]
        for (name, column), value in zip(TABLE.items(), newcomer, strict=True)
    }
    after, names_after = encode(changed, SCHEMA)
    rest = [0, 1, 3]
    np.testing.assert_array_equal(before[rest], after[rest])
    assert after.shape == before.shape == (4, 4)
    assert names == names_after
    assert np.isfinite(after).all()


@over_layouts
def test_bounds_clip_and_map_to_the_unit_interval(layout):
    X, y = np.abs(table()), np.ones(60)
    source = source_of(layout(X), y, bounds=FeatureBounds.parse((0, 0.5), 5))
    w = np.arange(1.0, 7.0)
    expected = records_of(np.clip(X, 0, 0.5) / 0.5) @ w
    np.testing.assert_allclose(
        np.concatenate([block.margins(w) for block in source.blocks()]), expected, rtol=1e-12
    )


@pytest.mark.parametrize(
    "given",
    [
        (0, 2),
        ([0, 0, 0], 2),
        (0, [2, 2, 2]),
        (np.zeros(3), np.full(3, 2)),
        [(0, 2)] * 3,
        np.array([[0, 2]] * 3),
    ],
    ids=str,
)
def test_bounds_may_be_written_in_several_ways(given):
    bounds = FeatureBounds.parse(given, 3)
    np.testing.assert_array_equal(bounds.low, [0, 0, 0])
    np.testing.assert_array_equal(bounds.high, [2, 2, 2])


@pytest.mark.parametrize("given", [5, (1, 2, 3, 4), ([0, 0], [1, 1]), "ab", (0, [1, 2])], ids=str)
def test_bounds_of_the_wrong_shape_are_refused(given):
    with pytest.raises(InvalidArgument, match="3 columns"):
        FeatureBounds.parse(given, 3)


def test_sparse_bounds_start_at_zero():
    with pytest.raises(InvalidArgument, match="column 0 start at -1"):
        source_of(sparse.csr_array(table()), np.ones(60), bounds=FeatureBounds.parse((-1, 1), 5))


@over_coins
@over_samplers
def test_batches_hold_different_rows_of_the_table(draw, coins):
    for _ in range(50):
        rows = draw(100, 0.3, coins)
        assert len(np.unique(rows)) == len(rows)
        assert (rows >= 0).all()
        assert (rows < 100).all()


@over_coins
def test_fixed_size_batches_have_their_size(coins):
    assert {len(fixed_size_units(100, 30, coins)) for _ in range(50)} == {30}
    assert fixed_size_units(7, 7, coins).tolist() == list(range(7))


@over_coins
def test_poisson_batches_vary_in_size(coins):
    """All fifty sizes are equal with probability below 1e-40."""
    assert len({len(poisson_units(100, 0.3, coins)) for _ in range(50)}) > 1
    assert poisson_units(7, 1.0, coins).tolist() == list(range(7))
    assert all(len(poisson_units(0, rate, coins)) == 0 for rate in (1.0, 0.3, 0.01, 1e-12))


def inclusions(draw, coins, n, rate, steps):
    """Indicator of the rows in the batch of each step."""
    included = np.zeros((steps, n))
    for t in range(steps):
        included[t, draw(n, rate, coins)] = 1.0
    return included


@over_coins
@over_samplers
@over_rates
def test_every_row_is_taken_equally_often_and_steps_are_independent(draw, coins, rate):
    """Chi-square of the counts of each row, and of the products of consecutive steps; each
    rejects at 1e-6.
    """
    n, steps = 40, 4000
    centred = inclusions(draw, coins, n, rate, steps) - rate
    variance = rate * (1 - rate)
    fixed = draw is SAMPLERS["fixed size"]
    # Rows of a batch of fixed size are slightly negatively correlated: one degree of freedom is
    # lost.
    counts = (centred.sum(axis=0) ** 2).sum() / (steps * variance) * ((n - 1) / n if fixed else 1)
    degrees = n - 1 if fixed else n
    assert LEVEL / 2 < stats.chi2.sf(counts, degrees) < 1 - LEVEL / 2
    consecutive = (
        (centred[1:] * centred[:-1]).sum() ** 2
        / ((steps - 1) * n * variance**2)
        * ((n - 1) / n if fixed else 1)
    )
    assert stats.chi2.sf(consecutive, 1) > LEVEL


@over_coins
@over_rates
def test_rows_of_a_poisson_batch_are_independent_of_their_neighbours(coins, rate):
    """Products of neighbouring rows of 4000 batches; rejects at 1e-6."""
    n, steps = 40, 4000
    centred = inclusions(poisson_units, coins, n, rate, steps) - rate
    together = (centred[:, 1:] * centred[:, :-1]).sum() ** 2 / (
        steps * (n - 1) * (rate * (1 - rate)) ** 2
    )
    assert stats.chi2.sf(together, 1) > LEVEL


# Samplers with plausible mistakes, used only in these tests.


def with_replacement(n, rate, rng):
    return rng.integers(n, size=int(n * rate))


def shuffled_passes(n, size, rng):
    """Epochs over the shuffled rows, batch after batch: no row occurs twice in an epoch."""
    while True:
        yield from rng.permutation(n).reshape(-1, size)


def test_rows_drawn_with_replacement_come_twice_and_are_noticed():
    rng = np.random.default_rng(0)
    assert any(
        len(np.unique(rows)) < len(rows)
        for rows in (with_replacement(100, 0.3, rng) for _ in range(50))
    )


def test_shuffled_passes_are_noticed_as_dependent_steps():
    n, rate, steps = 40, 0.25, 4000
    batches = shuffled_passes(n, 10, np.random.default_rng(0))
    centred = inclusions(lambda *_: next(batches), None, n, rate, steps) - rate
    variance = rate * (1 - rate)
    consecutive = (centred[1:] * centred[:-1]).sum() ** 2 / ((steps - 1) * n * variance**2)
    assert stats.chi2.sf(consecutive, 1) < LEVEL


def test_what_drawing_with_replacement_would_cost():
    """50 of 1000 rows, noise multiplier 1, delta 1e-6: a row that occurs k times changes the sum k
    times as much.
    """
    n, m, delta = 1000, 50, 1e-6
    x = np.linspace(-14, 24, 200_001)
    cell, Q = x[1] - x[0], stats.norm.pdf(x)

    def epsilon(P):
        return brentq(lambda e: np.maximum(P - np.exp(e) * Q, 0).sum() * cell - delta, 0, 20)

    times = stats.binom.pmf(np.arange(15), m, 1 / n)
    broken = epsilon(sum(p * stats.norm.pdf(x - k) for k, p in enumerate(times)))
    assert broken == pytest.approx(2.289, abs=1e-3)
    assert epsilon((1 - m / n) * Q + m / n * stats.norm.pdf(x - 1)) == pytest.approx(
        1.465, abs=1e-3
    )
    assert epsilon_of(
        FixedSizeGaussianCost(1.0, m / n), delta, Relation.REPLACE_ONE
    ) == pytest.approx(1.465, abs=2e-3)


def test_sampling_less_often_than_asked_is_what_rounding_does():
    """A rate below 2**-64 takes no row, rather than one too often."""
    assert len(poisson_units(10_000, 1e-20, SeededCoins(0))) == 0


class _ScriptedBits:
    """Random source that returns scripted words, one call each."""

    def __init__(self, *draws):
        self.draws = list(draws)

    def words(self, count):
        return np.array(self.draws.pop(0), dtype=np.uint64)


def test_a_tie_for_the_last_place_is_drawn_again():
    coins = _ScriptedBits([5, 1, 5, 9], [5, 1, 6, 9])
    assert fixed_size_units(4, 2, coins).tolist() == [0, 1]
    assert coins.draws == []


class Enumerated:
    """Random source that returns these words, call by call."""

    def __init__(self, *calls):
        self.calls = list(calls)

    def words(self, count):
        given = np.array(self.calls.pop(0), dtype=np.uint64)
        return given[:count] if count else given[:0]


def test_a_row_is_sampled_with_exactly_its_rate():
    """All possible first digits for one row: 3/16 starts with two zeros, and three quarters of the
    following bytes are below it.
    """
    first, second, byte = np.meshgrid([0, 1], [0, 1], np.arange(256))
    cases = list(zip(first.ravel(), second.ravel(), byte.ravel(), strict=True))
    taken = sum(len(poisson_units(1, 3 / 16, Enumerated([a, b], [c], [0]))) for a, b, c in cases)
    assert taken == 4 * 256 * 3 / 16
    # Another rate with as many leading zeros gives another count.
    assert (
        sum(len(poisson_units(1, 3.5 / 16, Enumerated([a, b], [c], [0]))) for a, b, c in cases)
        != taken
    )


@pytest.mark.parametrize("n", [1, 7, 63, 64, 65, 1000])
@pytest.mark.parametrize("planes", [1, 3, 6])
def test_zero_bits_of_all_planes_are_found(n, planes):
    digits = np.random.default_rng(n).integers(
        0, 2**64, size=(planes, -(-n // 64)), dtype=np.uint64
    )
    digits[:, 0] &= np.uint64(2**63 - 1)  # the last bit of a word is one of them
    taken = zero_in_all(digits, n)
    bits = np.unpackbits(digits.view(np.uint8), axis=1, count=n, bitorder="little")
    np.testing.assert_array_equal(taken, np.flatnonzero(~bits.any(axis=0)))


@pytest.mark.parametrize("rate", [1 / 3, 0.1, 0.9, 1 / 32, 0.04])
def test_undecided_rows_are_decided_by_the_remaining_digits(rate):
    """If the first byte equals that of the rate, the other 56 digits are compared, up to the last
    one.
    """
    threshold = int(rate * 2.0**64)
    zeros = 64 - threshold.bit_length()
    head, tail = divmod(threshold << zeros, 2**56)
    for digits, inside in ((tail - 1, 1), (tail, 0), (tail + 1, 0)):
        if 0 <= digits < 2**56:
            coins = Enumerated(*[[0] * zeros] * (zeros > 0), [head], [digits << 8])
            assert len(poisson_units(1, rate, coins)) == inside


RARE = [0.03, 256 / 32_561, 1e-3, 1e-5, 2.0**-40, 2.0**-64]


def gap_of(number, threshold, longest):
    """The gap by definition: the number of powers of the probability of exclusion that are above
    the number, at most ``longest``.
    """
    stay, power = 1 - Fraction(threshold, 2**64), Fraction(1)
    for gap in range(longest):
        power *= stay
        if number >= power:
            return gap
    return longest


@pytest.mark.parametrize("rate", RARE, ids=str)
def test_bounds_of_gaps_are_right_or_one_too_small(rate):
    threshold = int(rate * 2.0**64)
    gaps = _sampling._gaps(threshold)
    power = 2**64 - threshold
    for k, bound in enumerate(gaps.beyond.tolist()):
        assert bound <= power >> 64 * k <= bound + 1
        power *= 2**64 - threshold


@pytest.mark.parametrize("rate", RARE, ids=str)
def test_the_guide_never_passes_over_a_row_too_many(rate):
    gaps = _sampling._gaps(int(rate * 2.0**64))
    last_words = [(start + 1) * 2**64 // len(gaps.guide) - 1 for start in range(len(gaps.guide))]
    for least, word in zip(gaps.guide.tolist(), last_words, strict=True):
        assert least == 0 or word < int(gaps.beyond[least - 1])


class OneWord:
    """Random source that returns one word, then the digits after it if so many are requested, and
    then ends the scan.
    """

    def __init__(self, word, more):
        self.word, self.more, self.requested_more = [word], more, False

    def words(self, count):
        if self.word:
            return np.array([self.word.pop()], dtype=np.uint64)
        self.requested_more |= count == len(self.more)
        return np.array(self.more if count == len(self.more) else [0], dtype=np.uint64)


@pytest.mark.parametrize("digit", [0, 2**64 - 1], ids=["then zeros", "then ones"])
@pytest.mark.parametrize("rate", [0.03, 0.011], ids=str)
def test_gaps_are_as_defined_however_close_a_word_lies_to_a_bound(rate, digit):
    """Words at and around bounds; the digits after them decide exactly if 64 digits do not."""
    threshold = int(rate * 2.0**64)
    bounds = _sampling._gaps(threshold).beyond.tolist()
    longest, more = len(bounds), [digit] * (len(bounds) - 1)
    tail = sum(Fraction(digit, 2 ** (64 * place)) for place in range(2, longest + 1))
    for bound in bounds[:: longest // 12]:
        for word in range(bound - 2, bound + 4):
            coins = OneWord(word, more)
            gap = gap_of(Fraction(word, 2**64) + tail, threshold, longest)
            assert poisson_units(longest + 1, rate, coins).tolist() == (
                [gap] if gap < longest else []
            )
            assert coins.requested_more == (word - bound in (0, 1))


def test_a_walk_that_runs_out_of_words_goes_on_where_it_was():
    class OneByOne:
        def __init__(self):
            self.coins = SeededCoins(3)

        def words(self, count):
            return self.coins.words(1)

    class AllAtOnce:
        def words(self, count):
            return SeededCoins(3).words(2000)

    rows = poisson_units(10_000, 0.02, OneByOne())
    assert len(rows) > 100
    np.testing.assert_array_equal(rows, poisson_units(10_000, 0.02, AllAtOnce()))


def test_gaps_longer_than_the_longest_are_walked_in_parts():
    """A zero word is below all bounds and skips as many rows without taking one; a word of ones
    takes the next row.
    """
    longest = len(_sampling._gaps(int(1e-5 * 2.0**64)).beyond)
    rows = poisson_units(2 * longest + 2, 1e-5, Enumerated([0, 0, 2**64 - 1, 2**64 - 1]))
    assert rows.tolist() == [2 * longest, 2 * longest + 1]


def test_a_vanishing_rate_takes_nobody():
    assert len(poisson_units(1000, 2.0**-70, SecureCoins())) == 0


def test_an_array_in_columns_is_copied_once_and_gives_the_same_records():
    X = np.random.default_rng(0).random((5000, 7))
    plain, turned = as_source(X, np.ones(5000)), as_source(np.asfortranarray(X), np.ones(5000))
    assert turned.X.flags.c_contiguous
    assert np.shares_memory(plain.X, X)
    assert np.array_equal(plain.X, turned.X)
