r"""Privacy cost of the best of a random number of trials, and how the number is drawn.

Proof: docs/proofs/random_stopping.md.

If :math:`K \geq 1` trials are made and the best is published, its distribution is that of one
trial, reweighted by :math:`f'(q)`: f is the probability generating function of K and q the
probability that a trial is no better. So the divergence grows by how much :math:`f'` can differ
between neighbours, and q differs by no more than one trial allows.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
from scipy.special import ndtr

from hushfit._root import root
from hushfit._typing import Vector
from hushfit.errors import InvalidArgument, UnknownName
from hushfit.privacy._relation import Relation
from hushfit.privacy.accounting._normal_form import normal_form
from hushfit.privacy.accounting._renyi import lost_mass, rdp_curve
from hushfit.privacy.costs import (
    RENYI_ORDERS,
    ApproximateCost,
    Cost,
    GaussianCost,
    RdpCost,
    compose,
)

# Probabilities are computed to this many decimal digits and compared with a uniform number of this
# many 64-bit words.
_DIGITS = 70
_WORDS = 3

# Up to this mean the reserve for discrete noise covers the trials, however many are drawn.
MOST_TRIALS = 300

# Probabilities at which the bound is evaluated; in between it uses the worse end of each side, so
# any grid is safe.
_Z: Vector = np.concatenate([[-math.inf], np.linspace(-12.0, 12.0, 12_001), [math.inf]])
_Q, _REST = ndtr(_Z), ndtr(-_Z)


@dataclass(frozen=True)
class StoppingRule(ABC):
    """Distribution of the number of trials, at least one.

    Parameters
    ----------
    mean : float
        Expected number of trials, above 1 and at most `MOST_TRIALS`.
    """

    mean: float

    def __post_init__(self) -> None:
        if not 1 < self.mean <= MOST_TRIALS:
            raise InvalidArgument(
                f"{self.mean!r} expected trials are too few or too many. Give a number above 1 and "
                f"at most {MOST_TRIALS}, such as 10."
            )

    @abstractmethod
    def log_slope(self, q: Vector) -> Vector:
        """Logarithm of the derivative of the generating function.

        It increases, to log(mean) at 1.
        """

    @abstractmethod
    def probabilities(self) -> Iterator[Decimal]:
        """Probabilities of one trial, two trials and so on, exact to the digits of the context."""

    def draw(self, words: Callable[[int], Vector]) -> int:
        """Draw a number of trials from uniform 64-bit words.

        The distribution is exact to within 2**-180.
        """
        with localcontext() as context:
            context.prec = _DIGITS
            level = Decimal(0)
            for word in words(_WORDS).tolist():
                level = level * 2**64 + int(word)
            level /= Decimal(2) ** (64 * _WORDS)
            for trials, probability in enumerate(self.probabilities(), start=1):
                level -= probability
                # Terms this small vanish in the sum; the probability beyond them is negligible.
                if level < 0 or (
                    trials > self.mean and probability < Decimal(10) ** (10 - _DIGITS)
                ):
                    return trials
        raise AssertionError("the probabilities never end")


@dataclass(frozen=True)
class Geometric(StoppingRule):
    """Geometric distribution: stop after each trial with the same probability."""

    @property
    def stop(self) -> float:
        return 1 / self.mean

    def log_slope(self, q: Vector) -> Vector:
        return np.asarray(math.log(self.stop) - 2 * np.log1p(-(1 - self.stop) * q))

    def probabilities(self) -> Iterator[Decimal]:
        stop = Decimal(self.stop)
        probability = stop
        while True:
            yield probability
            probability *= 1 - stop


@dataclass(frozen=True)
class Logarithmic(StoppingRule):
    """Logarithmic distribution: often a single trial, rarely very many."""

    @property
    def stop(self) -> float:
        # The mean is (1/stop - 1) / log(1/stop).
        return math.exp(
            -root(lambda x: math.log(math.expm1(x) / x) - math.log(self.mean), 1e-9, 60.0)
        )

    def log_slope(self, q: Vector) -> Vector:
        stop = self.stop
        return np.asarray(math.log((1 - stop) / -math.log(stop)) - np.log1p(-(1 - stop) * q))

    def probabilities(self) -> Iterator[Decimal]:
        stop = Decimal(self.stop)
        power, whole = 1 - stop, -stop.ln()
        trials = 1
        while True:
            yield power / (trials * whole)
            power, trials = power * (1 - stop), trials + 1


@dataclass(frozen=True)
class TruncatedPoisson(StoppingRule):
    """Poisson distribution conditioned on being positive: rarely far from its mean."""

    @property
    def rate(self) -> float:
        return root(lambda rate: rate / -math.expm1(-rate) - self.mean, 1e-9, self.mean)

    def log_slope(self, q: Vector) -> Vector:
        rate = self.rate
        return np.asarray(math.log(rate) - math.log(-math.expm1(-rate)) + rate * (q - 1))

    def probabilities(self) -> Iterator[Decimal]:
        rate = Decimal(self.rate)
        probability, trials = rate / (rate.exp() - 1), 1
        while True:
            yield probability
            trials += 1
            probability = probability * rate / trials


_RULES: dict[str, type[StoppingRule]] = {
    "geometric": Geometric,
    "logarithmic": Logarithmic,
    "poisson": TruncatedPoisson,
}


def stopping_rule(name: str, mean: float) -> StoppingRule:
    """Stopping rule by name: "poisson", "geometric" or "logarithmic"."""
    if name not in _RULES:
        raise UnknownName(f"stopping={name!r} is not known. Use {', '.join(map(repr, _RULES))}.")
    return _RULES[name](mean)


def best_of_many(one: Cost, rule: StoppingRule, relation: Relation) -> Cost:
    """Cost of publishing the best of a random number of trials and nothing of the others.

    Parameters
    ----------
    one : Cost
        Of one trial: its candidate, drawn from a public distribution, its model and its score.
    rule : StoppingRule
    relation : Relation

    Returns
    -------
    RdpCost, or one composed with an ApproximateCost
        The latter if a trial has a failure probability: any trial may fail, so the probability is
        multiplied by their mean number.
    """
    orders = np.array(RENYI_ORDERS)
    curve, lost = rdp_curve(one, orders, relation), lost_mass(one)
    form = normal_form(one, relation)
    other = _least_by_gaussian(form.mu) if form.is_gaussian else _least_by_curve(orders, curve)
    # Built first: it refuses a failure probability of 1 or more.
    failing = [ApproximateCost(0.0, rule.mean * lost)] if lost > 0 else []
    values = curve + _log_derivative_ratio(orders, rule, other, lost)
    curve_cost = RdpCost(
        RENYI_ORDERS,
        tuple(values.tolist()),
        label=f"best of {type(rule).__name__}({rule.mean:g}) trials",
    )
    return compose([curve_cost, *failing])


def dearest(costs: list[Cost], relation: Relation) -> Cost:
    """Upper bound on every cost of a list.

    A Gaussian cost if all are Gaussian, else the largest Renyi curve and failure probability.
    """
    forms = [normal_form(cost, relation) for cost in costs]
    if all(form.is_gaussian for form in forms):
        return GaussianCost(1 / max(form.mu for form in forms))
    orders = np.array(RENYI_ORDERS)
    highest = np.max([rdp_curve(cost, orders, relation) for cost in costs], axis=0)
    lost = max(lost_mass(cost) for cost in costs)
    curve_cost = RdpCost(RENYI_ORDERS, tuple(highest.tolist()), label="dearest trial")
    return compose([curve_cost, *([ApproximateCost(0.0, lost)] if lost > 0 else [])])


def _log_derivative_ratio(orders: Vector, rule: StoppingRule, other: Vector, lost: float) -> Vector:
    """Largest increase of the Renyi divergence over all q and q' that neighbours allow, rounded up.

    The increase is (order log f'(q) - (order - 1) log f'(q')) / (order - 1).

    If trials may fail their guarantee, f is the generating function given that none of them does.
    """
    # On each interval f'(q) is largest at the right end, and f'(q') smallest at the left end.
    upper, lower = rule.log_slope((1 - lost) * _Q[1:]), rule.log_slope((1 - lost) * other[:-1])
    given_none = math.log1p(-lost) - math.log1p(-rule.mean * lost)
    worst = (
        np.array([float((order * upper - (order - 1) * lower).max()) for order in orders])
        + given_none
    )
    # Allowance for floating-point error in sums of a few logarithms.
    return np.asarray((worst + 1e-10 * (1 + np.abs(worst))) / (orders - 1))


def _least_by_gaussian(mu: float) -> Vector:
    """Gaussian trade-off: smallest probability, on a neighbour, of events of probability q."""
    return np.asarray(ndtr(_Z - mu))


def _least_by_curve(orders: Vector, curve: Vector) -> Vector:
    """The same from a Renyi curve, which bounds the event and its complement at every order."""
    found = np.zeros_like(_Q)
    with np.errstate(divide="ignore"):
        log_q, log_rest = np.log(_Q), np.log(_REST)
    known = np.isfinite(curve)
    for order, value in zip(orders[known], curve[known], strict=True):
        share = (order - 1) / order
        event = np.exp(log_q / share - value)
        complement = -np.expm1(np.minimum(share * (value + log_rest), 0.0))
        found = np.maximum(found, np.maximum(event, complement))
    return np.asarray(np.minimum(found, _Q))
