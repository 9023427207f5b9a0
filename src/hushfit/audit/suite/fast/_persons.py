"""Fast checks: queries where persons with several rows are the privacy units."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from hushfit.audit.attacks import RELATIONS
from hushfit.audit.checks import (
    Example,
    Finding,
    PersonTable,
    check_person_sensitivity,
    check_positions,
    check_rows_of_persons,
    check_shares,
)
from hushfit.audit.suite.fast._batches import FEW_ROWS
from hushfit.audit.suite.fast._check import Check
from hushfit.audit.suite.fast._examples import all_examples
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release import MarginHistogram, PermutedRun
from hushfit.unit import PrivacyUnit

# With the usual bound on rows, at which rounding shows.
_PERSONS = PrivacyUnit.person()
_CAPPED = PrivacyUnit.person("cap", 3)


@cache
def person_examples(relation: Relation, seed: int = 0, unit: PrivacyUnit = _PERSONS) -> Any:
    """All examples with persons as units, and a histogram of margins whose edges lie on margins of
    the rows, so that the last bit of any shows.
    """
    found = all_examples(relation, seed, unit)
    rng = np.random.default_rng(seed)
    rows, labels = rng.normal(size=(40, 30)), rng.choice([-1.0, 1.0], 40)
    problem = Problem(Logistic(), Zero(), 40, 30, relation, privacy_unit=unit)
    w = rng.normal(size=problem.shape)
    example = Example(None, rows, labels, found["margin histogram"].draw_label)
    source = PersonTable.of(example, unit).source(True)
    signed = np.concatenate([source.y[b.place] * b.margins(w) for b in source.blocks()])
    edges = np.unique(signed)
    found["margin histogram at margins"] = replace(
        example, query=MarginHistogram(problem, w, edges)
    )
    return found


def persons() -> Iterator[Check]:
    """Searches for persons whose rows move an answer beyond its bound."""
    for relation in RELATIONS:
        for name in person_examples(relation):
            yield Check(
                f"persons: sensitivity of {name} ({relation})",
                partial(_person_climb, name, relation),
            )
            yield Check(
                f"persons: rows of {name} ({relation})", partial(_person_rows, name, relation)
            )
    yield Check("persons: weights", _weights)
    yield Check("persons: positions", _positions)


def _person_climb(name: str, relation: Relation, seed: int) -> list[Finding]:
    found = []
    for unit in (_PERSONS, _CAPPED):
        example = person_examples(relation, seed, unit)[name]
        places = (0, len(example.rows) - 1) if isinstance(example.query, PermutedRun) else (0,)
        found += [
            check_person_sensitivity(
                name, example, relation, unit, person=person, starts=3, climbs=9, seed=seed
            )
            for person in places
        ]
    return found


def _person_rows(name: str, relation: Relation, seed: int) -> list[Finding]:
    # Always the same rows, as for the order of rows.
    example = person_examples(relation, 0, FEW_ROWS)[name]
    return check_rows_of_persons(name, example, relation, FEW_ROWS)


def _weights(seed: int) -> list[Finding]:
    return [
        finding for unit in (_PERSONS, FEW_ROWS, _CAPPED) for finding in check_shares(unit, seed)
    ]


def _positions(seed: int) -> list[Finding]:
    return [finding for sparse in (False, True) for finding in check_positions(sparse, seed)]
