"""What a search draws by random bits: settings, candidates, and the rows that it holds out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import _safe_indexing

from hushfit._typing import IntVector
from hushfit.data import Coins, Persons, fixed_size_units
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.unit import ROW, PrivacyUnit


@dataclass(frozen=True, eq=False)
class HeldApart:
    """Rows that serve one purpose, fitting or scoring, and whose they are: a person has all of
    their rows here, or none.
    """

    rows: IntVector
    persons: Persons | None

    @classmethod
    def of(cls, units: IntVector, persons: Persons | None) -> "HeldApart":
        """The rows of some units."""
        if persons is None:
            return cls(units, None)
        rows = persons.rows_of(units)
        codes = np.searchsorted(units, persons.codes[rows])
        return cls(rows, Persons(codes, len(units), persons.unit))

    def taken_from(self, table: Any) -> Any:
        """These rows of a table or list."""
        return _safe_indexing(table, self.rows)


def listed(candidates: Any, count: int, coins: Coins) -> list[dict[str, Any]]:
    """All candidates; those from distributions are drawn here, and are public from then on."""
    grids = (
        [candidates]
        if isinstance(candidates, Mapping)
        else list(candidates)
        if isinstance(candidates, Iterable)
        else []
    )
    if not grids or not all(isinstance(grid, Mapping) for grid in grids):
        raise InvalidArgument(
            f"candidates={candidates!r} has no settings. Give a mapping from parameter names to "
            "lists of values."
        )
    if any(hasattr(values, "rvs") for grid in grids for values in grid.values()):
        seed = int(coins.words(1)[0]) % 2**32
        return list(ParameterSampler(grids, count, random_state=seed))
    found = list(
        ParameterGrid([{name: _values(values) for name, values in grid.items()} for grid in grids])
    )
    if len(found) > 1000:
        raise InvalidArgument(f"{len(found)} candidates are too many to price. Give at most 1000.")
    return found


def _values(values: Any) -> Any:
    """A single value counts as a list of one."""
    return values if isinstance(values, list | tuple | np.ndarray) else [values]


def split(
    n_units: int, share: float, coins: Coins, unit: PrivacyUnit = ROW
) -> tuple[IntVector, IntVector]:
    """Units to fit on and units to score on, by random bits independent of the rows."""
    if not 0 < share < 1:
        raise InvalidArgument(
            f"holdout={share!r} is not a share of the {unit.plural}. Give a number between 0 and "
            "1, such as 0.2."
        )
    count = round(share * n_units)
    if not 1 <= count <= n_units - 2:
        raise TooFewRows(
            f"holdout={share:g} of {n_units} {unit.plural} leaves too few to score or to fit on. "
            f"Give more {unit.plural}."
        )
    scored_on = fixed_size_units(n_units, count, coins)
    return np.setdiff1d(np.arange(n_units), scored_on), scored_on


def uniform_below(count: int, coins: Coins) -> int:
    """An integer from 0 to count - 1, exactly uniform."""
    whole = 2**64 // count * count
    while True:
        word = int(coins.words(1)[0])
        if word < whole:
            return word % count
