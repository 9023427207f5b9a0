"""Penalties that couple the coefficients of several outputs."""

from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.penalties._penalty import check_alpha


@dataclass(frozen=True)
class Nuclear:
    r"""Nuclear norm :math:`g(Z) = \alpha \sum_i \sigma_i(Z)`: low-rank coefficients, for several
    outputs.

    Its prox soft-thresholds the singular values.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.

    Notes
    -----
    Coefficients have shape (outputs, features). A vector is one row: its only singular value is its
    norm.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import Nuclear
    >>> Nuclear(1.0).prox(np.diag([3.0, 0.5]), step=1.0).round(3)
    array([[2., 0.],
           [0., 0.]])
    """

    alpha: float
    convex, separable, ridge = True, False, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def value(self, z: Vector) -> float:
        return self.alpha * float(np.linalg.svd(np.atleast_2d(z), compute_uv=False).sum())

    def prox(self, v: Vector, step: float) -> Vector:
        left, singular, right = np.linalg.svd(np.atleast_2d(v), full_matrices=False)
        shrunk: Vector = (left * np.maximum(singular - step * self.alpha, 0.0)) @ right
        return shrunk.reshape(v.shape)
