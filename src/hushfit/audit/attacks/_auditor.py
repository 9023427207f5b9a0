"""The auditor: run a mechanism on two neighbouring tables, score its outputs, and bound epsilon
from below.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.audit._bounds import (
    CHOOSING_SHARE,
    Bound,
    Claim,
    Curve,
    Verdict,
    lower_bound,
    verdict_of,
)
from hushfit.audit._curators import seeded_curator
from hushfit.audit._laws import log_ratio
from hushfit.audit.checks import Table, fitted_on
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.federated import Algorithm, Seat
from hushfit.privacy import Budget, Relation
from hushfit.problem import Problem
from hushfit.release import Quote, Randomness, Released, unpaid_curator
from hushfit.release.curator import Curator
from hushfit.solvers import Solver, run

Mechanism: TypeAlias = Callable[[int, int], float | Vector]
"""Maps world (0 or 1) and seed to a score, or to an output for which a score is learnt."""


@dataclass(frozen=True, eq=False)
class Audit:
    """Result of an audit.

    Parameters
    ----------
    name : str
    claim : Claim
    first, second : arrays
        Scores on the first and on the second table.
    bound : Bound
    power : float
        Share of the claimed epsilon that must be measured for the audit to be conclusive.
    view : str
        What the attacker saw.
    canary : str
        How the two tables differ, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.audit import Claim, audit
    >>> noisy = lambda world, seed: float(np.random.default_rng(seed).normal(1.0 - world, 4.0))
    >>> str(audit(noisy, Claim.gaussian(1.5, 1e-5), trials=1000).verdict)
    'no power'
    """

    name: str
    claim: Claim
    first: Vector = field(repr=False)
    second: Vector = field(repr=False)
    bound: Bound
    power: float = 0.5
    view: str = "output"
    canary: str = ""

    @property
    def verdict(self) -> Verdict:
        """*consistent*, *violated* or *no power*."""
        return verdict_of(self.bound, self.claim, self.power)

    @property
    def measured(self) -> float:
        """Largest lower bound on epsilon at the claimed delta."""
        return self.bound.epsilon

    @property
    def ratio(self) -> float:
        """Measured over claimed: an audit that cannot come near the claim proves little."""
        return self.measured / self.claim.epsilon if self.claim.epsilon > 0 else math.inf

    @property
    def trials(self) -> int:
        return len(self.first) + len(self.second)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, without the scores."""
        return {
            "name": self.name,
            "view": self.view,
            "relation": str(self.claim.relation),
            "unit": self.claim.unit.in_words,
            "canary": self.canary,
            "claimed": self.claim.epsilon,
            "delta": self.claim.delta,
            "measured": round(self.measured, 4),
            "direct": round(self.bound.direct, 4),
            "family": None if self.bound.family is None else round(self.bound.family, 4),
            "ratio": round(self.ratio, 4),
            "p_value": self.bound.p_value,
            "level": self.bound.level,
            "trials": self.trials,
            "verdict": str(self.verdict),
        }

    def __str__(self) -> str:
        sure = f"{100 * (1 - self.bound.level):.10g} %"
        return (
            f"{self.name} ({self.view}, {self.claim.relation}, {self.claim.unit.in_words}): "
            f"claimed epsilon {self.claim.epsilon:.4g} at delta {self.claim.delta:.2g}, "
            f"measured at least {self.measured:.4g} with {sure} confidence ({self.ratio:.0%} of "
            f"the claim) in {self.trials} trials: "
            f"{self.verdict}."
        )


