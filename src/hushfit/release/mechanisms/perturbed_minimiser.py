"""Objective perturbation: the minimiser of an objective with a noise term, found to a certified
accuracy. Proof: docs/proofs/objective.md; for persons docs/proofs/persons.md.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self, TypeAlias

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import AT_MOST_ONE, DataSource, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.privacy import (
    Cost,
    GaussianCost,
    ObjectiveCost,
    PersonObjectiveCost,
    PureCost,
    Relation,
    Sampler,
    by_relation,
    compose,
    require_records,
)
from hushfit.privacy.costs import log_determinant
from hushfit.problem import Problem
from hushfit.release.mechanism import LOG2_DEVIATION, Entropy, NoiseGrid, too_large
from hushfit.release.mechanisms.certified_search import MetricSteps, PlainSteps, minimise
from hushfit.release.queries import ARITHMETIC_SLACK, ClippedGradient, SecondMoment
from hushfit.release.query import Query, refuse_batch, three_weight_arrays

_UNIT_ROUNDOFF = 2.0**-53
# Assumed relative error of a computed prox.
_PROX_ERROR = 1e-13
# The certified gradient norm is at least so many times its rounding error: the computed one may be
# half of it, the rest is a margin.
_ERRORS_IN_TOLERANCE = 4
_MOST_PRECONDITIONED = 600
# Relative to the smoothness: above it the certificate is reached on every table, well within the
# steps allowed.
_SMALLEST_MU = 1e-6


@dataclass(frozen=True)
class PersonCurvature:
    """How the curvature that one person adds to an objective may be spread.

    Parameters
    ----------
    trace : float
        Largest trace, over the curvature of the objective without any row.
    rank : int
        Largest rank.
    """

    trace: float
    rank: int


class _InsideNoise(ABC):
    """Noise in an objective and on its minimiser, from one distribution.

    ``person`` is None where every unit is a row, whose Hessian has the rank ``rank``.
    """

    kappa: float
    rank: int
    output_share: float
    person: PersonCurvature | None

    alone, samples, sized = False, False, True

    @property
    def answers(self) -> type[Query]:
        return PerturbedMinimiser

    def expected_units(self, n_units: int) -> float:
        return n_units

    def objection(self, query: "PerturbedMinimiser", relation: Relation) -> str | None:
        """Why its cost does not cover this query, or None."""
        if query.kappa > self.kappa or query.rank > self.rank:
            return f"with {self!r}, not with kappa={query.kappa:g} and rank={query.rank}"
        own = query.person
        if own is None or (
            self.person is not None
            and own.trace <= self.person.trace
            and own.rank <= self.person.rank
        ):
            return None
        return f"with {self!r}, not with persons whose rows add up to {own!r}"

    def answer(
        self,
        query: "PerturbedMinimiser",
        source: DataSource,
        noise_multiplier: float,
        entropy: Entropy,
    ) -> Vector:
        """Noise in the objective, then noise on the computed minimiser."""
        if noise_multiplier == 0:
            return query(source, None)
        relation, stretch = entropy.relation, self.stretch(query.size)
        inside = _inside_grid(query, noise_multiplier, relation, stretch)
        zero = np.zeros(query.size)
        bounds = CertifiedMinimiser(query, zero, inside.scale, inside.step)
        reach = bounds.largest / bounds.sensitivity(relation)
        grid = NoiseGrid.of(
            bounds, self.output_multiplier(noise_multiplier), relation, reach, stretch
        )
        entropy.take_from_reserve(2 * query.size, 2 * grid.log2_deviation - 1)
        drawn = inside.noisy(zero, self.draw(entropy.sampler, inside.log2_deviation, query.size))
        answer = CertifiedMinimiser(query, drawn, inside.scale, inside.step)(source, None)
        return grid.noisy(answer, self.draw(entropy.sampler, grid.log2_deviation, query.size))

    @abstractmethod
    def output_multiplier(self, noise_multiplier: float) -> float:
        """Noise multiplier of the noise on the minimiser."""

    @abstractmethod
    def stretch(self, size: int) -> float:
        """Largest ratio of the norm that the noise is measured in to the Euclidean one."""

    @abstractmethod
    def draw(self, sampler: Sampler, log2_deviation: int, size: int) -> IntVector:
        """Noise in steps of its grid."""

    def __str__(self) -> str:
        return (
            f"all rows, inside the objective (and on its minimiser, for {self.output_share:g} of "
            "the budget),"
        )


def _inside_grid(
    query: "PerturbedMinimiser", multiplier: float, relation: Relation, stretch: float
) -> NoiseGrid:
    """The grid of noise inside an objective; discreteness costs one step in each coordinate, in the
    norm of the noise.
    """
    rounding_share = multiplier * math.ldexp(stretch**2, -LOG2_DEVIATION)
    if rounding_share >= 0.5:
        raise too_large(multiplier, query.size)
    return NoiseGrid(
        multiplier * stretch * query.gradient_shift(relation) / (1 - rounding_share), LOG2_DEVIATION
    )


@dataclass(frozen=True)
class GaussianInside(_InsideNoise):
    """Gaussian noise in the objective, and a little on the minimiser, for a share ``output_share``
    of mu squared.

    Parameters
    ----------
    kappa : float
        Largest ``PerturbedMinimiser.kappa`` of the queries.
    rank : int, default=1
    output_share : float, default=0.01
    person : PersonCurvature or None
        For persons with several rows.
    """

    kappa: float
    rank: int = 1
    output_share: float = 0.01
    person: PersonCurvature | None = None

    def __post_init__(self) -> None:
        _check_share(self.output_share)

    @classmethod
    def of(cls, query: "PerturbedMinimiser", output_share: float) -> Self:
        """The mechanism for a query, and for all with the same curvature."""
        return cls(query.kappa, query.rank, output_share, query.person)

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return math.sqrt(count / (1 - self.output_share)) / strength

    def output_multiplier(self, noise_multiplier: float) -> float:
        return noise_multiplier * math.sqrt((1 - self.output_share) / self.output_share)

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return compose(
            [
                self._inside_cost(noise_multiplier, count),
                GaussianCost(self.output_multiplier(noise_multiplier), count),
            ]
        )

    def _inside_cost(self, noise_multiplier: float, count: int) -> Cost:
        if self.person is None:
            return ObjectiveCost(noise_multiplier, self.kappa, self.rank, count)
        spread = self.person.trace, self.rank, self.person.rank
        return PersonObjectiveCost(noise_multiplier, self.kappa, *spread, count)

    def stretch(self, size: int) -> float:
        return 1.0

    def draw(self, sampler: Sampler, log2_deviation: int, size: int) -> IntVector:
        return sampler.gaussian(2 * log2_deviation, size)


@dataclass(frozen=True)
class LaplaceInside(_InsideNoise):
    """Laplace noise in the objective and on the minimiser: private with delta 0. Norms are l1
    norms.

    Parameters
    ----------
    kappa : float
        Largest ``PerturbedMinimiser.kappa`` of the queries.
    rank : int, default=1
    output_share : float, default=0.01
        Share of epsilon for the noise on the minimiser.
    person : PersonCurvature or None
        For persons with several rows.
    """

    kappa: float
    rank: int = 1
    output_share: float = 0.01
    person: PersonCurvature | None = None

    def __post_init__(self) -> None:
        _check_share(self.output_share)

    @classmethod
    def of(cls, query: "PerturbedMinimiser", output_share: float) -> Self:
        """The mechanism for a query, and for all with the same curvature."""
        return cls(query.kappa, query.rank, output_share, query.person)

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return math.sqrt(count) / ((1 - self.output_share) * strength)

    def output_multiplier(self, noise_multiplier: float) -> float:
        return noise_multiplier * (1 - self.output_share) / self.output_share

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        if noise_multiplier == 0:
            return PureCost(math.inf, count)
        shifts = 1 / noise_multiplier + 1 / self.output_multiplier(noise_multiplier)
        return PureCost(shifts + self._log_determinant, count)

    @property
    def _log_determinant(self) -> float:
        if self.person is None:
            return self.rank * math.log1p(self.kappa)
        return log_determinant(self.person.trace, self.person.rank)

    def stretch(self, size: int) -> float:
        return math.sqrt(size)

    def draw(self, sampler: Sampler, log2_deviation: int, size: int) -> IntVector:
        return sampler.laplace(log2_deviation, size)


InsideNoise: TypeAlias = GaussianInside | LaplaceInside


@dataclass(frozen=True, eq=False)
class PerturbedMinimiser:
    r"""The weights that minimise mean loss + penalty + :math:`\frac\mu2 \|w\|^2` + ``linear`` . w +
    noise . w.

    The curator draws the noise, new noise for each release, and adds a little more to the
    minimiser, which hides the error of the solver. The quadratic covers every coordinate, the
    intercept too: without it a record could change the intercept without bound.

    Parameters
    ----------
    problem : Problem
        With a convex penalty and without a constraint.
    mu : float
        Curvature of the objective without any record, above 0.
    linear : array of shape ``problem.shape`` or None
        Public linear term; None is zero.
    tolerance : float, default=1e-8
        Largest norm of the gradient at the computed minimiser. If floating point cannot certify it,
        the smallest norm that can be.
    """

    problem: Problem
    mu: float
    linear: Vector | None = None
    tolerance: float = 1e-8

    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = "GaussianInside or LaplaceInside"

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return three_weight_arrays(problem)

    def __post_init__(self) -> None:
        _check_minimisable(self.problem)
        if not (0 < self.mu < math.inf and 0 < self.tolerance < math.inf):
            raise InvalidArgument(
                f"mu={self.mu} and tolerance={self.tolerance} must be finite and above 0."
            )
        if self.mu < _SMALLEST_MU * self.problem.loss.smoothness:
            raise InvalidArgument(
                f"mu={self.mu:g} is so small that on some rows no minimiser might be found, which "
                "would reveal information about them. "
                f"Give at least {_SMALLEST_MU * self.problem.loss.smoothness:g}."
            )

    @property
    def size(self) -> int:
        return math.prod(self.problem.shape)

    @property
    def kappa(self) -> float:
        """Largest curvature of one record's term of the objective, over mu."""
        return (
            self.problem.loss.smoothness * (1 + ARITHMETIC_SLACK) / (self.problem.n_units * self.mu)
        )

    @property
    def rank(self) -> int:
        """Largest rank of one record's Hessian."""
        return self.problem.loss.hessian_rank

    @property
    def person(self) -> PersonCurvature | None:
        """How the curvature of one person's rows may be spread; None if a unit is one row."""
        problem = self.problem
        if problem.rows_per_unit == 1:
            return None
        share = (1 + ARITHMETIC_SLACK) / (problem.n_units * self.mu)
        rank = min(problem.rows_per_unit * self.rank, self.size)
        return PersonCurvature(problem.loss.hessian_trace * share, rank)

    def gradient_shift(self, relation: Relation) -> float:
        """Sensitivity of the gradient of the objective, at any point."""
        one = self.problem.loss.slope_bound * (1 + ARITHMETIC_SLACK) / self.problem.n_units
        return one * by_relation(relation, replace_one=2, add_remove=1)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        """The minimiser without noise."""
        return CertifiedMinimiser(self, np.zeros(self.size), 0.0, 0.0)(source, units)

    def radius(self) -> float:
        return self._sensitivity_for(self.gradient_shift(Relation.ADD_REMOVE))

    def sensitivity(self, relation: Relation) -> float:
        # The curator does not use this sensitivity: noise inside the objective has its own theorem.
        return self._sensitivity_for(self.gradient_shift(relation))

    def _sensitivity_for(self, shift: float) -> float:
        """Sensitivity by strong convexity: minimisers change by at most the change of the gradient
        over mu; certified ones by their tolerances more.
        """
        return shift / self.mu + CertifiedMinimiser(
            self, np.zeros(self.size), 0.0, 0.0
        ).sensitivity(Relation.REPLACE_ONE)

    def output_scale(self, noise_multiplier: float, inside: InsideNoise) -> float:
        """Approximate scale of the noise on the minimiser itself; public."""
        scale = (
            noise_multiplier
            * inside.stretch(self.size)
            * self.gradient_shift(self.problem.relation)
        )
        certified = CertifiedMinimiser(self, np.zeros(self.size), scale, 0.0)
        stretched = inside.stretch(self.size) * certified.sensitivity(self.problem.relation)
        return inside.output_multiplier(noise_multiplier) * stretched


