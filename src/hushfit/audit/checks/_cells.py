"""Check that no cell of a column changes how the others are read, through the column's type."""

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hushfit._typing import AnyArray
from hushfit.audit.checks._noise import Finding
from hushfit.data.schema import CategoricalColumn, NumericColumn

_DAY = datetime.datetime(2020, 1, 1)
# Columns of three cells, of which the last is replaced.
VALUES: dict[str, list[Any]] = {
    "whole numbers": [1, 2, 3],
    "large whole numbers": [2**53 + 1, 2**60 + 1, 5],
    "fractions": [0.5, 1.0, 2.25],
    "truth values": [True, False, True],
    "dates": [
        np.datetime64("2020-01-01", "ns"),
        np.datetime64("2021-05-06T07:08:09", "ns"),
        np.datetime64("2022-01-01", "ns"),
    ],
    "durations": [np.timedelta64(1, "ns"), np.timedelta64(90, "ns"), np.timedelta64(5, "ns")],
    "texts": ["a", "1", "x"],
}
PLANTED: list[Any] = [None, float("nan"), 7, 0.5, 10**400, True, "text", _DAY]


def _object_array(values: Sequence[Any]) -> AnyArray:
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells


def _arrow_array(values: Sequence[Any]) -> Any:
    """A column as in a file: of one type, which no single cell determines."""
    return pa.array(values, pa.array(values[:-1]).type)


LAYOUTS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "list": list,
    "numpy": np.array,
    "numpy objects": _object_array,
    "pyarrow": _arrow_array,
}


def vocabulary(values: Sequence[Any]) -> CategoricalColumn:
    """All spellings of the values that one list of categories can hold."""
    column = None
    written: list[str] = []
    for text in (
        str(value)
        for cell in values
        for value in (cell, getattr(cell, "item", lambda cell=cell: cell)())
    ):
        try:
            column = CategoricalColumn("c", (*written, text))
        except ValueError:  # a duplicate
            continue
        written.append(text)
    assert column is not None
    return column


def check_cells(
    layouts: dict[str, Callable[[Sequence[Any]], Any]],
    read: Callable[[Any, Any], AnyArray],
    name: str = "cells",
) -> list[Finding]:
    """Check that no cell of a column changes how the others are read: replace one by values of all
    types, and count other cells that change.

    Parameters
    ----------
    layouts : dict of str to callable
        Make a column of a list of values; layouts that reject mixed types are skipped.
    read : callable
        Takes a column of a schema and cells; returns one row for each cell.
    name : str, default="cells"

    Returns
    -------
    list of Finding
    """
    findings = []
    for layout, make in layouts.items():
        for kind, values in VALUES.items():
            columns = (vocabulary(values), NumericColumn("c", 0.0, 1e19, fill=5e18))
            moved = sum(
                _moved(make, values, odd, column, read) for odd in PLANTED for column in columns
            )
            check = f"{name}: {layout}, {kind}: no cell changes another"
            findings.append(Finding(check, moved == 0, f"{moved} other cells changed"))
    return findings


def _moved(
    make: Callable[[Sequence[Any]], Any],
    values: list[Any],
    odd: Any,
    column: Any,
    read: Callable[[Any, Any], AnyArray],
) -> int:
    try:
        mixed = make([*values[:-1], odd])
        alone = make(values)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        return 0
    before, after = read(column, alone)[:-1], read(column, mixed)[:-1]
    return int((np.atleast_2d(before.T) != np.atleast_2d(after.T)).any(axis=0).sum())
