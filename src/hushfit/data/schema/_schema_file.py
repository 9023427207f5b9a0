"""A schema as a TOML file that a person edits, with marks on everything that was drafted from
the rows.
"""

import hashlib
import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushfit.data.schema._schema import Schema
from hushfit.errors import InvalidArgument

_MARK = "confirm"
UNIT = "the unit of privacy"
_CHOICES: tuple[str, ...] = ("features", "scaling")
_PERSON_KEYS = ("person", "person_weight", "rows_per_person")


@dataclass(frozen=True)
class SchemaFile:
    """A schema and the names in it that are not confirmed yet.

    Parameters
    ----------
    schema : Schema
    unconfirmed : tuple of str
        Columns whose ranges or vocabularies were read from the rows, and perhaps "the unit of
        privacy".

    Examples
    --------
    >>> from hushfit.data.schema import NumericColumn, Schema, SchemaFile
    >>> SchemaFile(Schema((NumericColumn("age", 0, 110),))).unconfirmed
    ()
    """

    schema: Schema
    unconfirmed: tuple[str, ...] = ()


def parse_schema(text: str) -> SchemaFile:
    """Read a schema from TOML.

    Parameters
    ----------
    text : str
        The contents of a schema file.

    Returns
    -------
    SchemaFile

    Raises
    ------
    InvalidArgument
        If it is not TOML, or not a schema.
    """
    try:
        return _parsed(tomllib.loads(text))
    except InvalidArgument:
        raise
    except RecursionError:  # in the parser, or in a message that quotes a value
        raise InvalidArgument(
            "the schema nests tables or lists too deeply. It needs columns, target and values, no "
            "more."
        ) from None
    except ValueError as error:
        raise InvalidArgument(
            f"the schema is not valid TOML: {_brief(error)}. Fix that line."
        ) from None


def _parsed(description: dict[str, Any]) -> SchemaFile:
    columns, target = description.get("columns"), description.get("target")
    tables = [*columns.items()] if isinstance(columns, dict) else []
    if isinstance(target, dict):
        tables.append((str(target.get("name")), target))
    unconfirmed = [
        name for name, table in [*tables, (UNIT, description)] if _take_mark(table, name)
    ]
    return SchemaFile(Schema.from_dict(description), tuple(unconfirmed))


def read_schema(path: str | Path) -> SchemaFile:
    """Read a schema file.

    Parameters
    ----------
    path : path or str
        A TOML file.

    Returns
    -------
    SchemaFile

    Raises
    ------
    InvalidArgument
        If it cannot be read or is not a schema.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hushfit.data.schema import (
    ...     NumericColumn,
    ...     Schema,
    ...     SchemaFile,
    ...     read_schema,
    ...     schema_to_toml,
    ... )
    >>> path = Path(tempfile.mkdtemp()) / "schema.toml"
    >>> size = path.write_text(schema_to_toml(SchemaFile(Schema((NumericColumn("age", 0, 110),)))))
    >>> read_schema(path).schema.columns[0].high
    110
    """
    try:
        return parse_schema(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidArgument):
            raise InvalidArgument(f"{path}: {error}") from None
        raise InvalidArgument(
            f"the schema {path} cannot be read: {_brief(error)}. Check the path and the encoding."
        ) from None


def schema_to_toml(file: SchemaFile, comments: dict[str, str] | None = None) -> str:
    """Write a schema as TOML.

    Parameters
    ----------
    file : SchemaFile
    comments : dict of str to str, optional
        A line to put above a column; the key "" is for the top of the file, "the unit of privacy"
        for the column of ids.

    Returns
    -------
    str
        What `parse_schema` reads back.

    Examples
    --------
    >>> from hushfit.data.schema import NumericColumn, Schema, SchemaFile, schema_to_toml
    >>> text = schema_to_toml(SchemaFile(Schema((NumericColumn("age", 0, 110),))))
    >>> '[columns."age"]' in text
    True
    """
    notes, schema, marked = comments or {}, file.schema, set(file.unconfirmed)
    described = schema.to_dict()
    unit = [] if schema.unit == "row" else [f"unit = {_value(schema.unit)}"]
    persons = {key: described[key] for key in _PERSON_KEYS if key in described}
    note = _comment(notes.get(UNIT))
    choices = {key: described[key] for key in _CHOICES if key in described}
    lines = [*_comment(notes.get("")), *(["", *note] if note else []), *unit, *_pairs(choices)]
    lines += _pairs(persons)
    lines += _mark(UNIT, marked)
    for table in ("file", "penalty"):
        if table in described:
            lines += ["", f"[{table}]", *_pairs(described[table])]
    if schema.target is not None:
        lines += [
            "",
            *_comment(notes.get(schema.target.name)),
            "[target]",
            *_pairs(described["target"]),
        ]
        lines += _mark(schema.target.name, marked)
    for column in schema.columns:
        lines += ["", *_comment(notes.get(column.name)), f"[columns.{_value(column.name)}]"]
        lines += [*_pairs(described["columns"][column.name]), *_mark(column.name, marked)]
    return "\n".join(lines) + "\n"


def schema_hash(schema: Schema) -> str:
    """SHA-256 of a schema's contents; comments and layout of the file do not count.

    Parameters
    ----------
    schema : Schema

    Returns
    -------
    str
    """
    canonical = json.dumps(schema.to_dict(), separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def rounded_outwards(low: float, high: float) -> tuple[float, float]:
    """A range with two significant digits around another one: a draft need not copy extreme
    rows.
    """
    size = max(abs(low), abs(high), high - low) or 1.0
    step = 10.0 ** (math.floor(math.log10(size)) - 1)
    bottom, top = math.floor(low / step) * step, math.ceil(high / step) * step
    return (_tidy(bottom), _tidy(top if top > bottom else bottom + step))


def _tidy(value: float) -> float:
    return float(f"{value:.12g}")


def _take_mark(table: Any, name: str) -> bool:
    """Remove the mark of a table; returns whether it was set."""
    mark = table.pop(_MARK, False) if isinstance(table, dict) else False
    if not isinstance(mark, bool):
        raise InvalidArgument(
            f"{_MARK} of {name!r} is {mark!r}. Write true or false, or delete the line."
        )
    return mark


def _brief(error: Exception) -> str:
    """The first line of an error."""
    return (str(error) or type(error).__name__).splitlines()[0]


def _comment(text: str | None) -> list[str]:
    return [f"# {line}".rstrip() for line in text.splitlines()] if text else []


def _mark(name: str, marked: set[str]) -> list[str]:
    return [f"{_MARK} = true"] if name in marked else []


def _pairs(settings: dict[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in settings.items()]


def _value(value: Any) -> str:
    """TOML for the few types a schema has; JSON strings are TOML strings, except for one escape."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
