"""Fits of networks: estimators, guarantees, noise, callbacks."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from _networks import CLASSES, ROWS, curator, network, records, source
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from _support import ERROR_FOR_A_CELL
from hushfit import Ledger
from hushfit.errors import BudgetExceeded, InsecureNoiseWarning, PrivacyLeakWarning
from hushfit.privacy import Budget, Relation
from hushfit.torch import (
    DatasetRecords,
    Network,
    NetworkGradient,
    NetworkRows,
    PrivateMLPClassifier,
    PrivateMLPRegressor,
    PrivateNeuralClassifier,
    RecordShape,
    fit_private,
)
from hushfit.torch.solvers import NetworkAdam, NetworkSGD, auto, run_network

QUICK = NetworkSGD(3, 1.0, normalise=True, learning_rate=0.1)
SOLVERS = [
    NetworkSGD(4, 0.5, 0.7, momentum=0.5, decay="linear", weight_decay=0.1, average_last=0.5),
    NetworkSGD(3, 1.0, normalise=True),
    NetworkAdam(4, 0.5, denoise=True, decay="linear"),
]


@pytest.mark.usefixtures("quiet_fits")
@parametrize_with_checks(
    [
        PrivateMLPClassifier((4,), solver=QUICK),
        PrivateMLPRegressor((4,), solver=QUICK),
    ],
    expected_failed_checks=lambda estimator: ERROR_FOR_A_CELL,
)
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


def blobs(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n_rows)
    X = rng.normal(size=(n_rows, 6)) + 2.0 * np.eye(CLASSES, 6)[y]
    return X.astype(np.float32), y


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: f"{type(s).__name__}-{s.rate}")
def test_a_solver_makes_exactly_the_releases_it_declared(solver):
    net = network("mlp")
    X, y = records(net, 40)
    door = curator(net, solver, source(net, X, y), multiplier=1.0)
    weights = run_network(solver, net, door)
    assert weights.shape == net.shape
    assert [one.name for one in door.transcript] == ["gradient"] * solver.steps
    assert "left={'gradient': 0}" in repr(door)


def test_without_noise_sgd_is_plain_gradient_descent():
    """Full batches and a clip above all gradients: the loss falls as torch's own SGD makes it."""
    net = network("mlp", n_units=40, double=True)
    X, y = records(net, 40)
    solver = NetworkSGD(5, 1.0, 1e6, learning_rate=0.3, momentum=0.9)
    weights = run_network(solver, net, curator(net, solver, source(net, X.astype(float), y)))
    module = net.module_at(net.start)
    optimiser = torch.optim.SGD(module.parameters(), 0.3, momentum=0.9)
    for _ in range(5):
        optimiser.zero_grad()
        nn.CrossEntropyLoss()(module(torch.tensor(X.astype(float))), torch.tensor(y)).backward()
        optimiser.step()
    expected = torch.cat([one.detach().flatten() for one in module.parameters()]).numpy()
    np.testing.assert_allclose(weights, expected, rtol=1e-8, atol=1e-10)


def test_without_noise_adam_is_adam():
    net = network("mlp", n_units=40, double=True)
    X, y = records(net, 40)
    solver = NetworkAdam(5, 1.0, 1e6, learning_rate=0.01)
    weights = run_network(solver, net, curator(net, solver, source(net, X.astype(float), y)))
    module = net.module_at(net.start)
    optimiser = torch.optim.Adam(module.parameters(), 0.01)
    for _ in range(5):
        optimiser.zero_grad()
        nn.CrossEntropyLoss()(module(torch.tensor(X.astype(float))), torch.tensor(y)).backward()
        optimiser.step()
    expected = torch.cat([one.detach().flatten() for one in module.parameters()]).numpy()
    np.testing.assert_allclose(weights, expected, rtol=1e-6, atol=1e-9)


def test_noise_is_the_multiplier_times_the_sensitivity_in_every_layer():
    """Standard deviations within 10 %: false alarms below 1e-6 for 60 values or more, and no
    noise is shared between steps or layers.
    """
    net = network("mlp", n_units=40)
    X, y = records(net, 40)
    rows = source(net, X, y)
    solver = NetworkSGD(40, 1.0, 0.25, learning_rate=1e-12)
    exact = curator(net, solver, rows)
    run_network(solver, net, exact)
    noisy = curator(net, solver, rows, multiplier=2.0, seed=4)
    run_network(solver, net, noisy)
    noise = np.array(
        [a.answer - b.answer for a, b in zip(noisy.transcript, exact.transcript, strict=True)]
    )
    scale = 2.0 * 2 * 0.25
    layers = np.split(noise, np.cumsum([96, 16, 48]), axis=1)
    for layer in layers:
        assert np.std(layer) == pytest.approx(scale, rel=0.1 if layer.size > 1000 else 0.25)
    flat = noise / scale
    assert len(np.unique(np.round(flat, 9))) == flat.size
    assert abs(np.corrcoef(flat[:, :100].ravel(), flat[:, -100:].ravel())[0, 1]) < 0.08


