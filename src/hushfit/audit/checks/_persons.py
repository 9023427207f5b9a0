"""Audits of persons as privacy units: neighbours in which all rows of one person are replaced by
other rows, also by more or by fewer.

Everything here is about the rows of tables and is deterministic, or is a hill climb that fails only
if a bound is exceeded. Which rows a mechanism samples is checked in `boundary/_batches.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.audit.checks._deterministic import (
    Fuzzed,
    measured_distance,
    moved_records,
    random_record,
)
from hushfit.audit.checks._examples import Example, source_for
from hushfit.audit.checks._noise import Finding
from hushfit.data import DataSource, Persons, as_source
from hushfit.privacy import Relation, replaces_one
from hushfit.problem import Problem
from hushfit.release import PermutedRun
from hushfit.unit import PrivacyUnit

_MOST_ROWS_OF_OTHERS = 7
# Lengths of the lists of rows that are tried, besides the bound on rows per person.
_LENGTHS = (1, 2, 3, 7, 50)
_MOST_DIFFERENT = 50
COUNTED = (
    "second moment",
    "curvature",
    "majorant",
    "margin histogram",
    "margin histogram at margins",
    "histogram of columns",
    "total of scores",
)
"""Examples whose answers are sums of whole numbers, and so the same in any order of the rows."""
# Share of the bound that ties in rounding may move other answers by.
_TIES = 1e-12
# Wide enough that linear algebra libraries compute in several parts.
_WIDE, _MANY = 37, 64


@dataclass(frozen=True, eq=False)
class PersonTable:
    """Rows of persons; the rows of one person can be replaced.

    Parameters
    ----------
    rows, labels : arrays
    codes : int array
        The person of each row.
    unit : PrivacyUnit
    """

    rows: Matrix
    labels: Vector
    codes: IntVector
    unit: PrivacyUnit

    @classmethod
    def of(cls, example: Example, unit: PrivacyUnit, seed: int = 0) -> "PersonTable":
        """A table with as many persons as an example has rows, each with a few."""
        rng, n = np.random.default_rng(seed), len(example.rows)
        counts = rng.integers(1, _MOST_ROWS_OF_OTHERS + 1, n)
        codes = np.repeat(np.arange(n), counts)
        rows = example.rows[codes] + 0.3 * rng.normal(size=(len(codes), example.rows.shape[1]))
        return cls(rows, example.labels[codes], codes, unit)

    @property
    def n_persons(self) -> int:
        return int(self.codes.max()) + 1

    def replaced(self, person: int, rows: Matrix, labels: Vector) -> "PersonTable":
        """The table with other rows of one person, which come before all others."""
        others = self.codes != person
        return PersonTable(
            np.concatenate([rows, self.rows[others]]),
            np.concatenate([labels, self.labels[others]]),
            np.concatenate([np.full(len(rows), person), self.codes[others]]),
            self.unit,
        )

    def ordered(self, order: IntVector) -> "PersonTable":
        """The same rows in another order."""
        return PersonTable(self.rows[order], self.labels[order], self.codes[order], self.unit)

    def source(self, fit_intercept: bool, sparse: bool = False) -> DataSource:
        persons = Persons(self.codes, self.n_persons, self.unit)
        X = csr_array(self.rows) if sparse else self.rows
        return as_source(X, self.labels, fit_intercept=fit_intercept, persons=persons)

    def source_for(self, problem: Problem) -> DataSource:
        """The source that a query of this problem is answered over."""
        persons = Persons(self.codes, self.n_persons, self.unit)
        return source_for(problem, self.rows, self.labels, persons)


def _answer_of(query: Any, relation: Relation) -> tuple[Callable[..., Vector], Any, float]:
    """Answer, distance and bound of a query; batches of a run are those of the persons' numbers."""
    if isinstance(query, PermutedRun):
        _, apart, bound = measured_distance(query, relation)
        return lambda source: query(source, np.arange(source.n_units)), apart, bound
    return measured_distance(query, relation)


