"""Drafts a schema from a table. Not private, and marked so in every output."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushfit.cli._draft_target import NOTES as TARGET_NOTES
from hushfit.cli._draft_target import drafted_target
from hushfit.data.rows import PersonIndex
from hushfit.data.schema import (
    OTHER,
    UNIT,
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
# What a column of ids looks like. Ages and amounts repeat too, so without a telling name it takes
# many different whole numbers, and most of them in few rows.
_MIN_IDS, _MIN_UNNAMED_IDS = 20, 1000
_ID_SHARE, _UNNAMED_ID_SHARE = 0.02, 0.5
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_ID_WORDS = {"id", "ids", "uuid", "guid", "nbr", "ssn", "mrn", "pid", "uid"}
_LAST_ID_WORDS = {"no", "nr", "num", "number", "key"}
_PERSONS = {
    *("patient", "person", "customer", "client", "user", "member", "subject", "account", "card"),
    *("household", "participant", "respondent", "employee", "student", "driver"),
}
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*", re.DOTALL)


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
    fractions: int = 0
    dates: int = 0
    ids: PersonIndex = field(default_factory=PersonIndex)

    def add(self, cells: Any) -> None:
        if not str(cells.type).startswith(("list", "large_list", "struct", "map", "fixed_size_l")):
            self._count_ids(cells)
        counts = cells.value_counts()
        for item in counts:
            value, count = item["values"].as_py(), item["counts"].as_py()
            text = "" if value is None else str(value).strip()
            self._add_one(text, count)

    def _count_ids(self, cells: Any) -> None:
        try:
            self.ids.add(cells)
        except InvalidArgument:  # large floats are no ids
            self.fractions += 1

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
            self.fractions += not number.is_integer()
        else:
            self.others += count
            self.dates += _DATE.fullmatch(text) is not None

    def looks_like_ids(self, name: str) -> bool:
        """Whether it has many different whole numbers or texts, in few rows each."""
        filled, count = self.numbers + self.others, self.ids.n_ids
        if self.fractions or self.dates or not filled:
            return False
        if _named_like_ids(name):
            return count >= _MIN_IDS and count >= _ID_SHARE * filled
        return count >= _MIN_UNNAMED_IDS and count >= _UNNAMED_ID_SHARE * filled

    @property
    def repeats(self) -> bool:
        """Whether some value is in several rows."""
        return self.ids.n_ids < self.numbers + self.others

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
            return NumericColumn(name, low, high, integer=not self.fractions)
        labels = sorted(set(self.labels.values()) - {OTHER})
        return (
            CategoricalColumn(name, tuple(labels)) if 0 < len(labels) <= _MAX_CATEGORIES else None
        )


def draft_schema(
    tables: Sequence[Table], target: str, watch: Watch | None, target_kind: str | None = None
) -> tuple[SchemaFile, DraftNotes]:
    """A schema with everything in it marked as unconfirmed."""
    drafts = scanned(tables, watch)
    if target not in drafts:
        known = ", ".join(drafts) or "none, since there are no rows"
        raise InvalidArgument(
            f"the table has no column {target!r} to predict. Its columns: {known}."
        )
    return _assembled(drafts, target, target_kind)


def scanned(tables: Sequence[Table], watch: Watch | None) -> dict[str, ColumnDraft]:
    """What is in each column of the tables."""
    drafts: dict[str, ColumnDraft] = {}
    for table in tables:
        for batch in table_batches(table, None, watch):
            for name in batch.schema.names:
                drafts.setdefault(name, ColumnDraft()).add(batch.column(name))
    return drafts


def _assembled(
    drafts: dict[str, ColumnDraft], target: str, target_kind: str | None
) -> tuple[SchemaFile, DraftNotes]:
    notes = DraftNotes()
    columns = []
    ids = {
        name: draft
        for name, draft in drafts.items()
        if name and name != target and draft.looks_like_ids(name)
    }
    person = _person_among(ids)
    for name, draft in drafts.items():
        column = draft.column(name) if name and name != target and name not in ids else None
        if column is not None:
            columns.append(column)
            notes.kept[name] = _note(draft)
        elif name not in (target, person):
            notes.dropped[name] = _reason(draft, name in ids)
    predicted = drafted_target(drafts[target], target, target_kind)
    notes.kept[target] = TARGET_NOTES[predicted.kind]
    if not columns:
        raise InvalidArgument(
            "no column is left to learn from: each looks like text or an identifier. Prepare some "
            "columns."
        )
    schema = Schema(tuple(columns), predicted, person=person)
    unit = () if person is None else (UNIT,)
    return SchemaFile(schema, (*unit, target, *(column.name for column in columns))), notes


def _person_among(ids: dict[str, ColumnDraft]) -> str | None:
    """The column of ids that most likely are persons': a named one, and then the one with the
    fewest, since a person has several visits and not the other way round.
    """
    repeated = {name: draft.ids.n_ids for name, draft in ids.items() if draft.repeats}
    return min(repeated, key=lambda name: (not _named_like_ids(name), repeated[name]), default=None)


def _named_like_ids(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    if not words:
        return False
    return bool(
        _ID_WORDS & set(words)
        or (len(words) > 1 and words[-1] in _LAST_ID_WORDS)
        or (len(words) == 1 and words[0] in _PERSONS)
    )


def _reason(draft: ColumnDraft, is_id: bool) -> str:
    """Why a column was left out."""
    if not draft.labels:
        return "it is empty"
    if is_id and draft.repeats:
        return (
            "its values are many and repeat, like ids of persons; name it as `person` if they are"
        )
    if is_id:
        return "every row has another value, like an identifier of rows"
    return f"more than {_MAX_CATEGORIES} labels, like text or an identifier"


def _note(draft: ColumnDraft) -> str:
    if not draft.missing:
        return ""
    return "Some cells are missing: " + (
        'they become `fill`; missing = "indicator" adds a feature that says so.'
        if draft.is_numeric
        else "they become <other>."
    )
