"""Whom an account protects: which charges it takes, and what they count."""

import copy
import json
import pickle
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from test_ledger_verify import rewritten

from _ledgers import DELTA, gaussian_of, server
from hushfit import Ledger, PrivateLogisticRegression
from hushfit.cli import run
from hushfit.errors import BudgetExceeded, InvalidArgument, LedgerError
from hushfit.model_selection import TrialAccount
from hushfit.preprocessing._pipeline_account import PipelineAccount
from hushfit.privacy import (
    Budget,
    GaussianCost,
    PoissonGaussianCost,
    PureCost,
    Relation,
    epsilon_of,
)
from hushfit.privacy.accounting import group_epsilon
from hushfit.privacy.ledger import _chain, _disk_ledger, counted_costs, verify
from hushfit.privacy.ledger._ledger_key import KEY_VARIABLE
from hushfit.privacy.ledger._verify import verify_ledger
from hushfit.unit import ROW, AccountUnit, PrivacyUnit

__all__ = ["server"]

PATIENT = PrivacyUnit.person(column="patient")
VISITOR = PrivacyUnit.person(column="visitor")
ARRAY = PrivacyUnit.person()
REPLACE = Relation.REPLACE_ONE
SMALL = gaussian_of(0.1)


@pytest.fixture(params=["memory", "disk"])
def opened(request, tmp_path):
    """A way to open a ledger in memory or on disk."""

    def made(unit="row", epsilon=2.0, **more):
        if request.param == "memory":
            return Ledger(epsilon, DELTA, unit=unit, **more)
        return Ledger.create(tmp_path / "ledger.db", "stays", epsilon, DELTA, unit=unit, **more)

    return made


def test_an_account_protects_rows_unless_told(opened):
    assert opened().unit == AccountUnit() == Ledger(1.0, DELTA).unit
    assert str(AccountUnit()) == "one row"


def test_an_account_of_persons_refuses_a_charge_for_rows(opened):
    ledger = opened("person")
    for charge in (
        lambda: ledger.charge(SMALL, "fit", REPLACE),
        lambda: ledger.charge(SMALL, "fit", REPLACE, ROW),
    ):
        with pytest.raises(LedgerError, match=r"fit is for one row.*Nothing was spent"):
            charge()
    assert ledger.entries == ()
    assert ledger.spent().epsilon == 0
    ledger.charge(SMALL, "fit", REPLACE, PATIENT)
    assert [entry.unit for entry in ledger.entries] == [PATIENT]


def test_all_charges_name_the_same_column(opened):
    named = opened(AccountUnit("person", "patient"))
    named.charge(SMALL, "first", REPLACE, PATIENT)
    # the rule by which rows are put together may differ: the person is the same
    named.charge(SMALL, "second", REPLACE, PrivacyUnit.person("cap", 3, "patient"))
    for unit in (VISITOR, ARRAY):
        with pytest.raises(LedgerError, match="column 'patient': these may be others"):
            named.charge(SMALL, "third", REPLACE, unit)
    assert len(named.entries) == 2


@pytest.mark.parametrize(("first", "other"), [(PATIENT, VISITOR), (ARRAY, PATIENT)])
def test_without_a_column_the_first_charge_decides(opened, first, other):
    ledger = opened("person")
    ledger.charge(SMALL, "first", REPLACE, first)
    ledger.charge(SMALL, "second", REPLACE, first)
    with pytest.raises(LedgerError, match="these may be others"):
        ledger.charge(SMALL, "third", REPLACE, other)
    assert len(ledger.entries) == 2


def test_a_guarantee_for_persons_is_one_for_rows(opened):
    """An account of rows takes it, at the same cost, whatever the column."""
    ledger, rows = opened(), Ledger(2.0, DELTA)
    for unit in (PATIENT, VISITOR, ROW):
        ledger.charge(SMALL, "fit", REPLACE, unit)
        rows.charge(SMALL, "fit", REPLACE)
    assert ledger.spent() == rows.spent()


def test_under_add_remove_a_guarantee_for_persons_is_none_for_rows(opened):
    """A row that vanishes while its person stays is no removal of the person."""
    ledger = opened(adjacency="add-remove")
    with pytest.raises(LedgerError, match=r"no proof covers a single row.*Nothing was spent"):
        ledger.charge(SMALL, "fit", "add-remove", PATIENT)
    assert ledger.entries == ()
    ledger.charge(SMALL, "fit", "add-remove", ROW)


