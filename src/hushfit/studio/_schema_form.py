"""A schema as a form: what a person who writes no TOML can correct and confirm."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from hushfit.data.schema import UNIT, Schema, SchemaFile, parse_schema, read_schema, schema_to_toml
from hushfit.errors import InvalidArgument

_SOURCE: Final = "Source: "
_LEFT_OUT: Final = "Left out: "
_WITH_MARKERS: Final = ("numeric", "categorical", "hashed")
_HEAD: Final = "Public description of a table, for `hushfit fit`."


@dataclass(frozen=True)
class ColumnForm:
    """Fields of one column.

    Parameters
    ----------
    name, kind : str
    settings : dict
        As in the schema.
    notes : list of str
        What the draft found odd.
    source : str
        Who says so.
    confirmed : bool
    is_target : bool
    used : bool
    """

    name: str
    kind: str
    settings: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    source: str = ""
    confirmed: bool = True
    is_target: bool = False
    used: bool = True

    def entered(self, own: Mapping[str, str]) -> "ColumnForm":
        """The same column with what was entered in its fields, right or wrong."""
        texts: dict[str, Any] = {
            name: own[name]
            for name in ("low", "high", "format")
            if own[name] or name in self.settings
        }
        if own["labels"] or "categories" in self.settings:
            texts["categories"] = own["labels"].splitlines()
        if own["positive"] or "positive" in self.settings:
            texts["positive"] = own["positive"]
        if own["markers"] or "missing_values" in self.settings:
            texts["missing_values"] = _markers(own["markers"])
        return replace(
            self,
            kind=own["kind"] or self.kind,
            settings={**self.settings, **texts},
            source=own["source"],
            confirmed=bool(own["confirmed"]),
            used=self.is_target or bool(own["use"]),
        )

    @property
    def has_range(self) -> bool:
        """Whether it has a lowest and a highest value."""
        return "low" in self.settings or "high" in self.settings

    @property
    def has_positive(self) -> bool:
        """Whether one of its classes is the positive one."""
        named = "positive" in self.settings
        two = self.kind == "categorical" and len(self.settings.get("categories", ())) == 2
        return self.is_target and (named or two)

    @property
    def has_markers(self) -> bool:
        """Whether some values may be marks of missing ones."""
        return not self.is_target and self.kind in _WITH_MARKERS

    @property
    def markers(self) -> str:
        """Marks of missing values, with commas between them."""
        return ", ".join(_written(one) for one in self.settings.get("missing_values", ()))

    @property
    def labels(self) -> str:
        """Its categories, one a line."""
        return "\n".join(map(str, self.settings.get("categories", ())))


@dataclass(frozen=True)
class SchemaForm:
    """A schema file with its comments.

    Parameters
    ----------
    file : SchemaFile
    columns : list of ColumnForm
        The target first.
    left_out : list of str
        Columns that the draft left out, and why.
    person : str
        The column of ids; empty if there is none.
    unit_confirmed : bool
    """

    file: SchemaFile
    columns: list[ColumnForm]
    left_out: list[str]
    person: str
    unit_confirmed: bool

    @classmethod
    def read(cls, path: Path) -> "SchemaForm":
        """Read a schema and the comments above its columns."""
        file = read_schema(path)
        top, comments = _comments(path.read_text(encoding="utf-8"))
        described = file.schema.to_dict()
        target = described.get("target", {})
        listed = [(target["name"], target, True)] if target else []
        listed += [(name, column, False) for name, column in described["columns"].items()]
        columns = [
            _column(name, settings, comments.get(None if own else name, []), file, own)
            for name, settings, own in listed
        ]
        left_out = [line for line in top if line.startswith(_LEFT_OUT)]
        return cls(file, columns, left_out, file.schema.person or "", UNIT not in file.unconfirmed)

    @property
    def schema(self) -> Schema:
        """The schema itself."""
        return self.file.schema

    @property
    def waiting(self) -> int:
        """How many columns wait for confirmation."""
        return sum(not column.confirmed for column in self.columns)

    def changed(self, fields: Mapping[str, Any]) -> str:
        """The schema as TOML, with what a form says in place of what it had."""
        described, comments = self.schema.to_dict(), {"": "\n".join([_HEAD, "", *self.left_out])}
        unconfirmed = []
        for place, column in enumerate(self.columns):
            own = _own(fields, place)
            if not column.is_target and not own["use"]:
                del described["columns"][column.name]
                continue
            settings = _settings(column, own)
            if column.is_target:
                described["target"] = settings
            else:
                described["columns"][column.name] = settings
            source = _one_line(own["source"])
            told = [f"{_SOURCE}{source}"] if source else []
            comments[column.name] = "\n".join([*column.notes, *told])
            if not own["confirmed"]:
                unconfirmed.append(column.name)
        _set_person(described, str(fields.get("person", "")))
        if described.get("person") and not fields.get("unit_confirmed"):
            unconfirmed.append(UNIT)
        file = SchemaFile(Schema.from_dict(described), tuple(unconfirmed))
        text = schema_to_toml(file, comments)
        parse_schema(text)  # what is written can be read
        return text

    def entered(self, fields: Mapping[str, Any]) -> "SchemaForm":
        """The form as somebody filled it in, to correct it."""
        return replace(
            self,
            columns=[column.entered(_own(fields, at)) for at, column in enumerate(self.columns)],
            person=str(fields.get("person", "")),
            unit_confirmed=bool(fields.get("unit_confirmed")),
        )


_FIELDS: Final = (
    *("kind", "low", "high", "labels", "positive", "markers", "format", "source", "confirmed"),
    "use",
)


def _own(fields: Mapping[str, Any], place: int) -> dict[str, str]:
    """What was entered for one column."""
    return {name: str(fields.get(f"c{place}.{name}", "")) for name in _FIELDS}


def _column(
    name: str, settings: dict[str, Any], comments: list[str], file: SchemaFile, is_target: bool
) -> ColumnForm:
    source = next((line[len(_SOURCE) :] for line in comments if line.startswith(_SOURCE)), "")
    notes = [line for line in comments if not line.startswith(_SOURCE)]
    kind, confirmed = str(settings["kind"]), name not in file.unconfirmed
    return ColumnForm(name, kind, settings, notes, source, confirmed, is_target)


def _settings(column: ColumnForm, own: dict[str, str]) -> dict[str, Any]:
    """Settings of a column as a form states them; those that it does not show stay."""
    kind = own["kind"] or column.kind
    kept = column.settings if kind == column.kind else {"kind": kind}
    if column.is_target:
        kept = {**kept, "name": column.name}
    changed: dict[str, Any] = {}
    if kind in ("categorical", "ordinal"):
        lines = (line.strip() for line in own["labels"].splitlines())
        changed["categories"] = [line for line in lines if line]
        if column.has_positive:
            changed["positive"] = own["positive"].strip() or None
    elif kind == "numeric" or column.has_range:
        for end in ("low", "high"):
            if end in column.settings or kind != column.kind or own[end]:
                changed[end] = _end(own[end], kind, column.name, end)
    if column.has_markers and kind in _WITH_MARKERS and own["markers"] != column.markers:
        # Whoever names a first mark wants to see what it does, and not have it filled silently.
        changed |= {"missing_values": _markers(own["markers"]), "missing": "indicator"}
    if kind == "date" and own["format"].strip():
        changed["format"] = own["format"].strip()
    return {name: value for name, value in {**kept, **changed}.items() if value is not None}


def _one_line(text: str) -> str:
    """A text as a comment can have it."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _markers(text: str) -> list[str | float]:
    """Marks of missing values: numbers where they are some, else texts."""
    return [_number_or_text(part.strip()) for part in text.split(",") if part.strip()]


