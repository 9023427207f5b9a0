"""Tables of a real PostgreSQL server: drafted, fitted and predicted like those of files."""

from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from conftest_cli import SCHEMA, make_rows, write_csv

from _ledgers import server
from hushfit import load_model
from hushfit.models import _standard_errors

pytest.importorskip("adbc_driver_postgresql", reason="the ADBC driver is not installed")
__all__ = ["server"]
OPTIONS = ("--epsilon", 4, "--delta", 1e-5, "--seed", 0, "--overwrite")


@pytest.fixture
def visits(server, hushfit, monkeypatch):
    """The rows of a file and of a table, with the types that a database has."""
    monkeypatch.setattr(_standard_errors, "REPLAYS", 2)  # none is looked at here
    rows = make_rows(400)
    numbers = [text if text.replace(".", "").isdigit() else "" for text in rows["age"]]
    write_csv("train.csv", {**rows, "age": numbers})
    Path("schema.toml").write_text(SCHEMA)
    server.sql(
        "DROP TABLE IF EXISTS visits",
        "CREATE TABLE visits (age double precision, city text, name text, ill varchar(9), "
        "admitted date, paid numeric(9, 2), urgent boolean)",
    )
    cells = zip(numbers, rows["city"], rows["name"], rows["ill"], strict=True)
    values = ", ".join(
        f"({age or 'NULL'}, {text(city)}, {text(name)}, {text(ill)}, "
        f"DATE '2020-01-01' + {k}, {k}.25, {k % 2 == 0})"
        for k, (age, city, name, ill) in enumerate(cells)
    )
    server.sql(f"INSERT INTO visits VALUES {values}")
    return server


def text(cell):
    return "NULL" if not cell else "'" + cell.replace("'", "''") + "'"


def address(server, what):
    return f"{server.url()}&{what}"


def test_a_table_and_a_query_are_fitted_as_a_file_is(visits, hushfit):
    fit = ("--schema", "schema.toml", *OPTIONS)
    whole = f"query={quote('SELECT * FROM visits')}"
    coefs = []
    for k, table in enumerate(
        ("train.csv", address(visits, "table=public.visits"), address(visits, whole))
    ):
        outcome = hushfit("fit", table, *fit, "-o", f"model{k}.json")
        assert outcome.code == 0, outcome.err
        coefs.append(load_model(f"model{k}.json").estimator.coef_)
    assert np.array_equal(coefs[0], coefs[1])
    assert np.array_equal(coefs[0], coefs[2])
    table = address(visits, "table=visits")
    assert hushfit("predict", "model1.json", table, "-o", "labels.csv").code == 0
    assert len(Path("labels.csv").read_text().splitlines()) == 401
    assert hushfit("evaluate", "model1.json", table, "--json").json["accuracy"] > 0.6


def test_declared_types_are_drafted_as_what_they_are(visits, hushfit):
    table = address(visits, "table=visits")
    outcome = hushfit("schema", table, "--target", "ill", "-o", "draft.toml", "--json")
    assert outcome.code == 0, outcome.err
    kinds = {name: column["kind"] for name, column in outcome.json["columns"].items()}
    assert kinds["age"] == "numeric"
    assert kinds["city"] == "categorical"
    assert kinds["admitted"] == "date"
    assert kinds["paid"] == "numeric"
    assert kinds["urgent"] == "categorical"
    outcome = hushfit("schema", "--check", table, "draft.toml", "--json")
    assert outcome.code == 0, outcome.err


def test_what_cannot_be_read_is_refused_without_a_password(visits, hushfit):
    fit = ("--schema", "schema.toml", *OPTIONS, "-o", "model.json")
    place = f"host={visits.folder}"
    for wrong in (
        address(visits, "table=nothing"),
        address(visits, f"query={quote('SELECT nothing FROM visits')}"),
        visits.url(),
        f"postgresql://hush:secret@/elsewhere?{place}&table=visits",
    ):
        outcome = hushfit("fit", wrong, *fit)
        assert outcome.code == 2, outcome.err
        assert "secret" not in outcome.err
    table = address(visits, "table=visits")
    assert "twice" in hushfit("fit", table, table, *fit).err
    assert not Path("model.json").exists()
