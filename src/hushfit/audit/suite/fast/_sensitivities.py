"""Fast checks: no table moves the answer of a query beyond its bound."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from hushfit.audit.attacks import RELATIONS
from hushfit.audit.checks import (
    Finding,
    check_batch_sensitivity,
    check_order,
    check_overwritten,
    check_parts,
    check_sensitivity,
    example_queries,
)
from hushfit.audit.suite.fast._check import Check
from hushfit.audit.suite.fast._examples import all_examples, more_examples
from hushfit.privacy import Relation
from hushfit.release import PermutedRun

# Runs that partition rows into batches by their position in the table, which is public.
_PARTITIONED = ("run in batches", "run with restarts", "run in uneven batches")


def sensitivities() -> Iterator[Check]:
    """Searches for neighbours beyond the bound, in all orders, parts and batches."""
    for relation in RELATIONS:
        for name in [*example_queries(relation), *more_examples(relation)]:
            yield Check(f"sensitivity of {name} ({relation})", partial(_hill_climb, name, relation))
    for name in example_queries(Relation.LABEL):
        yield Check(f"sensitivity of {name}", partial(_hill_climb, name, Relation.LABEL))
    for name in example_queries(Relation.REPLACE_ONE):
        yield Check(f"sensitivity of {name} after writing into it", partial(_overwritten, name))
    sampled = [
        name
        for name, example in example_queries(Relation.ADD_REMOVE).items()
        if example.query.sampled
    ]
    for name in sampled:
        yield Check(f"sensitivity of {name} in batches", partial(_in_batches, name))
    for name, example in example_queries(Relation.REPLACE_ONE).items():
        if example.query.in_parts:
            yield Check(f"{name} in parts", partial(_in_parts, name))
    for relation in RELATIONS:
        for name in [*example_queries(relation), *more_examples(relation)]:
            if name not in _PARTITIONED:
                yield Check(
                    f"order of rows for {name} ({relation})", partial(_in_order, name, relation)
                )


def _hill_climb(name: str, relation: Relation, seed: int) -> list[Finding]:
    example = all_examples(relation, seed)[name]
    # Where the position of a row matters, several positions of the replaced row are tried.
    places = (0, 6, len(example.rows) - 1) if isinstance(example.query, PermutedRun) else (0,)
    search: dict[str, Any] = {
        "draw_label": example.draw_label,
        "climbs": 30,
        "starts": 3,
        "seed": seed,
    }
    return [
        check_sensitivity(
            name, example.query, relation, example.rows, example.labels, row=row, **search
        )
        for row in places
    ]


def _overwritten(name: str, seed: int) -> list[Finding]:
    example = example_queries(Relation.REPLACE_ONE, seed)[name]
    return [
        check_overwritten(
            name,
            example.query,
            Relation.REPLACE_ONE,
            example.rows,
            example.labels,
            example.draw_label,
            seed,
        )
    ]


def _in_order(name: str, relation: Relation, seed: int) -> list[Finding]:
    # Always the same rows: with random ones, about one in a hundred thousand lies half way
    # between two steps of its grid.
    example = all_examples(relation, 0)[name]
    return [check_order(name, example.query, relation, example.rows, example.labels)]


def _in_parts(name: str, seed: int) -> list[Finding]:
    # The same rows always, as for their order.
    return check_parts(
        name, example_queries(Relation.REPLACE_ONE, 0)[name], Relation.REPLACE_ONE, seed=seed
    )


def _in_batches(name: str, seed: int) -> list[Finding]:
    example = example_queries(Relation.REPLACE_ONE, seed)[name]
    return [
        check_batch_sensitivity(
            name, example.query, example.rows, example.labels, example.draw_label, seed=seed
        )
    ]
