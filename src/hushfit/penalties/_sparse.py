"""Penalties that set coefficients to zero."""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.penalties._penalty import check_alpha


@dataclass(frozen=True)
class L1:
    r"""Lasso penalty :math:`g(z) = \alpha \|z\|_1`; its prox is soft-thresholding.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.
    """

    alpha: float

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def value(self, z: Vector) -> float:
        return self.alpha * float(np.abs(z).sum())

    def prox(self, v: Vector, step: float) -> Vector:
        return soft_threshold(v, step * self.alpha)


@dataclass(frozen=True)
class ElasticNet:
    r"""Mixture of lasso and ridge, :math:`g(z) = \alpha (r \|z\|_1 + \frac{1 - r}{2} \|z\|^2)`, as in scikit-learn.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.
    l1_ratio : float
        Share r of the lasso, between 0 and 1.
    """

    alpha: float
    l1_ratio: float

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if not 0 <= self.l1_ratio <= 1:
            raise InvalidArgument(f"l1_ratio={self.l1_ratio} is outside [0, 1]. Use 1 for the lasso and 0 for ridge.")

    def value(self, z: Vector) -> float:
        return self.alpha * float(self.l1_ratio * np.abs(z).sum() + 0.5 * (1 - self.l1_ratio) * (z @ z))

    def prox(self, v: Vector, step: float) -> Vector:
        weight = step * self.alpha
        return soft_threshold(v, weight * self.l1_ratio) / (1 + weight * (1 - self.l1_ratio))


@dataclass(frozen=True)
class GroupLasso:
    r"""Group lasso :math:`g(z) = \alpha \sum_G \sqrt{|G|} \, \|z_G\|`: a group enters or leaves the model as a whole.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.
    groups : tuple of tuples of int
        Disjoint sets of coefficient indices. Coefficients in no group are not penalised.
    """

    alpha: float
    groups: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        members = [i for group in self.groups for i in group]
        if not all(self.groups) or len(set(members)) < len(members) or min(members, default=0) < 0:
            raise InvalidArgument(
                f"groups={self.groups} are not disjoint, non-empty sets of indices >= 0. Name every index at most once."
            )

    def value(self, z: Vector) -> float:
        return self.alpha * sum(math.sqrt(len(group)) * float(np.linalg.norm(z[list(group)])) for group in self.groups)

    def prox(self, v: Vector, step: float) -> Vector:
        z = v.copy()
        for group in self.groups:
            index = list(group)
            threshold = step * self.alpha * math.sqrt(len(group))
            length = float(np.linalg.norm(v[index]))
            z[index] *= 1 - threshold / length if length > threshold else 0.0
        return z


def soft_threshold(v: Vector, threshold: float) -> Vector:
    """Move every entry towards zero by ``threshold``, stopping at zero."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)