@dataclass(frozen=True, eq=False)
class CertifiedMinimiser:
    """The second stage of a `PerturbedMinimiser`: its noise is drawn, and only the error of the
    solver is left to hide.

    Its sensitivity is *given the exact minimiser*: a certified answer lies in a ball around it, for
    all rows.

    Parameters
    ----------
    asked : PerturbedMinimiser
    noise : array
        One-dimensional.
    scale, step : float
        Scale of the noise, and step of the grid on which it was drawn.
    """

    asked: PerturbedMinimiser
    noise: Vector
    scale: float
    step: float

    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return three_weight_arrays(problem)

    @property
    def problem(self) -> Problem:
        return self.asked.problem

    @property
    def size(self) -> int:
        return self.asked.size

    @property
    def largest(self) -> float:
        """Bound on the norm of the exact minimiser that holds for all but extremely unlikely noise;
        answers are clipped to it.
        """
        asked = self.asked
        start = float(np.linalg.norm(asked.problem.prox(np.zeros(asked.problem.shape), 1.0)))
        slope = asked.problem.loss.slope_bound + (asked.mu + 1) * start + self._shift_size
        return start + slope / asked.mu

    @property
    def _shift_size(self) -> float:
        linear = 0.0 if self.asked.linear is None else float(np.linalg.norm(self.asked.linear))
        return linear + self.scale * (2 * math.sqrt(self.size) + 50)

    @property
    def _smoothness(self) -> float:
        return self.asked.problem.loss.smoothness * (1 + ARITHMETIC_SLACK) + self.asked.mu

    @property
    def _rounding(self) -> float:
        """Bound on the error of a computed gradient and of the prox applied to it."""
        problem, reach = self.asked.problem, self.largest
        loss = problem.loss
        # Each row of n units is rounded by at most half a grid step; the sum is exact, and divided
        # by n.
        grid = _whole_gradient(problem, np.zeros(problem.shape)).grid
        sums = 0.5 * problem.rows_per_unit * math.sqrt(self.size) * grid
        margins = loss.smoothness * (problem.dimension + 8) * reach
        terms = 40 * loss.slope_bound + 8 * (self._smoothness * reach + self._shift_size)
        prox = (
            0.0 if problem.penalty.ridge is not None else 3 * _PROX_ERROR * self._smoothness * reach
        )
        return sums + _UNIT_ROUNDOFF * (margins + terms) + prox

    @property
    def gradient_norm(self) -> float:
        """Certified bound on the norm of a subgradient at every answer, including rounding of the
        solver.
        """
        return max(self.asked.tolerance, _ERRORS_IN_TOLERANCE * self._rounding)

    def radius(self) -> float:
        # Relative to noise that is not on a grid, the gradient at the answer also has the rounding
        # error of the noise.
        return (self.gradient_norm + math.sqrt(self.size) * self.step) / self.asked.mu

    def sensitivity(self, relation: Relation) -> float:
        require_records(relation)
        return 2 * self.radius()

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        asked = self.asked
        shift = self.noise.reshape(asked.problem.shape) + (
            0.0 if asked.linear is None else asked.linear
        )

        def gradient(w: Vector) -> Vector:
            total = _whole_gradient(asked.problem, w)(source, None).reshape(w.shape)
            return total / asked.problem.n_units + asked.mu * w + shift

        few = (
            asked.problem.dimension <= _MOST_PRECONDITIONED and SecondMoment(asked.problem).is_exact
        )
        steps = (
            MetricSteps.of(asked.problem, asked.mu, source)
            if few
            else PlainSteps(asked.problem, self._smoothness)
        )
        found = minimise(asked.problem, gradient, steps, self._smoothness, self.gradient_norm / 2)
        # Clipping is nonexpansive, so it leaves the answer in its ball.
        return np.clip(found, -self.largest, self.largest).ravel()


def _whole_gradient(problem: Problem, w: Vector) -> ClippedGradient:
    """The gradient sum without clipping."""
    return ClippedGradient(problem, w, problem.loss.slope_bound)


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise InvalidArgument(
            f"output_share={share} is outside (0, 1). 0.01 is enough for a well solved objective."
        )


def _check_minimisable(problem: Problem) -> None:
    if problem.constraint is not None:
        raise InvalidArgument(
            "This solver penalises the weights themselves, not a linear map of them. Use "
            "'dp-sadmm' for a constraint."
        )
    if not problem.penalty.convex:
        raise InvalidArgument(
            f"{problem.penalty!r} is not convex, and objective perturbation with it has no proof. "
            "Use 'objective', which solves convex stages, or 'dpsc', whose prox is post-processing."
        )
