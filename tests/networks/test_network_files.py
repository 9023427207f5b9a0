"""Files of networks read back with their guarantee; those that were changed are refused."""

import html
import json
import re
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from torch import nn

from hushfit.errors import InvalidArgument
from hushfit.models import NETWORK_FORMAT, is_network, load_model, save_model
from hushfit.report import network_page
from hushfit.torch import (
    PrivateMLPClassifier,
    PrivateMLPRegressor,
    PrivateNeuralClassifier,
    Training,
    _model_file,
    export_onnx,
    fit_private,
    load_network,
    save_network,
)
from hushfit.torch.solvers import NetworkAdam, NetworkBLS, NetworkSGD

QUICK = NetworkSGD(2, 1.0)
X = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
Y = np.array(["no", "yes"])[np.arange(50) % 2]
pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.WeakGuaranteeWarning")


def perceptron():
    return PrivateMLPClassifier(
        (5,), classes=["no", "yes"], solver=QUICK, delta=1e-3, feature_bounds=(-3, 3)
    ).fit(X, Y)


def test_a_perceptron_reads_back_with_its_guarantee(tmp_path):
    fitted, path = perceptron(), tmp_path / "model.safetensors"
    digest = save_network(fitted, path)
    assert is_network(path)
    assert len(digest) == 64
    model = load_network(path)
    np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    assert model.predict(X).tolist() == fitted.predict(X).tolist()
    assert model.guarantee == fitted.privacy_
    assert model.estimator.training_ == fitted.training_ == Training(50.0, 1.0, normalised=False)


def test_the_names_of_the_columns_are_read_back(tmp_path):
    table, path = pd.DataFrame(X, columns=["age", "b", "c", "d"]), tmp_path / "model.safetensors"
    save_network(clone(perceptron()).fit(table, Y), path)
    model = load_network(path)
    assert model.feature_names == ["age", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table.rename(columns={"age": "year"}))


def test_files_of_the_version_before_say_nothing_of_the_training(tmp_path, monkeypatch):
    path, settings = tmp_path / "model.safetensors", _model_file._settings
    monkeypatch.setattr(_model_file, "_VERSION", "2")
    monkeypatch.setattr(
        _model_file,
        "_settings",
        lambda fitted: {name: v for name, v in settings(fitted).items() if name != "training"},
    )
    save_network(perceptron(), path)
    monkeypatch.undo()
    model = load_network(path)
    assert model.estimator.training_ is None
    assert "clipping norm" not in network_page(model)


@pytest.mark.parametrize(
    ("solver", "batch", "clip", "how"),
    [
        (QUICK, "50", "1", "longer gradients are cut"),
        (NetworkAdam(2, 0.5, 0.3, normalise=True), "25", "0.3", "gradients are scaled to it"),
        (NetworkBLS("ac", 2, 0.5, 0.7), "25", "0.7", "longer gradients are cut"),
    ],
)
def test_pages_and_cards_say_how_any_network_was_fitted(tmp_path, solver, batch, clip, how):
    """Also of a network whose architecture the file does not have."""
    from hushfit.cli import run

    path, page, card = (str(tmp_path / name) for name in ("fit.safetensors", "page", "card"))
    module, records = nn.Sequential(nn.Linear(4, 2)), (X, np.arange(50) % 2)
    fit = fit_private(module, nn.CrossEntropyLoss(), records, delta=1e-3, solver=solver)
    save_network(fit, path)
    assert run(["report", path, "-o", page]) == 0
    assert run(["card", path, "-o", card]) == 0
    written, text = (Path(name).read_text() for name in (page, card))
    assert "0.weight" in written
    assert f"solver = {html.escape(repr(repr(solver)))}" in written
    facts = [("batch", batch), ("clipping norm", clip), ("steps", f"{solver.steps}")]
    [release] = fit.guarantee.releases
    if not fit.guarantee.adaptive:
        facts.append(("noise multiplier", f"{release.noise_multiplier:.4g}"))
    for name, value in facts:
        assert re.search(rf"{name}</[^>]*>\s*<[^>]*>{re.escape(value)}<", written)
        assert f"| {name} | {value} |" in text
    assert how in written
    assert how in text
    assert run(["evaluate", path, "nothing.csv"]) != 0  # needs the architecture


