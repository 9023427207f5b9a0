"""Tables larger than memory: resident memory stays flat; the rate is printed next to that of
parsing alone.
"""

import io
import os
import resource
import shutil
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from hushfit.data.schema._schema_file import SchemaFile, schema_to_toml
from hushfit.datasets import ADULT_SCHEMA, load_adult

RUN = (
    "import sys, resource, json\nfrom hushfit.cli import run\ncode = run(sys.argv[1:])\n"
    "print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)\nsys.exit(code)"
)


OPTIONS = ["--schema", "schema.toml", "--epsilon", 1, "--delta", 1e-10, "-o", "model.json"]


def limited(allowed):
    """What limits the memory that a new process may write to; None for no limit."""
    if allowed is None:
        return None
    return lambda: resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))


def make_large(path, size):
    """Repeat the Adult table until the file is large enough; returns the number of rows."""
    adult = load_adult()
    table = pa.table({**adult.columns, "income": adult.target})
    shuffled = table.take(np.random.default_rng(0).permutation(len(table)))
    rows, header = 0, True
    with open(path, "wb") as file:
        while file.tell() < size:
            pa.csv.write_csv(shuffled, file, pa.csv.WriteOptions(include_header=header))
            rows, header = rows + len(table), False
    return rows


def parse_only(path):
    start = time.perf_counter()
    rows = sum(batch.num_rows for batch in pa.csv.open_csv(path))
    return time.perf_counter() - start, rows


def fit_large(folder, size, allowed=None):
    """Fit a large file in a separate process; returns its peak resident memory in bytes."""
    path = folder / "large.csv"
    rows = make_large(path, size)
    (folder / "schema.toml").write_text(schema_to_toml(SchemaFile(ADULT_SCHEMA)))
    parsing, parsed = parse_only(path)
    assert parsed == rows
    fit = ["fit", path, *OPTIONS]
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, fit)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited(allowed),
    )
    seconds = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout.split("peak")[1])
    mb = os.path.getsize(path) / 1e6
    print(
        f"\n{mb:.0f} MB, {rows} rows: fit {seconds:.1f} s ({mb / seconds:.0f} MB/s), parsing alone "
        f"{parsing:.1f} s",
        end=" ",
    )
    print(f"({mb / parsing:.0f} MB/s), peak {peak / 1e6:.0f} MB resident")
    return peak


@pytest.mark.slow
def test_a_table_is_streamed(tmp_path):
    """As a dense matrix the additional rows of the larger file would alone take 175 MB.

    Libraries, and loops that may have to be compiled, take the same memory in both fits.
    """
    small = fit_large(tmp_path, 1e6)
    (tmp_path / "model.json").unlink()
    assert fit_large(tmp_path, 24e6) - small < 150e6


@pytest.mark.slow
def test_two_gigabytes_in_a_process_that_may_have_one(tmp_path):
    assert fit_large(tmp_path, 2e9, allowed=10**9) < 6e8


def stream(folder, size):
    """Fit rows that are made while they are piped; returns the peak resident memory in bytes."""
    adult, text = load_adult(), io.BytesIO()
    table = pa.table({**adult.columns, "income": adult.target})
    pa.csv.write_csv(table, text)
    header, rows = text.getvalue().split(b"\n", 1)
    (folder / "schema.toml").write_text(schema_to_toml(SchemaFile(ADULT_SCHEMA)))
    command = [sys.executable, "-c", RUN, "fit", "-", *map(str, OPTIONS)]
    piped, sent = subprocess.PIPE, 0
    with subprocess.Popen(command, cwd=folder, stdin=piped, stdout=piped) as process:
        process.stdin.write(header + b"\n")
        while sent < size:
            sent += process.stdin.write(rows)
        process.stdin.close()
        output = process.stdout.read().decode()
    assert process.returncode == 0
    return int(output.split("peak")[1])


@pytest.mark.slow
def test_ten_gigabytes_are_streamed(tmp_path):
    if shutil.disk_usage(tmp_path).free < 20e9:
        pytest.skip("needs 20 GB of disk: what comes through a pipe is copied first")
    assert stream(tmp_path, 10e9) < 6e8
