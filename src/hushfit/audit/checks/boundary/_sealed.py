"""A sealed door: fits whose curators hold a table of null records instead of the rows.

Any output that still differs between two neighbouring tables bypassed the boundary.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from hushfit.audit.checks._deterministic import Table, observed_fit
from hushfit.audit.checks._noise import Finding
from hushfit.audit.checks.boundary._recorded import persons_of, recorded_boundary
from hushfit.data import DataSource
from hushfit.privacy import Ledger
from hushfit.release import TextColumns

_UNIT_ROUNDING = 1e-9


def check_sealed(
    make: Callable[[], Any], tables: Sequence[Table], name: str = "fit"
) -> list[Finding]:
    """Check that a fit reads rows only through its curators, record by record.

    Parameters
    ----------
    make : callable
        Returns a fresh estimator with a seed, so that two fits draw the same noise.
    tables : sequence of (X, y) or (X, y, groups)
        Tables that differ in one row, or in all rows of one person, also in their number.
    name : str, default="fit"

    Returns
    -------
    list of Finding
        With sealed curators, no output of the fit depends on the table, to the last bit of its
        attributes. Of the rows that curators hold, no record is longer than one, and replacing a
        row, or the rows of a person, changes no other.
    """
    seen, behind = [], []
    for table in tables:
        made: list[Any] = []

        def fresh(made: list[Any] = made) -> Any:
            made.append(make())
            return made[0]

        with recorded_boundary(seal=True) as log:
            observed = observed_fit(fresh, table)
        observed["values of attributes"] = _frozen(
            {key: value for key, value in vars(made[0]).items() if key.endswith("_")}
        )
        observed["number of accesses"] = [type(event).__name__ for event in log.events]
        seen.append(observed)
        behind.append([_units(source) for source in log.sources])
    findings = [
        Finding(
            f"{name}: a sealed fit succeeds",
            not all(one["errors"] for one in seen),
            seen[0]["errors"][:300],
        )
    ]
    for channel in seen[0]:
        values = [one[channel] for one in seen]
        other = next((value for value in values if value != values[0]), values[0])
        findings.append(
            Finding(
                f"{name}: {channel} depend on rows only through curators",
                other is values[0],
                _first_difference(values[0], other),
            )
        )
    return [*findings, *_record_findings(name, behind)]


def _record_findings(name: str, behind: Sequence[Sequence[list[Any]]]) -> list[Finding]:
    """Check that tables have equally many units, records of length at most one, and all units
    equal but one.
    """
    shapes = [[(len(units), units[0].shape[1:]) for units in of_table] for of_table in behind]
    other = next((shape for shape in shapes if shape != shapes[0]), None)
    counted = Finding(
        f"{name}: all tables have equally many units",
        other is None,
        "" if other is None else f"{shapes[0]} against {other}",
    )
    if other is not None:
        return [counted]
    longest, moved = 0.0, 0
    for first, *others in zip(*behind, strict=True):
        for units in (first, *others):
            if units[0].dtype != object:
                records = np.concatenate(units)[:, :-2]
                longest = max(longest, float(np.linalg.norm(records, axis=1).max(initial=0.0)))
            # One of them is the replaced unit, at any position a split has put it.
            differ = sum(not np.array_equal(a, b) for a, b in zip(units, first, strict=True))
            moved = max(moved, differ - 1)
    return [
        counted,
        Finding(
            f"{name}: no record is longer than one",
            longest <= 1 + _UNIT_ROUNDING,
            f"longest {longest:.6f}",
        ),
        Finding(
            f"{name}: replacing a unit changes no other",
            moved <= 0,
            f"{max(moved, 0)} other units changed",
        ),
    ]


def _units(source: DataSource) -> list[Any]:
    """What a query can read of each unit: of each of its rows the record with the intercept's
    entry, the label and the weight.
    """
    rows = _records(source)
    persons = persons_of(source)
    if persons is None:
        return list(rows[:, None])
    return [rows[persons.codes == code] for code in range(persons.n_persons)]


def _records(source: DataSource) -> Any:
    if isinstance(source, TextColumns):
        return np.array(source.columns, dtype=object).T
    width, n = source.n_features + 1, len(source.y)
    found = np.zeros((n, width + 2))
    for block in source.blocks():
        for j, unit in enumerate(np.eye(width)):
            found[block.place, j] = np.nan_to_num(block.margins(unit), nan=0.0)
    found[:, -2] = np.nan_to_num(source.y, nan=0.0)
    found[:, -1] = source.shares
    return found


def _frozen(value: Any, depth: int = 0) -> Any:
    """A value in a form that can be compared bit by bit."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, np.generic | float | int | str | bytes | bool | Enum) or value is None:
        return repr(value)
    if depth > 8 or isinstance(value, Ledger):
        return type(value).__name__
    if isinstance(value, Mapping):
        return {str(key): _frozen(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_frozen(item, depth + 1) for item in value]
    parts = (
        {f.name: getattr(value, f.name) for f in fields(value)}
        if is_dataclass(value)
        else getattr(value, "__dict__", {})
    )
    return (type(value).__name__, {key: _frozen(item, depth + 1) for key, item in parts.items()})


def _first_difference(a: Any, b: Any) -> str:
    if a is b:
        return ""
    if isinstance(a, dict) and isinstance(b, dict):
        different = [key for key in {**a, **b} if a.get(key) != b.get(key)]
        return f"{', '.join(different)} differ" if different else ""
    if isinstance(a, list) and isinstance(b, list):
        only = [item for item in a if item not in b], [item for item in b if item not in a]
        a, b = only if any(only) else (len(a), len(b))
    return f"{a!r} against {b!r}"[:300]
