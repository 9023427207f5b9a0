"""Records of what passes the trusted boundary: payments, opened rows, accesses."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.data import DataSource, DenseRows, Persons, SparseRows, as_source, scaling_of
from hushfit.data.lists import RankedLists
from hushfit.privacy import Cost, Ledger, Receipt
from hushfit.release import TextColumns
from hushfit.release.curator import Curator


def null_table(source: DataSource) -> DataSource:
    """A table in which every record is the null record, of as many units; persons have as many
    rows as they had, so that anything that counts rows still sees their number. Lists keep their
    documents, and none of these is relevant.
    """
    if isinstance(source, TextColumns):
        return replace(source, columns=tuple((None,) * len(one) for one in source.columns))
    if isinstance(source, RankedLists):
        # Queries ask for the documents that their bounds were computed from.
        return replace(source, y=np.zeros(len(source.y)))
    null_rows = np.full((len(source.y), source.n_features), np.nan)
    return as_source(
        null_rows,
        np.zeros(len(source.y)),
        fit_intercept=getattr(source, "fit_intercept", False),
        persons=persons_of(source),
        scaling=scaling_of(source),
    )


def persons_of(source: DataSource) -> Persons | None:
    """Whose rows they are, where units are persons."""
    if not source.privacy_unit.is_person:
        return None
    assert isinstance(source, DenseRows | SparseRows | TextColumns)
    return source.persons


@contextmanager
def recorded_boundary(seal: bool = False) -> Iterator["BoundaryLog"]:
    """Record every payment, curator and release; with ``seal``, give all curators null tables."""
    log = BoundaryLog()
    opened, noisy, charged = Curator.__init__, Curator._noisy, Ledger.charge

    def __init__(self: Curator, source: DataSource, *terms: Any, **more: Any) -> None:
        log.events.append(Opened(self, source))
        opened(self, null_table(source) if seal else source, *terms, **more)

    def _noisy(self: Curator, name: str, query: Any) -> Vector:
        log.events.append(DataAccess(self, name, query))
        return noisy(self, name, query)

    def charge(self: Ledger, cost: Cost, *terms: Any, **more: Any) -> Receipt:
        receipt = charged(self, cost, *terms, **more)
        log.events.append(Paid(self, receipt.cost))
        return receipt

    patched: list[tuple[Any, str, Any, Any]] = [
        (Curator, "__init__", opened, __init__),
        (Curator, "_noisy", noisy, _noisy),
        (Ledger, "charge", charged, charge),
    ]
    for owner, name, _, watching in patched:
        setattr(owner, name, watching)
    try:
        yield log
    finally:
        for owner, name, original, _ in patched:
            setattr(owner, name, original)


@dataclass(frozen=True, eq=False)
class Opened:
    """A curator was given rows."""

    curator: Curator
    source: DataSource


@dataclass(frozen=True, eq=False)
class DataAccess:
    """A query was evaluated on the rows."""

    curator: Curator
    name: str
    query: Any


@dataclass(frozen=True, eq=False)
class Paid:
    """A ledger was charged."""

    ledger: Ledger
    cost: Cost


@dataclass(eq=False)
class BoundaryLog:
    """Events at the trusted boundary, in order."""

    events: list[Opened | DataAccess | Paid] = field(default_factory=list)

    @property
    def sources(self) -> list[DataSource]:
        return [event.source for event in self.events if isinstance(event, Opened)]
