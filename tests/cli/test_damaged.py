"""Damaged Arrow and Parquet files, read in separate processes, so that crashes are counted."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest_cli import SCHEMA, make_rows, write_csv

from hushfit import Ledger

# One process fits many files, since starting one takes longer than a fit. It prints each code
# immediately.
BATCH = """
import sys
from pathlib import Path
from hushfit.cli import run
for path in sys.argv[1:]:
    code = run(["fit", path, "--schema", "schema.toml", "--epsilon", "0.1", "--delta", "1e-5", "--ledger", "ledger.db",
                "--dataset", "people", "-o", path + ".json", "--json"])
    print("\\ncode", code, Path(path + ".json").exists(), flush=True)
"""  # noqa: E501


def originals(folder):
    """Files of every layout: plain, dictionary, compressed; as a file and as a stream."""
    rows = make_rows(300)
    table = pa.table(
        {
            **rows,
            "age": [
                float(text) if text.replace(".", "").isdigit() else None for text in rows["age"]
            ],
        }
    )
    coded = table.set_column(1, "city", table["city"].dictionary_encode())
    for name, content, options in (
        ("plain", table, None),
        ("coded", coded, None),
        ("packed", coded, pa.ipc.IpcWriteOptions(compression="lz4")),
    ):
        with pa.ipc.new_file(folder / f"{name}.arrow", content.schema, options=options) as writer:
            writer.write_table(content, max_chunksize=100)
    with pa.ipc.new_stream(folder / "stream.arrow", coded.schema) as writer:
        writer.write_table(coded, max_chunksize=100)
    pa.parquet.write_table(coded, folder / "plain.parquet", compression="none", row_group_size=100)
    pa.parquet.write_table(
        table, folder / "packed.parquet", compression="snappy", use_dictionary=False
    )
    return sorted([*folder.glob("*.arrow"), *folder.glob("*.parquet")])


def damaged(generator, raw):
    """Some bytes flipped, a piece cut out, repeated or zeroed, or the end lost."""
    raw = bytearray(raw)
    for _ in range(generator.randint(1, 3)):
        place, length = generator.randrange(len(raw)), generator.choice([1, 4, 8, 64])
        kind = generator.randrange(6)
        if kind <= 1:
            raw[place] = generator.randrange(256)
        elif kind == 2:
            raw[place : place + length] = generator.randbytes(len(raw[place : place + length]))
        elif kind == 3:
            raw[place : place + length] = b"\xff" * len(raw[place : place + length])
        elif kind == 4:
            del raw[place : place + length]
        else:
            raw = (
                raw[: max(place, 1)]
                if generator.random() < 0.3
                else raw[:place] + raw[place : place + length] + raw[place:]
            )
    return bytes(raw)


def campaign(folder, mutations, batch=50):
    """Fit damaged files; returns the counts of exit codes and of crashed processes."""
    generator = random.Random(13)
    (folder / "schema.toml").write_text(SCHEMA)
    ledger = Ledger.create(folder / "ledger.db", "people", 1e6, 1e-5)
    models = originals(folder)
    codes = dict.fromkeys(range(5), 0)
    died = 0
    for start in range(0, mutations, batch):
        names = []
        for k in range(start, min(start + batch, mutations)):
            source = models[k % len(models)]
            names.append(f"bad-{k}{source.suffix}")
            (folder / names[-1]).write_bytes(damaged(generator, source.read_bytes()))
        paid = len(ledger.entries)
        done = subprocess.run(
            [sys.executable, "-c", BATCH, *names],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        result = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("code ")]
        died += done.returncode != 0
        for code, written in result:
            codes[int(code)] += 1
            assert (code == "0") == (written == "True")
        assert len(ledger.entries) - paid == sum(code == "0" for code, _ in result)
        assert "Traceback" not in done.stderr
        for path in folder.glob("bad-*"):
            path.unlink()
    print(f"\n{mutations} damaged files: {codes}, {died} processes died")
    return codes, died


def clean(codes, died, mutations):
    return died == 0 and codes[0] + codes[2] == mutations and codes[2] > mutations / 10


def test_damaged_files_are_refused_and_kill_nothing(tmp_path):
    codes, died = campaign(tmp_path, 60, batch=60)
    assert clean(codes, died, 60), (codes, died)


@pytest.mark.slow
def test_2400_damaged_files(tmp_path):
    codes, died = campaign(tmp_path, 2400, batch=100)
    assert clean(codes, died, 2400), (codes, died)


def run_in_process(folder, *arguments):
    """A whole run of the program, shutdown included."""
    code = "import sys; from hushfit.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("packing", ["gz", "xz"])
def test_an_open_quotation_mark_in_a_packed_table_ends_cleanly(tmp_path, packing):
    """pyarrow's threads read on while the interpreter shuts down; with a Python stream that
    aborted the process.
    """
    import gzip
    import lzma

    write_csv(tmp_path / "t.csv", make_rows(60_000))
    lines = (tmp_path / "t.csv").read_bytes()
    opened = lines[:2000] + b'\n"open,' + lines * 3
    packed = {
        "gz": lambda raw: gzip.compress(raw, 1),
        "xz": lambda raw: lzma.compress(raw, preset=0),
    }[packing](opened)
    (tmp_path / f"t.csv.{packing}").write_bytes(packed)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    fit = (
        "fit",
        f"t.csv.{packing}",
        "--schema",
        "schema.toml",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "-o",
        "m.json",
        "--json",
    )
    result = run_in_process(tmp_path, *fit)
    assert result.returncode == 2, result.stderr[-300:]
    assert json.loads(result.stdout)["error"]["kind"] == "bad input"
    assert not Path(tmp_path / "m.json").exists()


def test_a_ragged_row_that_is_not_utf8_shows_none_of_its_bytes(tmp_path):
    write_csv(tmp_path / "t.csv", make_rows(50))
    with open(tmp_path / "t.csv", "ab") as file:
        file.write(b"1,\xe9\xff,secret,4,5,6\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    fit = (
        "fit",
        "t.csv",
        "--schema",
        "schema.toml",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "-o",
        "m.json",
    )
    result = run_in_process(tmp_path, *fit)
    assert result.returncode == 2
    assert "6 cells" in result.stderr
    assert not {
        word for word in ("0xe9", "secret", "Exception ignored", "\ufffd") if word in result.stderr
    }
