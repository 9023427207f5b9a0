"""Modules that the proof does not cover are refused, before anything is paid."""

import copy
import math
from collections import deque
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from _networks import CLASSES, ROWS, Residual, cross_entropy, network
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from hushfit import Ledger
from hushfit.errors import InvalidArgument, UnknownName, UnsupportedRelation
from hushfit.torch import (
    BookKeeping,
    ModuleLoss,
    Network,
    PrivateMLPClassifier,
    PrivateNeuralClassifier,
    RecordShape,
    fit_private,
)
from hushfit.torch import _validation as validation
from hushfit.torch.solvers import NetworkAdam, NetworkBLS, NetworkSGD

X, Y = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32), np.arange(40) % CLASSES


class Custom(nn.Module):
    """A linear layer after a function of the whole batch."""

    def __init__(self, function):
        super().__init__()
        self.function, self.last = function, nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.last(self.function(x))


class Counting(nn.Module):
    """Keeps the mean of what it has seen."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(6, CLASSES)
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x):
        self.seen += x.detach().mean(0)
        return self.last(x)


class Remembering(nn.Module):
    """Keeps something in a plain attribute, without using it."""

    def __init__(self, remember, seen=()):
        super().__init__()
        self.last, self.remember = nn.Linear(6, CLASSES), remember
        self.seen = copy.deepcopy(seen) or []

    def forward(self, x):
        self.remember(self, x.detach())
        return self.last(x)


def counted_in(place):
    def remember(module, x):
        module.seen[place] = module.seen[place] + 1

    return remember


# What a module remembers it by, and what it keeps it in, whose size does not change.
KEPT = {
    "value of a dictionary": (counted_in("passes"), {"passes": 0}),
    "value of a list": (counted_in(0), [0]),
    "value of an inner list": (
        lambda module, x: counted_in(0)(SimpleNamespace(seen=module.seen["a"]), x),
        {"a": [0]},
    ),
    "tensor in a list": (lambda module, x: module.seen.__setitem__(0, x), [None]),
    "queue": (lambda module, x: module.seen.append(module.seen[0] + 1), deque([0], maxlen=1)),
    "object": (
        lambda module, x: setattr(module.seen, "passes", module.seen.passes + 1),
        SimpleNamespace(passes=0),
    ),
}


def cached(module, x):
    """A table that is made in the first pass, as those of positions are."""
    module.table = vars(module).get("table", torch.arange(6))


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.last(x), x


class Differentiating(nn.Module):
    """Its output is itself a gradient: book-keeping would miss the double backward pass."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(6, 1), nn.Linear(6, CLASSES)

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            slope = torch.autograd.grad(torch.tanh(self.inner(x)).sum(), x, create_graph=True)[0]
        return self.last(slope)


def tied():
    module = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, CLASSES))
    module[2].weight = module[0].weight
    return module


def head(*layers):
    return nn.Sequential(*layers, nn.Linear(6, CLASSES))


MIXING = {
    "batch-norm": (lambda: head(nn.BatchNorm1d(6)), "statistics over a batch.*GroupNorm"),
    "centring": (lambda: Custom(lambda x: x - x.mean(0)), "depend on"),
    "largest": (lambda: Custom(lambda x: x / x.abs().max()), "depend on the other examples"),
    "sorting": (lambda: Custom(lambda x: x.sort(0).values), "depend on"),
    "cumulative": (
        lambda: Custom(lambda x: x.cumsum(0)),
        "depend on its place|depend on the other",
    ),
    "first-row": (lambda: Custom(lambda x: x + x[:1]), "depend on"),
    "attention-across": (
        lambda: Custom(lambda x: torch.softmax(x @ x.T, 1) @ x),
        "depend on",
    ),
    "dropout": (lambda: head(nn.Dropout(0.5)), "random masks"),
    "own-dropout": (lambda: Custom(lambda x: x * (torch.rand_like(x) > 0.5)), "draws random"),
    "shared-mask": (lambda: Custom(lambda x: x * (torch.rand(6) > 0.5)), "draws random"),
    "state": (Counting, "changes its state"),
    "spectral-norm": (
        lambda: nn.Sequential(parametrizations.spectral_norm(nn.Linear(6, CLASSES))),
        "changes its state|depend on|differ from one pass",
    ),
    "list": (lambda: Remembering(lambda m, x: m.seen.append(x)), "attribute 'seen' changes"),
    "count": (
        lambda: nn.Sequential(Remembering(lambda m, x: setattr(m, "n", vars(m).get("n", 0) + 1))),
        r"attribute '0\.n' changes",
    ),
    "last-batch": (
        lambda: Remembering(lambda m, x: setattr(m, "batch", x)),
        "attribute 'batch' changes",
    ),
    **{
        name: (partial(Remembering, remember, seen), "attribute 'seen' changes")
        for name, (remember, seen) in KEPT.items()
    },
    "max-norm": (lambda: head(nn.Embedding(5, 6, max_norm=1.0)), "changes its weights"),
    "counts": (lambda: head(nn.Embedding(5, 6, scale_grad_by_freq=True)), "counts over a batch"),
    "recurrent": (lambda: head(nn.LSTM(6, 6)), "no per-example gradients"),
    "instance-norm": (
        lambda: head(nn.InstanceNorm1d(6, track_running_stats=True)),
        "statistics of the examples",
    ),
}


