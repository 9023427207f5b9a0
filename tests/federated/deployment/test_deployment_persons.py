"""Owners on disk whose schema names a column of ids, without an engine."""

import csv
import json

import pytest
from _deployed import NAMES, ROWS, SCHEMA, a_run, approving, furnish, in_one_process

from hushfit import Ledger, load_model
from hushfit.cli.verbs.federate import read_run
from hushfit.cli.verbs.owner import write_model
from hushfit.data.tables import parse_schema
from hushfit.errors import InvalidArgument
from hushfit.federated.deployment import outcome_path
from hushfit.federated.deployment._refusal import RunRefused
from hushfit.federated.deployment._run_spec import RunSpec, terms_of
from hushfit.privacy.ledger import verify
from hushfit.unit import AccountUnit, PrivacyUnit

pytestmark = pytest.mark.filterwarnings(
    "ignore::hushfit.errors.InsecureNoiseWarning", "ignore::hushfit.errors.WeakGuaranteeWarning"
)

PERSONS = {name: (rows + 1) // 2 for name, rows in ROWS.items()}
BY_PATIENT = 'person = "patient"\n' + SCHEMA


def owner_of_persons(home, name, schema=BY_PATIENT, unit=None, column="patient"):
    """An owner with two rows for each person, as its own files describe it."""
    config = furnish(home / name, name, schema=schema)
    path = home / name / "rows.csv"
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*header, column])
        writer.writerows([*row, f"p{place // 2}"] for place, row in enumerate(rows))
    (home / name / "ledger.db").unlink()
    account = AccountUnit("person", "patient") if unit is None else unit
    Ledger.create(home / name / "ledger.db", name, 4.0, 1e-5, unit=account)
    return config


def run_of_persons(schema=BY_PATIENT, units=PERSONS, **more):
    return a_run(terms=terms_of(parse_schema(schema).schema), units=units, **more)


def test_a_run_of_persons(tmp_path):
    spec = run_of_persons()
    assert spec.unit == PrivacyUnit.person(column="patient")
    configs = {name: approving(owner_of_persons(tmp_path, name), spec) for name in NAMES}
    weights = in_one_process(configs, spec, tmp_path / "journals")
    assert set(weights) == set(NAMES)
    config = configs["north"]
    with config.read_rows(spec) as rows:
        assert rows.n_units == PERSONS["north"]
        owner = config.open_owner(spec, rows)
        assert owner.guarantee.unit == spec.unit
        owner.close()
    (entry,) = config.open_ledger().entries
    assert entry.unit == spec.unit


def test_the_model_of_a_run_states_the_unit_that_was_paid_for(tmp_path):
    spec = run_of_persons()
    config = approving(owner_of_persons(tmp_path, "north"), spec)
    with config.read_rows(spec) as rows:
        owner = config.open_owner(spec, rows)
        owner.close()
    outcome = {
        "run": spec.run,
        "weights": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "shape": [3],
        "rounds": 4,
        "guarantee": owner.guarantee.to_dict(),
        "receipt": owner.receipt,
        "terms": spec.terms,
        "units": PERSONS["north"],
        "dropped": [],
    }
    outcome_path(config, spec.run).write_text(json.dumps(outcome))
    path = write_model(config, spec.run)
    assert load_model(path).guarantee.unit == spec.unit
    from hushfit.models._verify import model_problems

    assert model_problems(path, verify(tmp_path / "north" / "ledger.db")) == []


@pytest.mark.parametrize(
    ("own", "asked"), [(SCHEMA, BY_PATIENT), (BY_PATIENT, SCHEMA)], ids=["own rows", "own persons"]
)
def test_owners_with_another_unit_do_not_take_part(tmp_path, own, asked):
    spec = run_of_persons(asked)
    config = approving(owner_of_persons(tmp_path, "north", own), spec)
    with pytest.raises(RunRefused, match=r"schema\.person is") as refused:
        config.consider(spec)
    assert "schema" in refused.value.told
    assert config.open_ledger().entries == ()


def test_another_rule_for_rows_of_a_person_is_another_unit(tmp_path):
    spec = run_of_persons('rows_per_person = 5\nperson_weight = "cap"\n' + BY_PATIENT)
    assert spec.unit == PrivacyUnit.person("cap", 5, "patient")
    assert spec.fingerprint != run_of_persons().fingerprint
    assert spec.attempt_fingerprint != run_of_persons().attempt_fingerprint
    config = approving(owner_of_persons(tmp_path, "north"), spec)
    with pytest.raises(RunRefused, match="rows_per_person"):
        config.consider(spec)


@pytest.mark.parametrize("unit", [AccountUnit("person", "visitor")])
def test_a_ledger_that_would_refuse_is_found_before_another_owner_pays(tmp_path, unit):
    spec = run_of_persons()
    config = approving(owner_of_persons(tmp_path, "north", unit=unit), spec)
    with pytest.raises(RunRefused, match=r"column 'visitor'.*Nothing was spent") as refused:
        config.read_rows(spec)
    assert "visitor" not in refused.value.told
    assert config.open_ledger().entries == ()


def test_the_number_of_persons_is_stated_and_that_of_rows_is_not(tmp_path):
    spec = run_of_persons(units=ROWS)
    config = approving(owner_of_persons(tmp_path, "north"), spec)
    with pytest.raises(RunRefused, match="has 45 persons, but run first states 90") as refused:
        config.read_rows(spec)
    assert refused.value.told == "it has 45 persons, and the run states another number."


def test_a_table_without_the_column_is_refused_before_payment(tmp_path):
    spec = run_of_persons()
    config = approving(owner_of_persons(tmp_path, "north", column="visitor"), spec)
    with pytest.raises(InvalidArgument, match="patient"):
        config.read_rows(spec)
    assert config.open_ledger().entries == ()


def test_a_run_without_a_readable_schema_is_no_run():
    described = run_of_persons().to_dict()
    for schema in ({}, [], "schema", None, {"columns": 3}):
        terms = {**described["terms"], "schema": schema}
        with pytest.raises(InvalidArgument):
            RunSpec.from_dict({**described, "terms": terms})


RUN = """
name = "first"
schema = "schema.toml"
algorithm = "pp-admm"
[owners.north]
{units} = 45
epsilon = 1.0
delta = 1e-5
[owners.east]
{units} = 49
epsilon = 1.0
delta = 1e-5
"""


def test_a_run_file_states_persons_where_its_schema_has_them(tmp_path):
    (tmp_path / "schema.toml").write_text(BY_PATIENT)
    (tmp_path / "run.toml").write_text(RUN.format(units="persons"))
    spec = read_run(tmp_path / "run.toml")
    assert spec.unit == PrivacyUnit.person(column="patient")
    assert spec.units == {"north": 45, "east": 49}
    (tmp_path / "run.toml").write_text(RUN.format(units="rows"))
    with pytest.raises(InvalidArgument, match="number of persons"):
        read_run(tmp_path / "run.toml")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    assert read_run(tmp_path / "run.toml").unit == PrivacyUnit()
