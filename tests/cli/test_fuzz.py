"""Malformed schemas, tables and models: a sentence and an exit code, no traceback, no output
file, no spend.
"""

import os
import random
from pathlib import Path

import pytest
from conftest_cli import FIT, SCHEMA, make_rows, write_csv

from hushfit import Ledger

PIECES = [
    *(
        b"",
        b",",
        b'"',
        b"\n",
        b"\r",
        b"\x00",
        b"\xff\xfe",
        b"=",
        b"[",
        b"]",
        b"[[",
        b"{",
        b"}",
        b"'",
        b"\\",
        b"#",
        b"1e999",
        b"-",
    ),
    *(
        b"nan",
        b"inf",
        b"null",
        b"true",
        b'"""',
        b"confirm = 3",
        b"[columns]",
        b"unit = 7",
        b"low = 'x'",
        b"9" * 400,
        b"\xc3\x28",
    ),
    *(
        "é".encode(),
        b"kind = 'numeric'",
        b"[target]",
        b"\t",
        b"categories = []",
        b"\xef\xbb\xbf",
        b"name = 5",
        b"0x1F",
        b'"a\nb"',
    ),
]


def mangled(generator, original):
    """A few cuts, repeats, insertions and flips."""
    raw = bytearray(original)
    for _ in range(generator.randint(1, 4)):
        place = generator.randint(0, len(raw))
        kind = generator.randrange(5)
        if kind == 0:
            raw[place:place] = generator.choice(PIECES)
        elif kind == 1:
            del raw[place : place + generator.choice([1, 5, 50, len(raw)])]
        elif kind == 2 and raw:
            raw[min(place, len(raw) - 1)] = generator.randrange(256)
        elif kind == 3:
            raw[place:place] = raw[place : place + 30] * generator.randint(1, 3)
        else:
            raw = (
                bytearray(generator.choice(PIECES) * generator.randint(1, 3))
                if generator.random() < 0.1
                else raw
            )
    return bytes(raw)


FILES = ("schema.toml", "train.csv", "model.json")


def fuzz(hushfit, inputs, files=FILES):
    """Pass mangled inputs to the verbs that read them; returns the counts of exit codes."""
    generator = random.Random(0)
    write_csv("train.csv", make_rows(60))
    Path("schema.toml").write_text(SCHEMA)
    ledger = Ledger.create("ledger.db", "people", 1e6, 1e-5)
    pay = ("--ledger", "ledger.db", "--dataset", "people")
    assert hushfit(*FIT, *pay, "-o", "model.json").code == 0
    originals = {name: Path(name).read_bytes() for name in files}
    verbs = {
        "schema.toml": [
            ("fit", "train.csv", "--schema", "bad", *FIT[4:], *pay, "-o", "out"),
            ("schema", "--check", "train.csv", "bad"),
        ],
        "train.csv": [
            ("fit", "bad", "--format", "csv", *FIT[2:], *pay, "-o", "out"),
            ("schema", "bad", "--format", "csv", "--target", "ill", "-o", "out"),
            ("schema", "--check", "bad", "schema.toml", "--format", "csv"),
            ("evaluate", "model.json", "bad", "--format", "csv"),
            ("predict", "model.json", "bad", "--format", "csv", "-o", "out"),
            ("fit", "bad", "--format", "parquet", *FIT[2:], *pay, "-o", "out"),
            ("fit", "bad", "--format", "arrow", *FIT[2:], *pay, "-o", "out"),
        ],
        "model.json": [
            ("predict", "bad", "train.csv", "-o", "out"),
            ("report", "bad", "-o", "out"),
        ],
    }
    before = set(os.listdir())
    empty = Path("ledger.db").read_bytes()
    codes = dict.fromkeys(range(5), 0)
    for k in range(inputs):
        name = generator.choice(list(originals))
        verb = verbs[name][k % len(verbs[name])]
        Path("bad").write_bytes(mangled(generator, originals[name]))
        if k % 200 == 0:  # a ledger of thousands of payments would only make the test slow
            Path("ledger.db").write_bytes(empty)
        paid = len(ledger.entries)
        result = hushfit(*verb)
        codes[result.code] += 1
        assert result.code in (0, 2), (verb, result)
        assert set(os.listdir()) - before == {"bad"} | (
            {"out"} if result.code == 0 and "out" in verb else set()
        )
        assert (result.code == 0 and verb[0] == "fit") or len(ledger.entries) == paid
        Path("out").unlink(missing_ok=True)
    print(f"\n{inputs} inputs: {codes}")
    return codes


@pytest.mark.filterwarnings("ignore")
def test_malformed_inputs_are_refused_politely(hushfit):
    assert fuzz(hushfit, 300)[2] > 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_twenty_thousand_malformed_inputs(hushfit):
    assert fuzz(hushfit, 20_000)[2] > 5_000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_four_thousand_malformed_schemas_and_tables(hushfit):
    assert fuzz(hushfit, 4_000, FILES[:2])[2] > 1_000
