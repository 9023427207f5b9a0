"""Tables that state where and when they were measured."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out"


@dataclass(frozen=True)
class Measurement:
    """One line of a table: a value, its upper limit, and how it was measured."""

    name: str
    value: float
    goal: float | None = None
    unit: str = "x"
    note: str = ""

    @property
    def verdict(self) -> str:
        return "-" if self.goal is None else "pass" if self.value <= self.goal else "FAIL"

    def cells(self) -> list[str]:
        goal = "-" if self.goal is None else f"<= {self.goal:g}"
        return [self.name, f"{self.value:.4g} {self.unit}", goal, self.verdict, self.note]


def machine() -> str:
    """Processor, cores, load and date, for the head of a table."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return (
        f"{model}, {os.cpu_count()} cores, load {load:.1f}, Python "
        f"{platform.python_version()}, {now}"
    )


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, padded to be readable as text."""
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
        for row in (head, *rows)
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def speed_table(measurements: Sequence[Measurement]) -> str:
    return markdown(["what", "value", "goal", "verdict", "how"], [m.cells() for m in measurements])


def publish(name: str, title: str, table: str, data: Any) -> None:
    """Print a table and store it, with its numbers, in ``out/``."""
    OUT.mkdir(exist_ok=True)
    text = f"# {title}\n\n{machine()}\n\n{table}\n"
    (OUT / f"{name}.md").write_text(text)
    (OUT / f"{name}.json").write_text(
        json.dumps({"title": title, "machine": machine(), "data": data}, indent=1) + "\n"
    )
    print(f"\n{text}", flush=True)


def plain(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Measurements for a JSON file."""
    return [{**asdict(m), "verdict": m.verdict} for m in measurements]


Clock = Callable[[], float]


def seconds(task: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """Time of one call: wall time, or that of another clock."""
    start = clock()
    task()
    return clock() - start


def side_by_side(
    tasks: Sequence[Callable[[], object]],
    repeats: int,
    burst: int = 1,
    clock: Clock = time.perf_counter,
) -> list[float]:
    """Median time of each task; tasks alternate, so that a busy machine slows all of them alike.

    Each turn is a ``burst`` of consecutive calls, for tasks that a fit calls consecutively.
    """

    def turn(task: Callable[[], object]) -> float:
        return seconds(lambda: [task() for _ in range(burst)], clock) / burst

    for task in tasks:
        task()
    times = [[turn(task) for task in tasks] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def write_between(page: Path, marks: tuple[str, str], parts: Sequence[str]) -> None:
    """Replace the text between the two marks of a page by tables."""
    before, _, rest = page.read_text().partition(marks[0])
    _, found, after = rest.partition(marks[1])
    if not found:
        raise SystemExit(
            f"{page.name} has no part between {marks[0]} and {marks[1]}; add the two lines where "
            "the tables belong"
        )
    page.write_text(before + marks[0] + "\n\n" + "\n".join(parts) + "\n" + marks[1] + after)
