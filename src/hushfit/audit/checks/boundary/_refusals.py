"""Checks of what a curator must refuse."""

from contextlib import suppress
from typing import Any

from hushfit._typing import Vector
from hushfit.audit._curators import seeded_curator
from hushfit.audit.checks._noise import Finding
from hushfit.audit.checks.boundary._threads import run_concurrently
from hushfit.data import DataSource
from hushfit.errors import UndeclaredRelease
from hushfit.privacy import Relation
from hushfit.release import Plan, Planned, Quote
from hushfit.release.curator import Curator


def check_refusals(source: DataSource, query: Any, other: Any, relation: Relation) -> list[Finding]:
    """Check that a curator answers only what its plan declares.

    Parameters
    ----------
    source : DataSource
    query : Query
        Declared for two releases.
    other : Query
        A query of another type.
    relation : Relation

    Returns
    -------
    list of Finding
    """
    plan = Plan((Planned("declared", type(query), 2),))

    def curator() -> Curator:
        quote = Quote.at(plan, {"declared": 1.0}, source.n_units)
        return seeded_curator(source, quote, relation, 0)

    def refuses(*requests: tuple[str, Any]) -> bool:
        door = curator()
        try:
            for name, what in requests:
                door.release(name, what)
        except (UndeclaredRelease, KeyError):
            return True
        return False

    raced = curator()
    answers: list[Vector] = []

    def ask() -> None:
        with suppress(UndeclaredRelease):
            answers.extend(raced.release("declared", query) for _ in range(4))

    run_concurrently(ask)
    twice = ("declared", query)
    return [
        Finding("curator: a third release of two is refused", refuses(twice, twice, twice)),
        Finding("curator: an undeclared name is refused", refuses(("other", query))),
        Finding("curator: another kind of query is refused", refuses(("declared", other))),
        Finding("curator: what is declared is answered", not refuses(twice, twice)),
        Finding(
            "curator: threads cannot get more releases",
            len(answers) == 2,
            f"{len(answers)} answers",
        ),
    ]
