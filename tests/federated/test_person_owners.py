"""Owners whose rows belong to persons: one unit for all of them, agreed before anyone pays."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from test_core import NAMES, NETWORKS, model, tables

from hushfit import Ledger
from hushfit.errors import InvalidArgument, LedgerError
from hushfit.federated import ALGORITHMS, PPADMM, Owner, Run, Seat, SharedSolver, fit_together
from hushfit.privacy import Budget
from hushfit.unit import AccountUnit, PrivacyUnit

pytestmark = pytest.mark.filterwarnings(
    "ignore::hushfit.errors.InsecureNoiseWarning", "ignore::hushfit.errors.WeakGuaranteeWarning"
)

FEW_STEPS = {
    name: {"steps": 4}
    if name in ("pp-admm", "ipp-admm", "dvp", "m-admm", "dp-admm", "r-admm")
    else {}
    for name in ALGORITHMS
}


def algorithm(name):
    made = replace(ALGORITHMS[name](), **FEW_STEPS[name])
    return SharedSolver("proximal-gd") if name == "shared" else made


def with_ids(copies=3, n=60, given=NAMES):
    """The tables of `tables`, each row several times, once for each visit of a person."""
    found = {}
    for name, (X, y) in tables(n).items():
        ids = np.repeat(np.arange(len(y)), copies)
        rows = np.repeat(X, copies, axis=0), np.repeat(y, copies)
        found[name] = (*rows, ids) if name in given else rows
    return found


def test_every_algorithm_is_tried():
    assert set(FEW_STEPS) == set(ALGORITHMS)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_persons_of_equal_rows_give_the_model_of_one_row_each(name):
    """The same noise on the same means; only bounds on rounding and curvature differ a little."""
    settings = {"random_state": 7, "network": "ring", "algorithm": algorithm(name)}
    by_row = fit_together(model(2.0), tables(), **settings)
    by_person = fit_together(model(2.0), with_ids(), **settings)
    assert by_person.model.coef_ == pytest.approx(by_row.model.coef_, rel=0.02, abs=0.02)
    guarantee = by_person.guarantees["west"]
    assert guarantee.unit == PrivacyUnit.person()
    for sentence in (
        f"the number of persons, {len(tables()['west'][1])}",
        "the number of persons of every owner",
    ):
        assert any(text.startswith(sentence) for text in guarantee.public), guarantee.public
    words = str(guarantee)
    assert "rows of every owner" not in words
    assert str(3 * len(tables()["west"][1])) not in words  # the number of rows is private


def test_the_number_of_rows_does_not_matter_to_others():
    """One person with many more rows of the same kind changes nothing that others see."""
    first, more = with_ids(copies=1), with_ids(copies=1)
    X, y, ids = more["north"]
    more["north"] = (np.vstack([X, X[:1], X[:1]]), np.append(y, y[[0, 0]]), np.append(ids, [0, 0]))
    heard = [
        fit_together(model(1.0), given, "ring", PPADMM(steps=2), random_state=3).talk
        for given in (first, more)
    ]
    assert [sorted(said) for said in heard[0].said] == [sorted(said) for said in heard[1].said]
    assert heard[0].bytes == heard[1].bytes
    for a, b in zip(heard[0].said, heard[1].said, strict=True):
        for name in a:
            assert a[name] == pytest.approx(b[name], rel=1e-6)


def test_each_owner_pays_for_persons():
    ledgers = {name: Ledger(1.5, 1e-4, unit="person") for name in NAMES}
    fit_together(
        model(1.0), with_ids(), "ring", SharedSolver("proximal-gd"), ledgers=ledgers, random_state=1
    )
    assert all(ledger.entries[0].unit == PrivacyUnit.person() for ledger in ledgers.values())


@pytest.mark.parametrize("without", [["north"], ["west"], ["east", "south"]])
def test_owners_with_different_units_are_stopped_before_anyone_pays(without):
    ledgers = {name: Ledger(5.0, 1e-4) for name in NAMES}
    given = with_ids(given=[name for name in NAMES if name not in without])
    with pytest.raises(InvalidArgument, match=r"do not agree on the unit.*Nothing was spent"):
        fit_together(model(), given, "ring", PPADMM(steps=2), ledgers=ledgers)
    assert all(ledger.entries == () for ledger in ledgers.values())


def test_ids_by_name_and_ids_without_a_name_are_not_the_same():
    pd = pytest.importorskip("pandas")
    given = with_ids()
    X, y, ids = given["north"]
    frame = pd.DataFrame(X).assign(patient=ids)
    frame.columns = [str(column) for column in frame.columns]
    given["north"] = frame, y, "patient"
    with pytest.raises(InvalidArgument, match="column 'patient'"):
        fit_together(model(), given, "ring", PPADMM(steps=2))


@pytest.mark.parametrize(
    ("unit", "persons"), [("person", False), (AccountUnit("person", "patient"), True)]
)
def test_one_ledger_that_would_refuse_stops_all(unit, persons):
    ledgers = {name: Ledger(5.0, 1e-4) for name in NAMES}
    ledgers["west"] = Ledger(5.0, 1e-4, unit=unit)
    given = with_ids() if persons else tables()
    with pytest.raises(LedgerError, match=r"the run of west .* No owner has paid anything"):
        fit_together(model(), given, "ring", PPADMM(steps=2), ledgers=ledgers)
    assert all(ledger.entries == () for ledger in ledgers.values())


def an_owner(ids, unit, ledger=None, folder=None, n=None, seed=5):
    X, y = tables()["north"]
    ready = model().prepare(X, y, ids)
    problem = replace(ready.problem, privacy_unit=unit or ready.problem.privacy_unit)
    sizes = dict.fromkeys(NAMES, n or problem.n_units)
    budgets = dict.fromkeys(NAMES, Budget(1.0, 1e-5))
    seat = Seat("north", NETWORKS["ring"], problem, sizes, budgets)
    return Owner(ready.source, seat, Run("a-run", PPADMM(steps=2)), ledger, folder, seed)


def test_an_owner_refuses_a_seat_for_another_unit():
    ids, ledger = np.arange(60) // 2, Ledger(5.0, 1e-4)
    for unit in (PrivacyUnit(), PrivacyUnit.person("cap", 3)):
        with pytest.raises(InvalidArgument, match="Nothing was spent"):
            an_owner(ids, unit, ledger)
    with pytest.raises(InvalidArgument, match="has 30 persons, but the run states 60"):
        an_owner(ids, None, ledger, n=60)
    assert ledger.entries == ()


def test_a_run_resumes_with_its_unit_and_no_other(tmp_path):
    ids, ledger = np.arange(60) // 2, Ledger(5.0, 1e-4)
    first = an_owner(ids, None, ledger, tmp_path)
    sent = first.turn(0, {})
    first.close()
    again = an_owner(ids, None, ledger, tmp_path)
    assert np.array_equal(again.turn(0, {}), sent)
    assert len(ledger.entries) == 1
    again.close()
    with warnings.catch_warnings(), pytest.raises(InvalidArgument, match="other settings"):
        an_owner(None, None, ledger, tmp_path)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("table", [(1,), (1, 2, 3, 4), None, "rows"])
def test_tables_have_two_or_three_parts(table):
    with pytest.raises(InvalidArgument, match=r"\(X, y, groups\)"):
        fit_together(model(), {**tables(), "west": table})