def test_other_networks_need_their_architecture(tmp_path):
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    fitted = PrivateNeuralClassifier(module, classes=["no", "yes"], solver=QUICK, delta=1e-3)
    path = tmp_path / "model.safetensors"
    save_network(fitted.fit(X, Y), path)
    with pytest.raises(InvalidArgument, match="architecture is code"):
        load_network(path)
    model = load_network(path, nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)))
    np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    with pytest.raises(InvalidArgument, match="other parameters than the network in the file"):
        load_network(path, nn.Linear(4, 2))


def test_the_range_of_the_inputs_and_the_solver_are_read_back(tmp_path):
    """Without the range, a network that was read back would predict from unscaled inputs."""
    fitted = PrivateNeuralClassifier(
        nn.Linear(4, 2), classes=["no", "yes"], solver=QUICK, delta=1e-3, input_range=(-5, 50)
    ).fit(X, Y)
    path = tmp_path / "model.safetensors"
    save_network(fitted, path)
    model = load_network(path, nn.Linear(4, 2))
    np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    assert model.estimator.solver == repr(QUICK)


def test_a_regressor_reads_back_with_its_range(tmp_path):
    fitted = PrivateMLPRegressor(
        (5,), target_bounds=(-2, 7), solver="dp-sgd", delta=1e-3, feature_bounds=(-3, 3)
    ).fit(X, X[:, 0])
    path = tmp_path / "model.safetensors"
    save_network(fitted, path)
    model = load_network(path)
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    assert model.guarantee == fitted.privacy_
    assert (model.estimator.target_bounds, model.estimator.solver) == ([-2.0, 7.0], "dp-sgd")
    with pytest.raises(InvalidArgument, match=r"hushfit\.torch\.save_network"):
        save_model(fitted, tmp_path / "model.json")
    with pytest.raises(InvalidArgument, match=r"hushfit\.torch\.load_network"):
        load_model(path)


def test_fits_of_torch_people_are_saved_too(tmp_path):
    fit = fit_private(
        nn.Linear(4, 2), nn.CrossEntropyLoss(), (X, np.arange(50) % 2), delta=1e-3, solver=QUICK
    )
    save_network(fit, tmp_path / "fit.safetensors")
    with open(tmp_path / "fit.safetensors", "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))["__metadata__"]
    assert json.loads(header["guarantee"]) == fit.guarantee.to_dict()
    back = load_network(tmp_path / "fit.safetensors", nn.Linear(4, 2))
    assert back.guarantee == fit.guarantee
    np.testing.assert_array_equal(back.estimator.weights, fit.weights.astype(np.float32))
    with pytest.raises(InvalidArgument, match="not a fitted network"):
        save_network(PrivateMLPClassifier(), tmp_path / "no")


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    save_network(perceptron(), path)
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(InvalidArgument, match="was changed"):
        load_network(path)
    path.write_bytes(raw.replace(b"replace-one", b"add-remove1"))
    with pytest.raises(InvalidArgument, match=r"changed|cannot be read"):
        load_network(path)
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InvalidArgument, match="cannot be read"):
        load_network(path)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        load_network(tmp_path / "nothing")
    assert not is_network(tmp_path / "nothing")
    with pytest.raises(InvalidArgument, match="cannot be written"):
        save_network(perceptron(), tmp_path / "nowhere" / "model")


@pytest.mark.filterwarnings("ignore")  # of the exporter, about itself
def test_onnx_graphs_compute_the_same_and_carry_the_guarantee(tmp_path, capfd):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    fitted, path = perceptron(), tmp_path / "model.onnx"
    with pytest.raises(InvalidArgument, match=r"records of shape \(5,\)"):
        export_onnx(fitted, path, (5,))
    export_onnx(fitted, path, (4,))
    assert capfd.readouterr().err == ""
    graph = onnx.load(path)
    stated = {prop.key: prop.value for prop in graph.metadata_props}
    assert json.loads(stated["guarantee"]) == fitted.privacy_.to_dict()
    assert json.loads(stated["settings"])["feature_bounds"] == [-3, 3]
    scaled = (2 * (np.clip(X, -3, 3) + 3) / 6 - 1).astype(np.float32)
    [outputs] = runtime.InferenceSession(str(path)).run(None, {"X": scaled})
    with torch.no_grad():
        expected = fitted.module_(torch.tensor(scaled)).numpy()
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


