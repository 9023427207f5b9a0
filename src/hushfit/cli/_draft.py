"""Drafts a schema from a table. Not private, and marked so in every output."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hushfit.cli._calendar_labels import in_calendar_order
from hushfit.cli._column_draft import (
    MAX_CATEGORIES,
    MIN_NUMBERS,
    ColumnDraft,
    named_like_counts,
    words_in,
)
from hushfit.cli._draft_target import drafted_target, note_on_target
from hushfit.data.schema import (
    OTHER,
    UNIT,
    CategoricalColumn,
    Column,
    DateColumn,
    HashedColumn,
    NumericColumn,
    Schema,
    SchemaFile,
    number_of,
    rounded_outwards,
)
from hushfit.data.tables import Table, Watch, table_batches
from hushfit.errors import InvalidArgument

_ROWS_AT_ONCE = 10_000
# What a column of ids looks like. Ages and amounts repeat too, so without a telling name it takes
# many different whole numbers, and most of them in few rows.
_MIN_IDS, _MIN_UNNAMED_IDS = 20, 1000
_ID_SHARE, _UNNAMED_ID_SHARE = 0.02, 0.5
# Texts of which nearly every row has another one: names, keys, addresses.
_UNIQUE_SHARE = 0.9
_HASHED_COLUMNS = 64
_ID_WORDS = {"id", "ids", "uuid", "guid", "nbr", "ssn", "mrn", "pid", "uid"}
_LAST_ID_WORDS = {"no", "nr", "num", "number", "key"}
_PERSONS = {
    *("patient", "person", "customer", "client", "user", "member", "subject", "account", "card"),
    *("household", "participant", "respondent", "employee", "student", "driver"),
}
_CODE_WORDS = {
    *("code", "codes", "zip", "zipcode", "postcode", "plz", "drg", "type", "class"),
    *("category", "cat", "group", "status", "kind", "region", "district", "department", "ward"),
    *("county", "state", "sector", "branch"),
}
# Codes whose numbers may have fractions, as in 250.01.
_DIAGNOSIS_WORDS = {"icd", "diag", "diagnosis", "diagnoses", "dx", "cpt", "hcpcs", "atc", "ndc"}
_YEARS = (1900, 2100)
# Names of dates of birth, and beginnings of such names. Their month and weekday say nothing.
_BIRTHS, _OF_BIRTH = {"born", "dob", "geb"}, ("birth", "geburt", "naissance", "nacimiento")
_LIFETIME = 60  # dates of so many years are of birth, or alike


@dataclass
class DraftNotes:
    """Notes on the columns."""

    kept: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)


def draft_schema(
    tables: Sequence[Table],
    target: str,
    watch: Watch | None,
    target_kind: str | None = None,
    decimal: str | None = None,
) -> tuple[SchemaFile, DraftNotes]:
    """A schema with everything in it marked as unconfirmed."""
    drafts = scanned(tables, watch)
    if decimal is not None:
        for draft in drafts.values():
            draft.settle_decimal(decimal)
    if not drafts:
        titles = ", ".join(table.title for table in tables)
        raise InvalidArgument(
            f"{titles} has no row below the names of its columns. Give a table with rows."
        )
    if target not in drafts:
        raise InvalidArgument(
            f"the table has no column {target!r} to predict. Its columns: {', '.join(drafts)}."
        )
    return _assembled(drafts, target, target_kind)


def scanned(tables: Sequence[Table], watch: Watch | None) -> dict[str, ColumnDraft]:
    """What is in each column of the tables."""
    drafts: dict[str, ColumnDraft] = {}
    for table in tables:
        for part in _larger(table_batches(table, None, watch)):
            for name, cells in zip(part.column_names, part.columns, strict=True):
                drafts.setdefault(name, ColumnDraft()).add(cells.combine_chunks())
    for draft in drafts.values():
        draft.settle_unknowns()
    return drafts


def _larger(batches: Iterator[Any]) -> Iterator[Any]:
    """Batches put together: those of wide tables have few rows, and each column takes its time."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _assembled(
    drafts: dict[str, ColumnDraft], target: str, target_kind: str | None
) -> tuple[SchemaFile, DraftNotes]:
    notes = DraftNotes()
    columns = []
    ids = {
        name: draft
        for name, draft in drafts.items()
        if name and name != target and looks_like_ids(draft, name)
    }
    person = _person_among(ids)
    for name, draft in drafts.items():
        if name in (target, person):
            continue
        reason = _reason(draft, name in ids) if name.strip() else "it has no name; give it one"
        if reason:
            notes.dropped[name] = reason
        else:
            column, notes.kept[name] = drafted_column(draft, name)
            columns.append(column)
    predicted = drafted_target(drafts[target], target, target_kind)
    notes.kept[target] = note_on_target(drafts[target], predicted)
    if not columns:
        raise InvalidArgument(
            "no column is left to learn from: each looks like text or an identifier. Prepare some "
            "columns."
        )
    schema = Schema(tuple(columns), predicted, person=person)
    unit = () if person is None else (UNIT,)
    return SchemaFile(schema, (*unit, target, *(column.name for column in columns))), notes


