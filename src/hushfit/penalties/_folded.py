"""Folded concave penalties, which hardly bias large coefficients: p(|z_1|) + p(|z_2|) + ... with p
concave.

With p concave, ``step * p + (z - v)^2 / 2`` may have two local minima. Every prox here is a global
minimiser, for every step; if zero and a nonzero value tie, it is zero. References: Fan and Li
(2001) for SCAD, Zhang (2010) for MCP, Xu, Chang, Xu and Zhang (2012) for half thresholding, Zou and
Li (2008) for the linearisation.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels.prox import power_threshold
from hushfit.penalties._penalty import as_rows, check_alpha, check_floor
from hushfit.penalties._sparse import WeightedL1, soft_threshold


@dataclass(frozen=True)
class LHalf:
    r"""The :math:`L_{1/2}` penalty :math:`g(z) = \alpha \sum_j |z_j|^{1/2}`; its prox is half
    thresholding.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.

    Notes
    -----
    With :math:`t = \alpha \cdot step` the prox is 0 up to :math:`|v| = \frac{3}{2} t^{2/3}` and
    beyond it

    .. math:: \tfrac{2}{3} v \left(1 + \cos\left(\tfrac{2 \pi}{3} - \tfrac{2}{3} \arccos\left(
              \tfrac{t}{4} (|v| / 3)^{-3/2}\right)\right)\right).

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import LHalf
    >>> LHalf(0.2).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([2.942, 0.   , 0.   ])
    """

    alpha: float
    convex, separable, ridge = False, False, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def value(self, z: Vector) -> float:
        return self.alpha * float(np.sqrt(np.abs(z)).sum())

    def prox(self, v: Vector, step: float) -> Vector:
        weight = step * self.alpha
        z, stays = np.zeros(v.shape), ~(np.abs(v) <= 1.5 * weight ** (2 / 3))
        kept = v[stays]
        # The power is taken last, so that a tiny |v| does not overflow.
        angle = np.arccos((3 * (weight / 4) ** (2 / 3) / np.abs(kept)) ** 1.5)
        z[stays] = 2 / 3 * kept * (1 + np.cos(2 / 3 * (math.pi - angle)))
        return z

    def linearised(self, w: Vector, floor: float = 1e-2) -> WeightedL1:
        r"""Weighted lasso with weights :math:`\alpha / (2 \sqrt{|w_j| + floor})`.

        Parameters
        ----------
        w : array
            Where to linearise.
        floor : float, default=0.01
            Added to the sizes; the weights are then at most ``alpha / (2 * sqrt(floor))``.

        Returns
        -------
        WeightedL1
        """
        check_floor(floor)
        return WeightedL1(0.5 * self.alpha / np.sqrt(np.abs(w) + floor))


@dataclass(frozen=True)
class Lq:
    r"""The penalty :math:`g(z) = \alpha \sum_j |z_j|^q` for :math:`0 < q < 1`.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.
    q : float
        Power, strictly between 0 and 1. For 1/2 there is a closed form: `LHalf`.

    Notes
    -----
    With :math:`t = \alpha \cdot step` and :math:`b = (2 t (1 - q))^{1 / (2 - q)}` the prox is 0 up
    to :math:`|v| = b \, (2 - q) / (2 - 2 q)` and beyond it the larger root of
    :math:`z + t q z^{q - 1} = |v|`, found by a monotone Newton iteration to the last digits.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import Lq
    >>> Lq(0.2, q=0.5).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([2.942, 0.   , 0.   ])
    """

    alpha: float
    q: float
    convex, separable, ridge = False, False, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if not 0 < self.q < 1:
            raise InvalidArgument(
                f"q={self.q} is not strictly between 0 and 1. For q = 1 use L1, for q = 2 ScaledL2."
            )

    def value(self, z: Vector) -> float:
        return self.alpha * float((np.abs(z) ** self.q).sum())

    def prox(self, v: Vector, step: float) -> Vector:
        z: Vector = power_threshold(as_rows(v), step * self.alpha, self.q)
        return z.reshape(v.shape)

    def linearised(self, w: Vector, floor: float = 1e-2) -> WeightedL1:
        r"""Weighted lasso with weights :math:`\alpha q (|w_j| + floor)^{q - 1}`.

        Parameters
        ----------
        w : array
            Where to linearise.
        floor : float, default=0.01
            Added to the sizes; the weights are then at most ``alpha * q * floor**(q - 1)``.

        Returns
        -------
        WeightedL1
        """
        check_floor(floor)
        return WeightedL1(self.alpha * self.q * (np.abs(w) + floor) ** (self.q - 1))


@dataclass(frozen=True)
class SCAD:
    r"""Smoothly clipped absolute deviation: the lasso near zero, constant beyond :math:`a \alpha`.

    Parameters
    ----------
    alpha : float
        Slope at zero, at least 0. It also sets the scale of the coefficients: they are unbiased
        from :math:`a \alpha` on.
    a : float, default=3.7
        Where it becomes constant, in units of alpha; above 2.

    Notes
    -----
    The slope is :math:`\alpha` up to :math:`\alpha`, :math:`(a \alpha - |z|) / (a - 1)` up to
    :math:`a \alpha`, 0 beyond. For ``step < a - 1`` the prox is the textbook one: continuous,
    soft-thresholding up to :math:`\alpha (1 + step)`, the identity from :math:`a \alpha` on, linear
    in between. For longer steps the middle part of the prox objective is concave and the prox
    jumps: it is soft-thresholding up to :math:`\alpha (a + 1 + step) / 2` (:math:`\alpha \sqrt{step
    \, (a + 1)}` if ``step > a + 1``) and the identity beyond. The textbook formula would not return
    the minimiser there. To keep the prox continuous at a long step, raise ``a`` above ``1 + step``.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import SCAD
    >>> SCAD(0.2).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 3.   , -0.359,  0.   ])
    """

    alpha: float
    a: float = 3.7
    convex, separable, ridge = False, False, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if not 2 < self.a < math.inf:
            raise InvalidArgument(
                f"a={self.a} is not a finite number > 2. The usual choice is 3.7; large a is "
                "nearly L1."
            )

    def value(self, z: Vector) -> float:
        # alpha min(|z|, alpha), and beyond alpha the integral of the falling slope
        size, fall = np.abs(z), (self.a - 1) * self.alpha
        over = np.clip(size - self.alpha, 0.0, fall)
        return float(
            (
                self.alpha * np.minimum(size, self.alpha)
                + over * (self.alpha - 0.5 * over / (self.a - 1))
            ).sum()
        )

    def prox(self, v: Vector, step: float) -> Vector:
        soft = soft_threshold(v, step * self.alpha)
        if step >= self.a - 1:
            return np.where(np.abs(v) <= self._jump(step), soft, v)
        middle = (
            np.sign(v)
            * ((self.a - 1) * np.abs(v) - step * self.a * self.alpha)
            / (self.a - 1 - step)
        )
        return np.select(
            [np.abs(v) <= self.alpha * (1 + step), np.abs(v) <= self.a * self.alpha],
            [soft, middle],
            v,
        )

    def _jump(self, step: float) -> float:
        """Where the soft-thresholded value and v itself have the same prox objective, for long
        steps.
        """
        # Up to a + 1 the other local minimum is nonzero, beyond it is zero.
        return self.alpha * (
            (self.a + 1 + step) / 2 if step <= self.a + 1 else math.sqrt(step * (self.a + 1))
        )

    def linearised(self, w: Vector, floor: float = 1e-2) -> WeightedL1:
        """Weighted lasso with the slopes of the penalty at ``w`` as weights.

        Parameters
        ----------
        w : array
            Where to linearise.
        floor : float, default=0.01
            Not needed here: the slope is at most alpha.

        Returns
        -------
        WeightedL1
        """
        return WeightedL1(
            np.clip((self.a * self.alpha - np.abs(w)) / (self.a - 1), 0.0, self.alpha)
        )


@dataclass(frozen=True)
class MCP:
    r"""Minimax concave penalty: slope :math:`\alpha - |z| / \gamma` up to :math:`\gamma \alpha`,
    constant beyond.

    Parameters
    ----------
    alpha : float
        Slope at zero, at least 0. It also sets the scale of the coefficients: they are unbiased
        from :math:`\gamma \alpha` on.
    gamma : float, default=3.0
        Where it becomes constant, in units of alpha; above 0.

    Notes
    -----
    For ``step < gamma`` the prox is continuous: 0 up to :math:`\alpha \cdot step`, :math:`(|v| -
    \alpha \cdot step) / (1 - step / \gamma)` up to :math:`\gamma \alpha`, the identity beyond. For
    longer steps the prox objective is concave up to :math:`\gamma \alpha` and the prox is the hard
    threshold at :math:`\alpha \sqrt{\gamma \cdot step}`. To keep it continuous at a long step,
    raise ``gamma`` above ``step``.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import MCP
    >>> MCP(0.2).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 3.  , -0.45,  0.  ])
    """

    alpha: float
    gamma: float = 3.0
    convex, separable, ridge = False, False, None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if not 0 < self.gamma < math.inf:
            raise InvalidArgument(
                f"gamma={self.gamma} is not a finite number > 0. The usual choice is 3; large is "
                "nearly L1."
            )

    def value(self, z: Vector) -> float:
        size = np.minimum(np.abs(z), self.gamma * self.alpha)
        return float((size * (self.alpha - 0.5 * size / self.gamma)).sum())

    def prox(self, v: Vector, step: float) -> Vector:
        if step >= self.gamma:
            return np.where(np.abs(v) <= self.alpha * math.sqrt(self.gamma * step), 0.0, v)
        shrunk = soft_threshold(v, step * self.alpha) / (1 - step / self.gamma)
        return np.where(np.abs(v) <= self.gamma * self.alpha, shrunk, v)

    def linearised(self, w: Vector, floor: float = 1e-2) -> WeightedL1:
        """Weighted lasso with the slopes of the penalty at ``w`` as weights.

        Parameters
        ----------
        w : array
            Where to linearise.
        floor : float, default=0.01
            Not needed here: the slope is at most alpha.

        Returns
        -------
        WeightedL1
        """
        return WeightedL1(np.maximum(self.alpha - np.abs(w) / self.gamma, 0.0))
