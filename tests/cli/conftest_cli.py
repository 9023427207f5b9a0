"""A small table, its schema, and a way to run the program."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hushfit.cli import run

SCHEMA = """
unit = "person"

[target]
name = "ill"
kind = "categorical"
categories = ["yes", "no"]

[columns.age]
kind = "numeric"
low = 0
high = 100
fill = 40

[columns.city]
kind = "categorical"
categories = ["Bern", "Zug, upper", "Ulm"]
"""


@dataclass
class Outcome:
    """Output and exit code of a command line."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def make_rows(count, seed=0):
    """Rows of text, some of them odd: unknown labels, blanks, outliers."""
    generator = np.random.default_rng(seed)
    ages = generator.uniform(0, 100, count)
    cities = generator.choice(["Bern", "Zug, upper", "Ulm", "Rom", ""], count)
    ill = np.where(generator.random(count) < 1 / (1 + np.exp(-(ages - 50) / 8)), "yes", "no")
    texts = [f"{age:.2f}" for age in ages]
    texts[3], texts[5], texts[7] = "", "unknown", "1e9"
    labels = ill.tolist()
    labels[11] = "maybe"
    return {
        "age": texts,
        "city": [str(c) for c in cities],
        "name": [f'P "{k}"' for k in range(count)],
        "ill": labels,
    }


def write_csv(path, columns, delimiter=","):
    import csv

    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return str(path)


@pytest.fixture
def hushfit(tmp_path, monkeypatch, capsys):
    """Runs the program in an empty folder; returns output and exit code."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def folder(hushfit, tmp_path):
    """A folder with ``train.csv``, ``test.csv``, ``schema.toml``."""
    write_csv(tmp_path / "train.csv", make_rows(1500))
    write_csv(tmp_path / "test.csv", make_rows(500, seed=1))
    Path(tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


FIT = ("fit", "train.csv", "--schema", "schema.toml", "--epsilon", 2, "--delta", 1e-5)


@pytest.fixture
def model(hushfit, folder):
    """The same folder with a ledger and ``model.json``."""
    assert (
        hushfit(
            "ledger", "init", "ledger.db", "--dataset", "people", "--epsilon", 2.5, "--delta", 1e-5
        ).code
        == 0
    )
    assert (
        hushfit(*FIT, "--ledger", "ledger.db", "--dataset", "people", "-o", "model.json").code == 0
    )
    return folder / "model.json"
