"""Fits on a cluster of real processes with mutual TLS: equal to those of one machine, whatever is
lost on the way.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _cluster import cluster
from sklearn.base import clone

from hushfit import (
    Ledger,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateRidge,
    load_model,
)
from hushfit.cli._app import run
from hushfit.dask import ClusterLost, DaskRows, connected
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema, schema_to_toml
from hushfit.data.tables import CodedRows, SchemaFile, find_tables
from hushfit.errors import InvalidArgument
from hushfit.solvers import ProximalGradient

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

ROWS = 80_000  # three parts, of 32,768 rows and less
SECRET = "cell-4711-of-a-patient"
NUMBERS = tuple(NumericColumn(name, -3.0, 3.0) for name in "uv")
COLUMNS = (*NUMBERS, CategoricalColumn("c", ("a", "b", "d")))
CLASSES = Schema(COLUMNS, CategoricalColumn("y", ("no", "yes")))
TARGETS = Schema(COLUMNS, NumericColumn("z", -5.0, 5.0))
FEW_STEPS = ProximalGradient(steps=12)
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}


def made_table():
    rng = np.random.default_rng(0)
    u, v, noise = rng.normal(size=(3, ROWS))
    c = rng.choice(["a", "b", "d", SECRET], ROWS)
    y = np.where(u + (c == "a") + rng.logistic(size=ROWS) > 0, "yes", "no")
    return pa.table({"u": u, "v": v, "c": c, "y": y, "z": u + noise})


@pytest.fixture(scope="module")
def table():
    return made_table()


@pytest.fixture(scope="module")
def pattern(table, tmp_path_factory):
    """Files that end where no part does, one of them with two rows."""
    folder = tmp_path_factory.mktemp("data")
    ends = [0, 30_001, 30_003, ROWS]
    for number, (start, stop) in enumerate(pairwise(ends)):
        path = folder / f"{number}.parquet"
        pq.write_table(table.slice(start, stop - start), path, row_group_size=20_000)
    return str(folder / "*.parquet")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster"), workers=2) as made:
        yield made


@pytest.fixture(scope="module")
def client(running):
    with running.client(2) as found:
        yield found


@pytest.fixture(scope="module")
def local(pattern):
    with CodedRows.from_tables(find_tables([pattern]), CLASSES) as rows:
        return PrivateLogisticRegression(**BUDGET).fit(rows)


def weights(model):
    return np.append(model.coef_, model.intercept_)


def test_a_fit_on_a_cluster_has_the_bits_of_one_machine(client, pattern, local):
    ledger = Ledger(3.0, 1e-5)
    with DaskRows.from_parquet(pattern, CLASSES, client=client) as rows:
        model = PrivateLogisticRegression(**BUDGET, ledger=ledger).fit(rows)
    assert weights(model).tolist() == weights(local).tolist()
    assert model.classes_.tolist() == ["no", "yes"]
    assert len(ledger.entries) == 1
    assert model.privacy_.cost == local.privacy_.cost


NUMBER_MODELS = {
    "linear": PrivateRidge(**BUDGET, target_bounds=(-5.0, 5.0)),
    "intervals": PrivateLinearRegression(
        **BUDGET, target_bounds=(-5.0, 5.0), inference=True, feature_bounds=(0.0, 1.0)
    ),
}


@pytest.mark.parametrize("model", NUMBER_MODELS.values(), ids=NUMBER_MODELS)
def test_models_of_numbers_too(client, pattern, model):
    with DaskRows.from_parquet(pattern, TARGETS, client=client) as rows:
        there = clone(model).fit(rows)
    with CodedRows.from_tables(find_tables([pattern]), TARGETS) as rows:
        here = clone(model).fit(rows)
    assert weights(there).tolist() == weights(here).tolist()


def test_rows_of_a_data_frame(client, table, pattern):
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(table.to_pandas(), npartitions=5, sort=False)
    with DaskRows.from_dataframe(frame, CLASSES, client=client) as rows:
        there, _ = fitted(rows)
    with CodedRows.from_tables(find_tables([pattern]), CLASSES) as rows:
        here, _ = fitted(rows)
    assert weights(there).tolist() == weights(here).tolist()


def at_rounds(monkeypatch, events):
    """Call something before the n-th sum of a fit."""
    monkeypatch.undo()
    sums, done = DaskRows.added_up, []

    def added_up(self, query):
        done.append(None)
        events.get(len(done), lambda: None)()
        return sums(self, query)

    monkeypatch.setattr(DaskRows, "added_up", added_up)


def test_what_is_lost_is_made_again_or_ends_the_fit(monkeypatch, tmp_path, pattern):
    """A worker joins late and another is killed: nothing changes. All workers, or the scheduler,
    are lost: the fit ends, and what was paid stays paid, once.
    """
    with CodedRows.from_tables(find_tables([pattern]), CLASSES) as rows:
        expected, _ = fitted(rows)
    with cluster(tmp_path, workers=2) as own, own.client(2) as client:

        def joined():
            own.worker("late")
            client.wait_for_workers(3, timeout=60)

        def deserted():
            own.kill("worker-1")
            own.kill("late")

        with DaskRows.from_parquet(pattern, CLASSES, client=client, patience=2.0) as rows:
            at_rounds(monkeypatch, {5: joined, 10: lambda: own.kill("worker-0")})
            model, ledger = fitted(rows)
            assert weights(model).tolist() == weights(expected).tolist()
            assert len(ledger.entries) == 1
            at_rounds(monkeypatch, {3: deserted})
            with pytest.raises(ClusterLost, match="no worker for 2 seconds"):
                fitted(rows)
            own.worker("new")
            client.wait_for_workers(1, timeout=60)
            on_disk = Ledger.create(tmp_path / "ledger.db", "patients", 3.0, 1e-5)
            at_rounds(monkeypatch, {5: lambda: own.kill("scheduler")})
            with pytest.raises(ClusterLost, match="nothing was released twice"):
                fitted(rows, on_disk)
            assert len(Ledger(tmp_path / "ledger.db", dataset="patients").entries) == 1
        assert not any(SECRET in own.log(name) for name in own.processes)


def fitted(rows, ledger=None):
    ledger = Ledger(3.0, 1e-5) if ledger is None else ledger
    return PrivateLogisticRegression(**BUDGET, ledger=ledger, solver=FEW_STEPS).fit(rows), ledger


REFUSED = {
    "sampled batches": {"solver": "dp-sgd"},
    "needs them in one": {"solver": "rsgd-ar"},
}


@pytest.mark.parametrize(("reason", "settings"), REFUSED.items(), ids=REFUSED)
def test_what_needs_all_rows_in_one_place_is_refused_before_payment(
    client, pattern, reason, settings
):
    ledger = Ledger(3.0, 1e-5)
    with DaskRows.from_parquet(pattern, CLASSES, client=client) as rows:
        model = PrivateLogisticRegression(**BUDGET, ledger=ledger, **settings)
        with pytest.raises(InvalidArgument, match=reason):
            model.fit(rows)
    assert ledger.entries == ()


def test_persons_and_labels_are_refused(client, pattern):
    with pytest.raises(InvalidArgument, match="Fit persons on one machine"):
        DaskRows.from_parquet(pattern, replace(CLASSES, person="who"), client=client)
    with DaskRows.from_parquet(pattern, CLASSES, client=client) as rows:
        with pytest.raises(InvalidArgument, match="does not suit adjacency"):
            PrivateLogisticRegression(**BUDGET, adjacency="label").fit(rows)
        with pytest.raises(InvalidArgument, match="Give neither y nor groups"):
            PrivateLogisticRegression(**BUDGET).fit(rows, y=[1, 2])


def test_a_fault_in_a_part_tells_no_cell_and_no_size(running, client, tmp_path, table):
    """The second part has a column of another type; the message names it and nothing else."""
    pq.write_table(table.slice(0, 40_000), tmp_path / "0.parquet")
    lists = pa.array([[SECRET]] * 40_000)
    wrong = table.slice(0, 40_000)
    wrong = wrong.set_column(wrong.schema.get_field_index("u"), "u", lists)
    pq.write_table(wrong, tmp_path / "1.parquet")
    with pytest.raises(InvalidArgument, match="column 'u' is of type list") as raised:
        DaskRows.from_parquet(str(tmp_path / "*.parquet"), CLASSES, client=client)
    assert "40" not in str(raised.value)
    assert SECRET not in str(raised.value)
    (tmp_path / "2.parquet").write_text(SECRET)
    with pytest.raises(InvalidArgument) as raised:
        DaskRows.from_parquet(str(tmp_path / "2.parquet"), CLASSES, client=client)
    assert SECRET not in str(raised.value)
    (tmp_path / "3.csv").write_text(SECRET)
    with pytest.raises(InvalidArgument, match="no Parquet file"):
        DaskRows.from_parquet(str(tmp_path / "3.csv"), CLASSES, client=client)
    for name in running.processes:
        assert SECRET not in running.log(name)


def test_the_command_line_fits_over_tls(running, pattern, local, tmp_path):
    schema = tmp_path / "schema.toml"
    schema.write_text(schema_to_toml(SchemaFile(CLASSES)))
    ca, cert, key = map(str, running.files)
    out = tmp_path / "model.json"
    arguments = [
        *("fit", pattern, "--schema", str(schema), "--epsilon", "1", "--delta", "1e-6"),
        *("--seed", "0", "-o", str(out), "--dask", running.address),
    ]
    assert run(arguments) == 2
    assert run([*arguments, "--dask-ca", ca, "--dask-cert", cert, "--dask-key", key]) == 0
    assert load_model(out).estimator.coef_.tolist() == local.coef_.tolist()


def test_a_connection_in_the_open_is_refused():
    with pytest.raises(InvalidArgument, match="not encrypted"):
        connected("tcp://192.0.2.1:8786")
    with pytest.raises(InvalidArgument, match="needs the files ca_file, cert, key"):
        connected("tls://127.0.0.1:8786")