def refused(module, match, **settings):
    """Refused by the estimator, and the ledger has paid nothing."""
    ledger = Ledger(1.0, 1e-5)
    model = PrivateNeuralClassifier(
        module, classes=range(CLASSES), delta=1e-6, ledger=ledger, physical_batch=ROWS, **settings
    )
    with pytest.raises(InvalidArgument, match=match):
        model.fit(X, Y)
    assert ledger.entries == ()


@pytest.mark.parametrize("name", MIXING)
def test_modules_that_mix_examples_are_refused_before_payment(name):
    make, match = MIXING[name]
    record = RecordShape((6,), integers=name in ("max-norm", "counts"), classes=CLASSES)
    with pytest.raises(InvalidArgument, match=match):
        Network.of(make(), cross_entropy, record, 40, "replace-one", physical_batch=ROWS)


@pytest.mark.parametrize(
    ("module", "match"),
    [
        (tied, "one tensor"),
        (lambda: nn.Sequential(nn.Flatten()), "no parameters|outputs of shape"),
        (Several, "several outputs"),
        (lambda: nn.Linear(5, CLASSES), "does not take records of shape"),
        (lambda: nn.Linear(6, 7), "one output for each class"),
        (lambda: nn.LazyLinear(CLASSES), "sizes are not known yet"),
        (lambda: head().half(), "does not take records|float32"),
        (lambda: "mlp", "is not a torch.nn.Module"),
        (lambda: head(nn.BatchNorm1d(6)), "statistics over a batch"),
    ],
    ids=["tied", "empty", "several", "shape", "outputs", "lazy", "half", "no-module", "batch-norm"],
)
def test_a_module_that_does_not_fit_is_refused_before_payment(module, match):
    refused(module(), match)


@pytest.mark.parametrize("solver", [NetworkSGD, NetworkAdam, NetworkBLS])
@pytest.mark.parametrize("clip", [0.0, -1.0, 1e-20, 1e30, math.nan, True])
def test_clipping_norms_out_of_range_are_refused_before_payment(solver, clip):
    with pytest.raises(InvalidArgument, match="is not a norm"):
        solver(clip=clip)


def test_weights_of_zero_need_a_learning_rate():
    module = nn.Linear(6, CLASSES)
    for weights in module.parameters():
        nn.init.zeros_(weights)
    refused(module, "give learning_rate")
    refused(module, "give learning_rate", solver=NetworkSGD(2, 1.0))
    model = PrivateNeuralClassifier(
        module,
        classes=range(CLASSES),
        delta=1e-6,
        physical_batch=ROWS,
        solver=NetworkSGD(2, 1.0, learning_rate=0.1),
    )
    model.fit(X, Y)
    assert any(weights.any() for weights in model.module_.parameters())


def test_few_records_are_fitted_and_images_of_another_shape_refused():
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, CLASSES))
    images = np.random.default_rng(0).normal(size=(2, 1, 4, 4)).astype(np.float32)
    model = PrivateNeuralClassifier(
        module, classes=range(CLASSES), delta=1e-3, physical_batch=ROWS, solver=NetworkSGD(2, 1.0)
    )
    with pytest.raises(InvalidArgument, match=r"shape \(4, 4\)"):
        model.fit(images[:, 0], [0, 1])
    model.fit(images, [0, 1])  # fewer than a physical batch
    with pytest.raises(InvalidArgument, match=r"shape \(1, 3, 4\)"):
        model.predict(images[:, :, :3])


