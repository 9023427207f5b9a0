"""Tables in parts: what a part tells of the table, and how sums over parts come together.

A record is in one part, and a part is added up once, wherever copies of it are: the sensitivity of
every query over a table in parts rests on that. Proof: docs/proofs/gradient.md.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data.rows._persons import Persons
from hushfit.data.rows._protocols import Block, DataSource, SumsOverRows
from hushfit.data.rows._public_rows import PublicRows
from hushfit.data.rows._scaling import RecordScaling, scaling_of
from hushfit.errors import InvalidArgument
from hushfit.unit import PrivacyUnit


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one part as a source: a part of a table whose whole number of units it states, since
    grids and weights depend on that.
    """

    rows: DataSource
    n_units: int

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return self.rows.privacy_unit

    @property
    def persons(self) -> Persons | None:
        return self.rows.persons

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    @property
    def scaling(self) -> RecordScaling:
        return scaling_of(self.rows)

    @property
    def y(self) -> Vector:
        return self.rows.y

    @property
    def shares(self) -> Vector:
        return self.rows.shares

    def row_vector(self) -> Vector:
        return self.rows.row_vector()

    def blocks(self, units: IntVector | None = None) -> Iterator[Block]:
        return self.rows.blocks(units)

    def public_rows(self) -> PublicRows:
        raise InvalidArgument("A part of a table has no public rows. Fit on one machine.")


def one_place_each(places: Sequence[Collection[str]]) -> list[tuple[str | None, list[int]]]:
    """Where each part is added up.

    Parameters
    ----------
    places : sequence of collection of str
        The places that have a copy of each part; none if it was lost.

    Returns
    -------
    list of (str or None, list of int)
        Places, and the numbers of the parts to be added up there: every number once. Parts without
        a place are by themselves, with None.
    """
    lost: list[tuple[str | None, list[int]]] = []
    kept: dict[str, list[int]] = {}
    for number, having in enumerate(places):
        if having:
            kept.setdefault(min(having), []).append(number)
        else:
            lost.append((None, [number]))
    return [*lost, *sorted(kept.items())]


def sum_of_parts(query: SumsOverRows, parts: Sequence[DataSource]) -> Vector:
    """Exact sums of a query over some parts: multiples of one grid, so they add up exactly."""
    first, *others = (query.exact_sums(part, None) for part in parts)
    return np.asarray(sum(others, start=first))
