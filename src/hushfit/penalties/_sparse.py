"""Penalties that set coefficients to zero, one by one."""

from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels.prox import decreasing
from hushfit.penalties._penalty import (
    as_rows,
    check_alpha,
    check_fits,
    check_ratio,
    checked_weights,
)


@dataclass(frozen=True)
class L1:
    r"""Lasso penalty :math:`g(z) = \alpha \|z\|_1`; its prox is soft-thresholding.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import L1
    >>> L1(0.2).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 2.8, -0.3,  0. ])
    """

    alpha: float
    convex, separable, ridge = True, True, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def value(self, z: Vector) -> float:
        return self.alpha * float(np.abs(z).sum())

    def prox(self, v: Vector, step: float) -> Vector:
        return soft_threshold(v, step * self.alpha)


@dataclass(frozen=True, eq=False)
class WeightedL1:
    r"""Lasso with a weight for each coefficient, :math:`g(z) = \sum_j \omega_j |z_j|`.

    Parameters
    ----------
    weights : array
        Finite and at least 0; 0 leaves a coefficient free. Either one for each feature, the same
        for all outputs, or an array of the shape of the coefficients. A copy is kept.

    See Also
    --------
    FoldedConcave : penalties whose linearisation is a weighted lasso.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import WeightedL1
    >>> WeightedL1(np.array([0.0, 1.0, 1.0])).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 3., -0.,  0.])
    """

    weights: Vector
    convex, separable, ridge = True, True, None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", checked_weights(self.weights))

    def value(self, z: Vector) -> float:
        check_fits(self.weights, z)
        return float((self.weights * np.abs(z)).sum())

    def prox(self, v: Vector, step: float) -> Vector:
        check_fits(self.weights, v)
        return soft_threshold(v, step * self.weights)


@dataclass(frozen=True)
class ElasticNet:
    r"""Mixture of lasso and ridge, :math:`g(z) = \alpha (r \|z\|_1 + \frac{1 - r}{2} \|z\|^2)`, as
    in scikit-learn.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.
    l1_ratio : float
        Share r of the lasso, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import ElasticNet
    >>> ElasticNet(0.2, l1_ratio=0.5).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 2.636, -0.364,  0.   ])
    """

    alpha: float
    l1_ratio: float
    convex, separable, ridge = True, True, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_ratio(self.l1_ratio, "ridge")

    def value(self, z: Vector) -> float:
        return self.alpha * float(
            self.l1_ratio * np.abs(z).sum() + 0.5 * (1 - self.l1_ratio) * np.vdot(z, z)
        )

    def prox(self, v: Vector, step: float) -> Vector:
        weight = step * self.alpha
        return soft_threshold(v, weight * self.l1_ratio) / (1 + weight * (1 - self.l1_ratio))


@dataclass(frozen=True, eq=False)
class Slope:
    r"""Ordered lasso :math:`g(z) = \sum_i \omega_i |z|_{(i)}`: the largest coefficient has the
    largest weight.

    Coefficients that are nearly equal in size become equal.

    Parameters
    ----------
    weights : array
        One for each feature, finite, at least 0, non-increasing. A copy is kept.

    Notes
    -----
    The prox keeps signs and order. It subtracts ``step * weights`` from the sorted absolute values
    and projects onto the non-increasing, non-negative vectors by pooling adjacent violators.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import Slope
    >>> Slope(np.array([0.3, 0.2, 0.1])).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 2.7, -0.3,  0. ])
    """

    weights: Vector
    convex, separable, ridge = True, False, None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", checked_weights(self.weights))
        if self.weights.ndim > 1 or (np.diff(self.weights) > 0).any():
            raise InvalidArgument(
                f"weights={self.weights} are not a vector that never increases. Sort them, largest "
                "first."
            )

    def value(self, z: Vector) -> float:
        check_fits(self.weights, z)
        return float((-np.sort(-np.abs(z), axis=-1) @ self.weights).sum())

    def prox(self, v: Vector, step: float) -> Vector:
        check_fits(self.weights, v)
        rows = as_rows(v)
        order = np.argsort(-np.abs(rows), axis=1, kind="stable")
        sizes = decreasing(np.take_along_axis(np.abs(rows), order, axis=1) - step * self.weights)
        z = np.empty_like(rows)
        np.put_along_axis(z, order, sizes, axis=1)
        return np.copysign(z, rows).reshape(v.shape)


def soft_threshold(v: Vector, threshold: float | Vector) -> Vector:
    """Move every entry towards zero by ``threshold``, stopping at zero."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)
