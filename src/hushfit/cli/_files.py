"""Output files: checks before anything is paid for, and what is done if writing fails
afterwards.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from hushfit.errors import InvalidArgument

FORMATS = ("csv", "tsv", "parquet", "arrow", "excel")


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
        ]
    ):
        command = option(command)
    return command


def stated_form(form: Any, encoding: str | None, delimiter: str | None) -> Any:
    """The form of text files: as the options say, or else as it is."""
    from dataclasses import replace

    given = {"encoding": encoding, "delimiter": delimiter}
    return replace(form, **{name: value for name, value in given.items() if value is not None})


def tables_for(patterns: Any, format_: str | None, schema: Any) -> list[Any]:
    """The tables that paths match, in the form that a schema states; None states none."""
    from hushfit.data.tables import find_tables

    return find_tables(patterns, format_, None if schema is None else schema.file)


def refuse_to_overwrite(output: str, allowed: bool) -> None:
    """Refuse an output that exists or cannot be written, before a fit is paid for."""
    path = Path(output)
    if path.exists() and not allowed:
        raise InvalidArgument(f"{output} exists. Choose another name, or use --overwrite.")
    with reserved_space(output, 0):
        pass


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
