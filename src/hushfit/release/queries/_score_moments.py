"""Scores of a generalised linear model with the curvature and the covariance of the scores, in one
release. Proof: docs/proofs/inference.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import ClassVar, NamedTuple

import numpy as np

from hushfit._arrays import keep_read_only, read_only, symmetric
from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.data import (
    PERSON_BLOCK_ROWS,
    BoundedBlock,
    DataSource,
    Persons,
    RecordScaling,
    bounded_blocks,
    places,
)
from hushfit.errors import InvalidArgument
from hushfit.kernels import scores as kernels
from hushfit.kernels.gradient import ROUNDER
from hushfit.privacy import Relation, by_relation, require_records
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum, exact_total
from hushfit.release.queries._score_families import ScoreFamily
from hushfit.release.query import refuse_batch, refuse_extreme

_SLACK = 1e-9
# Scores of persons are no longer than one.
_SCORE_GRID = 2.0**-50


class Moments(NamedTuple):
    """Sums over the records in the metric, with the standard deviations of their noise.

    Attributes
    ----------
    score : array of p entries
        Sum of the scores.
    curvature, spread : arrays of shape (p, p)
        Minus the derivative of the score, and the sum of the outer products of the scores.
    score_noise : float
    curvature_noise, spread_noise : float
        Of diagonal entries; off the diagonal it is smaller by the root of two.
    """

    score: Vector
    curvature: Matrix
    spread: Matrix
    score_noise: float
    curvature_noise: float
    spread_noise: float


@dataclass(frozen=True, eq=False)
class ScoreMoments:
    r"""Sums of :math:`a r t`, :math:`b\, a c\, t t^T` and :math:`e\, (a r)^2 t t^T` over records
    with images :math:`t = zA`, residuals r and curvatures c, weighted by
    :math:`a = \min(1, |t|^{-2})`.

    No pair of records attains the largest distance of all three parts: under replace-one all of it
    has the sensitivity of the scores alone. Weights depend on features only, so that a model that
    holds stays unbiased (Mallows).

    Parameters
    ----------
    problem : Problem
        On records with bounded entries, one output.
    w : array of shape (dimension,)
        Where residuals are taken; public.
    A : array of shape (dimension, dimension)
        Public metric.
    family : ScoreFamily
    """

    problem: Problem
    w: Vector
    A: Matrix
    family: ScoreFamily

    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None
    scalings: ClassVar[tuple[RecordScaling, ...]] = (RecordScaling.BOUNDED,)

    def __post_init__(self) -> None:
        keep_read_only(self, "w", "A")
        d = self.problem.dimension
        if self.w.shape != (d,) or self.A.shape != (d, d):
            raise InvalidArgument(
                f"w has shape {self.w.shape} and A {self.A.shape}. Give {d} weights and a metric "
                f"of {d} rows and columns."
            )
        if not (np.isfinite(self.w).all() and np.isfinite(self.A).all()):
            raise InvalidArgument("w or A has a value that is not finite. Give finite numbers.")
        if self.problem.loss.kernel.code != self.family.code:
            raise InvalidArgument(f"{self.family!r} is not the family of {self.problem.loss!r}.")
        with np.errstate(over="ignore"):
            refuse_extreme("norm of the metric", float(np.linalg.norm(self.A)))
            refuse_extreme("1 + sum of |w|", 1 + float(np.abs(self.w).sum()))
        refuse_extreme("unit of the residuals", self.family.unit)

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return kernels.size(problem.dimension)

    @property
    def size(self) -> int:
        return kernels.size(self.problem.dimension)

    @property
    def doubled(self) -> BoolVector:
        return _off_diagonal(self.problem.dimension)

    @cached_property
    def _sum(self) -> ExactSum:
        b, e = self.family.factors
        bound = max(1.0, b * self.family.largest_curvature, e)
        return ExactSum(bound, self.problem.n_units, self.size, self.problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return exact_total(self, source, units)

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        if source.n_features != self.problem.n_features:
            raise InvalidArgument(
                f"The rows have {source.n_features} columns, the problem "
                f"{self.problem.n_features}. Give rows of the problem."
            )
        family = self.family
        # Kernels expect the intercept's entry, and are compiled for writable arrays.
        missing = 0 if self.problem.fit_intercept else 1
        w, A = np.pad(self.w, (0, missing)), np.pad(self.A, ((0, missing), (0, 0)))
        b, e = family.factors
        persons = source.persons
        factors = (b, e) if persons is None else (b, 0.0)

        def of_block(block: BoundedBlock, grid: float) -> Vector:
            return block.score_sums(w, A, family.code, family.unit, factors, grid)

        total = self._sum.over(bounded_blocks(source), (self.size,), of_block)
        if persons is not None:
            scores = PersonScores(persons, A.shape[1])
            for block in bounded_blocks(source):
                scores.add(block.place, block.row_scores(w, A, family.code, family.unit))
            outer = partial(scores.outer, e)
            total += self._sum.over(scores.places(), (self.size,), outer)
        return total

    def moments(self, answer: Vector, multiplier: float) -> Moments:
        """The parts of a released answer and their noise."""
        d, (b, e) = self.problem.dimension, self.family.factors
        first, second = np.split(answer[d:], 2)
        deviation = multiplier * self.sensitivity(self.problem.relation)
        return Moments(
            answer[:d],
            symmetric(first, d) / b,
            symmetric(second, d) / e,
            deviation,
            deviation / b,
            deviation / e,
        )

    @property
    def _computed(self) -> float:
        """Bound on what rounding adds to the contribution of one unit."""
        rows = self.problem.rows_per_unit
        of_persons = 0.0 if rows == 1 else 2 * rows * _SCORE_GRID
        # Off-diagonal entries count twice in the norm, and so does their rounding.
        return math.sqrt(2) * self._sum.rounding + of_persons * math.sqrt(self.problem.dimension)

    def radius(self) -> float:
        return self.family.radius * (1 + _SLACK) + self._computed

    def sensitivity(self, relation: Relation) -> float:
        require_records(relation)
        moved = by_relation(
            relation, replace_one=self.family.diameter, add_remove=self.family.radius
        )
        answers = by_relation(relation, replace_one=2, add_remove=1)
        return moved * (1 + _SLACK) + answers * self._computed


@lru_cache(maxsize=16)
def _off_diagonal(d: int) -> BoolVector:
    """Which entries of an answer stand for two of a symmetric matrix."""
    row, column = np.triu_indices(d)
    return read_only(np.concatenate([np.zeros(d, dtype=np.bool_), *2 * (row != column,)]))


class PersonScores:
    """Sums of the scores of each person's rows, exact on a grid."""

    def __init__(self, persons: Persons, size: int) -> None:
        self._codes = persons.codes
        self._totals = np.full((persons.n_persons, size), ROUNDER * _SCORE_GRID)

    def add(self, place: slice | IntVector, scores: Matrix) -> None:
        """Add the scores of some rows."""
        kernels.add_to_persons(self._codes[place], scores, self._totals)

    def places(self) -> list[slice]:
        """The persons in pieces of which sums are exact."""
        return places(len(self._totals), PERSON_BLOCK_ROWS)

    def outer(self, factor: float, place: slice, grid: float) -> Vector:
        """The sums of a query over some persons, with the outer products of scores alone."""
        vectors = self._totals[place] - ROUNDER * _SCORE_GRID
        total = np.zeros(kernels.size(vectors.shape[1]))
        kernels.outer_products(vectors, factor, grid, total)
        return total