def fuzz_person_sensitivity(
    example: Example,
    relation: Relation | str,
    unit: PrivacyUnit,
    *,
    person: int = 0,
    starts: int = 4,
    climbs: int = 120,
    seed: int = 0,
) -> Fuzzed:
    """Search, by hill climbing, for two lists of rows of one person that exceed the sensitivity of
    a query.

    Lists have from one row to more than are used. In the first starts their rows differ; in the
    others they are copies of one row, which attain most bounds, and as many as are used, so that
    the rounding of all of them adds up.

    Parameters
    ----------
    example : Example
        Its query has a problem with this unit.
    relation : Relation or str
    unit : PrivacyUnit
    person : int, default=0
        The replaced person.
    starts, climbs : int
        Random initial pairs, and proposals tried from each.
    seed : int, default=0

    Returns
    -------
    Fuzzed
        With the first row of each list.
    """
    relation, rng = Relation.parse(relation), np.random.default_rng(seed)
    table = PersonTable.of(example, unit, seed)
    answer, apart, bound = _answer_of(example.query, relation)
    d = example.rows.shape[1]

    def ratio(pair: Sequence[_Rows]) -> float:
        answers = []
        for place, own in enumerate(pair):
            X, y = own.stretched()
            if place == 1 and not replaces_one(relation):
                X = np.full_like(X, np.nan)  # null records
            answers.append(answer(table.replaced(person, X, y).source_for(example.query.problem)))
        return float(apart(*answers)) / bound

    best = Fuzzed(-1.0, ((example.rows[0], 0.0), (example.rows[0], 0.0)))
    for start in range(starts):
        copies = start >= starts // 2

        def draw(copies: bool = copies, extreme: bool = start == starts - 1) -> _Rows:
            length = _length(rng, unit, copies)
            records = [
                random_record(rng, d, example.draw_label, extreme)
                for _ in range(1 if copies else min(length, _MOST_DIFFERENT))
            ]
            return _Rows(records, length)

        pair = [draw(), draw()]
        here = ratio(pair)
        for step in range(climbs):
            heads = moved_records([own.records[0] for own in pair], rng, step, example.draw_label)
            moved = [
                _Rows([head, *own.records[1:]], own.length)
                for head, own in zip(heads, pair, strict=True)
            ]
            if not copies and step % 5 == 0:
                moved[step % 2] = draw()
            there = ratio(moved)
            if not there <= here:
                pair, here = moved, there
        if not here <= best.ratio:
            best = Fuzzed(here, (pair[0].records[0], pair[1].records[0]))
    return best


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of one person: some records, repeated to a number of rows."""

    records: list[tuple[Vector, float]]
    length: int

    def stretched(self) -> tuple[Matrix, Vector]:
        turn = np.arange(self.length) % len(self.records)
        X = np.array([x for x, _ in self.records])[turn]
        return X, np.array([y for _, y in self.records])[turn]


def _length(rng: np.random.Generator, unit: PrivacyUnit, full: bool) -> int:
    most = unit.rows_per_person
    return most if full else int(rng.choice([*(k for k in _LENGTHS if k <= most), most + 3]))


def check_person_sensitivity(
    name: str, example: Example, relation: Relation | str, unit: PrivacyUnit, **search: Any
) -> Finding:
    """`fuzz_person_sensitivity` as a finding."""
    found = fuzz_person_sensitivity(example, relation, unit, **search)
    return Finding(
        f"{name} ({relation}): sensitivity to a person",
        not found.exceeded,
        f"worst neighbours at {found.ratio:.9f} of the bound",
    )


def check_rows_of_persons(
    name: str, example: Example, relation: Relation | str, unit: PrivacyUnit
) -> list[Finding]:
    """Check that an answer depends on used rows alone, and not on their order or number.

    Parameters
    ----------
    name : str
    example : Example
    relation : Relation or str
    unit : PrivacyUnit

    Returns
    -------
    list of Finding
        Rows of a person may come in any order, between those of others. To the last bit, null
        records of a person do not show, however many, and rows beyond the bound on rows per person
        do not.
    """
    relation, rng = Relation.parse(relation), np.random.default_rng(0)
    answer, _, bound = _answer_of(example.query, relation)
    d = example.rows.shape[1]
    table, most = PersonTable.of(example, unit), unit.rows_per_person

    def answers(tables: Sequence[PersonTable]) -> list[Vector]:
        return [answer(one.source_for(example.query.problem)) for one in tables]

    own = (
        rng.normal(size=(most + 20, d)),
        np.array([example.draw_label(rng) for _ in range(most + 20)]),
    )
    few = min(5, most)
    several = table.replaced(0, own[0][:few], own[1][:few])
    orders = [rng.permutation(len(several.rows)) for _ in range(3)]
    counts = (1, 2, 7, 40, most + 20)
    kept = (most, most + 1, most + 20)
    # Contributions of persons' rows are rounded to a grid so fine that some lie half way between
    # two steps, and are rounded to an even sum: the bound on rounding covers that.
    ties = 0.0 if name in COUNTED else _TIES * bound
    return [
        _same(
            f"{name}: the answer does not depend on the order of persons' rows",
            answers([several, *(several.ordered(order) for order in orders)]),
            ties,
        ),
        _same(
            f"{name}: the answer does not depend on how many null records a person has",
            answers(
                [table.replaced(0, np.full((k, d), np.nan), np.full(k, np.nan)) for k in counts]
            ),
        ),
        _same(
            f"{name}: the answer does not depend on rows beyond the bound",
            answers([table.replaced(0, own[0][:k], own[1][:k]) for k in kept]),
        ),
    ]


def _same(check: str, answers: Sequence[Vector], allowed: float = 0.0) -> Finding:
    apart = max(float(np.abs(other - answers[0]).max()) for other in answers[1:])
    return Finding(check, apart <= allowed, f"answers up to {apart:.2g} apart")


def check_shares(unit: PrivacyUnit, seed: int = 0) -> list[Finding]:
    """Check that weights of rows are what the proofs assume.

    Parameters
    ----------
    unit : PrivacyUnit
    seed : int, default=0

    Returns
    -------
    list of Finding
        Weights of a person add up to at most one, and to one where the total is public; rows after
        the first ``rows_per_person`` have none; no weight depends on the rows of others.
    """
    rng, most = np.random.default_rng(seed), unit.rows_per_person
    counts = np.array([1, 2, 3, most, most + 1, 2 * most + 5, 1, 2])
    codes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    shares = Persons(codes, len(counts), unit).shares
    by_person = [shares[codes == person] for person in range(len(counts))]
    sums = np.array([own.sum() for own in by_person])
    beyond = max(float(own[most:].max(initial=0.0)) for own in by_person)
    alone = [
        Persons(np.append(np.zeros(count, np.int64), 1), 2, unit).shares[:count] for count in counts
    ]
    moved = sum(not np.array_equal(own, other) for own, other in zip(by_person, alone, strict=True))
    slack = 1e-12  # of adding up weights, which are rounded
    return [
        Finding(
            "weights of persons: they add up to at most one",
            bool((sums <= 1 + slack).all()),
            f"up to {sums.max():.6g}",
        ),
        Finding(
            "weights of persons: their total is public where it is said to be",
            not unit.total_weight_is_public or bool((abs(sums - 1) <= slack).all()),
            f"from {sums.min():.6g} to {sums.max():.6g} a person",
        ),
        Finding(
            "weights of persons: rows beyond the bound have none", beyond == 0, f"up to {beyond:g}"
        ),
        Finding(
            "weights of persons: nobody's depend on others' rows", moved == 0, f"{moved} persons"
        ),
    ]


def check_positions(sparse: bool = False, seed: int = 0) -> list[Finding]:
    """Check that what a query reads of a row does not depend on how many rows come before it.

    Parameters
    ----------
    sparse : bool, default=False
    seed : int, default=0

    Returns
    -------
    list of Finding
        Margins, lengths and scales of all other rows agree to the last bit when a person at the
        front has one more null record.
    """
    rng = np.random.default_rng(seed)
    unit = PrivacyUnit.person()
    table = PersonTable(rng.normal(size=(_MANY, _WIDE)), np.ones(_MANY), np.arange(_MANY), unit)
    w, A = rng.normal(size=_WIDE + 1), rng.normal(size=(_WIDE + 1, _WIDE + 1))
    readings: dict[str, Callable[[Any], Vector]] = {
        "margins": lambda block: block.margins(w),
        "lengths in a metric": lambda block: block.lengths(A @ A.T),
        "scales": lambda block: block.scale,
    }
    found = []
    for what, read in readings.items():
        values = []
        for k in range(1, 10):
            source = table.replaced(0, np.full((k, _WIDE), np.nan), np.ones(k)).source(True, sparse)
            values.append(np.concatenate([read(block) for block in source.blocks()])[k:])
        moved = max(int((one != values[0]).sum()) for one in values)
        kind = "sparse" if sparse else "dense"
        found.append(
            Finding(
                f"{kind} rows: {what} do not depend on the position",
                moved == 0,
                f"{moved} other rows changed",
            )
        )
    return found
