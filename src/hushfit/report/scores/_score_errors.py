"""Standard errors of scores on held-out rows, for independent rows or for independent persons.

A score moves by the sum of its rows' influences. If rows of one person are alike, their influences
are added first: the cluster-robust (sandwich) estimate. For the area under the ROC curve the
influences are the placement values of DeLong et al. (1988), summed over clusters as by Obuchowski
(1997).
"""

import numpy as np
from scipy.stats import rankdata

from hushfit._typing import AnyArray, IntVector, Vector


def standard_error(influences: Vector, persons: IntVector | None) -> float | None:
    """Standard error of a score, from the influence of each row on it.

    Parameters
    ----------
    influences : array of shape (n_rows,)
        They add up to zero.
    persons : int array of shape (n_rows,), optional
        Whose row each is; None takes rows as independent.

    Returns
    -------
    float or None
        None for a single row or person, which does not show any spread.
    """
    totals = influences if persons is None else _sums(influences, persons)
    count = len(totals)
    return None if count < 2 else float(np.sqrt(count / (count - 1) * np.sum(totals**2)))


def mean_influences(values: AnyArray) -> Vector:
    """Influence of each row on the mean of some values."""
    influences: Vector = (np.asarray(values, dtype=np.float64) - np.mean(values)) / len(values)
    return influences


def auc_influences(score: Vector, positive: AnyArray) -> Vector:
    """Influence of each row on the area under the ROC curve."""
    influences = np.empty(len(score))
    ranks = rankdata(score)
    for own in (positive, ~positive):
        others = len(score) - int(own.sum())
        below = (ranks[own] - rankdata(score[own])) / others  # share of the others that it beats
        beaten = below if own is positive else 1 - below
        influences[own] = (beaten - beaten.mean()) / own.sum()
    return influences


def _sums(values: Vector, persons: IntVector) -> Vector:
    _, codes = np.unique(persons, return_inverse=True)
    return np.asarray(np.bincount(codes, values), dtype=np.float64)


def plus_minus(error: float | None) -> str:
    """A standard error before a remark; nothing if there is none."""
    return "" if error is None else f"+- {error:.2g}; " if error >= 0.1 else f"+- {error:.4f}; "


def independence(persons: int | None, person_column: str | None) -> str:
    """What standard errors take as independent, in words.

    Parameters
    ----------
    persons : int, optional
        How many persons the rows are of, if they are known.
    person_column : str, optional
        The column of ids that the model's schema names.

    Returns
    -------
    str
    """
    if persons is not None:
        return (
            f"Standard errors (+-) are clustered by person: {persons:,} persons, by column "
            f"{person_column!r}."
        )
    rows = "Standard errors (+-) take rows as independent."
    if person_column is None:
        return rows
    return (
        f"{rows} They are too small if persons have several rows: the held-out rows have no "
        f"column {person_column!r} to cluster by."
    )
