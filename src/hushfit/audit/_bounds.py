"""Tests of a claimed trade-off curve from two samples of scores, and lower bounds on epsilon.

A claim bounds the probability of an event on one table by its probability on a neighbouring table.
Events are selected on one part of the trials and counted on the rest, so that searching for the
most informative event does not bias the test. See docs/audit.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta, binom

from hushfit._typing import AnyArray, Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Cost, GaussianCost, Relation, delta_of, epsilon_of, gaussian_mu
from hushfit.privacy.accounting import exact_delta, is_exact, is_single_objective, normal_form
from hushfit.unit import ROW, PrivacyUnit

# Share of the trials on which events are selected.
CHOOSING_SHARE = 0.25
# Number of tested events: two selection criteria, in both directions.
EVENTS = 4
_CANDIDATES = 400
_CELLS = 400
_PROFILE_POINTS = 40
# Smallest delta of a claim's profile: no audit observes rarer events.
_LEAST_DELTA = 1e-9
# Range and resolution of the noise factors that the family estimator searches.
_LEAST_FACTOR, _MOST_FACTOR, _FACTOR_RATIO = 1 / 16, 64.0, 1.02
_MOST_EPSILON = 40.0

ScaledCost: TypeAlias = Callable[[float], "Cost | Curve"]


class Verdict(StrEnum):
    """Verdict of an audit.

    Examples
    --------
    >>> from hushfit.audit import Verdict
    >>> [verdict.value for verdict in Verdict]
    ['consistent', 'violated', 'no power']
    """

    CONSISTENT = "consistent"
    VIOLATED = "violated"
    NO_POWER = "no power"


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of a privacy profile: the claim that no event is more than ``exp(epsilon)`` times
    as likely, up to ``delta``.
    """

    epsilons: Vector
    deltas: Vector

    @classmethod
    def of_point(cls, epsilon: float, delta: float) -> "Curve":
        """The curve of a single (epsilon, delta) guarantee."""
        return cls(np.array([epsilon]), np.array([delta]))

    @classmethod
    def of_cost(cls, cost: Cost, relation: Relation) -> "Curve":
        """The privacy profile of a cost, which is stronger than any one of its points."""
        last = epsilon_of(cost, _LEAST_DELTA, relation)
        if last == math.inf:
            last = _MOST_EPSILON
        epsilons = np.linspace(0.0, min(last, _MOST_EPSILON), _PROFILE_POINTS)
        return cls(epsilons, _profile(cost, relation, epsilons))

    def and_point(self, epsilon: float, delta: float) -> "Curve":
        """This curve with one more point."""
        return Curve(np.append(self.epsilons, epsilon), np.append(self.deltas, delta))

    def epsilon(self, delta: float) -> float:
        """Largest epsilon among its points at which delta exceeds ``delta``: a lower bound on the
        curve's epsilon.
        """
        above = self.epsilons[self.deltas > delta]
        return float(above.max()) if len(above) else 0.0

    def most(self, rate: Vector) -> Vector:
        """Largest probability on one table of an event that has probability ``rate`` on the
        other.
        """
        ratio = np.exp(self.epsilons)[:, None]
        delta = self.deltas[:, None]
        # The second bound is the first for the complement, with the tables exchanged.
        either = np.minimum(ratio * rate + delta, 1 - (1 - rate - delta) / ratio)
        return np.asarray(np.clip(either.min(axis=0), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Claim:
    """The privacy guarantee that an audit tests.

    Parameters
    ----------
    epsilon, delta : float
    relation : Relation or str, default="replace-one"
        Adjacency relation of the two tables of the audit. It is stated, not checked.
    cost : Cost or None
        Privacy cost. If given, its whole profile is tested, not only (epsilon, delta).
    scaled : callable or None
        Maps a noise factor to a cost, or to a curve: the family that the family estimator
        searches. Give it only where the true distribution belongs to the family, up to the size
        of its noise.
    unit : PrivacyUnit, default=ROW
        What the two tables differ in: one row, or all rows of one person. Stated, not checked.

    Examples
    --------
    >>> from hushfit.audit import Claim
    >>> Claim.gaussian(1.5, 1e-5).epsilon
    1.5
    """

    epsilon: float
    delta: float
    relation: Relation | str = Relation.REPLACE_ONE
    cost: Cost | None = None
    scaled: ScaledCost | None = None
    unit: PrivacyUnit = ROW

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < math.inf or not 0 <= self.delta < 1:
            raise InvalidArgument(
                f"epsilon={self.epsilon} and delta={self.delta} make no claim that can be tested."
            )
        object.__setattr__(self, "relation", Relation.parse(self.relation))

    @classmethod
    def gaussian(
        cls, epsilon: float, delta: float, relation: Relation | str = Relation.REPLACE_ONE
    ) -> "Claim":
        """The claim of a Gaussian mechanism calibrated to (epsilon, delta)."""
        multiplier = 1 / gaussian_mu(epsilon, delta)
        return cls(
            epsilon,
            delta,
            relation,
            GaussianCost(multiplier),
            lambda factor: GaussianCost(factor * multiplier),
        )

    @cached_property
    def curve(self) -> Curve:
        """The trade-off curve that is tested."""
        point = Curve.of_point(self.epsilon, self.delta)
        if self.cost is None:
            return point
        return Curve.of_cost(self.cost, Relation(self.relation)).and_point(self.epsilon, self.delta)

    def _at_factor(self, factor: float) -> Curve:
        assert self.scaled is not None
        made = self.scaled(factor)
        return made if isinstance(made, Curve) else Curve.of_cost(made, Relation(self.relation))

    def _epsilon_at(self, factor: float) -> float:
        assert self.scaled is not None
        made = self.scaled(factor)
        return (
            made.epsilon(self.delta)
            if isinstance(made, Curve)
            else epsilon_of(made, self.delta, Relation(self.relation))
        )


@dataclass(frozen=True)
class Counted:
    """Counts of an event on the table it indicates, and on the other.

    If ``above``, the event is a score of at least ``threshold``, which indicates the first table;
    otherwise it is a score below it, which indicates the second.
    """

    threshold: float
    above: bool
    hits: int
    hit_trials: int
    alarms: int
    alarm_trials: int

    @classmethod
    def of(cls, first: Vector, second: Vector, threshold: float, above: bool) -> "Counted":
        if above:
            return cls(
                threshold,
                above,
                int((first >= threshold).sum()),
                len(first),
                int((second >= threshold).sum()),
                len(second),
            )
        return cls(
            threshold,
            above,
            int((second < threshold).sum()),
            len(second),
            int((first < threshold).sum()),
            len(first),
        )

    def at_least(self, level: float) -> float:
        """Clopper-Pearson lower bound on the event's probability on its own table."""
        return float(_least_rate(np.array([self.hits]), self.hit_trials, level)[0])

    def at_most(self, level: float) -> float:
        """Clopper-Pearson upper bound on the event's probability on the other table."""
        return float(_largest_rate(np.array([self.alarms]), self.alarm_trials, level)[0])

    def p_value(self, curve: Curve) -> float:
        """Probability, if the curve holds, of counts at least as extreme as these."""
        return curve_p_value(curve, self.hits, self.hit_trials, self.alarms, self.alarm_trials)

    def direct_epsilon(self, delta: float, level: float) -> float:
        """Lower bound on epsilon from the two Clopper-Pearson bounds, each at half of the level."""
        hit, alarm = self.at_least(level / 2), self.at_most(level / 2)
        return math.log((hit - delta) / alarm) if hit - delta > alarm else 0.0


@dataclass(frozen=True)
class Bound:
    """Lower bounds on epsilon from counts, and the p-value of the claim.

    Parameters
    ----------
    direct : float
        Lower bound on epsilon at the claimed delta, for any mechanism (Clopper-Pearson).
    family : float or None
        The same if the mechanism is the claimed one up to the size of its noise: the least epsilon
        that was not rejected.
    p_value : float
        Of the counts under the claim, all events taken into account.
    level : float
        Probability that ``direct``, or ``family``, is wrong.
    alarm : float
        False-alarm rate: the claim is rejected if its p-value is not larger.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.audit import Claim, lower_bound
    >>> rng = np.random.default_rng(0)
    >>> bound = lower_bound(rng.normal(3, size=5000), rng.normal(size=5000), Claim(1.0, 1e-5))
    >>> bound.direct > 1, bound.p_value < 1e-6
    (True, True)
    """

    direct: float
    family: float | None
    p_value: float
    level: float
    alarm: float
    events: tuple[Counted, ...] = field(repr=False)

    @property
    def epsilon(self) -> float:
        """The larger of the two bounds."""
        return max(self.direct, self.family or 0.0)

    @property
    def violated(self) -> bool:
        return self.p_value <= self.alarm


def lower_bound(
    first: Vector,
    second: Vector,
    claim: Claim,
    confidence: float = 0.999,
    alarm: float | None = None,
) -> Bound:
    """Test a claim against scores of trials on two neighbouring tables, and bound epsilon from
    below.

    Parameters
    ----------
    first, second : arrays
        Scores of independent trials on either table; large ones should indicate the first.
    claim : Claim
    confidence : float, default=0.999
        Of the bounds.
    alarm : float, optional
        False-alarm rate; one minus the confidence unless given. Make it smaller where many audits
        run together.

    Returns
    -------
    Bound

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.audit import Claim, lower_bound
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.normal(3.0, size=5000), rng.normal(size=5000)
    >>> lower_bound(first, second, Claim(1.0, 1e-5)).violated
    True
    """
    if not 0 < confidence < 1:
        raise InvalidArgument(f"confidence={confidence} must lie between 0 and 1. Use 0.999.")
    level = 1 - confidence
    (choose_first, first), (choose_second, second) = _split(first), _split(second)
    chosen = _chosen_events(choose_first, choose_second, claim.delta, level / EVENTS)
    events = tuple(Counted.of(first, second, threshold, above) for threshold, above in chosen)
    p_value = min(1.0, EVENTS * min(event.p_value(claim.curve) for event in events))
    direct = max(event.direct_epsilon(claim.delta, level / EVENTS) for event in events)
    family = None if claim.scaled is None else _family_epsilon(events, claim, level / EVENTS)
    return Bound(direct, family, p_value, level, level if alarm is None else alarm, events)


def verdict_of(bound: Bound, claim: Claim, power: float = 0.5) -> Verdict:
    """*violated* if the claim was rejected, *no power* if less than ``power`` of it was
    measured, else *consistent*.
    """
    if bound.violated:
        return Verdict.VIOLATED
    return Verdict.CONSISTENT if bound.epsilon >= power * claim.epsilon else Verdict.NO_POWER


def curve_p_value(
    curve: Curve, hits: int, hit_trials: int, alarms: int, alarm_trials: int
) -> float:
    r"""Exact test of a whole trade-off curve by two counts.

    If the event has probability q on the other table, it has at most ``curve.most(q)`` on its own.
    For each q the two tail probabilities are independent p-values, and their product c has a tail
    of :math:`c (1 - \log c)` (Fisher); the worst q counts. Between the points of a grid over q the
    tails are bounded by their monotonicity.
    """
    q = _rates_around(alarms, alarm_trials)
    few = binom.cdf(alarms, alarm_trials, q[:-1])  # decreasing: largest at the left end of a cell
    many = binom.sf(hits - 1, hit_trials, curve.most(q[1:]))  # increasing in q
    product = float((few * many).max())
    return 1.0 if product >= 1 else min(1.0, product * (1 - math.log(max(product, 5e-324))))


def _profile(cost: Cost, relation: Relation, epsilons: Vector) -> Vector:
    """Delta at each epsilon, as `delta_of` computes it, by one accountant: a Rényi curve at every
    point would be slow.
    """
    form = normal_form(cost, relation)
    if is_single_objective(form):
        return np.array([exact_delta(form, float(epsilon)) for epsilon in epsilons])
    if is_exact(form) or form.by_curve or form.reveals_all:
        return np.array([delta_of(cost, float(epsilon), relation) for epsilon in epsilons])
    from hushfit.privacy.accounting.pld import pld_delta

    return np.array([pld_delta(form, float(epsilon), relation) for epsilon in epsilons])


def _rates_around(count: int, trials: int) -> Vector:
    """A grid over all rates, fine where the count makes them likely."""
    centre, spread = (
        (count + 0.5) / (trials + 1),
        math.sqrt((count + 1) * (trials - count + 1)) / (trials + 2) ** 1.5,
    )
    # Cells are equally wide in the arcsine of the square root, which stabilises the variance.
    middle, half = math.asin(math.sqrt(centre)), 9 * spread / (2 * math.sqrt(centre * (1 - centre)))
    inner = (
        np.sin(np.clip(np.linspace(middle - half, middle + half, _CELLS), 0.0, math.pi / 2)) ** 2
    )
    return np.unique(np.concatenate([[0.0], inner, np.linspace(0.0, 1.0, 41)]))


def _split(scores: Vector) -> tuple[Vector, Vector]:
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or len(scores) < 20 or np.isnan(scores).any():
        raise InvalidArgument(
            "An audit needs at least 20 scores without NaN for each table; got shape "
            f"{scores.shape}."
        )
    cut = int(CHOOSING_SHARE * len(scores))
    return scores[:cut], scores[cut:]


def _chosen_events(
    first: Vector, second: Vector, delta: float, level: float
) -> list[tuple[float, bool]]:
    """Thresholds, in both directions, that maximise the Gaussian distance, and epsilon at delta."""
    thresholds = np.unique(
        np.quantile(np.concatenate([first, second]), np.linspace(0.0, 1.0, _CANDIDATES))
    )
    chosen = []
    for above in (True, False):
        hit, alarm = _bounded_rates(first, second, thresholds, above, level)
        distance = ndtri(np.clip(hit, 1e-12, 1 - 1e-12)) - ndtri(np.clip(alarm, 1e-12, 1 - 1e-12))
        ratio = (hit - delta) / np.maximum(alarm, 1e-300)
        chosen += [(float(thresholds[int(np.argmax(gain))]), above) for gain in (distance, ratio)]
    return chosen


def _bounded_rates(
    first: Vector, second: Vector, thresholds: Vector, above: bool, level: float
) -> tuple[Vector, Vector]:
    below = [
        np.searchsorted(np.sort(scores), thresholds, side="left") for scores in (first, second)
    ]
    if above:
        hits, alarms, trials = (
            len(first) - below[0],
            len(second) - below[1],
            (len(first), len(second)),
        )
    else:
        hits, alarms, trials = below[1], below[0], (len(second), len(first))
    return _least_rate(hits, trials[0], level / 2), _largest_rate(alarms, trials[1], level / 2)


def _least_rate(counts: AnyArray, trials: int, level: float) -> Vector:
    return np.where(counts > 0, beta.ppf(level, np.maximum(counts, 1), trials - counts + 1), 0.0)


def _largest_rate(counts: AnyArray, trials: int, level: float) -> Vector:
    return np.where(
        counts < trials, beta.ppf(1 - level, counts + 1, np.maximum(trials - counts, 1)), 1.0
    )


def _family_epsilon(events: tuple[Counted, ...], claim: Claim, level: float) -> float:
    """Epsilon at the smallest noise factor whose curve is rejected: the true noise is smaller."""

    def rejected(factor: float) -> bool:
        curve = claim._at_factor(factor)
        return any(event.p_value(curve) <= level for event in events)

    low = high = 1.0
    if rejected(high):
        while rejected(low := low / 2):
            high = low
            if high <= _LEAST_FACTOR:
                return claim._epsilon_at(high)
    else:
        while not rejected(high := high * 2):
            low = high
            if low >= _MOST_FACTOR:
                return 0.0
    while high > _FACTOR_RATIO * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rejected(middle) else (middle, high)
    return claim._epsilon_at(high)
