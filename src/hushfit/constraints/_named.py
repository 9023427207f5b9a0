"""Constraints for structured penalties. All are sparse and, except `consensus`, of the form A x - z
= 0.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from hushfit._typing import IntVector, Vector
from hushfit.constraints._constraint import Constraint, LinearMap
from hushfit.errors import InvalidArgument


def identity(d: int) -> Constraint:
    """Tie ``z`` to ``x`` itself, for penalties on the coefficients.

    Parameters
    ----------
    d : int
        Number of coefficients, at least 1.

    Returns
    -------
    Constraint
        ``x - z = 0``.

    Examples
    --------
    >>> from hushfit.constraints import identity
    >>> identity(3).A.toarray()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    _check_count("d", d, 1)
    return generalised(sparse.eye_array(d, format="csr"))


def chain(d: int) -> Constraint:
    """Tie ``z`` to the differences of neighbouring coefficients, for the fused lasso.

    Parameters
    ----------
    d : int
        Number of coefficients, at least 2.

    Returns
    -------
    Constraint
        ``x[i + 1] - x[i] - z[i] = 0`` for every i below ``d - 1``.

    Examples
    --------
    >>> from hushfit.constraints import chain
    >>> chain(3).A.toarray()
    array([[-1.,  1.,  0.],
           [ 0., -1.,  1.]])
    """
    _check_count("d", d, 2)
    return graph(np.column_stack([np.arange(d - 1), np.arange(1, d)]), d)


def graph(
    edges: ArrayLike, d: int, signs: ArrayLike | None = None, *, with_identity: bool = False
) -> Constraint:
    """Tie ``z`` to the differences of coefficients along the edges of a graph, for the graph-guided
    fused lasso.

    Parameters
    ----------
    edges : array of int, shape (n_edges, 2)
        Pairs of different coefficients, each pair once, in either order. The graph must be public
        or the result of a release that was charged for.
    d : int
        Number of coefficients.
    signs : array of shape (n_edges,), optional
        +1 for coefficients that should be equal (the default), -1 for coefficients that should be
        opposite.
    with_identity : bool, default=False
        Whether to append the identity below the edges, so that ``z`` also contains the coefficients
        themselves and one lasso on ``z`` makes them both smooth along the graph and sparse. This is
        the ``A = [phi; I]`` of the papers on stochastic ADMM. It has more rows than columns, hence
        never full row rank.

    Returns
    -------
    Constraint
        ``x[j] - sign * x[i] - z[e] = 0`` for every edge e = (i, j), then ``x - z[n_edges:] = 0`` if
        ``with_identity``.

    Examples
    --------
    >>> from hushfit.constraints import graph
    >>> graph([(0, 1), (0, 2)], 3, signs=[1, -1]).A.toarray()
    array([[-1.,  1.,  0.],
           [ 1.,  0.,  1.]])
    """
    pairs = _checked_edges(edges, d)
    kept = _checked_signs(signs, len(pairs))
    rows = np.arange(len(pairs))
    entries = np.concatenate([-kept, np.ones(len(pairs))])
    differences = sparse.csr_array(
        (entries, (np.tile(rows, 2), np.concatenate([pairs[:, 0], pairs[:, 1]]))),
        shape=(len(pairs), d),
    )
    if not with_identity:
        return generalised(differences)
    return generalised(sparse.vstack([differences, sparse.eye_array(d)], format="csr"))


def generalised(D: LinearMap) -> Constraint:
    """Tie ``z`` to any linear map of the coefficients, for the generalised lasso.

    Parameters
    ----------
    D : array or scipy.sparse array
        One row for each entry of ``z``, one column for each coefficient.

    Returns
    -------
    Constraint
        ``D x - z = 0``.

    Examples
    --------
    >>> from hushfit.constraints import generalised
    >>> generalised([[1.0, -1.0, 0.0]]).A
    array([[ 1., -1.,  0.]])
    """
    D = D if sparse.issparse(D) else np.asarray(D)
    if D.ndim != 2 or D.shape[0] == 0:
        raise InvalidArgument(
            f"D has shape {D.shape}, which is no equation. Give a matrix with at least one row."
        )
    rows = D.shape[0]
    return Constraint(D, -sparse.eye_array(rows, format="csr"), np.zeros(rows))