def audit(
    mechanism: Mechanism,
    claim: Claim,
    trials: int = 4000,
    confidence: float = 0.999,
    *,
    name: str = "mechanism",
    power: float = 0.5,
    seed: int = 0,
    view: str = "output",
    canary: str = "",
    alarm: float | None = None,
    watch: Callable[[int], None] | None = None,
) -> Audit:
    """Attack a mechanism by distinguishing its outputs on two neighbouring tables.

    Parameters
    ----------
    mechanism : callable
        Takes a world, 0 or 1, and a seed; runs on the first or the second of two neighbouring
        tables; returns a number that is large if the table looks like the first, or an array, for
        which a linear score is learnt on a quarter of the trials.
    claim : Claim
    trials : int, default=4000
        Half of them on each table.
    confidence : float, default=0.999
        Of the lower bound; one minus it is the false-alarm rate, unless ``alarm`` is given.
    name : str, default="mechanism"
    power : float, default=0.5
        Below this share of the claim the verdict is *no power*.
    seed : int, default=0
        Every trial has its own seed, derived from this one.
    view, canary : str
        For the report: what the attacker saw, and how the tables differ.
    alarm : float, optional
        False-alarm rate, where many audits run together.
    watch : callable, optional
        Called with the number of trials done.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.audit import Claim, audit
    >>> noisy = lambda world, seed: float(
    ...     np.random.default_rng(seed).normal(1.0 - world, scale=0.5)
    ... )  # a quarter of the noise it takes
    >>> str(audit(noisy, Claim.gaussian(1.5, 1e-5), trials=2000).verdict)
    'violated'
    """
    if trials < 80:
        raise InvalidArgument(
            f"trials={trials} are too few to bound epsilon. Use at least 80; 4000 give a useful "
            "bound."
        )
    half = trials // 2
    outputs: tuple[list[Any], list[Any]] = ([], [])
    for k in range(half):
        for world in (0, 1):
            outputs[world].append(mechanism(world, _trial_seed(seed, k, world)))
        if watch is not None:
            watch(2 * (k + 1))
    first, second = _scores(
        np.array(outputs[0], dtype=np.float64), np.array(outputs[1], dtype=np.float64)
    )
    return Audit(
        name,
        claim,
        first,
        second,
        lower_bound(first, second, claim, confidence, alarm),
        power,
        view,
        canary,
    )


def _trial_seed(seed: int, k: int, world: int) -> int:
    return int(
        np.random.SeedSequence([seed, k, world]).generate_state(1, np.uint64)[0] >> np.uint64(1)
    )


def _scores(first: Matrix, second: Matrix) -> tuple[Vector, Vector]:
    """Numbers unchanged; arrays projected on the most discriminating direction, learnt on the
    trials on which events are selected.
    """
    if first.ndim == 1:
        return first, second
    first, second = first.reshape(len(first), -1), second.reshape(len(second), -1)
    cut = int(CHOOSING_SHARE * len(first))
    direction = linear_score(first[:cut], second[:cut])
    return first @ direction, second @ direction


