"""Checks of tables in parts: sums that come together from several places, one of them lost."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hushfit._typing import Vector
from hushfit.audit.checks._deterministic import check_sensitivity
from hushfit.audit.checks._examples import Example, source_for
from hushfit.audit.checks._noise import Finding
from hushfit.data import Part, RecordScaling, SumsOverRows, one_place_each, scaling_of, sum_of_parts
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.unit import PrivacyUnit

# Places that have each part. The first part is in two places, as after a worker that was slow, and
# the second in none, as after one that was lost; parts of one place are added up there together.
_PLACES: tuple[tuple[str, ...], ...] = (("a", "b"), (), ("b",), ("b",))


@dataclass(frozen=True, eq=False)
class InPlaces:
    """A table whose parts meet only in sums; queries travel to them as pickles."""

    parts: Sequence[Part]
    n_units: int
    n_features: int
    privacy_unit: PrivacyUnit
    scaling: RecordScaling

    def added_up(self, sums: SumsOverRows) -> Vector:
        """Exact sums over all rows, added up as over the workers of a cluster."""
        travelled = pickle.dumps(sums)
        first, *others = (
            sum_of_parts(pickle.loads(travelled), [self.parts[number] for number in numbers])
            for _, numbers in one_place_each(_PLACES)
        )
        return sum(others, start=first)


def source_in_parts(problem: Problem, rows: Any, labels: Vector) -> Any:
    """The source that a query of this problem is answered over, in parts of different lengths.

    Parameters
    ----------
    problem : Problem
    rows : array
        At least six.
    labels : array

    Returns
    -------
    InPlaces
    """
    n, whole = len(rows), source_for(problem, rows, labels)
    ends = [0, 2, n // 3, n // 2, n]
    parts = [
        Part(source_for(problem, rows[start:end], labels[start:end]), n)
        for start, end in pairwise(ends)
    ]
    return InPlaces(parts, n, whole.n_features, whole.privacy_unit, scaling_of(whole))


def check_parts(
    name: str, example: Example, relation: Relation, climbs: int = 20, seed: int = 0
) -> list[Finding]:
    """Check that a query over a table in parts keeps its sensitivity, and answers as in one place.

    Parameters
    ----------
    name : str
    example : Example
        Of a query that declares ``in_parts``.
    relation : Relation
    climbs : int, default=20
        Proposals of the search for neighbours.
    seed : int, default=0

    Returns
    -------
    list of Finding
    """
    query = example.query
    here, there = (
        query(make(query.problem, example.rows, example.labels), None)
        for make in (source_for, source_in_parts)
    )
    return [
        Finding(f"{name} ({relation}): in parts as in one place", here.tolist() == there.tolist()),
        check_sensitivity(
            f"{name}, in parts",
            query,
            relation,
            example.rows,
            example.labels,
            draw_label=example.draw_label,
            starts=2,
            climbs=climbs,
            seed=seed,
            make_source=source_in_parts,
        ),
    ]