def test_with_rows_declared_a_charge_for_rows_counts_for_all_of_them(opened):
    ledger = opened(AccountUnit("person", "patient", rows_per_person=3), epsilon=8.0)
    ledger.charge(GaussianCost(6.0), "rows", REPLACE)
    assert ledger.spent().epsilon == pytest.approx(
        epsilon_of(GaussianCost(2.0), DELTA * (1 - 1e-5), REPLACE)
    )
    ledger.charge(GaussianCost(5.0), "persons", REPLACE, PATIENT)
    assert counted_costs(ledger.account, ledger.entries) == (GaussianCost(2.0), GaussianCost(5.0))
    # what was paid for is recorded as it was, so that a model can be compared with it
    assert [entry.cost for entry in ledger.entries] == [GaussianCost(6.0), GaussianCost(5.0)]
    assert ledger.total_cost.entries().__next__().count == 1
    ledger.charge(PureCost(0.1), "count", REPLACE)
    assert counted_costs(ledger.account, ledger.entries)[-1] == PureCost(0.3 + 5e-17)


def test_a_sampled_charge_is_converted_as_a_whole():
    cost = PoissonGaussianCost(3.0, 0.02, 30)
    ledger = Ledger(3.0, DELTA, unit=AccountUnit("person", rows_per_person=2))
    ledger.charge(cost, "rows", REPLACE)
    (counted,) = counted_costs(ledger.account, ledger.entries)
    assert 0 < counted.lost <= 0.01 * DELTA
    alone = group_epsilon(cost, 2, DELTA, REPLACE)
    assert 2 * epsilon_of(cost, DELTA, REPLACE) < alone <= ledger.spent().epsilon <= 1.05 * alone
    ledger.charge(cost, "again", REPLACE)
    first, second = counted_costs(ledger.account, ledger.entries)
    assert first == counted
    assert first.lost + second.lost <= 0.02 * DELTA
    twice = group_epsilon(PoissonGaussianCost(3.0, 0.02, 60), 2, DELTA, REPLACE)
    assert twice <= ledger.spent().epsilon <= 1.1 * twice


def test_conversion_counts_against_the_budget(opened):
    ledger = opened(AccountUnit("person", rows_per_person=10), epsilon=2.0)
    with pytest.raises(BudgetExceeded):
        ledger.charge(gaussian_of(0.5), "fit", REPLACE)
    assert ledger.entries == ()
    ledger.charge(gaussian_of(0.5), "fit", REPLACE, PATIENT)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"kind": "household"}, "household"),
        ({"kind": "row", "column": "id"}, "account of rows"),
        ({"kind": "row", "rows_per_person": 3}, "account of rows"),
        ({"kind": "person", "rows_per_person": 0}, "rows_per_person"),
        ({"kind": "person", "rows_per_person": 2.5}, "rows_per_person"),
        ({"kind": "person", "column": 3}, "column"),
    ],
)
def test_units_without_sense_are_refused(arguments, match):
    with pytest.raises(InvalidArgument, match=match):
        AccountUnit(**arguments)


def test_a_unit_is_given_by_name_or_as_one():
    for wrong in ("household", 3, ROW):
        with pytest.raises(InvalidArgument, match="unit="):
            Ledger(1.0, DELTA, unit=wrong)
    with pytest.raises(InvalidArgument, match="PrivacyUnit"):
        Ledger(1.0, DELTA).charge(SMALL, "fit", REPLACE, "person")


def test_a_unit_says_what_it_means():
    assert str(AccountUnit("person", "id")) == "one person (column 'id')"
    words = str(AccountUnit("person", "id", 4))
    for part in ("at most 4 rows", "exchanged for as many rows", "number of rows is public"):
        assert part in words
    assert AccountUnit.from_dict(AccountUnit("person", "id", 4).to_dict()) == AccountUnit(
        "person", "id", 4
    )
    with pytest.raises(InvalidArgument, match="fields"):
        AccountUnit.from_dict({"kind": "person"})