def test_settings_that_do_not_fit_are_refused_before_payment():
    good = head()
    refused(good, "cannot be used here", device="cuda:7")
    ledger = Ledger(1.0, 1e-5)
    for settings, kind, match in [
        ({"physical_batch": 33}, InvalidArgument, "multiple of 32"),
        ({"solver": "magic"}, UnknownName, "magic"),
        ({"solver": NetworkSGD}, InvalidArgument, "no solver of networks"),
        ({"adjacency": "label"}, UnsupportedRelation, "label"),
        ({"callbacks": [3]}, InvalidArgument, "cannot be called"),
        ({"callbacks": 3}, InvalidArgument, "not a list"),
        ({"checkpoint": "/nowhere/at/all"}, InvalidArgument, "cannot be written"),
        ({"rows_per_person": 3}, InvalidArgument, "groups"),
        ({"input_range": (1, 0)}, InvalidArgument, "low"),
        ({"epsilon": -1.0}, InvalidArgument, "epsilon"),
    ]:
        model = PrivateNeuralClassifier(
            good, classes=range(CLASSES), ledger=ledger, **{"physical_batch": ROWS, **settings}
        )
        with pytest.raises(kind, match=match):
            model.fit(X, Y)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("fit", "match"),
    [
        (lambda m: m.fit(X, Y[:-1]), "inconsistent numbers of samples"),
        (lambda m: m.fit(X, Y.astype(str)), "both as numbers, or both as texts"),
        (lambda m: m.fit(X, Y, sample_weight=np.ones(40)), "sample_weight"),
        (lambda m: m.fit([["a"] * 6] * 3, [0, 1, 2]), "not a number"),
        (lambda m: m.fit(X[0], Y), "Expected 2D|dimensions"),
    ],
    ids=["lengths", "labels", "weights", "text", "one-row"],
)
def test_records_that_do_not_fit_are_refused_before_payment(fit, match):
    ledger = Ledger(1.0, 1e-5)
    model = PrivateMLPClassifier((4,), classes=range(CLASSES), ledger=ledger)
    with pytest.raises(ValueError, match=match):
        fit(model)
    assert ledger.entries == ()


def test_several_outputs_are_told_to_those_who_give_no_number_of_classes():
    with pytest.raises(InvalidArgument, match="several outputs"):
        fit_private(Several(), nn.CrossEntropyLoss(), (X, Y))


def test_frozen_batch_norm_caches_and_functional_code_are_accepted():
    record = RecordShape((6,), classes=CLASSES)
    net = Network.of(Remembering(cached), cross_entropy, record, 40, "add-remove")
    assert type(net.engine).__name__ == "BookKeeping"
    module = head(nn.BatchNorm1d(6))
    module[0].eval()
    record = RecordShape((6,), classes=CLASSES)
    net = Network.of(module, cross_entropy, record, 40, "add-remove", physical_batch=ROWS)
    assert type(net.engine).__name__ == "WrittenOut"
    gated = Custom(lambda x: F.silu(x) * torch.sigmoid(x))
    assert Network.of(gated, nn.CrossEntropyLoss(), record, 40, "add-remove").size == 21


def test_a_module_that_differentiates_itself_is_refused_before_payment():
    """Book-keeping would miss its second backward pass, and vmap cannot do it."""
    record = RecordShape((6,), classes=CLASSES)
    with pytest.raises(InvalidArgument, match="Nothing was charged"):
        Network.of(Differentiating(), cross_entropy, record, 40, "add-remove")


@pytest.mark.parametrize(
    ("loss", "match"),
    [
        (lambda outputs, y: F.cross_entropy(outputs, y), "one value for each example"),
        ("cross-entropy", "not a function"),
        (lambda outputs, y: outputs.sum(1) / 0, "not finite"),
        (lambda outputs, y: outputs[:, 0] - outputs[:, 0].mean(), "depend on"),
    ],
    ids=["mean", "text", "infinite", "centred"],
)
def test_losses_that_do_not_fit_are_refused(loss, match):
    with pytest.raises(InvalidArgument, match=match):
        fit_private(nn.Linear(6, CLASSES), loss, (X, Y), physical_batch=ROWS)