def linear_score(first: Matrix, second: Matrix) -> Vector:
    """Fisher's linear discriminant: the inverse of the common covariance, slightly regularised,
    times the difference of the means.
    """
    apart = first.mean(axis=0) - second.mean(axis=0)
    within = np.atleast_2d(
        np.cov(np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)]).T)
    )
    # Outputs of zero variance may still distinguish the tables, by their difference alone.
    least = 1e-6 * np.trace(within) / len(within) + 1e-12 * float(apart @ apart) + 1e-300
    within = within + least * np.eye(len(within))
    direction: Vector = np.linalg.solve(within, apart)
    return direction / max(float(np.linalg.norm(direction)), 1e-300)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two tables that differ in one unit: a row, or all rows of a person.

    Parameters
    ----------
    first, second : DataSource
    row : int
        The unit: its row, or the number of the person.
    words : str
        How they differ.
    """

    first: DataSource
    second: DataSource
    row: int
    words: str = ""

    @property
    def tables(self) -> tuple[DataSource, DataSource]:
        return self.first, self.second


@dataclass(frozen=True, eq=False)
class Attack:
    """A configured solver with its quoted cost, on two neighbouring tables.

    Parameters
    ----------
    solver : Solver
    problem : Problem
    neighbours : Neighbours
    budget : Budget
    secure : bool, default=False
        Draw noise from the operating system, as a release does, instead of reproducible noise.
    gaussian : bool, default=False
        Whether the releases on these tables are known to be Gaussian shifts, even if the cost
        covers more.
    law : callable or None
        Maps noise multipliers to the trade-off curve of the output distributions on these tables,
        where these are known, for the family estimator.
    """

    solver: Solver
    problem: Problem
    neighbours: Neighbours
    budget: Budget
    secure: bool = False
    gaussian: bool = False
    law: Callable[[dict[str, float]], Curve] | None = None

    @cached_property
    def quote(self) -> Quote:
        return self.solver.plan(self.problem).quote(self.problem, self.budget)

    @cached_property
    def claim(self) -> Claim:
        """The budget, the quoted cost, and the cost as a function of the noise factor."""
        claim = claim_of(
            self.quote, self.budget, self.problem.relation, self.problem.n_units, self.gaussian
        )
        claim = replace(claim, unit=self.problem.privacy_unit)
        law, multipliers = self.law, self.quote.multipliers
        if law is None:
            return claim
        return replace(
            claim,
            scaled=lambda factor: law(
                {name: factor * scale for name, scale in multipliers.items()}
            ),
        )

    def white_box(self, world: int, seed: int) -> float:
        """Log-likelihood ratio of all releases of a run."""
        curator = self._curator(world, seed)
        run(self.solver, self.problem, curator)
        return self.score(curator.transcript)

    def black_box(self, world: int, seed: int) -> Vector:
        """The fitted weights."""
        return run(self.solver, self.problem, self._curator(world, seed)).w

    def score(self, log: Sequence[Released]) -> float:
        """Log-likelihood ratio of the answers of a run, first table against second."""
        quote, n = self.quote, self.neighbours
        return log_ratio(
            log, quote.plan.parts, quote.multipliers, self.problem.relation, n.tables, n.row
        )

    def _curator(self, world: int, seed: int) -> Curator:
        return _curator(
            self.quote, self.neighbours.tables[world], self.problem.relation, seed, self.secure
        )


@dataclass(frozen=True, eq=False)
class OwnerAttack:
    """Attack on one owner by all the others, who know all rows but one and send any messages.

    Parameters
    ----------
    algorithm : Algorithm
    seat : Seat
        Setting of the attacked owner.
    neighbours : Neighbours
        Two tables of that owner.
    whisper : callable or None
        Maps a round to the message that every neighbour sends; None sends nothing.
    gaussian : bool, default=False
        As for `Attack`.
    """

    algorithm: Algorithm
    seat: Seat
    neighbours: Neighbours
    whisper: Callable[[int], Vector] | None = None
    gaussian: bool = False

    @cached_property
    def quote(self) -> Quote:
        return self.algorithm.plan(self.seat).quote(self.seat.problem, self.seat.budget)

    @cached_property
    def claim(self) -> Claim:
        return claim_of(
            self.quote,
            self.seat.budget,
            self.seat.problem.relation,
            self.seat.problem.n_units,
            self.gaussian,
        )

    def white_box(self, world: int, seed: int) -> float:
        """Log-likelihood ratio of all releases of the owner."""
        relation = self.seat.problem.relation
        curator = _curator(self.quote, self.neighbours.tables[world], relation, seed, False)
        rounds = self.algorithm.converse(self.seat, curator)
        next(rounds, None)
        try:
            for k in range(10**6):
                rounds.send(
                    {name: self.whisper(k) for name in self.seat.neighbours} if self.whisper else {}
                )
        except StopIteration:
            pass
        n = self.neighbours
        log = curator.transcript
        return log_ratio(
            log, self.quote.plan.parts, self.quote.multipliers, relation, n.tables, n.row
        )


def claim_of(
    quote: Quote, budget: Budget, relation: Relation, n_units: int, gaussian: bool = False
) -> Claim:
    """The guarantee of a quote, as a claim to test, in the family of its own cost or of Gaussian
    releases.
    """
    if gaussian:
        return replace(Claim.gaussian(budget.epsilon, budget.delta, relation), cost=quote.cost)

    def scaled(factor: float) -> Any:
        return quote.plan.cost(
            {name: factor * multiplier for name, multiplier in quote.multipliers.items()}, n_units
        )

    return Claim(budget.epsilon, budget.delta, relation, quote.cost, scaled)


def estimator_mechanism(
    make: Callable[[], Any],
    tables: tuple[Table, Table],
    attributes: tuple[str, ...] = ("coef_", "intercept_"),
) -> Mechanism:
    """A mechanism from an estimator: the attacker sees the fitted attributes.

    Parameters
    ----------
    make : callable
        Returns a fresh, unfitted estimator that takes ``random_state``.
    tables : pair of (X, y) or (X, y, groups)
        Neighbours: in one row, or with ids of persons in all rows of one of them.
    attributes : tuple of str, default=("coef_", "intercept_")

    Returns
    -------
    callable
        Takes world and seed, returns all the attributes in one array.
    """

    def mechanism(world: int, seed: int) -> Vector:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = fitted_on(make().set_params(random_state=seed % 2**32), tables[world])
        return np.concatenate([np.ravel(getattr(fitted, name)) for name in attributes])

    return mechanism


def _curator(
    quote: Quote, source: DataSource, relation: Relation, seed: int, secure: bool
) -> Curator:
    if secure:
        return unpaid_curator(source, quote, relation, Randomness.of(None))
    return seeded_curator(source, quote, relation, seed)


def require_known(name: str, known: Mapping[str, Any], what: str) -> None:
    """Refuse an unknown name."""
    if name not in known:
        raise InvalidArgument(
            f"{what} {name!r} is not known. Use one of {', '.join(map(repr, known))}."
        )
