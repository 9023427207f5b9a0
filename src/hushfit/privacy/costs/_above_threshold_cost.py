"""Cost of an above-threshold gate (sparse vector technique).

Noisy answers are compared with a noisy threshold until one exceeds it. There are at most
``queries`` comparisons; only the number of the first success is released. Proof:
docs/proofs/above_threshold.md.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import log_ndtr

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels.above_threshold import log_growth, not_dominated
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs._curves import chord, gaussian_curve, pure_curve
from hushfit.privacy.costs._paired_cost import PairedCost
from hushfit.privacy.costs._release_cost import Directions

GATE_NOISES: Final = ("laplace", "gaussian")
# Orders at which the recursion is evaluated; a chord of the log moment covers those in between.
_ORDERS: Final = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0)
_SHIFTS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_MIN_POINTS, _MAX_POINTS = 4001, 20_001
# Per query; covers floating-point error, and that the noise is drawn on a grid of 2**-30 of its
# scale.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class AboveThresholdCost(PairedCost, kind="above-threshold"):
    """One above-threshold gate with a bounded number of adaptively chosen queries.

    Parameters
    ----------
    noise : {"laplace", "gaussian"}
    threshold_multiplier, query_multiplier : float
        Noise scale over the sensitivity of a query under the relation, for the threshold and for
        each query.
    queries : int
        Largest number of queries. Laplace noise has a bound for any number, Gaussian noise has
        none.
    count : int, default=1
        Number of such gates.

    Examples
    --------
    >>> from hushfit.privacy import AboveThresholdCost, epsilon_of
    >>> cost = AboveThresholdCost("laplace", 10.0, 20.0, queries=8)
    >>> round(epsilon_of(cost, 1e-6, "replace-one"), 3)
    0.2
    """

    noise: str
    threshold_multiplier: float
    query_multiplier: float
    queries: int

    def __post_init__(self) -> None:
        if self.noise not in GATE_NOISES:
            raise InvalidArgument(
                f"noise={self.noise!r} is not known. Use 'laplace' or 'gaussian'."
            )
        _check.store(
            self,
            threshold_multiplier=_check.non_negative(
                self.threshold_multiplier, "threshold_multiplier"
            ),
            query_multiplier=_check.non_negative(self.query_multiplier, "query_multiplier"),
            queries=_check.count(self.queries, "queries"),
            count=_check.count(self.count),
        )

    @property
    def reveals_all(self) -> bool:
        # A threshold without noise is public, but the comparisons with it are still noisy.
        return self.query_multiplier == 0 or (
            self.noise == "laplace" and self.threshold_multiplier == 0
        )

    @property
    def epsilon(self) -> float:
        """Pure epsilon of Laplace noise, for any number of queries; infinite for Gaussian noise."""
        if self.noise == "gaussian" or self.reveals_all:
            return math.inf
        return 1 / self.threshold_multiplier + 2 / self.query_multiplier

    @property
    def mu(self) -> float:
        """Mu of the Gaussian answers that the gate is a function of; infinite for Laplace noise."""
        if self.noise == "laplace" or self.reveals_all:
            return math.inf
        return math.sqrt(self.queries) / self.query_multiplier

    def directions(self, relation: Relation) -> Directions:
        from hushfit.privacy.accounting.pld import gaussian_pair, pure_pair

        if self.noise == "laplace":
            return Directions(pure_pair(self.epsilon, self.count))
        return Directions(gaussian_pair(self.mu, self.count))

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        if self.reveals_all:
            return np.full_like(orders, math.inf)
        known, moments = _recursion(_once(self))
        by_recursion = chord(orders, known, moments) / (orders - 1)
        return np.minimum(by_recursion, self.closed_curve(orders))

    def closed_curve(self, orders: Vector) -> Vector:
        """The smallest of the bounds that need no recursion."""
        s1, s2, K = self.threshold_multiplier, self.query_multiplier, self.queries
        if self.noise == "laplace":
            return np.minimum(
                pure_curve(orders, self.epsilon), laplace_curve(orders, 1 / s1) + 2 / s2
            )
        threshold = gaussian_curve(orders, 1 / s1) if s1 > 0 else np.full_like(orders, math.inf)
        crude = threshold + gaussian_curve(orders, 2 / s2) + math.log(K + 1) / (orders - 1)
        return np.minimum(crude, gaussian_curve(orders, self.mu))


def _once(cost: AboveThresholdCost) -> AboveThresholdCost:
    """The same gate with count 1."""
    return AboveThresholdCost(
        cost.noise, cost.threshold_multiplier, cost.query_multiplier, cost.queries
    )


def laplace_curve(orders: Vector, shift: float) -> Vector:
    """Renyi divergence of Laplace noise of scale 1 from the same noise shifted by ``shift``."""
    if shift == 0:
        return np.zeros_like(orders)
    up = np.log(orders / (2 * orders - 1)) + shift * (orders - 1)
    down = np.log((orders - 1) / (2 * orders - 1)) - shift * orders
    return np.asarray(np.logaddexp(up, down) / (orders - 1))


@lru_cache(maxsize=64)
def _recursion(gate: AboveThresholdCost) -> tuple[Vector, Vector]:
    """Log moments at the orders of the recursion, and at order 1, where it is 0."""
    found = [(order - 1) * recursion_bound(gate, order) for order in _ORDERS]
    return np.array((1.0, *_ORDERS)), np.array((0.0, *found))


def recursion_bound(gate: AboveThresholdCost, order: float) -> float:
    r"""Bound on the Renyi divergence of a gate, minimised over shifts of the threshold.

    For each shift the bound adds the divergences of the threshold and of the queries.

    Parameters
    ----------
    gate : AboveThresholdCost
    order : float
        Above 1.

    Returns
    -------
    float
        :math:`\min_\tau \epsilon_{thr}(a; \tau) + \log V_K / (a - 1)`.
    """

    def total(shift: float) -> float:
        return _threshold(gate, order, shift) + _queries(gate, order, shift) / (order - 1)

    return min(total(shift) for shift in _SHIFTS)


def _threshold(gate: AboveThresholdCost, order: float, shift: float) -> float:
    """Divergence of the noisy threshold from itself shifted by ``shift`` sensitivities."""
    if shift == 0:
        return 0.0
    if gate.threshold_multiplier == 0:
        return math.inf
    scaled_shift, orders = shift / gate.threshold_multiplier, np.array([order])
    curve = (
        laplace_curve(orders, scaled_shift)
        if gate.noise == "laplace"
        else gaussian_curve(orders, scaled_shift)
    )
    return float(curve[0])


def _queries(gate: AboveThresholdCost, order: float, shift: float) -> float:
    """log V_K: the worst case over stopping distributions, given the threshold."""
    x, slack = _points(gate, order)
    stop, go = np.concatenate(
        [_exponents(gate.noise, x, order, change) for change in _comparison_shifts(gate, shift)],
        axis=1,
    )
    down = np.lexsort((-stop, -go))
    maximal = down[not_dominated(stop[down], go[down])][::-1]
    return float(log_growth(stop[maximal], go[maximal], gate.queries, slack + _ROUNDING))


def _comparison_shifts(gate: AboveThresholdCost, shift: float) -> tuple[float, float]:
    """Largest shifts of a comparison by a neighbour, in units of the noise on a query.

    The bracket is convex in the shift, so the end points are worst.
    """
    return (shift - 1) / gate.query_multiplier, (shift + 1) / gate.query_multiplier


def _points(gate: AboveThresholdCost, order: float) -> tuple[Vector, float]:
    """Grid of the recursion, in units of the noise on a query, and its interpolation error.

    Beyond the last point on either side the bracket only tends to V or to 1, which are both
    included anyway. The range is symmetric: the branch that stops is largest far to the right, the
    one that continues far to the left.
    """
    # The second derivative of a log tail is at least -1 (Gaussian) or -2 (Laplace).
    s2 = gate.query_multiplier
    bend, reach = (1.0, 14 + 2.2 * order / s2) if gate.noise == "gaussian" else (2.0, 20 + 4 / s2)
    # Fine enough that the error of all queries together is a hundredth of the cost of one
    # comparison, within limits.
    wanted = math.sqrt(0.08 / (order * bend * gate.queries)) * min(1.0, math.sqrt(order) / s2)
    count = min(max(_MIN_POINTS, math.ceil(2 * reach / wanted)), _MAX_POINTS)
    x = np.linspace(-reach, reach, count)
    return x, order * bend * float(x[1] - x[0]) ** 2 / 8


def _exponents(noise: str, x: Vector, order: float, change: float) -> Vector:
    """log of S(x)^a S(x+change)^(1-a), and the same for 1 - S, with S the tail of the noise."""
    tail = _log_laplace_tail if noise == "laplace" else _log_gaussian_tail
    stop = order * tail(x) + (1 - order) * tail(x + change)
    go = order * tail(-x) + (1 - order) * tail(-x - change)
    return np.stack([stop, go])


def _log_gaussian_tail(x: Vector) -> Vector:
    return np.asarray(log_ndtr(-x))


def _log_laplace_tail(x: Vector) -> Vector:
    return np.where(x >= 0, math.log(0.5) - x, np.log1p(-0.5 * np.exp(np.minimum(x, 0.0))))