def test_datasets_that_do_not_fit_are_refused_before_payment():
    class Odd(torch.utils.data.Dataset):
        def __getitem__(self, k):
            return X[k]

        def __len__(self):
            return 40

    class Growing(torch.utils.data.Dataset):
        length = 40

        def __getitem__(self, k):
            self.length += 1
            return X[k], Y[k]

        def __len__(self):
            return self.length

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(())

    ledger = Ledger(1.0, 1e-5)
    for dataset, match in [
        (Odd(), "no pair"),
        (Growing(), "changes its length"),
        (Stream(), "secret coins"),
        ([(X, Y)] * 3, "secret coins"),
        ((X[:0], Y[:0]), "no records"),
        ((X, Y[:3]), "different numbers"),
        ((np.array([["a"]]), np.array([0])), "no numbers"),
    ]:
        with pytest.raises(InvalidArgument, match=match):
            fit_private(nn.Linear(6, CLASSES), nn.CrossEntropyLoss(), dataset, ledger=ledger)
    with pytest.raises(InvalidArgument, match="one id for each record"):
        fit_private(
            nn.Linear(6, CLASSES), nn.CrossEntropyLoss(), (X, Y), groups=[1, 2], ledger=ledger
        )
    assert ledger.entries == ()


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("label", [CLASSES, -1, math.nan])
def test_a_record_without_a_known_label_contributes_nothing(label):
    """To the last bit: the keys by which other records are grouped do not change either."""

    def mlp(rows, y):
        model = PrivateMLPClassifier((4,), classes=range(CLASSES), **settings)
        return model.fit(rows, y).predict_proba(X)

    def module(rows, y):
        torch.manual_seed(0)
        fit = fit_private(nn.Linear(6, CLASSES), nn.CrossEntropyLoss(), (rows, y), **settings)
        return fit.module.weight.detach().numpy()

    settings = {"solver": NetworkSGD(3, 1.0), "delta": 1e-3, "random_state": 0}
    labels, silent = np.where(np.arange(40) == 7, label, Y), X.copy()
    silent[7] = np.nan
    # Floats are real targets in fit_private.
    for fit in (mlp,) if math.isnan(label) else (mlp, module):
        np.testing.assert_array_equal(fit(X, labels), fit(silent, Y))
        assert not np.array_equal(fit(X, labels), fit(X, Y))


@pytest.mark.usefixtures("quiet_fits")
def test_labels_that_a_loss_ignores_are_accepted_and_numbers_of_classes_checked():
    y = Y.copy()
    y[3] = -100
    settings = {"delta": 1e-3, "solver": NetworkSGD(1, 1.0), "physical_batch": ROWS}
    module, loss = nn.Linear(6, CLASSES), nn.CrossEntropyLoss()
    assert fit_private(module, loss, (X, y), random_state=0, **settings).steps == 1
    for classes in (0, True, 2.5):
        with pytest.raises(InvalidArgument, match="not a number of classes"):
            fit_private(module, loss, (X, Y), classes=classes, **settings)


@pytest.mark.usefixtures("quiet_fits")
def test_a_bad_label_of_a_dataset_does_not_end_a_fit():
    class Records(torch.utils.data.Dataset):
        def __getitem__(self, k):
            return X[k], 99 if k == 5 else int(Y[k])

        def __len__(self):
            return 40

    fit = fit_private(
        nn.Linear(6, CLASSES),
        nn.CrossEntropyLoss(),
        Records(),
        delta=1e-3,
        solver=NetworkSGD(2, 1.0),
        physical_batch=ROWS,
        random_state=0,
    )
    assert np.isfinite(fit.weights).all()
    assert "module or its loss fails" in " ".join(str(fit.guarantee).split())


def test_without_the_checks_a_mixing_module_would_be_fitted(monkeypatch):
    """The planted bug: with the comparison of rows switched off, centring is not noticed."""
    monkeypatch.setattr(validation, "_check_rows_apart", lambda *args: None)
    monkeypatch.setattr(validation, "_first_that_agrees", lambda model, x, y: _engine(model))
    centring = Custom(lambda x: x - x.mean(0))
    record = RecordShape((6,), classes=CLASSES)
    assert Network.of(centring, cross_entropy, record, 40, "add-remove").size == 21


def _engine(model):
    return BookKeeping(model)


def test_small_products_are_computed_row_by_row_where_rows_differ():
    """Layers of six by six inputs round their rows by their place in some libraries."""
    model = ModuleLoss(Residual(), cross_entropy)
    x = torch.randn(ROWS, 6)
    plain, rows = model.module(x), model.row_by_row().module(x)
    torch.testing.assert_close(plain, rows)
    by_row = model.row_by_row().module
    order = torch.randperm(ROWS)
    assert torch.equal(by_row(x)[order], by_row(x[order]))


def test_the_fitted_module_is_one_of_the_callers_type_and_the_given_one_is_not_changed():
    net = network("residual")
    before = net.start.copy()
    moved = net.module_at(before + 1)
    assert type(moved) is Residual
    np.testing.assert_array_equal(net.start, before)
    again = ModuleLoss(moved, cross_entropy).weights
    np.testing.assert_allclose(again, before + 1, rtol=1e-6)