SCHEMA = """
[target]
name = "ill"
kind = "categorical"
categories = ["yes", "no"]

[columns.age]
kind = "numeric"
low = 0
high = 100

[columns.city]
kind = "categorical"
categories = ["Bern", "Ulm"]
"""


def test_the_command_line_fits_evaluates_predicts_and_reports(tmp_path):
    from hushfit.cli import run

    rng = np.random.default_rng(0)
    ages = rng.uniform(0, 100, 400)
    lines = ["age,city,ill\n"]
    lines += [
        f"{age:.1f},{'Bern' if age % 2 < 1 else 'Rom'},{'yes' if age > 50 else 'no'}\n"
        for age in ages
    ]
    lines.append("30,Ulm,perhaps\n")  # no class: contributes nothing
    (tmp_path / "table.csv").write_text("".join(lines))
    (tmp_path / "schema.toml").write_text(SCHEMA)
    model, table = str(tmp_path / "model.safetensors"), str(tmp_path / "table.csv")
    schema, page = str(tmp_path / "schema.toml"), str(tmp_path / "page.html")
    ledger = str(tmp_path / "ledger.db")
    paid = ["--ledger", ledger, "--dataset", "d"]
    account = ["ledger", "init", ledger, "--dataset", "d", "--epsilon", "9", "--delta", "1e-3"]
    assert run(account) == 0
    fit = ["fit", table, "--schema", schema, "--epsilon", "8", "--delta", "1e-3"]
    assert run([*fit, *paid, "--model", "mlp", "--hidden", "8", "-o", model]) == 0
    assert run(["evaluate", model, table, "--json"]) == 0
    labels = str(tmp_path / "labels.csv")
    assert run(["predict", model, table, "-o", labels]) == 0
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 402
    assert run(["report", model, "--held-out", table, "-o", page]) == 0
    written = (tmp_path / "page.html").read_text()
    assert "noisy sums of gradients alone" in written
    assert "On held-out rows" in written
    assert "SP 800-226" in written
    promise = load_network(model).guarantee
    assert promise.public[-1].endswith("vocabulary of every column, as the schema states them")
    [release] = promise.releases
    assert f"{release.noise_multiplier:.3g} ×" in written
    assert f">{release.count}<" in written
    card, graph = str(tmp_path / "card.md"), str(tmp_path / "model.onnx")
    assert run(["card", model, "--held-out", table, "--ledger", ledger, "-o", card]) == 0
    written = (tmp_path / "card.md").read_text()
    assert "# Network for ill" in written
    assert "load_network" in written
    assert "accuracy" in written
    assert f"| {release.count} | {release.noise_multiplier:.4g} |" in written
    assert run(["export", model, "-o", graph, "--json"]) == 0
    assert (tmp_path / "model.onnx").exists()
    assert load_network(model).receipt.number == 1
    for wrong in (["--hidden", "a,b"], ["--penalty", "l1"], ["--person", "city"]):
        assert run([*fit, *paid, "--model", "mlp", *wrong, "-o", model + "2"]) != 0


