"""Simulated tables follow the designs of their papers and are reproducible."""

import numpy as np
import pytest

from hushfit.datasets import make_sparse_classification
from hushfit.errors import InvalidArgument

DESIGNS = ["correlated", "threshold"]
over_designs = pytest.mark.parametrize("design", DESIGNS)


@pytest.mark.parametrize(
    ("design", "n_rows", "n_informative"), [("correlated", 40_000, 20), ("threshold", 11_000, 8)]
)
def test_defaults_are_the_papers(design, n_rows, n_informative):
    X, y, coef, support = make_sparse_classification(design, random_state=0)
    assert X.shape == (n_rows, 100)
    assert y.shape == (n_rows,)
    assert set(y.tolist()) == {-1, 1}
    np.testing.assert_array_equal(support, np.arange(n_informative))
    np.testing.assert_array_equal(support, np.flatnonzero(coef))


def test_true_coefficients_are_the_papers():
    rising = np.array([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5])
    correlated = make_sparse_classification("correlated", n_rows=2, random_state=0)
    np.testing.assert_array_equal(correlated.coef, np.concatenate([rising, -rising, np.zeros(80)]))
    threshold = make_sparse_classification("threshold", n_rows=2, random_state=0)
    np.testing.assert_array_equal(
        threshold.coef, np.concatenate([[10, 9, 8, 7, 6, 5, 4, 0.5], np.zeros(92)])
    )


@over_designs
def test_features_are_gaussian_with_the_stated_covariance(design):
    """20,000 rows: an entry of the sample covariance has a standard error of at most 0.01; 5 of
    them is one in a million.
    """
    X = make_sparse_classification(
        design, n_rows=20_000, n_features=12, n_informative=4, random_state=3
    ).X
    gap = np.abs(np.arange(12)[:, None] - np.arange(12)[None, :])
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=5 / np.sqrt(20_000))
    np.testing.assert_allclose(X.T @ X / 20_000, 0.5**gap, atol=0.05)
    assert np.mean(np.abs(X) < 1) == pytest.approx(0.6827, abs=0.005)
    assert np.mean(np.abs(X) > 3) == pytest.approx(0.0027, abs=0.001)


def test_labels_of_the_correlated_design_are_drawn_with_their_chance():
    """Among 40,000 rows, in bands of the noise-free margin t, the share of +1 is E[sigmoid(t +
    e)]; 5 standard errors.
    """
    X, y, coef, _ = make_sparse_classification("correlated", random_state=7)
    margin, nodes = X @ coef, np.polynomial.hermite_e.hermegauss(60)
    for low in range(-6, 6):
        band = (margin >= low) & (margin < low + 1)
        probability = 1 / (1 + np.exp(-(margin[band][:, None] + nodes[0])))
        expected = (probability @ nodes[1] / nodes[1].sum()).mean()
        assert np.mean(y[band] == 1) == pytest.approx(expected, abs=5 * np.sqrt(0.25 / band.sum()))
    assert np.mean(y == 1) == pytest.approx(0.5, abs=5 * 0.0025)


def test_labels_of_the_threshold_design_are_the_sign_with_normal_error():
    """In bands of the noise-free margin t, the share of +1 is the normal distribution function
    of t; 5 standard errors.
    """
    from scipy.stats import norm

    X, y, coef, _ = make_sparse_classification("threshold", n_rows=40_000, random_state=7)
    margin = X @ coef
    for low in np.arange(-2.0, 2.0, 0.5):
        band = (margin >= low) & (margin < low + 0.5)
        assert np.mean(y[band] == 1) == pytest.approx(
            norm.cdf(margin[band]).mean(), abs=5 * np.sqrt(0.25 / band.sum())
        )
    assert (y[np.abs(margin) > 6] == np.sign(margin[np.abs(margin) > 6])).all()


@over_designs
def test_a_seed_repeats_the_table_and_none_does_not(design):
    def made(seed):
        return make_sparse_classification(design, n_rows=20, n_features=30, random_state=seed)

    for first, second in zip(made(5), made(5), strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(made(5).X, made(6).X)
    assert not np.array_equal(made(None).X, made(None).X)


@over_designs
@pytest.mark.parametrize("n_informative", [1, 2, 5, 30])
def test_any_number_of_features_may_matter(design, n_informative):
    made = make_sparse_classification(
        design, n_rows=3, n_features=30, n_informative=n_informative, random_state=0
    )
    np.testing.assert_array_equal(np.flatnonzero(made.coef), np.arange(n_informative))
    np.testing.assert_array_equal(made.support, np.arange(n_informative))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"design": "sparse"}, "design='sparse'.*'correlated', 'threshold'"),
        ({"n_rows": 0}, "n_rows=0"),
        ({"n_informative": 0}, "n_informative=0"),
        ({"n_features": 10}, "n_informative=20 is not between 1 and n_features=10"),
    ],
)
def test_impossible_tables_are_refused(settings, message):
    with pytest.raises(InvalidArgument, match=message):
        make_sparse_classification(**settings)