def _number_or_text(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _written(mark: str | float) -> str:
    return mark if isinstance(mark, str) else f"{mark:g}"


def _end(text: str, kind: str, name: str, end: str) -> Any:
    """One end of a range: a number, or the day of a column of dates."""
    if kind == "date":
        return text.strip()
    try:
        return float(text)
    except ValueError:
        raise InvalidArgument(
            f"{end} of column {name!r} is {text!r}, which is no number. Write one, such as 120 or "
            "-0.5. Nothing was saved."
        ) from None


def _set_person(described: dict[str, Any], person: str) -> None:
    if person:
        described["person"] = person
        described["columns"].pop(person, None)
    else:
        for key in ("person", "person_weight", "rows_per_person"):
            described.pop(key, None)


def _comments(text: str) -> tuple[list[str], dict[str | None, list[str]]]:
    """Comments of a schema: those at the top, and those above each column; None is the target."""
    top: list[str] = []
    found: dict[str | None, list[str]] = {}
    held: list[str] = []
    for line in map(str.rstrip, text.split("\n")):  # names may hold other ends of lines
        if line.startswith("#"):
            held.append(line[1:].strip())
            continue
        name = _headed(line)
        place = top if name == "" else found.setdefault(name, [])
        place.extend(held)
        held = []
    return top, found


def _headed(line: str) -> str | None:
    """Name of the column that a line begins; None for the target, empty for any other line."""
    try:
        header = tomllib.loads(line) if line.startswith("[") else {}
    except ValueError:
        return ""
    if "target" in header:
        return None
    return next(iter(header.get("columns", {})), "")