def test_copies_keep_the_unit():
    ledger = Ledger(1.0, DELTA, unit=AccountUnit("person", "patient"))
    for other in (copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        assert other.unit == ledger.unit
        with pytest.raises(LedgerError, match="one row"):
            other.charge(SMALL, "fit", REPLACE)
    assert "one person" in repr(ledger)


def test_the_parts_of_one_fit_have_one_unit():
    ledger = Ledger(2.0, DELTA, unit="person")
    account = PipelineAccount(Budget(1.0, DELTA), REPLACE, ledger)
    pipeline = Ledger.over(account)
    pipeline.charge(SMALL, "scale", REPLACE, PATIENT)
    for unit in (ROW, VISITOR):
        with pytest.raises(LedgerError, match="an earlier part of the same fit"):
            pipeline.charge(SMALL, "model", REPLACE, unit)
    assert [entry.unit for entry in ledger.entries] == [PATIENT]
    with pytest.raises(LedgerError, match="one row"):
        Ledger.over(PipelineAccount(Budget(1.0, DELTA), REPLACE, ledger)).charge(
            SMALL, "scale", REPLACE
        )
    assert len(ledger.entries) == 1
    assert Ledger.over(TrialAccount(REPLACE, DELTA, SMALL)).charge(SMALL, "trial", REPLACE, PATIENT)


def fit(ledger, groups=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    model = PrivateLogisticRegression(
        0.5, 1e-3, classes=[0, 1], ledger=ledger, solver="proximal-gd"
    )
    return model.fit(X, np.tile([0, 1], 45), groups=groups)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_pays_for_whom_it_protects():
    ids = np.repeat(np.arange(30), 3)
    ledger = Ledger(5.0, 1e-2, unit="person")
    with pytest.raises(LedgerError, match=r"PrivateLogisticRegression is for one row"):
        fit(ledger)
    assert ledger.entries == ()
    fitted = fit(ledger, ids)
    (entry,) = ledger.entries
    assert entry.unit == fitted.privacy_.unit
    assert entry.unit.is_person


def test_the_unit_is_on_disk_and_fixed(tmp_path):
    path, unit = tmp_path / "ledger.db", AccountUnit("person", "patient", 3)
    Ledger.create(path, "stays", 2.0, DELTA, unit=unit).charge(SMALL, "fit", REPLACE, PATIENT)
    again = Ledger(path)
    assert again.unit == unit
    assert Ledger(path, unit=unit).entries == again.entries
    assert again.entries[0].unit == PATIENT
    with pytest.raises(InvalidArgument, match="protects one person"):
        Ledger(path, unit="row")


@pytest.fixture
def of_format_3(tmp_path, monkeypatch):
    """A ledger as the version before units wrote it."""
    path = tmp_path / "ledger.db"
    with monkeypatch.context() as older:
        older.setattr(_chain, "FORMAT", 3)
        add = _chain.Book.add

        def without_unit(self, dataset, chain, body):
            return add(self, dataset, chain, {k: v for k, v in body.items() if k != "unit"})

        older.setattr(_chain.Book, "add", without_unit)
        Ledger.create(path, "stays", 2.0, DELTA).charge(SMALL, "old", REPLACE)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM hushfit_format").fetchall() == [(3,)]
        bodies = connection.execute("SELECT body FROM hushfit_entries").fetchall()
        assert not any("unit" in json.loads(body) for (body,) in bodies)
    return path


def test_older_ledgers_protect_rows_and_are_taken_over(of_format_3):
    ledger = Ledger(of_format_3)
    assert ledger.unit == AccountUnit()
    assert [entry.unit for entry in ledger.entries] == [ROW]
    assert verify_ledger(of_format_3) == {"stays": []}
    ledger.charge(SMALL, "new", REPLACE, PATIENT)
    Ledger.create(of_format_3, "others", 1.0, DELTA, unit="person")
    assert verify_ledger(of_format_3) == {"stays": [], "others": []}
    with closing(sqlite3.connect(of_format_3)) as connection:
        versions = connection.execute("SELECT version FROM hushfit_format").fetchall()
    assert versions == [(3,), (_chain.FORMAT,)]  # an older hushfit refuses it from now on


def set_unit(**unit):
    def edit(body):
        if body["kind"] == "open":
            body["unit"] = AccountUnit(**unit).to_dict()
        return body

    return edit


def test_hashes_cover_the_unit(tmp_path):
    path = str(tmp_path / "ledger.db")
    Ledger.create(path, "stays", 2.0, DELTA, unit="person").charge(SMALL, "fit", REPLACE, PATIENT)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE hushfit_entries SET body = replace(body, '\"person\"', '\"row\"') "
            "WHERE number = 0"
        )
        connection.commit()
    (problem,) = verify_ledger(path)["stays"]
    assert "edited" in problem
    with pytest.raises(LedgerError, match="does not verify"):
        Ledger(path)


def test_seals_cover_the_unit(tmp_path, monkeypatch):
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    monkeypatch.setenv(KEY_VARIABLE, str(key))
    path = str(tmp_path / "ledger.db")
    Ledger.create(path, "stays", 2.0, DELTA, unit="person")
    rewritten(path, set_unit(kind="row"))
    assert "seal" in verify_ledger(path)["stays"][0]


def test_a_charge_that_the_account_would_not_take_does_not_verify(tmp_path):
    path = str(tmp_path / "ledger.db")
    Ledger.create(path, "stays", 2.0, DELTA).charge(SMALL, "fit", REPLACE)
    rewritten(path, set_unit(kind="person"))  # with all hashes right
    (problem,) = verify_ledger(path)["stays"]
    assert "payment 1 is for one row" in problem


def test_another_handle_does_not_pay_from_a_ledger_that_was_made_again(tmp_path):
    path = tmp_path / "ledger.db"
    rows = Ledger.create(path, "stays", 2.0, DELTA)
    path.unlink()
    Ledger.create(path, "stays", 2.0, DELTA, unit="person")
    with pytest.raises(LedgerError, match="other terms"):
        rows.charge(SMALL, "fit", REPLACE)
    assert Ledger(path).entries == ()


def test_units_on_a_server(server):
    name = "units"
    server.sql(f"CREATE DATABASE {name}")
    url, unit = server.url(database=name), AccountUnit("person", "patient")
    Ledger.create(url, "stays", 2.0, DELTA, unit=unit)
    ledger = Ledger(url)
    assert ledger.unit == unit
    with pytest.raises(LedgerError, match="one row"):
        ledger.charge(SMALL, "fit", REPLACE)
    ledger.charge(SMALL, "fit", REPLACE, PATIENT)
    assert Ledger(url).entries[0].unit == PATIENT
    assert verify_ledger(url) == {"stays": []}


def test_the_command_line_opens_and_shows_accounts_of_persons(tmp_path, capsys):
    path = str(tmp_path / "ledger.db")
    init = ["ledger", "init", path, "--epsilon", "2", "--delta", "1e-6", "--dataset"]

    def said(*arguments):
        code = run([*map(str, arguments)])
        return code, " ".join(capsys.readouterr().out.split())

    code, words = said(*init, "stays", "--unit", "person", "--person-column", "patient")
    assert code == 0
    assert "It protects one person (column 'patient')" in words
    assert said(*init, "rows")[0] == 0
    options = ("--unit", "person", "--rows-per-person", 3, "--json")
    told = json.loads(said(*init, "few", *options)[1])
    assert told["unit"] == {"kind": "person", "column": None, "rows_per_person": 3}
    code, words = said("ledger", "show", path)
    assert "stays protects one person (column 'patient')" in words
    assert "at most 3 rows" in words
    assert "rows protects" not in words
    shown = json.loads(said("ledger", "show", path, "--json")[1])["datasets"]
    assert {one["dataset"]: one["unit"]["kind"] for one in shown} == {
        "stays": "person",
        "rows": "row",
        "few": "person",
    }
    assert "protects one person (column 'patient')" in said("ledger", "verify", path)[1]
    heads = json.loads(said("ledger", "verify", path, "--json")[1])["heads"]
    assert heads["few"]["unit"]["rows_per_person"] == 3
    assert '"unit": {"column": "patient"' in said("ledger", "export", path)[1]
    Ledger(path, dataset="few").charge(GaussianCost(9.0), "fit", REPLACE)
    (line,) = json.loads(said("ledger", "history", path, "--json")[1])["datasets"]["few"]
    assert line["unit"] == "row"
    assert line["epsilon_alone"] == pytest.approx(line["total"])
    for wrong in (("--person-column", "id"), ("--unit", "person", "--rows-per-person", 0)):
        assert said(*init, "wrong", *wrong)[0] != 0
    assert verify(path).sentences() == []
    assert _disk_ledger.ledger_datasets(path) == ["few", "rows", "stays"]