def group(groups: Sequence[Sequence[int]], d: int) -> Constraint:
    """Give every group its own copy of its coefficients, for group penalties whose groups overlap.

    Parameters
    ----------
    groups : sequence of sequences of int
        Non-empty sets of coefficients; they may overlap and need not cover everything.
    d : int
        Number of coefficients.

    Returns
    -------
    Constraint
        ``x[groups[k]] - z[copied_groups(groups)[k]] = 0`` for every k.

    See Also
    --------
    copied_groups : the groups of ``z``, for `hushfit.penalties.GroupLasso`.

    Examples
    --------
    >>> from hushfit.constraints import copied_groups, group
    >>> groups = [(0, 1), (1, 2)]
    >>> group(groups, 3).A.indices.tolist(), copied_groups(groups)
    ([0, 1, 1, 2], ((0, 1), (2, 3)))
    """
    if not groups or not all(len(set(members)) == len(members) > 0 for members in groups):
        raise InvalidArgument(
            f"groups={groups} are not non-empty sets of coefficients. Name every index once in a "
            "group."
        )
    members = np.array([i for some in groups for i in some], dtype=np.int64)
    _check_indices("groups", members, d)
    rows = np.arange(len(members))
    return generalised(
        sparse.csr_array((np.ones(len(members)), (rows, members)), shape=(len(members), d))
    )


def copied_groups(groups: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Indices of the copies made by `group`: disjoint groups of entries of ``z``.

    Parameters
    ----------
    groups : sequence of sequences of int
        As given to `group`.

    Returns
    -------
    tuple of tuples of int
        Consecutive indices, one tuple of the same length for each group.

    Examples
    --------
    >>> from hushfit.constraints import copied_groups
    >>> copied_groups([(0, 1), (1, 2)])
    ((0, 1), (2, 3))
    """
    ends = np.cumsum([len(members) for members in groups], dtype=np.int64)
    return tuple(
        tuple(range(int(end) - len(members), int(end)))
        for members, end in zip(groups, ends, strict=True)
    )


def consensus(n_blocks: int, d: int) -> Constraint:
    """Tie the coefficients of several owners to common ones.

    Parameters
    ----------
    n_blocks : int
        Number of owners, at least 1.
    d : int
        Number of coefficients of each, at least 1.

    Returns
    -------
    Constraint
        ``x_k - z = 0`` for every owner k, where ``x`` holds ``x_1, ..., x_n`` one after the other.

    Examples
    --------
    >>> from hushfit.constraints import consensus
    >>> consensus(n_blocks=2, d=3).A.shape
    (6, 6)
    """
    _check_count("n_blocks", n_blocks, 1)
    _check_count("d", d, 1)
    common = sparse.vstack([sparse.eye_array(d)] * n_blocks, format="csr")
    return Constraint(sparse.eye_array(n_blocks * d, format="csr"), -common, np.zeros(n_blocks * d))


def _checked_edges(edges: ArrayLike, d: int) -> IntVector:
    """Edges as pairs of indices; refuse loops, repetitions and indices out of range."""
    pairs = np.asarray(edges)
    if (
        pairs.ndim != 2
        or pairs.shape[1] != 2
        or len(pairs) == 0
        or not np.issubdtype(pairs.dtype, np.integer)
    ):
        raise InvalidArgument(
            f"edges have shape {pairs.shape} and type {pairs.dtype}. Give at least one pair of "
            "integers."
        )
    _check_indices("edges", pairs, d)
    either_way = np.sort(pairs, axis=1)
    if (either_way[:, 0] == either_way[:, 1]).any():
        loop = pairs[np.argmax(either_way[:, 0] == either_way[:, 1])]
        raise InvalidArgument(
            f"edge {tuple(loop.tolist())} ties a coefficient to itself. Leave it out."
        )
    different, counts = np.unique(either_way, axis=0, return_counts=True)
    if len(different) < len(pairs):
        twice = different[np.argmax(counts)]
        raise InvalidArgument(
            f"edge {tuple(twice.tolist())} is listed {counts.max()} times. Name every pair once."
        )
    return pairs.astype(np.int64)


def _checked_signs(signs: ArrayLike | None, count: int) -> Vector:
    """One sign per edge; all +1 if not given."""
    kept = np.ones(count) if signs is None else np.asarray(signs, dtype=np.float64)
    if kept.shape != (count,) or not (np.abs(kept) == 1).all():
        raise InvalidArgument(
            f"signs={kept} are not {count} numbers +1 or -1. Give one for each edge."
        )
    return kept


def _check_indices(name: str, indices: IntVector, d: int) -> None:
    """Refuse indices out of range."""
    outside = indices[(indices < 0) | (indices >= d)]
    if outside.size:
        raise InvalidArgument(
            f"{name} name coefficient {outside[0]}, but with d={d} they are 0 to {d - 1}."
        )


def _check_count(name: str, value: int, least: int) -> None:
    """Refuse sizes that leave no equation."""
    if value < least:
        raise InvalidArgument(f"{name}={value} leaves no equation. Give at least {least}.")
