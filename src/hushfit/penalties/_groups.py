"""Penalties that set whole groups of coefficients to zero."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.errors import InvalidArgument
from hushfit.penalties._penalty import check_alpha, check_ratio
from hushfit.penalties._sparse import soft_threshold

Groups: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class GroupLasso:
    r"""Group lasso :math:`g(z) = \alpha \sum_G \sqrt{|G|} \, \|z_G\|`: a group enters or leaves the
    model as a whole.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.
    groups : tuple of tuples of int
        Disjoint sets of coefficient indices. Coefficients in no group are not penalised.

    See Also
    --------
    hushfit.constraints.group : how to penalise groups that overlap.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import GroupLasso
    >>> GroupLasso(1.0, ((0,), (1, 2))).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 2., -0.,  0.])
    """

    alpha: float
    groups: Groups
    convex, separable, ridge = True, False, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        _check_groups(self.groups)

    @cached_property
    def _layout(self) -> "_Layout":
        return _layout(self.groups)

    def value(self, z: Vector) -> float:
        return self.alpha * _sum_of_norms(z, self._layout)

    def prox(self, v: Vector, step: float) -> Vector:
        return _shrunk_groups(v, self._layout, step * self.alpha)


@dataclass(frozen=True)
class SparseGroup:
    r"""Sparse group lasso :math:`g(z) = \alpha (r \|z\|_1 + (1 - r) \sum_G \sqrt{|G|} \, \|z_G\|)`.

    Groups are set to zero as a whole, and the other groups are sparse inside. The prox thresholds
    the entries and then shrinks the groups: in this order the two proxes compose exactly.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.
    groups : tuple of tuples of int
        Disjoint sets of coefficient indices. Coefficients in no group have the lasso penalty only.
    l1_ratio : float
        Share r of the lasso, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import SparseGroup
    >>> SparseGroup(0.4, ((0,), (1, 2)), 0.5).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 2.6  , -0.017,  0.   ])
    """

    alpha: float
    groups: Groups
    l1_ratio: float
    convex, separable, ridge = True, False, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_ratio(self.l1_ratio, "the group lasso")
        _check_groups(self.groups)

    @cached_property
    def _layout(self) -> "_Layout":
        return _layout(self.groups)

    def value(self, z: Vector) -> float:
        norms = _sum_of_norms(z, self._layout)
        return self.alpha * (self.l1_ratio * float(np.abs(z).sum()) + (1 - self.l1_ratio) * norms)

    def prox(self, v: Vector, step: float) -> Vector:
        weight = step * self.alpha
        return _shrunk_groups(
            soft_threshold(v, weight * self.l1_ratio), self._layout, weight * (1 - self.l1_ratio)
        )


class _Layout(NamedTuple):
    """Groups as flat arrays: all members, the start of each group among them, and its size."""

    members: IntVector
    starts: IntVector
    sizes: IntVector


def _layout(groups: Groups) -> _Layout:
    """Lay out groups as flat arrays."""
    sizes = np.array([len(group) for group in groups], dtype=np.int64)
    members = np.array([i for group in groups for i in group], dtype=np.int64)
    return _Layout(members, np.cumsum(sizes) - sizes, sizes)


def _norms(z: Vector, layout: _Layout) -> Vector:
    """Norm of each group of each row."""
    squares = z[..., layout.members] ** 2
    return np.sqrt(np.add.reduceat(squares, layout.starts, axis=-1))


def _sum_of_norms(z: Vector, layout: _Layout) -> float:
    """Sum of the norms of the groups, each times the square root of its size."""
    return float((_norms(z, layout) @ np.sqrt(layout.sizes)).sum())


def _shrunk_groups(v: Vector, layout: _Layout, weight: float) -> Vector:
    """Shrink the norm of each group by ``weight`` times the square root of its size, stopping at
    zero.
    """
    length, threshold = _norms(v, layout), weight * np.sqrt(layout.sizes)
    share = np.divide(
        length - threshold, length, out=np.zeros_like(length), where=length > threshold
    )
    z = v.copy()
    z[..., layout.members] *= np.repeat(share, layout.sizes, axis=-1)
    return z


def _check_groups(groups: Groups) -> None:
    """Refuse groups that overlap, are empty or count from the end."""
    members = [i for group in groups for i in group]
    if not all(groups) or len(set(members)) < len(members) or min(members, default=0) < 0:
        raise InvalidArgument(
            f"groups={groups} are not disjoint, non-empty sets of indices >= 0. Name every index "
            "at most once; for groups that overlap see hushfit.constraints.group."
        )