def test_a_classifier_learns_pays_and_prints_its_guarantee():
    X, y = blobs(2000)
    ledger = Ledger(3.0, 1e-5, adjacency="add-remove")
    model = PrivateMLPClassifier(
        (16,),
        epsilon=2.0,
        delta=1e-5,
        adjacency="add-remove",
        classes=range(CLASSES),
        solver=NetworkSGD(40, 0.1, normalise=True, momentum=0.9, decay="linear"),
        ledger=ledger,
    )
    model.fit(X, y)
    assert model.score(*blobs(500, seed=1)) > 0.75  # a third by chance, .88 without privacy
    assert model.predict_proba(X[:3]).sum(axis=1) == pytest.approx(1)
    assert len(ledger.entries) == 1
    assert model.receipt_.cost == model.privacy_.cost == ledger.entries[0].cost
    printed = str(model.privacy_)
    assert "NetworkGradient" in printed
    assert "secure=True" in printed
    assert "bit for bit" in printed
    with pytest.raises(BudgetExceeded):
        clone(model).fit(X, y)


def test_images_tensors_persons_and_ranges():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 255, size=(60, 1, 8, 8)).astype(np.float32), np.arange(60) % 2
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(72, 2))
    model = PrivateNeuralClassifier(
        module, classes=["a", "b"], input_range=(0, 255), solver=QUICK, delta=1e-3
    )
    labels = np.array(["a", "b"])[y]
    model.fit(X, labels, groups=np.arange(60) // 3)
    assert model.privacy_.unit.is_person
    assert "20" in model.privacy_.public[0]
    assert set(model.predict(X)) <= {"a", "b"}
    tensors = PrivateNeuralClassifier(
        module, classes=[0, 1], input_range=(0, 255), solver=QUICK, delta=1e-3
    ).fit(torch.tensor(X), torch.tensor(y))
    assert tensors.predict(torch.tensor(X)).shape == (60,)
    assert tensors.decision_function(X).shape == (60,)
    before = [one.clone() for one in module.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


def test_a_regressor_stays_within_the_public_range():
    X, _ = blobs(300)
    y = 10 * X[:, 0]
    model = PrivateMLPRegressor(
        (8,), epsilon=5.0, delta=1e-4, target_bounds=(-20, 20), solver=NetworkSGD(60, 1.0)
    ).fit(X, y)
    found = model.predict(1000 * X)
    assert found.min() >= -20
    assert found.max() <= 20
    assert model.quote(300, 6).cost == model.privacy_.cost


@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
@pytest.mark.parametrize("missing", [np.nan, np.inf])
def test_a_row_without_a_target_contributes_nothing_and_is_not_told(missing):
    """The same weights as if the row had no features, to the last bit."""
    X, _ = blobs(50)
    y, without = 10 * X[:, 0], X.copy()
    settings = {"target_bounds": (-20, 20), "solver": QUICK, "delta": 1e-3, "random_state": 0}
    fit = lambda X, y: PrivateMLPRegressor((4,), **settings).fit(X, y).predict(X[1:])  # noqa: E731
    without[0] = np.nan
    expected = fit(without, y)
    y[0] = missing
    np.testing.assert_array_equal(fit(X, y), expected)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        PrivateMLPRegressor((4,)).fit(X, y)


def test_quotes_cost_what_fits_cost_and_labels_read_from_rows_are_told():
    X, y = blobs(50)
    model = PrivateMLPClassifier((4,), solver=QUICK, delta=1e-3)
    with pytest.warns(PrivacyLeakWarning, match="classes=None"):
        model.fit(X, y)
    assert "READ FROM THE ROWS" in str(model.privacy_)
    assert model.quote(50, 6, CLASSES).cost == model.privacy_.cost


def test_callbacks_see_released_weights_and_no_more():
    X, y = blobs(50)
    seen = []
    model = PrivateMLPClassifier(
        (4,), solver=QUICK, classes=range(CLASSES), callbacks=[seen.append], delta=1e-3
    ).fit(X, y)
    assert [one.step for one in seen] == [1, 2, 3]
    assert {"step", "steps", "weights", "network"} == set(vars(seen[0]))
    last = torch.cat([one.detach().flatten() for one in seen[-1].module().parameters()])
    fitted = torch.cat([one.detach().flatten() for one in model.module_.parameters()])
    assert torch.equal(last, fitted)


def test_seeds_repeat_a_fit_and_say_that_they_are_insecure():
    X, y = blobs(50)
    make = lambda: PrivateMLPClassifier(  # noqa: E731
        (4,), solver=QUICK, classes=range(CLASSES), random_state=3, delta=1e-3
    )
    with pytest.warns(InsecureNoiseWarning):
        one, other = make().fit(X, y), make().fit(X, y)
    assert not one.privacy_.secure
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.filterwarnings("ignore::hushfit.errors.WeakGuaranteeWarning")
def test_pipelines_and_cross_validation_share_one_ledger():
    X, y = blobs(90)
    ledger = Ledger(10.0, 1e-2)
    model = make_pipeline(
        FunctionTransformer(np.tanh),
        PrivateMLPClassifier((4,), solver=QUICK, classes=range(CLASSES), ledger=ledger),
    )
    assert len(cross_val_score(model, X, y, cv=3)) == 3
    assert len(ledger.entries) == 3


class Squares(torch.utils.data.Dataset):
    def __init__(self, n_records):
        self.n_records = n_records

    def __len__(self):
        return self.n_records

    def __getitem__(self, k):
        return torch.full((4,), float(k % 7)), torch.tensor(float(k % 2))


def test_any_dataset_and_any_loss():
    fit = fit_private(
        nn.Linear(4, 1),
        lambda out, y: (out[:, 0] - y) ** 2,
        Squares(64),
        epsilon=1.0,
        delta=1e-3,
        solver=NetworkSGD(2, 0.5),
        physical_batch=ROWS,
    )
    assert fit.steps == 2
    assert fit.guarantee.epsilon == 1.0
    assert fit.receipt is None
    with torch.no_grad():
        assert fit.module(torch.ones(1, 4)).shape == (1, 1)
    tensors = torch.utils.data.TensorDataset(torch.rand(64, 6), torch.randint(0, 3, (64,)))
    persons = fit_private(
        nn.Linear(6, 3),
        nn.CrossEntropyLoss(),
        tensors,
        groups=np.arange(64) // 2,
        delta=1e-3,
        solver=NetworkSGD(2, 0.5),
        physical_batch=ROWS,
    )
    assert persons.guarantee.unit.is_person


def test_a_dataset_that_changes_its_length_is_refused():
    dataset = Squares(10)
    rows = DatasetRecords(dataset, 10, torch.zeros(4), torch.tensor(0.0))
    assert rows.take(np.arange(3))[0].shape == (3, 4)
    assert rows.take(np.arange(0))[0].shape == (0, 4)
    dataset.n_records = 11
    with pytest.raises(ValueError, match="changed its length"):
        rows.take(np.arange(3))


class Ragged(Squares):
    """One record has another shape, and one cannot be read."""

    def __getitem__(self, k):
        x, y = super().__getitem__(k)
        if k == 4:
            raise OSError(f"record {k} is damaged")
        return (x[:2], y) if k == 3 else (x, y)


def test_a_record_that_is_damaged_or_of_another_shape_contributes_nothing_and_is_not_told():
    odd = DatasetRecords(Ragged(10), 10, torch.zeros(4), torch.tensor(0.0))
    x, _ = odd.take(np.arange(6))
    assert torch.isnan(x[[3, 4]]).all()
    assert torch.isfinite(x[[0, 1, 2, 5]]).all()
    net = Network.of(
        nn.Linear(4, 1),
        lambda out, y: (out[:, 0] - y) ** 2,
        RecordShape((4,)),
        10,
        "add-remove",
        precise_sums=True,
    )
    query = NetworkGradient(net, net.start, 1.0)
    without = query(NetworkRows(odd, net.record), np.array([0, 1, 2, 5]))
    found = query(NetworkRows(odd, net.record), np.arange(6))
    np.testing.assert_allclose(found, without, rtol=1e-14)


def test_auto_chooses_from_public_numbers():
    net = network("mlp", n_units=60_000, relation="add-remove")
    small, large = auto(Budget(1.0, 1e-5), net), auto(Budget(3.0, 1e-5), net)
    assert (small.steps, large.steps) == (300, 600)
    assert (small.rate, large.rate) == (1 / 15, 1 / 30)  # twenty epochs
    assert auto(Budget(1.0, 1e-5), network("mlp", n_units=100)).rate == 1
    assert network("mlp", relation=Relation.ADD_REMOVE).relation is Relation.ADD_REMOVE


def test_importing_the_library_does_not_import_torch():
    script = (
        "import sys, hushfit, hushfit.models, hushfit.cli; dir(hushfit); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_network_explains_its_arguments():
    with pytest.raises(TypeError, match="Use hidden"):
        PrivateMLPClassifier(hidden_layer_sizes=(8,))
