"""Reading a table to guess its schema. Not private, and said to be so wherever its result goes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hushfit.data.schema import (
    OTHER,
    CategoricalColumn,
    Column,
    NumericColumn,
    Schema,
    SchemaFile,
    label_of,
    number_of,
    rounded_outwards,
)
from hushfit.data.tables import Table, Watch, table_batches
from hushfit.errors import InvalidArgument

_MOST_CATEGORIES = 50
_FEWEST_NUMBERS = 3  # a column of two different numbers is a label, as 0 and 1 are


@dataclass
class Remarks:
    """What to say about the columns."""

    kept: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)


@dataclass
class Sketch:
    """What has been seen of one column."""

    # By what they are compared with, since categories that no table tells apart may not be listed
    # twice.
    labels: dict[str | None, str] = field(default_factory=dict)
    low: float = np.inf
    high: float = -np.inf
    numbers: int = 0
    others: int = 0
    missing: int = 0

    def see(self, cells: object) -> None:
        counts = cells.value_counts()  # type: ignore[attr-defined]
        for item in counts:
            value, count = item["values"].as_py(), item["counts"].as_py()
            text = "" if value is None else str(value).strip()
            self._see_one(text, count)

    def _see_one(self, text: str, count: int) -> None:
        number = number_of(text)
        if text == "" or (np.isnan(number) and text.lower() in ("nan", "na", "null", "none")):
            self.missing += count
            return
        if len(self.labels) <= _MOST_CATEGORIES:
            self.labels.setdefault(label_of(text), text)
        if np.isfinite(number):
            self.low, self.high, self.numbers = (
                min(self.low, number),
                max(self.high, number),
                self.numbers + count,
            )
        else:
            self.others += count

    @property
    def is_numeric(self) -> bool:
        # A stray mark such as "?" among thousands of numbers does not make them labels.
        return self.numbers > 50 * self.others and (
            len(self.labels) >= _FEWEST_NUMBERS or self.low < 0
        )

    def column(self, name: str) -> Column | None:
        """A column of the schema, or None for free text and identifiers."""
        if self.is_numeric:
            low, high = rounded_outwards(float(self.low), float(self.high))
            return NumericColumn(name, low, high)
        labels = sorted(set(self.labels.values()) - {OTHER})
        return (
            CategoricalColumn(name, tuple(labels)) if 0 < len(labels) <= _MOST_CATEGORIES else None
        )


def draft_schema(
    tables: Sequence[Table], target: str, watch: Watch | None
) -> tuple[SchemaFile, Remarks]:
    """A schema with everything in it marked as unconfirmed."""
    sketches: dict[str, Sketch] = {}
    for table in tables:
        for batch in table_batches(table, None, watch):
            for name in batch.schema.names:
                sketches.setdefault(name, Sketch()).see(batch.column(name))
    if target not in sketches:
        known = ", ".join(sketches) or "none, since there are no rows"
        raise InvalidArgument(
            f"the table has no column {target!r} to predict. Its columns: {known}."
        )
    return _assembled(sketches, target)


def _assembled(sketches: dict[str, Sketch], target: str) -> tuple[SchemaFile, Remarks]:
    remarks = Remarks()
    columns = []
    for name, sketch in sketches.items():
        column = sketch.column(name) if name and name != target else None
        if column is not None:
            columns.append(column)
            remarks.kept[name] = _remark(sketch)
        elif name != target:
            empty = not sketch.labels
            remarks.dropped[name] = (
                "it is empty"
                if empty
                else f"more than {_MOST_CATEGORIES} labels, like text or an identifier"
            )
    labels = tuple(sorted(sketches[target].labels.values()))
    if not 2 <= len(labels) <= _MOST_CATEGORIES:
        raise InvalidArgument(
            f"the target {target!r} has "
            f"{len(labels) if len(labels) <= _MOST_CATEGORIES else 'too many'} different labels; "
            f"hushfit tells 2 to {_MOST_CATEGORIES} classes apart. Choose another column, or group "
            "its values."
        )
    if not columns:
        raise InvalidArgument(
            "no column is left to learn from: each looks like text or an identifier. Prepare some."
        )
    schema = Schema(tuple(columns), CategoricalColumn(target, labels))
    return SchemaFile(schema, (target, *(column.name for column in columns))), remarks


def _remark(sketch: Sketch) -> str:
    if not sketch.missing:
        return ""
    return "Some cells are missing: " + (
        "they become `fill`." if sketch.is_numeric else "they become <other>."
    )
