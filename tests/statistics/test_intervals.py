"""Intervals without noise are the classical ones; with noise they have the stated properties."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from hushfit.data.schema import NumericColumn
from hushfit.statistics._grid import Distribution, Grid, tree_of
from hushfit.statistics._intervals import (
    Counted,
    Interval,
    Moments,
    difference,
    mean_interval,
    share_interval,
)


def moments(v, total_noise=0.0, square_noise=0.0, known_noise=0.0):
    return Moments(
        float(v.sum()), float((v**2).sum()), len(v), total_noise, square_noise, known_noise
    )


def test_without_noise_the_mean_has_the_interval_of_student():
    v = np.random.default_rng(0).uniform(-1, 1, 400)
    found = mean_interval(moments(v), 0.95)
    low, high = stats.ttest_1samp(v, 0.0).confidence_interval()
    assert found.value == pytest.approx(v.mean())
    # Its variance is divided by n, here, and not by n - 1.
    assert (found.low, found.high) == pytest.approx((low, high), abs=2e-4)
    assert found.noise_error == 0.0


def test_without_noise_a_share_has_the_interval_of_wilson():
    for count, n in ((0, 50), (3, 100), (70, 100), (100, 100)):
        found = share_interval(Counted(count, n, 3, 0.0), 0.9)
        wanted = proportion_confint(count, n, alpha=0.1, method="wilson")
        assert (found.low, found.high) == pytest.approx(wanted, abs=1e-9)


def test_without_noise_a_difference_of_shares_has_the_interval_of_newcombe():
    one, other = (share_interval(Counted(k, n, 3, 0.0), 0.95) for k, n in ((30, 100), (12, 80)))
    wanted = confint_proportions_2indep(30, 100, 12, 80, method="newcomb", compare="diff")
    found = difference(one, other)
    assert (found.low, found.high) == pytest.approx(wanted, abs=1e-9)


def test_a_known_total_takes_noise_out_of_a_share():
    """The variance that the polynomial states is that of a simulation, within four of its standard
    errors (false alarms: 6e-5 each).
    """
    rng, p, cells, n = np.random.default_rng(1), 0.2, 3, 10_000.0
    noise = rng.normal(size=(40_000, cells + 1))
    adjusted = noise - noise.mean(axis=1, keepdims=True)
    for drawn, of_all in ((noise, 0), (adjusted, cells + 1)):
        apart = drawn[:, 0] - p * drawn[:, :cells].sum(axis=1)
        stated = n * share_interval(Counted(p * n, n, cells, 1.0, of_all), 0.95).noise_error
        assert stated**2 == pytest.approx(apart.var(), rel=4 * math.sqrt(2 / 40_000))


def test_noise_widens_and_hides():
    v = np.random.default_rng(0).uniform(-1, 1, 400)
    widths = [
        mean_interval(moments(v, noise, 2 * noise, 1.2 * noise), 0.95) for noise in (0, 5, 20)
    ]
    assert np.all(np.diff([one.high - one.low for one in widths]) > 0)
    hidden = mean_interval(moments(v, 400.0, 800.0, 450.0), 0.95)
    assert (hidden.low, hidden.high) == (-math.inf, math.inf)
    assert share_interval(Counted(3.0, -5.0, 3, 10.0), 0.95).high == math.inf
    assert share_interval(Counted(3.0, 12.0, 3, 50.0), 0.95).low == -math.inf
    inside = hidden.within(-1.0, 1.0).moved(50.0, 50.0)
    assert (inside.low, inside.high) == (0.0, 100.0)


def test_units_are_changed_as_a_whole():
    assert Interval(0.5, 0.0, 1.0, 0.1, 0.2).moved(10, 4) == (12, 10, 14, 0.4, 0.8)


@pytest.mark.parametrize("leaves", [7, 40, 64, 100, 512])
def test_the_tree_is_the_least_squares_estimate(leaves):
    rng, tree = np.random.default_rng(0), tree_of(leaves)
    rows = [
        (np.arange(leaves) // width == place).astype(float)
        for width, size in zip(tree.widths, tree.sizes, strict=True)
        for place in range(size)
    ]
    noisy = rng.normal(size=len(rows))
    levels = np.split(noisy, np.cumsum(tree.sizes)[:-1])
    wanted = np.linalg.lstsq(np.array(rows), noisy, rcond=None)[0]
    np.testing.assert_allclose(tree.counts(list(levels)), wanted, atol=1e-9)


def test_variances_of_sums_are_those_of_the_covariance():
    tree = tree_of(64)
    for share in (0.1, 0.5):
        weights = np.tri(64) - share
        wanted = np.einsum("ij,jk,ik->i", weights, tree.covariance, weights)
        np.testing.assert_allclose(tree.variances(share), wanted, atol=1e-9)


def test_levels_halve_the_noise_of_the_median_at_the_same_budget():
    """With as many levels every one has a share of the budget: variances are times their number."""
    tree, flat = tree_of(512), 512 / 4
    assert len(tree.widths) * tree.variances(0.5).max() < flat / 8


def test_bins_and_ends():
    grid = Grid(NumericColumn("x", 0.0, 10.0), 5)
    values = np.array([-3.0, 0.0, 2.0, 2.1, 10.0, 99.0, np.nan])
    np.testing.assert_array_equal(grid.bins(values), [0, 0, 0, 1, 4, 4, np.nan])
    assert grid.ends(1, 3) == pytest.approx((2.0, 6.0))
    whole = Grid(NumericColumn("k", 0, 9, integer=True), 512)
    assert whole.leaves == 10
    np.testing.assert_array_equal(whole.bins(np.array([0.0, 3.0, 3.4, 20.0])), [0, 3, 3, 9])
    assert whole.ends(3, 5) == (3, 4)
    logs = Grid(NumericColumn("y", 0.0, 1000.0, transform="log1p"), 8)
    assert (logs.edges[0], logs.edges[-1]) == (0.0, 1000.0)
    assert logs.edges[4] < 50


def test_quantiles_without_noise_are_those_of_the_table():
    x = np.random.default_rng(3).normal(size=5000)
    grid = Grid(NumericColumn("x", -4.0, 4.0))
    counts = np.bincount(grid.bins(x).astype(int), minlength=512).astype(float)
    levels = [np.add.reduceat(counts, np.arange(0, 512, width)) for width in grid.tree.widths]
    spread = Distribution.of(grid, levels, 0.0)
    for share in (0.1, 0.5, 0.9):
        found = spread.quantile(share, 0.95)
        assert found.value == pytest.approx(np.quantile(x, share), abs=8 / 512)
        assert found.low <= np.quantile(x, share) <= found.high
        ranks = stats.binom.ppf([0.025, 0.975], 5000, share) / 5000
        wanted = np.quantile(x, ranks)
        assert (found.low, found.high) == pytest.approx(tuple(wanted), abs=2 * 8 / 512)


def test_a_column_that_noise_hides_has_the_whole_range():
    grid = Grid(NumericColumn("x", 0.0, 10.0), 64)
    levels = [np.random.default_rng(0).normal(size=size) * 50 for size in grid.tree.sizes]
    found = Distribution.of(grid, levels, 50.0).quantile(0.5, 0.95)
    assert (found.low, found.high) == (0.0, 10.0)
    assert found.low <= found.value <= found.high
    bars = Distribution.of(grid, levels, 50.0).bars()
    assert len(bars.edges) == len(bars.shares) + 1 == 17