def drafted_column(draft: ColumnDraft, name: str) -> tuple[Column, str]:
    """The column of the schema, and a note on what it is."""
    markers = tuple(draft.markers)
    is_date, written = draft.date_format
    if is_date:
        return _drafted_date(draft, name, written)
    if draft.has_comma_decimals:
        bounds = rounded_outwards(*draft.comma_range)
        missing = "indicator" if draft.missing else "fill"
        comma = NumericColumn(name, *bounds, missing=missing, missing_values=markers, decimal=",")
        return comma, _comma_note(draft)
    if draft.is_numeric and not _is_code(draft, name):
        low, high = rounded_outwards(float(draft.low), float(draft.high))
        missing = "indicator" if draft.missing or draft.others else "fill"
        whole = not draft.fractions
        number = NumericColumn(
            name, low, high, missing=missing, integer=whole, missing_values=markers
        )
        return number, _number_note(draft)
    labels = in_calendar_order(sorted(set(draft.labels.values()) - {OTHER}, key=_by_size))
    note = _label_note(draft)
    if len(labels) > MAX_CATEGORIES:
        return HashedColumn(name, _HASHED_COLUMNS, missing_values=markers), note
    missing = "indicator" if draft.missing else "other"
    return CategoricalColumn(name, tuple(labels), missing, markers if draft.missing else ()), note


def _drafted_date(draft: ColumnDraft, name: str, written: str | None) -> tuple[DateColumn, str]:
    """A column of dates; of dates of birth only how late they are."""
    first, last = int(str(draft.first_date)[:4]), int(str(draft.last_date)[:4])
    born = _is_birth(name) or last - first >= _LIFETIME
    parts = ("since",) if born else DateColumn.parts
    made = DateColumn(name, f"{first}-01-01", f"{last}-12-31", parts, written)
    return made, _date_note(draft, written, born)


def _is_birth(name: str) -> bool:
    """Whether the name of a column of dates says that they are dates of birth."""
    return any(word in _BIRTHS or word.startswith(_OF_BIRTH) for word in words_in(name))


def _by_size(label: str) -> tuple[float, str]:
    """Numbers by size, and then all other labels by the alphabet."""
    number = number_of(label)
    return (number if math.isfinite(number) else math.inf, label)


def _is_code(draft: ColumnDraft, name: str) -> bool:
    """Whether its name says that its numbers are codes rather than amounts."""
    words = set() if named_like_counts(name) else set(words_in(name))
    whole = not draft.fractions and bool((_CODE_WORDS | _ID_WORDS) & words)
    return whole or bool(_DIAGNOSIS_WORDS & words)


def looks_like_ids(draft: ColumnDraft, name: str) -> bool:
    """Whether it has many different whole numbers or texts, in few rows each."""
    count, share = draft.distinct.count, draft.distinct.share
    if draft.fractions or draft.date_format[0] or draft.has_comma_decimals or not draft.filled:
        return False
    if draft.is_text or draft.unusable or draft.has_thousands:
        return False
    if named_like_ids(name):
        return count >= _MIN_IDS and share >= _ID_SHARE
    if not draft.numbers and share >= _UNIQUE_SHARE:
        return count >= _MIN_IDS
    numbered = not draft.repeats and draft.high - draft.low + 1 == count
    if numbered and not draft.others:  # the number of the row
        return count >= _MIN_IDS
    return count >= _MIN_UNNAMED_IDS and share >= _UNNAMED_ID_SHARE


