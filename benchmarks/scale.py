"""Large tables on one machine: packed rows against bare parsing, against one read of the rows and
against scikit-learn, and how processor time grows.

``python -m benchmarks.scale --rows 8000000`` fits a table of that length from CSV and Parquet, each
in a process of its own, and prints processor time and peak resident memory; with ``--allowed 500``
from CSV with and without a limit of 500 MB, in turn. ``--start`` measures the first fit of a new
installation and ``hushfit plan``, ``--ledger`` a ledger of 10,000 entries, ``--owners`` PP-ADMM
with 100 owners.
"""

import argparse
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sklearn.linear_model import LogisticRegression

from benchmarks._report import Measurement, machine, markdown, side_by_side
from benchmarks.federated import many, without_warnings
from hushfit import Ledger, PrivateLogisticRegression
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema, SchemaFile
from hushfit.data.tables import CodedRows, find_tables, schema_to_toml
from hushfit.federated import PPADMM, Network, fit_together
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import GaussianCost, Relation
from hushfit.privacy.ledger._verify import verify_ledger
from hushfit.problem import Problem
from hushfit.release import ClippedGradient

NUMBERS, LABELS = 20, (3, 4, 5, 6, 8, 10, 4, 3, 5, 2)
_ROWS_AT_ONCE = 500_000
RUN = """
import resource, sys
from hushfit.cli import run
code = run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
print("processor", used.ru_utime + used.ru_stime, "peak", used.ru_maxrss / 1024)
sys.exit(code)
"""


def schema() -> Schema:
    """20 numbers and 10 labels; each label has one value that the schema does not list."""
    numbers = tuple(NumericColumn(f"x{j}", 0, 100) for j in range(NUMBERS))
    labels = tuple(
        CategoricalColumn(f"c{j}", tuple(f"v{k}" for k in range(size)))
        for j, size in enumerate(LABELS)
    )
    return Schema((*numbers, *labels), CategoricalColumn("y", ("no", "yes")))


def pieces(n: int) -> Iterator[pa.Table]:
    """The rows of the table, some at a time."""
    for start in range(0, n, _ROWS_AT_ONCE):
        rng, size = np.random.default_rng(start + 1), min(_ROWS_AT_ONCE, n - start)
        X = rng.random((size, NUMBERS))
        codes = [rng.integers(0, count + 1, size) for count in LABELS]
        margin = 3 * (X[:, 0] - 0.5) - 2 * (X[:, 1] - 0.5) + (codes[0] == 1) - 0.3
        y = rng.random(size) < 1 / (1 + np.exp(-margin))
        cells = {f"x{j}": np.round(100 * X[:, j], 9 if j % 2 else 6) for j in range(NUMBERS)}
        for j, code in enumerate(codes):
            cells[f"c{j}"] = np.array([f"v{k}" for k in range(LABELS[j] + 1)])[code]
        yield pa.table({**cells, "y": np.where(y, "yes", "no")})


def write_table(folder: Path, n: int) -> tuple[Path, Path]:
    """The table as CSV and as Parquet."""
    paths = folder / "t.csv", folder / "t.parquet"
    text = binary = None
    for piece in pieces(n):
        if text is None:
            text = pa.csv.CSVWriter(paths[0], piece.schema)
            binary = pa.parquet.ParquetWriter(paths[1], piece.schema)
        text.write_table(piece)
        binary.write_table(piece)
    text.close()
    binary.close()
    return paths


def parse_only(path: Path) -> None:
    """Bare parsing of the CSV file, types guessed."""
    for _ in pa.csv.open_csv(path):
        pass


def reading(folder: Path, n: int) -> list[Measurement]:
    """Parsing and packing against parsing alone; a pass against one read of the packed rows."""
    text, _ = write_table(folder, n)

    def read() -> None:
        CodedRows.from_tables(find_tables([str(text)]), schema()).close()

    packed, parsed = side_by_side([read, lambda: parse_only(text)], 3, clock=time.process_time)
    with CodedRows.from_tables(find_tables([str(text)]), schema()) as rows:
        problem = Problem(Logistic(), Zero(), n, rows.n_features, Relation.REPLACE_ONE)
        query = ClippedGradient(problem, np.zeros(problem.shape), clip=0.5)
        parts = [rows._packed(block.start, block.stop) for block in rows.blocks()]

        def one_read() -> float:
            return sum(float(part.view(np.uint8).sum()) for pair in parts for part in pair)

        passed, once = side_by_side(
            [lambda: query(rows, None), one_read], 5, clock=time.process_time
        )
    return [
        Measurement(
            "read and pack / parse alone", packed / parsed, 1.5, note=f"{n:,} rows, processor time"
        ),
        Measurement(
            "pass over packed rows / sum of their bytes",
            passed / once,
            note=f"{1e9 * passed / n:.0f} ns a row",
        ),
    ]


