"""Drafts a schema from a table. Not private, and marked so in every output."""

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

_MAX_CATEGORIES = 50
_MIN_NUMBERS = 3  # a column of two different numbers is a label, as 0 and 1 are


@dataclass
class DraftNotes:
    """Notes on the columns."""

    kept: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)


@dataclass
class ColumnDraft:
    """What was found in one column so far."""

    # Keyed by the form in which they are compared, since equal categories may not be listed twice.
    labels: dict[str | None, str] = field(default_factory=dict)
    low: float = np.inf
    high: float = -np.inf
    numbers: int = 0
    others: int = 0
    missing: int = 0

    def add(self, cells: object) -> None:
        counts = cells.value_counts()  # type: ignore[attr-defined]
        for item in counts:
            value, count = item["values"].as_py(), item["counts"].as_py()
            text = "" if value is None else str(value).strip()
            self._add_one(text, count)

    def _add_one(self, text: str, count: int) -> None:
        number = number_of(text)
        if text == "" or (np.isnan(number) and text.lower() in ("nan", "na", "null", "none")):
            self.missing += count
            return
        if len(self.labels) <= _MAX_CATEGORIES:
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
            len(self.labels) >= _MIN_NUMBERS or self.low < 0
        )

    def column(self, name: str) -> Column | None:
        """A column of the schema, or None for free text and identifiers."""
        if self.is_numeric:
            low, high = rounded_outwards(float(self.low), float(self.high))
            return NumericColumn(name, low, high)
        labels = sorted(set(self.labels.values()) - {OTHER})
        return (
            CategoricalColumn(name, tuple(labels)) if 0 < len(labels) <= _MAX_CATEGORIES else None
        )


def draft_schema(
    tables: Sequence[Table], target: str, watch: Watch | None
) -> tuple[SchemaFile, DraftNotes]:
    """A schema with everything in it marked as unconfirmed."""
    drafts: dict[str, ColumnDraft] = {}
    for table in tables:
        for batch in table_batches(table, None, watch):
            for name in batch.schema.names:
                drafts.setdefault(name, ColumnDraft()).add(batch.column(name))
    if target not in drafts:
        known = ", ".join(drafts) or "none, since there are no rows"
        raise InvalidArgument(
            f"the table has no column {target!r} to predict. Its columns: {known}."
        )
    return _assembled(drafts, target)


def _assembled(drafts: dict[str, ColumnDraft], target: str) -> tuple[SchemaFile, DraftNotes]:
    notes = DraftNotes()
    columns = []
    for name, draft in drafts.items():
        column = draft.column(name) if name and name != target else None
        if column is not None:
            columns.append(column)
            notes.kept[name] = _note(draft)
        elif name != target:
            empty = not draft.labels
            notes.dropped[name] = (
                "it is empty"
                if empty
                else f"more than {_MAX_CATEGORIES} labels, like text or an identifier"
            )
    labels = tuple(sorted(drafts[target].labels.values()))
    if not 2 <= len(labels) <= _MAX_CATEGORIES:
        raise InvalidArgument(
            f"the target {target!r} has "
            f"{len(labels) if len(labels) <= _MAX_CATEGORIES else 'too many'} different labels; "
            f"hushfit predicts 2 to {_MAX_CATEGORIES} classes. Choose another column, or group "
            "its values."
        )
    if not columns:
        raise InvalidArgument(
            "no column is left to learn from: each looks like text or an identifier. Prepare some "
            "columns."
        )
    schema = Schema(tuple(columns), CategoricalColumn(target, labels))
    return SchemaFile(schema, (target, *(column.name for column in columns))), notes


def _note(draft: ColumnDraft) -> str:
    if not draft.missing:
        return ""
    return "Some cells are missing: " + (
        "they become `fill`." if draft.is_numeric else "they become <other>."
    )