def named_like_ids(name: str) -> bool:
    """Whether the name of a column says that it has ids."""
    words = words_in(name)
    if not words:
        return False
    return bool(
        _ID_WORDS & set(words)
        or (len(words) > 1 and words[-1] in _LAST_ID_WORDS)
        or (len(words) == 1 and words[0] in _PERSONS)
    )


def _person_among(ids: dict[str, ColumnDraft]) -> str | None:
    """The column of ids that most likely are persons': a named one, and then the one with the
    fewest, since a person has several visits and not the other way round.
    """
    repeated = {name: draft.distinct.count for name, draft in ids.items() if draft.repeats}
    return min(repeated, key=lambda name: (not named_like_ids(name), repeated[name]), default=None)


def _reason(draft: ColumnDraft, is_id: bool) -> str:
    """Why a column is left out; empty if it is not."""
    if draft.unusable:
        return draft.unusable
    if not draft.labels:
        return "it is empty"
    if is_id and draft.repeats:
        return (
            "its values are many and repeat, like ids of persons; name it as `person` if they are"
        )
    if is_id:
        return "every row has another value, like an identifier of rows"
    if draft.has_thousands:
        return "its numbers have commas between thousands, as in 1,234; write them without"
    if draft.is_text:
        return "it is free text; derive columns of numbers or labels from it"
    if draft.distinct.count == 1 and not draft.missing:
        return "all cells are equal"
    return ""


def _comma_note(draft: ColumnDraft) -> str:
    note = "Numbers with decimal commas."
    if draft.may_have_thousands:
        note += " If the commas stand between thousands, write the numbers without them."
    return "\n".join([note, *_missing_note(draft)])


def _missing_note(draft: ColumnDraft) -> list[str]:
    """What becomes of missing numbers, if there are any."""
    if not draft.missing:
        return []
    marks = f" ({', '.join(map(repr, draft.markers))})" if draft.markers else ""
    return [
        f"Some cells are missing{marks}: they become `fill` (low if there is none), and the "
        "indicator says so."
    ]


def _number_note(draft: ColumnDraft) -> str:
    notes = []
    if draft.others:
        notes.append(f"{draft.others} of {draft.filled} cells are no numbers: they are missing.")
    notes += _missing_note(draft)
    if draft.sentinels:
        marks = ", ".join(f"{number:g}" for number in draft.sentinels)
        notes.append(
            f"{marks} is an end of the range, and often a mark of missing values: if it is one, "
            f"add it (missing_values = [{marks}]) and correct the range."
        )
    if not draft.fractions and _YEARS[0] <= draft.low and draft.high <= _YEARS[1]:
        notes.append("Years? They are used as numbers here.")
    return "\n".join(notes)


def _label_note(draft: ColumnDraft) -> str:
    notes = []
    if draft.others and draft.numbers:
        notes.append(
            f"{draft.others} of {draft.filled} cells are no numbers, so all are read as labels."
        )
    elif draft.numbers and len(draft.labels) >= MIN_NUMBERS:
        notes.append(
            "Numbers that look like codes, read as labels. If they are amounts, use "
            'kind = "numeric" with low and high.'
        )
    if draft.has_amounts:
        notes.append(
            "Numbers with a sign such as % or $, read as labels. Without the sign they are numbers."
        )
    if len(draft.labels) > MAX_CATEGORIES:
        notes.append(
            f"More than {MAX_CATEGORIES} labels: a public hash sends each to one of "
            f"{_HASHED_COLUMNS} features (columns = {_HASHED_COLUMNS}).\n`hushfit discover` finds "
            "the frequent labels privately instead."
        )
    if draft.missing:
        notes.append("Some cells are missing: they have a feature of their own.")
    return "\n".join(notes)


def _date_note(draft: ColumnDraft, written: str | None, born: bool) -> str:
    tied = [known for known, count in draft.formats.items() if count == draft.formats[written]]
    note = (
        "Dates of birth, or as far apart: one number, how long after `low`. `parts` may list year, "
        "month and weekday too."
        if born
        else "Dates: how long after `low`, month and day of the week. `parts` may list year too."
    )
    if len(tied) > 1:
        note += "\nDay and month cannot be told apart here: check `format`."
    return note