def predicting(n: int) -> list[Measurement]:
    """``predict`` against scikit-learn's."""
    rng, found = np.random.default_rng(0), []
    for d, classes in ((50, 2), (100, 2), (50, 10)):
        X, y = rng.random((n, d)), rng.integers(0, classes, n)
        ours = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=range(classes))
        ours.fit(X[:3000], y[:3000])
        with warnings.catch_warnings(action="ignore"):
            other = LogisticRegression(max_iter=5).fit(X[:3000], y[:3000])
        tasks = [lambda m=model, X=X: m.predict(X) for model in (ours, other)]
        took, needed = side_by_side(tasks, 9, clock=time.process_time)
        found.append(
            Measurement(
                f"predict / scikit-learn, {classes} classes", took / needed, 1.3, note=f"{n} x {d}"
            )
        )
    return found


def exponent(times: Callable[[int], float], small: int, large: int) -> float:
    """The power with which time grows between two sizes."""
    return math.log(times(large) / times(small)) / math.log(large / small)


def growth() -> list[Measurement]:
    """How the processor time of a default fit grows with rows, columns and classes."""
    rng = np.random.default_rng(0)

    def fit(n: int, d: int, classes: int) -> float:
        X, y = rng.random((n, d)), rng.integers(0, classes, n)
        model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=range(classes))
        model.fit(X, y)
        start = time.process_time()
        model.fit(X, y)
        return time.process_time() - start

    return [
        Measurement(
            "growth in n", exponent(lambda n: fit(n, 40, 2), 50_000, 400_000), 1.1, "power"
        ),
        Measurement("growth in d", exponent(lambda d: fit(60_000, d, 2), 30, 240), 2.1, "power"),
        Measurement("growth in K", exponent(lambda k: fit(60_000, 30, k), 3, 12), 1.2, "power"),
    ]


@dataclass(frozen=True)
class WholeFit:
    """What a fit from the command line took, in a process of its own."""

    processor: float
    seconds: float
    peak: float


def whole_fit(folder: Path, name: str, allowed: float | None = None) -> WholeFit:
    """Fit a file; ``allowed`` is what the process may write to (``RLIMIT_DATA``), in MB."""
    options = ["--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-10"]
    command = [sys.executable, "-c", RUN, "fit", name, *options, "-o", "m.json", "--overwrite"]

    def limit() -> None:
        if allowed is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (int(allowed * 1e6),) * 2)

    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True, preexec_fn=limit
    )
    took, words = time.perf_counter() - start, done.stdout.split()
    processor, peak = (float(words[words.index(word) + 1]) for word in ("processor", "peak"))
    return WholeFit(processor, took, peak)


def end_to_end(folder: Path, n: int) -> list[Measurement]:
    """Whole fits from the command line."""
    found = []
    (folder / "schema.toml").write_text(schema_to_toml(SchemaFile(schema())))
    for path in write_table(folder, n):
        fit, size = whole_fit(folder, path.name), path.stat().st_size / 1e6
        name, note = f"fit from {path.suffix[1:]}", f"{n:,} rows, {size:.0f} MB"
        found += [
            Measurement(name, fit.processor, unit="s", note=note),
            Measurement("its peak resident memory", fit.peak, 600.0, "MB"),
        ]
    return found


def under_limit(folder: Path, n: int, allowed: float, repeats: int = 3) -> list[Measurement]:
    """Fits of a CSV file in a process that may have so many MB, against fits without a limit."""
    (folder / "schema.toml").write_text(schema_to_toml(SchemaFile(schema())))
    path, _ = write_table(folder, n)
    whole_fit(folder, path.name)  # loops are compiled
    pairs = [
        [whole_fit(folder, path.name, limit) for limit in (allowed, None)] for _ in range(repeats)
    ]
    note = f"{path.stat().st_size / 1e6:.0f} MB of CSV in {allowed:g} MB, {repeats} pairs"
    found = []
    for name, goal in (("processor", 1.1), ("seconds", None)):
        tight, free = (
            statistics.median(getattr(pair[side], name) for pair in pairs) for side in (0, 1)
        )
        what = f"fit under a limit of memory / without one, {name}"
        found.append(Measurement(what, tight / free, goal, note=f"{note}, {tight:.1f} s"))
    return found


def in_order(n: int, d: int) -> list[Measurement]:
    """A fit of an array in F order against the same array in C order."""
    rng = np.random.default_rng(0)
    X, y = rng.random((n, d)), rng.integers(0, 2, n)
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=(0, 1))
    tasks = [lambda X=X: model.fit(X, y) for X in (np.asfortranarray(X), X)]
    by_columns, by_rows = side_by_side(tasks, 5, clock=time.process_time)
    return [Measurement("fit in F order / C order", by_columns / by_rows, 1.3, note=f"{n} x {d}")]


