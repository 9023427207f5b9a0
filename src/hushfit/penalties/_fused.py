"""Penalties for ordered coefficients: neighbours become equal."""

from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.kernels.prox import fuse
from hushfit.penalties._penalty import as_rows, check_alpha, check_ratio
from hushfit.penalties._sparse import soft_threshold


@dataclass(frozen=True)
class TotalVariation:
    r"""Total variation :math:`g(z) = \alpha \sum_i |z_{i+1} - z_i|`: coefficients are piecewise
    constant.

    Its prox is exact and takes time proportional to the number of coefficients.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.

    See Also
    --------
    hushfit.constraints.graph : differences along the edges of a graph instead of a line.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import TotalVariation
    >>> TotalVariation(0.2).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 2.8, -0.1, -0.1])
    """

    alpha: float
    convex, separable, ridge = True, False, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def value(self, z: Vector) -> float:
        return self.alpha * float(np.abs(np.diff(z, axis=-1)).sum())

    def prox(self, v: Vector, step: float) -> Vector:
        return _fused(v, step * self.alpha)


@dataclass(frozen=True)
class FusedLasso:
    r"""Fused lasso :math:`g(z) = \alpha (r \|z\|_1 + (1 - r) \sum_i |z_{i+1} - z_i|)`.

    Coefficients are piecewise constant, and many pieces are zero. The prox fuses and then
    soft-thresholds: in this order the two proxes compose exactly (Friedman, Hastie, Hoefling and
    Tibshirani, 2007).

    Parameters
    ----------
    alpha : float
        Weight, at least 0.
    l1_ratio : float
        Share r of the lasso, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import FusedLasso
    >>> FusedLasso(0.2, l1_ratio=0.5).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 2.8, -0.2, -0. ])
    """

    alpha: float
    l1_ratio: float
    convex, separable, ridge = True, False, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_ratio(self.l1_ratio, "total variation")

    def value(self, z: Vector) -> float:
        variation = float(np.abs(np.diff(z, axis=-1)).sum())
        return self.alpha * (
            self.l1_ratio * float(np.abs(z).sum()) + (1 - self.l1_ratio) * variation
        )

    def prox(self, v: Vector, step: float) -> Vector:
        weight = step * self.alpha
        return soft_threshold(_fused(v, weight * (1 - self.l1_ratio)), weight * self.l1_ratio)


def _fused(v: Vector, weight: float) -> Vector:
    """Prox of ``weight`` times the total variation of each row."""
    if weight == 0.0:
        return v.copy()  # the loop would return v up to rounding
    z: Vector = fuse(as_rows(v), weight)
    return z.reshape(v.shape)
