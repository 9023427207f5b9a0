"""Results of replications, kept one by one so that a run can be stopped and continued."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from benchmarks._report import machine, write_between


def kept(path: Path) -> dict[str, dict[int, Any]]:
    """Finished replications by cell and number."""
    found: dict[str, dict[int, Any]] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            name, number, outcome = json.loads(line)
            found.setdefault(name, {})[number] = outcome
    return found


def keep(path: Path, name: str, number: int, outcome: Any) -> None:
    """Add one replication."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps([name, number, outcome]) + "\n")


def with_stored(lines: list[dict], results: Path, cells: Sequence[Any]) -> list[dict]:
    """Summaries of cells in their order, and stored ones in place of those with fewer replications.

    Replications have numbers from which their seeds follow, so that a summary of more of them holds
    those of another with fewer. Delete the stored file after a change of the procedure.
    """
    stored = json.loads(results.read_text())["cells"] if results.exists() else []
    best: dict[str, dict] = {}
    for line in sorted([*stored, *lines], key=lambda line: line.get("replications", 0)):
        best[json.dumps(line["cell"])] = line
    places = [json.dumps(cell) for cell in cells]
    return [best[place] for place in places if place in best]


def chosen(cells: Sequence[Any], parts: Sequence[str] | None) -> list[Any]:
    """The cells with one of these parts in their names; all of them if none is given."""
    return [cell for cell in cells if not parts or any(part in cell.name for part in parts)]


def counted(draws: Collection[int]) -> str:
    """The numbers of draws of several cells, in words: "5 draws", "1 to 3 draws"."""
    least, most = min(draws), max(draws)
    span = f"{most}" if least == most else f"{least} to {most}"
    return f"{span} draw" if most == 1 else f"{span} draws"


def store(results: Path, lines: Any, page: Path, marks: tuple[str, str], table: str) -> None:
    """Write summaries to a file, and the table to a page."""
    results.write_text(json.dumps({"machine": machine(), "cells": lines}, indent=1) + "\n")
    write_between(page, marks, [table])