FIRST_FIT = """
import numpy as np
from hushfit import PrivateLogisticRegression
rng = np.random.default_rng(0)
X, y = rng.random((2000, 20)), rng.integers(0, 2, 2000)
PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=(0, 1)).fit(X, y)
"""


def processor_of(command: list[str], folder: Path, cache: Path, times: int) -> float:
    """Least processor time of a new process, with machine code kept in a folder. Bytecode is there,
    as after an installation.
    """
    least = math.inf
    own = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    own["PYTHONDONTWRITEBYTECODE"] = ""
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", *command],
            cwd=folder,
            env={**os.environ, **own},
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        least = min(least, took)
    return least


def starting(folder: Path, times: int = 2) -> list[Measurement]:
    """The first fit after an installation, the next one, and a plan; with interpreter and
    imports.
    """
    (folder / "schema.toml").write_text(schema_to_toml(SchemaFile(schema())))
    write_table(folder, 20_000)
    options = ["--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-9", "-o", "m.json"]
    tasks = {"array": [FIRST_FIT], "table": [RUN, "fit", "t.csv", *options, "--overwrite"]}
    found = []
    for name, command in tasks.items():
        caches = [folder / f"{name}-{k}" for k in range(times)]
        processor_of(command, folder, folder / f"{name}-before", 1)  # writes bytecode
        cold = min(processor_of(command, folder, cache, 1) for cache in caches)
        warm = processor_of(command, folder, caches[0], times)
        found += [
            Measurement(f"first fit of a process, {name}, cold compile cache", cold, 3.0, "s"),
            Measurement("the same, warm", warm, None, "s"),
        ]
    plan = [RUN, "plan", "--rows", "20000", "--columns", "20"]
    planned = processor_of(plan, folder, folder / "array-0", times + 1)
    return [*found, Measurement("hushfit plan", planned, 1.0, "s")]


def charging(folder: Path, most: int = 10_000) -> list[Measurement]:
    """A charge of a long ledger on disk and of a short one in turns, and verification."""
    path = folder / "long.db"
    long, short = (Ledger.create(folder / name, "rows", 1e9, 1e-6) for name in (path, "short.db"))

    def charge(ledger: Ledger) -> None:
        ledger.charge(GaussianCost(50.0), "fit", "replace-one")

    for ledger, count in ((long, most), (short, 10)):
        for _ in range(count):
            charge(ledger)
    tasks = [lambda: charge(long), lambda: charge(short)]
    late, few = side_by_side(tasks, 100, clock=time.process_time)
    start = time.process_time()
    problems = verify_ledger(path)
    took = time.process_time() - start
    assert not any(problems.values())
    note = f"{1e3 * few:.1f} and {1e3 * late:.1f} ms"
    return [
        Measurement(f"charge at {most:,} entries / at 10", late / few, 1.1, note=note),
        Measurement(f"verification of {most:,} entries", took, 10.0, "s"),
    ]


def conversing(owners: int = 100, rows: int = 1000) -> list[Measurement]:
    """Processor time of five rounds of PP-ADMM with many owners."""
    parts = many(owners, rows)
    network = Network.random(list(parts), 4.0, seed=1)
    start = time.process_time()
    without_warnings(
        lambda: fit_together(
            PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=(0, 1)),
            parts,
            network,
            PPADMM(steps=5),
            random_state=0,
        )
    )
    took = time.process_time() - start
    return [Measurement(f"PP-ADMM, {owners} owners, 5 rounds", took, unit="s")]


def run(n: int | None, part: str | None = None, allowed: float | None = None) -> list[Measurement]:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], list[Measurement]]] = {
            "start": lambda: starting(folder),
            "ledger": lambda: charging(folder),
            "owners": conversing,
        }
        if part is not None:
            found = parts[part]()
        elif n is not None and allowed is not None:
            found = under_limit(folder, n, allowed)
        elif n is not None:
            found = end_to_end(folder, n)
        else:
            found = [*reading(folder, 200_000), *predicting(200_000), *growth()]
            found += in_order(200_000, 40)
    print(machine())
    print(markdown(["what", "value", "goal", "", "how"], [one.cells() for one in found]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--rows", type=int, help="fit a table of this length instead")
    parser.add_argument("--allowed", type=float, metavar="MB", help="limit of memory, with --rows")
    for part in ("start", "ledger", "owners"):
        parser.add_argument(f"--{part}", dest="part", action="store_const", const=part)
    given = parser.parse_args()
    run(given.rows, given.part, given.allowed)


if __name__ == "__main__":
    main()
