"""Output for people and scripts. Results go to standard output, everything else to standard
error.
"""

import json
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON, for scripts."
)


def print_message(text: str, word: str = "error") -> None:
    """Print one sentence on standard error."""
    colour = {"error": "red", "warning": "yellow", "note": "cyan"}[word]
    click.echo(f"{click.style(word + ':', fg=colour, bold=True)} {text}", err=True)


def print_json(value: Any) -> None:
    """Print strict JSON on standard output."""
    click.echo(json.dumps(_without_infinity(value), indent=2, allow_nan=False, default=str))


def _without_infinity(value: Any) -> Any:
    """Strict JSON has no infinity: write it as a string, as guarantees do."""
    if isinstance(value, dict):
        return {key: _without_infinity(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinity(item) for item in value]
    return "inf" if value == math.inf else value


def console() -> Any:
    """A rich console; imported here because drawing is not needed for help texts."""
    from rich.console import Console

    # Lines in a pipe are not wrapped, so a fixed, large width is best there.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a small table; numbers, which start with a digit, sign or dot, are aligned right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for k, name in enumerate(columns):
        numeric = bool(rows) and all(row[k][:1] in "+-.0123456789" for row in rows)
        table.add_column(Text(name), justify="right" if numeric else "left", no_wrap=numeric)
    for row in rows:
        table.add_row(*map(Text, row))
    shown = console()
    # Not as the title of the table, whose width would break it.
    shown.print(Text(title, style="bold"), soft_wrap=True)
    shown.print(table)


def print_wrapped(text: str) -> None:
    """Print a sentence in lines of the width of a table, indented; nothing is cut off."""
    lines = textwrap.wrap(
        text,
        console().width,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    click.echo("\n".join(lines))


def print_panel(title: str, text: str, emphasised: str = "") -> None:
    """Print a framed paragraph; the words ``emphasised``, which it starts with, in bold."""
    from rich.panel import Panel
    from rich.text import Text

    out = console()
    shown = Text(text)
    shown.stylize("bold", 0, len(emphasised))
    out.print(
        Panel(
            shown,
            title=Text(title),
            title_align="left",
            border_style="green",
            width=min(out.width, 104),
        )
    )


def print_guarantee(guarantee: Any) -> None:
    """Print a guarantee; what it does not protect in bold, and first."""
    print_panel("Guarantee", str(guarantee), "\n".join(guarantee.warnings))


@contextmanager
def reading_bar(
    paths: Sequence[str], shown: bool, sized: bool = True
) -> Iterator[Callable[[int], None] | None]:
    """Progress over the bytes of some files, on standard error. Without ``sized`` it only moves:
    the size of a file tells the number of rows, which is private if persons are protected.
    """
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TransferSpeedColumn,
    )

    sizes = [Path(path).stat().st_size for path in paths if sized and Path(path).is_file()]
    total = sum(sizes) if len(sizes) == len(paths) else None
    measured = (BarColumn(), DownloadColumn(), TransferSpeedColumn())
    columns = (TextColumn("Reading"), *(measured if sized else (SpinnerColumn(),)))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("read", total=total)
        yield lambda count: progress.advance(task, count if sized else 0)


def at_terminal(as_json: bool) -> bool:
    """Whether standard error is a terminal that shows progress."""
    return sys.stderr.isatty() and not as_json
