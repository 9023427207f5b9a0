"""Measures of support recovery: how well a fit found the relevant features.

For known truth; functions of released and public arrays only.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hushfit._typing import AnyArray, IntVector
from hushfit.errors import InvalidArgument


class ZeroedCounts(NamedTuple):
    """How many coefficients a fit set to zero.

    Attributes
    ----------
    correct : int
        Those whose true value is zero. Its mean over data sets is known as C.A.N.
    incorrect : int
        Those whose true value is not zero. Its mean over data sets is known as IC.A.N.
    """

    correct: int
    incorrect: int


def ranked(coef: ArrayLike) -> IntVector:
    """Rank features by the size of their coefficients.

    Parameters
    ----------
    coef : array of shape (n_features,) or (n_outputs, n_features)
        Coefficients without the intercept, of features on a common scale. With several outputs the
        size is the norm of a column.

    Returns
    -------
    int array of shape (n_features,)
        Indices of the features, largest first; equal sizes keep the order of the features.

    Examples
    --------
    >>> from hushfit.support_recovery import ranked
    >>> ranked([0.1, -3.0, 2.0])
    array([1, 2, 0])
    """
    sizes = np.linalg.norm(np.atleast_2d(np.asarray(coef, dtype=np.float64)), axis=0)
    return np.argsort(-sizes, kind="stable")


def coverage(ranking: ArrayLike, support: ArrayLike, k: int) -> float:
    r"""Share of the relevant features among the first ``k`` of a ranking, :math:`\xi_k`.

    Parameters
    ----------
    ranking : array of int
        Indices of features, most relevant first, each once; see `ranked`.
    support : array of int
        Indices of the truly relevant features.
    k : int
        How many features are selected, at least 1 and at most as many as are ranked.

    Returns
    -------
    float
        Between 0 and 1; at most ``k / len(support)``.

    Examples
    --------
    >>> from hushfit.support_recovery import coverage
    >>> coverage([4, 0, 2, 1, 3], support=[0, 1], k=3)
    0.5
    """
    order, relevant = _indices("ranking", ranking), _indices("support", support)
    if not 1 <= k <= len(order):
        raise InvalidArgument(
            f"k={k} is not between 1 and the {len(order)} ranked features. Select some of them."
        )
    return float(np.isin(relevant, order[:k]).mean())


def zeroed_counts(coef: ArrayLike, true_coef: ArrayLike) -> ZeroedCounts:
    """Count the coefficients that were set to zero rightly and wrongly.

    Parameters
    ----------
    coef : array
        Estimated coefficients. Zero means exactly zero: threshold a dense estimate first.
    true_coef : array of the same shape
        True coefficients.

    Returns
    -------
    ZeroedCounts
        ``correct, incorrect``.

    Examples
    --------
    >>> from hushfit.support_recovery import zeroed_counts
    >>> zeroed_counts([0.0, 0.0, 0.3, 2.0], [0.0, 1.0, 0.0, 2.0])
    ZeroedCounts(correct=1, incorrect=1)
    """
    estimate, truth = np.asarray(coef), np.asarray(true_coef)
    if estimate.shape != truth.shape:
        raise InvalidArgument(
            f"coef has shape {estimate.shape} and true_coef {truth.shape}. Give both for the same "
            "features."
        )
    zero = estimate == 0
    return ZeroedCounts(int((zero & (truth == 0)).sum()), int((zero & (truth != 0)).sum()))


def _indices(name: str, values: ArrayLike) -> AnyArray:
    """Distinct integers, at least one."""
    indices = np.asarray(values)
    if (
        indices.ndim != 1
        or indices.size == 0
        or not np.issubdtype(indices.dtype, np.integer)
        or len(np.unique(indices)) < indices.size
    ):
        raise InvalidArgument(
            f"{name} of shape {indices.shape} and type {indices.dtype} is not a list of different "
            "indices. Give each feature once; turn a mask into indices with numpy.flatnonzero."
        )
    return indices
