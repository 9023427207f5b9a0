"""Fits on a Dask cluster: what a round costs beside the sums, and what rows cost, in processor time
of all processes together.

    python -m benchmarks.several_machines

The cluster is two processes on this machine, over TLS with temporary certificates.
"""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

from benchmarks._report import Measurement, plain, publish, speed_table
from hushfit.dask import DaskRows
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.data.tables import CodedRows, find_tables
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release import ClippedGradient

ROUNDS = 60
COLUMNS = 20, 10  # numbers, and labels of ten kinds each
KINDS = tuple("abcdefghij")


def schema() -> Schema:
    numbers, labels = COLUMNS
    columns = [NumericColumn(f"x{j}", -3.0, 3.0) for j in range(numbers)]
    named = [CategoricalColumn(f"c{j}", KINDS) for j in range(labels)]
    return Schema((*columns, *named), CategoricalColumn("y", ("no", "yes")))


def write_rows(path: Path, rows: int) -> None:
    rng, (numbers, labels) = np.random.default_rng(0), COLUMNS
    columns: dict[str, Any] = {
        f"x{j}": rng.normal(size=rows).astype(np.float32) for j in range(numbers)
    }
    for j in range(labels):
        codes = pa.array(rng.integers(len(KINDS), size=rows).astype(np.int8))
        columns[f"c{j}"] = pa.DictionaryArray.from_arrays(codes, list(KINDS))
    columns["y"] = np.where(columns["x0"] + rng.logistic(size=rows) > 0, "yes", "no")
    pq.write_table(pa.table(columns), path, row_group_size=1 << 17)


def used() -> float:
    """Processor time of this process and of the cluster that it has started."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(time.user + time.system for time in times)


def gradients(source: Any, count: int) -> tuple[float, np.ndarray]:
    """Processor seconds of a sum of gradients over all rows, and the last one."""
    problem = Problem(Logistic(), Zero(), source.n_units, source.n_features, Relation.REPLACE_ONE)
    started = used()
    for _ in range(count):
        total = ClippedGradient(problem, np.full(problem.shape, 0.1), 1.0)(source, None)
    return (used() - started) / count, total


def measured(rows: int, client: Client, folder: Path) -> tuple[float, float, float]:
    """Processor seconds to encode, of a round on the cluster, and of one on this machine."""
    path = folder / f"{rows}.parquet"
    write_rows(path, rows)
    started = used()
    with DaskRows.from_parquet(str(path), schema(), client=client) as there:
        encoding = used() - started
        gradients(there, 2)
        round_there, sum_there = gradients(there, ROUNDS)
    with CodedRows.from_tables(find_tables([str(path)]), schema()) as here:
        gradients(here, 2)
        round_here, sum_here = gradients(here, max(ROUNDS // 6, 1))
    if not np.array_equal(sum_there, sum_here):
        raise SystemExit("sums differ between the cluster and one machine")
    return encoding, round_there, round_here


def run(quick: bool = False) -> list[Measurement]:
    few, many = 70_000, 300_000 if quick else 1_000_000
    with (
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=2, threads_per_worker=1, security=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        warnings.simplefilter("ignore")
        small = measured(few, client, Path(folder))
        large = measured(many, client, Path(folder))
    per_row = (large[1] - small[1]) / (many - few)
    overhead = small[1] - per_row * few
    found = [
        Measurement("a round on 2 workers, beside the sums", 1e3 * overhead, 40.0, "ms"),
        Measurement("sum of gradients on 2 workers", 1e9 * per_row, unit="ns per row"),
        Measurement("the same in one process", 1e9 * large[2] / many, unit="ns per row"),
        Measurement("encoding on 2 workers", 1e6 * large[0] / many, unit="us per row"),
    ]
    numbers, labels = COLUMNS
    title = f"Several machines: {many:,} rows of {numbers} numbers and {labels} labels, TLS"
    publish("several-machines", title, speed_table(found), plain(found))
    return found


if __name__ == "__main__":
    run()
