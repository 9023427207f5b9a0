"""The frequent texts of each column, by noisy counts above a threshold. Proof:
docs/proofs/quantiles.md, "Vocabularies".
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from hushfit._typing import IntVector, Vector
from hushfit.data import Block, DataSource
from hushfit.data.rows import WHOLE
from hushfit.errors import InvalidArgument
from hushfit.privacy import Cost, Relation, ThresholdedGaussianCost, by_relation
from hushfit.problem import Problem
from hushfit.release.mechanism import Entropy, NoiseGrid
from hushfit.release.query import Query, refuse_batch
from hushfit.unit import ROW, PrivacyUnit


@dataclass(frozen=True, eq=False)
class TextColumns:
    """Columns of texts as a data source; None for a missing value. They have no numeric records,
    hence no blocks.
    """

    columns: tuple[tuple[str | None, ...], ...]

    @property
    def n_units(self) -> int:
        return len(self.columns[0])

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return ROW

    @property
    def shares(self) -> Vector:
        return WHOLE

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @property
    def y(self) -> Vector:
        return np.zeros(self.n_units)

    def blocks(self, units: IntVector | None = None) -> Iterator[Block]:
        return iter(())


@dataclass(frozen=True)
class Vocabulary:
    """The frequent texts of each column. The answer is their list, as bytes: see `vocabulary_of`.

    Parameters
    ----------
    n_columns : int
        Public number of columns.
    """

    n_columns: int

    doubled = None
    sampled: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "Thresholded(lost, n_columns)"
    problem: ClassVar[None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 2 * problem.n_features

    @property
    def size(self) -> int:
        """Number of counts that one record can change: two in each column, for its old and its new
        text. All other counts have the same noise on both tables.
        """
        return 2 * self.n_columns

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        """Every text, however rare: for fits that claim no privacy."""
        refuse_batch(self, units)
        return as_bytes([sorted(counts) for counts in counts_of(source)])

    def radius(self) -> float:
        return math.sqrt(self.n_columns)

    def sensitivity(self, relation: Relation) -> float:
        # Of the counts of texts that occur in both tables.
        return self.radius() * by_relation(relation, replace_one=math.sqrt(2), add_remove=1.0)


@dataclass(frozen=True)
class Thresholded:
    """Gaussian noise on the count of every text that occurs, of which only those above a high
    threshold are released.

    Parameters
    ----------
    lost : float
        Failure probability: bound on the probability that a text which only one record has is
        released.
    n_columns : int
    """

    lost: float
    n_columns: int

    answers: ClassVar[type[Query]] = Vocabulary
    alone, samples, sized = False, False, False

    def expected_units(self, n_units: int) -> float:
        return n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return math.sqrt(count) / strength

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return ThresholdedGaussianCost(noise_multiplier, self.lost, count=count)

    def objection(self, query: Vocabulary, relation: Relation) -> str | None:
        if query.n_columns != self.n_columns:
            return f"for {self.n_columns} columns, and this query has {query.n_columns}"
        return None

    def threshold(self, scale: float) -> float:
        """The threshold that a noisy count of one exceeds, in any of the columns, with probability
        at most ``lost``.
        """
        return 1 - scale * float(ndtri(self.lost / self.n_columns))

    def answer(
        self, query: Vocabulary, source: DataSource, noise_multiplier: float, entropy: Entropy
    ) -> Vector:
        if source.n_features != self.n_columns:
            raise InvalidArgument(
                f"There are {source.n_features} columns, not the {self.n_columns} that were "
                "planned. Plan for them."
            )
        if noise_multiplier == 0:
            return query(source, None)
        grid = NoiseGrid.of(query, noise_multiplier, entropy.relation, source.n_units)
        entropy.take_from_reserve(query.size, 2 * grid.log2_deviation - 1)
        least = self.threshold(grid.scale) + grid.step
        named = []
        for counts in counts_of(source):
            texts = sorted(counts)
            noise = entropy.sampler.gaussian(2 * grid.log2_deviation, len(texts))
            noisy = grid.noisy(np.array([counts[text] for text in texts], dtype=np.float64), noise)
            named.append([text for text, kept in zip(texts, noisy > least, strict=True) if kept])
        return as_bytes(named)

    def __str__(self) -> str:
        return "all rows, common texts only"


def counts_of(source: DataSource) -> list[Counter[str]]:
    """How often each text occurs in each column."""
    if not isinstance(source, TextColumns):
        raise InvalidArgument(f"{type(source).__name__} holds no texts. Give TextColumns.")
    return [Counter(text for text in column if text is not None) for column in source.columns]


def as_bytes(named: list[list[str]]) -> Vector:
    """Lists of texts as one vector."""
    return np.frombuffer(json.dumps(named).encode(), dtype=np.uint8).astype(np.float64)


def vocabulary_of(answer: Vector) -> list[list[str]]:
    """The lists of texts of a released answer."""
    named: list[list[str]] = json.loads(answer.astype(np.uint8).tobytes().decode())
    return named
