"""Multinomial logistic loss."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels.codes import SOFTMAX
from hushfit.losses._loss import KernelLoss


@dataclass(frozen=True)
class Softmax:
    r"""Multinomial logistic loss :math:`\log \sum_k e^{t_k} - t_y` for labels 0, ..., K - 1.

    Parameters
    ----------
    n_classes : int
        Number of classes K, at least 2; margins have shape (n, K).

    Examples
    --------
    >>> from hushfit.losses import Softmax
    >>> Softmax(n_classes=3).outputs
    3
    """

    n_classes: int

    # The slope is p - e_y with p = softmax(t): ||p - e_y||^2 = (1 - p_y)^2 + sum_{k != y} p_k^2 <=
    # 2 (1 - p_y)^2 <= 2, approached when all probability is on one wrong class.
    slope_bound = math.sqrt(2)
    # v' (diag(p) - p p') v is the variance of v_k under p. A variance is at most a quarter of the
    # squared range, and (v_a - v_b)^2 <= 2 ||v||^2, so the largest eigenvalue is at most 1/2:
    # attained for p uniform on two classes.
    smoothness = 0.5
    kernel = KernelLoss(SOFTMAX, 0.0)
    one_sign = False
    # s(y) is the unit vector of the class.
    label_diameter = math.sqrt(2)

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise InvalidArgument(
                f"n_classes={self.n_classes} leaves nothing to learn. Give at least 2 public "
                "classes."
            )

    @property
    def label_centre(self) -> float:
        return 1 / self.n_classes

    @property
    def outputs(self) -> int:
        return self.n_classes

    @property
    def hessian_rank(self) -> int:
        return self.n_classes - 1  # its rows add up to zero

    @property
    def hessian_trace(self) -> float:
        return 1 - 1 / self.n_classes  # 1 - ||p||^2, for p uniform on all classes

    def value(self, t: Vector, y: Vector) -> Vector:
        value: Vector = logsumexp(t, axis=1) - t[np.arange(len(t)), y.astype(np.int64)]
        return value

    def slope(self, t: Vector, y: Vector) -> Vector:
        slope: Vector = softmax(t, axis=1)
        slope[np.arange(len(t)), y.astype(np.int64)] -= 1.0
        return slope

    def label_deviation(self, y: Vector) -> Vector:
        known = np.isfinite(y)
        place = np.clip(np.where(known, y, 0.0), 0, self.n_classes - 1).astype(np.int64)
        deviation: Vector = np.eye(self.n_classes)[place] - self.label_centre
        deviation[~known] = 0.0
        return deviation

    def log_partition(self, t: Vector) -> Vector:
        value: Vector = logsumexp(t, axis=1)
        return value

    def mean(self, t: Vector) -> Vector:
        mean: Vector = softmax(t, axis=1)
        return mean

    def variance(self, t: Vector) -> Vector:
        p = self.mean(t)
        return p * (1 - p)
