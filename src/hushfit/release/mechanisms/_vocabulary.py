"""The frequent texts of each column, by noisy counts above a threshold. Proof:
docs/proofs/quantiles.md, "Vocabularies"; for persons docs/proofs/persons.md.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from hushfit._typing import IntVector, Vector
from hushfit.data import Block, DataSource, PublicRows
from hushfit.data.rows import WHOLE, Persons, bits_of_one
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

    Parameters
    ----------
    columns : tuple of columns, each a tuple with one text for each row
    persons : Persons or None
        Whose rows they are; None if every row is its own unit.
    """

    columns: tuple[tuple[str | None, ...], ...]
    persons: Persons | None = None

    @property
    def n_units(self) -> int:
        return len(self.columns[0]) if self.persons is None else self.persons.n_persons

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return ROW if self.persons is None else self.persons.unit

    @property
    def shares(self) -> Vector:
        return WHOLE if self.persons is None else self.persons.shares

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @property
    def y(self) -> Vector:
        return np.zeros(self.n_units)

    def row_vector(self) -> Vector:
        return np.zeros(len(self.y))

    def blocks(self, units: IntVector | None = None) -> Iterator[Block]:
        return iter(())

    def public_rows(self) -> PublicRows:
        raise InvalidArgument("Texts have no records that could be public. Encode them first.")


@dataclass(frozen=True)
class Vocabulary:
    """The frequent texts of each column. The answer is their list, as bytes: see `vocabulary_of`.

    Parameters
    ----------
    n_columns : int
        Public number of columns.
    rows_per_unit : int, default=1
        Largest number of rows of one unit, and so of texts that it has in one column; public.
    """

    n_columns: int
    rows_per_unit: int = 1

    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "Thresholded(lost, n_columns)"
    problem: ClassVar[None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 2 * problem.n_features * problem.privacy_unit.rows_per_person

    @property
    def size(self) -> int:
        """Number of counts that one unit can change: in each column those of its old and of its
        new texts. All other counts have the same noise on both tables.
        """
        return 2 * self.n_columns * self.rows_per_unit

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
        Failure probability: bound on the probability that a text which only one unit has is
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

    def threshold(self, scale: float, rows_per_unit: int = 1) -> float:
        """The threshold that the noisy counts of texts which only one unit has exceed, in any of
        the columns, with probability at most ``lost``.
        """
        # A unit with j texts in a column adds 1 / sqrt(j) to each, and any of the j may be named.
        texts = np.arange(1.0, rows_per_unit + 1)
        return float(np.max(1 / np.sqrt(texts) - scale * ndtri(self.lost / self.n_columns / texts)))

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
        rows_per_unit = source.privacy_unit.rows_per_person
        query = replace(query, rows_per_unit=rows_per_unit)
        grid = NoiseGrid.of(query, noise_multiplier, entropy.relation, source.n_units)
        entropy.take_from_reserve(query.size, 2 * grid.log2_deviation - 1)
        least = self.threshold(grid.scale, rows_per_unit) + grid.step
        named = []
        for counts in counts_of(source):
            texts = sorted(counts)
            noise = entropy.sampler.gaussian(2 * grid.log2_deviation, len(texts))
            noisy = grid.noisy(np.array([counts[text] for text in texts]), noise)
            named.append([text for text, kept in zip(texts, noisy > least, strict=True) if kept])
        return as_bytes(named)

    def __str__(self) -> str:
        return "all rows, common texts only"


def counts_of(source: DataSource) -> list[dict[str, float]]:
    """How often each text occurs in each column: in how many rows, or, if units are persons, with
    how many of them. Each of the j different texts that a person has in a column gets 1 / sqrt(j).
    """
    if not isinstance(source, TextColumns):
        raise InvalidArgument(f"{type(source).__name__} holds no texts. Give TextColumns.")
    if source.persons is None:
        return [_counts_of_rows(column) for column in source.columns]
    return [_counts_of_persons(column, source.persons) for column in source.columns]


def _counts_of_rows(column: tuple[str | None, ...]) -> dict[str, float]:
    counts = Counter(text for text in column if text is not None)
    return {text: float(count) for text, count in counts.items()}


def _counts_of_persons(column: tuple[str | None, ...], persons: Persons) -> dict[str, float]:
    """Weighted counts, exact: weights are whole numbers, rounded down, of which ``one`` stands for
    one, and their sums stay below 2**53.
    """
    one = 1 << bits_of_one(persons.n_persons)
    used = (persons.shares > 0).tolist()
    cells = zip(persons.codes.tolist(), column, used, strict=True)
    have = {(person, text) for person, text, kept in cells if kept and text is not None}
    texts_of = Counter(person for person, _ in have)
    weights = {number: math.isqrt(one * one // number) for number in set(texts_of.values())}
    counts: Counter[str] = Counter()
    for person, text in have:
        counts[text] += weights[texts_of[person]]
    return {text: count / one for text, count in counts.items()}


def as_bytes(named: list[list[str]]) -> Vector:
    """Lists of texts as one vector."""
    return np.frombuffer(json.dumps(named).encode(), dtype=np.uint8).astype(np.float64)


def vocabulary_of(answer: Vector) -> list[list[str]]:
    """The lists of texts of a released answer."""
    named: list[list[str]] = json.loads(answer.astype(np.uint8).tobytes().decode())
    return named