@pytest.mark.parametrize(
    ("target", "cells"),
    [
        ('kind = "numeric"\nlow = 10\nhigh = 20', ("12", "19", "")),
        ('kind = "ordinal"\ncategories = ["mild", "severe", "grave"]', ("mild", "grave", "?")),
    ],
    ids=["numbers", "grades"],
)
def test_the_command_line_fits_numbers_and_grades(tmp_path, capsys, target, cells):
    from hushfit.cli import run

    low, high, missing = cells
    lines = [f"{k % 100},Ulm,{high if k % 100 > 50 else low}\n" for k in range(300)]
    (tmp_path / "table.csv").write_text("age,city,ill\n" + "".join(lines) + f"3,Ulm,{missing}\n")
    columns = SCHEMA.partition("[columns.age]")[2]
    (tmp_path / "schema.toml").write_text(
        f'[target]\nname = "ill"\n{target}\n\n[columns.age]{columns}'
    )
    model, table = str(tmp_path / "model.safetensors"), str(tmp_path / "table.csv")
    fit = ["fit", table, "--schema", str(tmp_path / "schema.toml"), "--model", "mlp"]
    settings = ["--hidden", "8", "--epsilon", "8", "--delta", "1e-3", "--solver", "dp-sgd"]
    assert run([*fit, *settings, "-o", model]) == 0
    assert run(["evaluate", model, table]) == 0
    labels, page = tmp_path / "labels.csv", tmp_path / "page.html"
    assert run(["predict", model, table, "-o", str(labels)]) == 0
    assert len(labels.read_text().splitlines()) == 302
    assert run(["report", model, "--held-out", table, "-o", str(page)]) == 0
    assert "On held-out rows" in page.read_text()
    assert "solver = &#x27;dp-sgd&#x27;" in page.read_text()
    assert run(["card", model, "-o", str(tmp_path / "card.md")]) == 0
    assert "tabular-regression" in (tmp_path / "card.md").read_text()
    capsys.readouterr()
    assert run(["export", model, "-o", str(tmp_path / "model.onnx")]) == 0


def test_the_command_line_protects_persons(tmp_path, capsys):
    from hushfit.cli import run

    rng = np.random.default_rng(0)
    cells = zip(rng.integers(0, 150, 400), rng.uniform(0, 100, 400), strict=True)
    lines = ["patient,age,city,ill\n", ",40,Ulm,no\n"]  # a row without an id is a person
    lines += [f"p{who},{age:.1f},Ulm,{'yes' if age > 50 else 'no'}\n" for who, age in cells]
    (tmp_path / "table.csv").write_text("".join(lines))
    (tmp_path / "schema.toml").write_text(SCHEMA)
    model, table = str(tmp_path / "model.safetensors"), str(tmp_path / "table.csv")
    schema = str(tmp_path / "schema.toml")
    fit = ["fit", table, "--schema", schema, "--model", "mlp", "--hidden", "8", "--epsilon", "8"]
    fit += ["--person", "patient", "--rows-per-person", "3"]
    # Fewer persons than rows: what counts is their number.
    assert run([*fit, "--delta", "0.005", "-o", model]) == 0
    unit = load_network(model).guarantee.unit
    assert unit.is_person
    assert (unit.column, unit.rows_per_person) == ("patient", 3)
    assert run([*fit, "--delta", "0.02", "-o", model + "2"]) != 0
    assert "above 1/(number of persons)" in capsys.readouterr().err


def test_a_network_of_many_columns_is_recognised_wherever_its_format_is_stated(tmp_path):
    """A header is as long as the schema in it, and its fields have no order."""
    path, other = tmp_path / "model.safetensors", tmp_path / "model.json"
    fields = {"schema": "s" * 100_000, "format": NETWORK_FORMAT}
    header = json.dumps({"__metadata__": fields}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    other.write_text(json.dumps(fields))
    assert is_network(path)
    assert not is_network(other)
    assert not is_network(tmp_path / "none")


@pytest.mark.parametrize("columns", [2, 4])
def test_ranges_by_name_read_back_by_place(tmp_path, columns):
    names = [f"x{k}" for k in range(columns)]
    ranges = {name: (-3.0, 1.0 + at) for at, name in enumerate(names)}
    rows = pd.DataFrame(X[:, :columns], columns=names)
    fitted = PrivateMLPClassifier(
        (5,),
        classes=["no", "yes"],
        solver=QUICK,
        delta=1e-3,
        feature_bounds=dict(reversed(ranges.items())),
    ).fit(rows, Y)
    save_network(fitted, tmp_path / "model.safetensors")
    again = load_network(tmp_path / "model.safetensors")
    probabilities = again.predict_proba(rows.to_numpy())
    np.testing.assert_array_equal(probabilities, fitted.predict_proba(rows))
