"""Simulated rows with few relevant features: the two designs on which private feature selection is
measured.

Rows are Gaussian with covariance ``0.5**|i - j|`` in both. The designs differ in the true
coefficients and in the labels. Nothing here is private: the truth is known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.data.rows import Coins, SecureCoins, SeededCoins
from hushfit.errors import InvalidArgument

CORRELATION = 0.5


class SparseClassification(NamedTuple):
    """Simulated rows and their true coefficients.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        Features, as drawn: neither scaled nor clipped.
    y : int array of shape (n_rows,)
        Labels, +1 and -1.
    coef : array of shape (n_features,)
        True coefficients; the intercept is 0.
    support : int array of shape (n_informative,)
        Indices of the coefficients that are not zero.

    Examples
    --------
    >>> from hushfit.datasets import make_sparse_classification
    >>> made = make_sparse_classification(random_state=0)
    >>> made.X.shape[0] == len(made.y)
    True
    """

    X: Matrix
    y: IntVector
    coef: Vector
    support: IntVector


def make_sparse_classification(
    design: str = "correlated",
    *,
    n_rows: int | None = None,
    n_features: int = 100,
    n_informative: int | None = None,
    random_state: int | None = None,
) -> SparseClassification:
    """Simulate two classes that depend on a few features only.

    Parameters
    ----------
    design : {"correlated", "threshold"}, default="correlated"
        ``"correlated"`` is the design of [1]_, section 5.3: coefficients 0.5, 1, ..., 5 and then
        -0.5, -1, ..., -5; labels drawn with probability ``1 / (1 + exp(-x'w + e))``.
        ``"threshold"`` is that of [2]_, section 4.1: coefficients 10, 9, 8, 7, 6, 5, 4 and 0.5; the
        label is the sign of ``x'w + e``. In both, e is standard normal and drawn for each row.
    n_rows : int, optional
        As in the paper if not given: 40,000 and 11,000 (of which it tests on the last 1,000).
    n_features : int, default=100
    n_informative : int, optional
        As in the paper if not given: 20 and 8. Other numbers continue the pattern of
        ``"correlated"``, the second half being minus the first, and spread those of ``"threshold"``
        evenly from 10 to 4 before the last one.
    random_state : int, optional
        Seed. None draws from the operating system and is not reproducible.

    Returns
    -------
    SparseClassification
        ``X, y, coef, support``.

    Notes
    -----
    The second paper mentions a standard normal error but prints a formula without it, and lets the
    indices of the covariance run to n. Here the error is added to ``x'w``, as in the first paper,
    which follows the second; and the indices run over features. Both papers then scale the table,
    columns to [0, 1] or rows to norm at most 1. That is not done here: the estimators scale rows by
    themselves.

    References
    ----------
    .. [1] "Renyi differentially private ADMM for non-smooth regularized optimization",
           CODASPY 2020.
    .. [2] P. Wang and H. Zhang, "Differential privacy for sparse classification learning", 2019,
           arXiv:1908.00780.

    Examples
    --------
    >>> from hushfit.datasets import make_sparse_classification
    >>> X, y, coef, support = make_sparse_classification("threshold", n_rows=50, random_state=0)
    >>> X.shape, coef[support].tolist()
    ((50, 100), [10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 0.5])
    """
    if design not in _DESIGNS:
        raise InvalidArgument(
            f"design={design!r} is not known. Choose one of {', '.join(map(repr, _DESIGNS))}."
        )
    made = _DESIGNS[design]
    rows = made.n_rows if n_rows is None else n_rows
    informative = made.n_informative if n_informative is None else n_informative
    _check_sizes(rows, n_features, informative)
    coins = SecureCoins() if random_state is None else SeededCoins(random_state)
    X, support = _correlated_rows(rows, n_features, coins), np.arange(informative)
    coef = np.zeros(n_features)
    coef[support] = made.coefficients(informative)
    positive = made.labels(X @ coef + _normal(rows, coins), coins)
    return SparseClassification(X, np.where(positive, 1, -1), coef, support)


@dataclass(frozen=True)
class _Design:
    """Design of one of the papers; ``labels`` takes x'w + e and returns which rows are positive."""

    n_rows: int
    n_informative: int
    coefficients: Callable[[int], Vector]
    labels: Callable[[Vector, Coins], BoolVector]


def _rising_then_opposite(count: int) -> Vector:
    """0.5, 1, 1.5, ... for the first half, minus the same for the second."""
    rising = 0.5 * np.arange(1, (count + 1) // 2 + 1)
    return np.concatenate([rising, -rising])[:count]


def _falling_then_small(count: int) -> Vector:
    """From 10 down to 4, and a last one of 0.5 that is hard to find."""
    return np.append(np.linspace(10.0, 4.0, count - 1), 0.5)


_DESIGNS = {
    # The sign of e does not matter: its distribution is symmetric.
    "correlated": _Design(
        40_000, 20, _rising_then_opposite, lambda t, coins: _uniform(len(t), coins) < expit(t)
    ),
    "threshold": _Design(11_000, 8, _falling_then_small, lambda t, coins: t >= 0),
}


def _correlated_rows(n_rows: int, n_features: int, coins: Coins) -> Matrix:
    """Gaussian rows of unit variance, each feature correlated with its neighbour: an
    autoregression from left to right.
    """
    X = _normal(n_rows * n_features, coins).reshape(n_rows, n_features)
    fresh = np.sqrt(1 - CORRELATION**2)
    for j in range(1, n_features):
        X[:, j] = CORRELATION * X[:, j - 1] + fresh * X[:, j]
    return X


def _uniform(count: int, coins: Coins) -> Vector:
    """Numbers strictly between 0 and 1, from the upper 53 bits of each word."""
    return ((coins.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _normal(count: int, coins: Coins) -> Vector:
    normal: Vector = ndtri(_uniform(count, coins))
    return normal


def _check_sizes(n_rows: int, n_features: int, n_informative: int) -> None:
    """Refuse sizes that do not fit."""
    if n_rows < 1:
        raise InvalidArgument(f"n_rows={n_rows} leaves no table. Give at least 1.")
    if not 1 <= n_informative <= n_features:
        raise InvalidArgument(
            f"n_informative={n_informative} is not between 1 and n_features={n_features}. Ask for "
            "fewer, or for more features."
        )
