"""One-vs-rest loss: several binary problems."""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.losses._loss import KernelLoss, Loss


@dataclass(frozen=True)
class OneVsRest:
    """Sum of K binary losses, the k-th with label +1 for class k and -1 for all others.

    All K problems use one gradient of K blocks, so one budget covers the whole model.

    Parameters
    ----------
    loss : Loss
        Loss of one margin with labels -1 and +1.
    n_classes : int
        Number of classes K, at least 2; margins have shape (n, K), labels are 0, ..., K - 1.

    Examples
    --------
    >>> from hushfit.losses import Logistic, OneVsRest
    >>> OneVsRest(Logistic(), n_classes=3).outputs
    3
    """

    loss: Loss
    n_classes: int
    one_sign = False

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise InvalidArgument(
                f"n_classes={self.n_classes} leaves nothing to learn. Give at least 2 public "
                "classes."
            )

    @property
    def outputs(self) -> int:
        return self.n_classes

    @property
    def hessian_rank(self) -> int:
        return self.n_classes * self.loss.hessian_rank

    @property
    def hessian_trace(self) -> float:
        return self.n_classes * self.loss.hessian_trace

    @property
    def slope_bound(self) -> float:
        return math.sqrt(self.n_classes) * self.loss.slope_bound

    @property
    def smoothness(self) -> float:
        return self.loss.smoothness  # the Hessian is diagonal

    @property
    def kernel(self) -> KernelLoss:
        return self.loss.kernel

    def value(self, t: Vector, y: Vector) -> Vector:
        value: Vector = self.loss.value(t, self._signs(y)).sum(axis=1)
        return value

    def slope(self, t: Vector, y: Vector) -> Vector:
        return self.loss.slope(t, self._signs(y))

    def _signs(self, y: Vector) -> Vector:
        """Labels as an (n, K) array of -1 and +1."""
        return np.where(y.astype(np.int64)[:, None] == np.arange(self.n_classes), 1.0, -1.0)
