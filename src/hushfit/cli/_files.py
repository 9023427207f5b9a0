"""Output files: checks before anything is paid for, and what is done if writing fails
afterwards.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from hushfit.errors import InvalidArgument

FORMATS = ("csv", "tsv", "parquet", "arrow", "excel")
# Endings that promise a format: a file with one of them and another content would not open.
_PROMISES: Final = (
    *(".html", ".pdf", ".docx", ".md", ".json", ".toml", ".yaml", ".yml", ".onnx", ".svg", ".png"),
    *(".csv", ".tsv", ".parquet", ".arrow", ".feather", ".xlsx", ".xls", ".ods"),
    *(".pkl", ".joblib", ".safetensors", ".pt", ".db", ".zip", ".gz"),
)
_TEXT: Final = ("csv", "tsv")
# The formats that each option on how a table is written is about.
_ABOUT: Final = {"encoding": _TEXT, "delimiter": _TEXT, "header": (*_TEXT, "excel")}


def table_options(command: Any) -> Any:
    """The options that say how a table is written."""
    for option in reversed(
        [
            click.option(
                "--format",
                "format_",
                type=click.Choice(FORMATS),
                help="Format of the table, if its name does not show it.",
            ),
            click.option(
                "--delimiter",
                metavar="CHARACTER",
                help="What divides the cells of a text file: , ; | or tab.  [default: by the "
                "schema, or else by the header]",
            ),
            click.option(
                "--encoding",
                metavar="NAME",
                help="Encoding of a text file, such as cp1252.  [default: by the schema, or else "
                "utf-8]",
            ),
            click.option(
                "--header",
                metavar="ROW",
                type=click.IntRange(min=1),
                help="Row with the names of the columns, from 1, where a text file or spreadsheet "
                "has a title above.  [default: by the schema, or else the first]",
            ),
        ]
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class TableOptions:
    """What the options say about how tables are written; None where they say nothing.

    Parameters
    ----------
    format, encoding, delimiter : str, optional
    header : int, optional
    """

    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "TableOptions":
        """From all options of a verb, by name."""
        return cls(given["format_"], *(given[name] for name in _ABOUT))

    @property
    def stated(self) -> dict[str, Any]:
        """The options about text files and spreadsheets that were given."""
        own = {name: getattr(self, name) for name in _ABOUT}
        return {name: value for name, value in own.items() if value is not None}

    def form(self, schema: Any = None) -> Any:
        """The form of text files: as the options say, or else as the schema does."""
        from dataclasses import replace

        from hushfit.data.schema import TextForm

        return replace(TextForm() if schema is None else schema.file, **self.stated)

    def tables(self, patterns: Sequence[str], schema: Any = None) -> list[Any]:
        """The tables that paths match; refuses options that are about none of them."""
        from hushfit.data.tables import find_tables

        found = find_tables(patterns, self.format, self.form(schema))
        for name in self.stated:
            if not any(table.format in _ABOUT[name] for table in found):
                raise click.UsageError(
                    f"--{name} would be ignored: {found[0].title} is read as {found[0].format}. "
                    "Leave it out."
                )
        return found

    def refuse(self, why: str) -> None:
        """Refuse all of them."""
        if given := [f"--{name}" for name in ("format", *_ABOUT) if getattr(self, name)]:
            raise click.UsageError(f"{', '.join(given)} would be ignored: {why}. Leave it out.")


def refuse_to_overwrite(output: str, allowed: bool, *endings: str) -> None:
    """Refuse an output that exists or cannot be written, before a fit is paid for; also one of
    another format than those of ``endings``, if they are given.
    """
    path = Path(output)
    if endings:
        refuse_other_format(output, *endings)
    if path.exists() and not allowed:
        raise InvalidArgument(f"{output} exists. Choose another name, or use --overwrite.")
    with reserved_space(output, 0):
        pass


def refuse_other_format(output: str, *endings: str) -> None:
    """Refuse a name that promises another format than the one that will be written."""
    path = Path(output)
    if path.suffix.lower() in _PROMISES and path.suffix.lower() not in endings:
        raise InvalidArgument(
            f"{output} would not be a {path.suffix} file: what is written here is "
            f"{' or '.join(endings)}. Nothing was spent. Name it {path.with_suffix(endings[0])}."
        )


@contextmanager
def reserved_space(output: str, size: int) -> Iterator[None]:
    """Reserve bytes on the disk where a file will be written; they are freed just before that."""
    with ExitStack() as held:
        try:
            # The file has no name: it is removed with the process. Random bytes, since a disk may
            # not store zeros.
            reserve = held.enter_context(tempfile.TemporaryFile(dir=Path(output).parent))
            reserve.write(os.urandom(size))
            reserve.flush()
            os.fsync(reserve.fileno())
        except OSError as error:
            raise InvalidArgument(
                f"{output} cannot be written ({os.strerror(error.errno or 0)}). Choose another "
                "place."
            ) from None
        yield


def saved_elsewhere(name: str, text: str, folders: Iterable[Path]) -> Path | None:
    """Save what was paid for in the first folder that can be written; None if there is none."""
    from hushfit.models import write_whole

    for folder in folders:
        place = folder / name
        try:
            write_whole(place, text)
        except InvalidArgument:
            continue
        return place
    return None
