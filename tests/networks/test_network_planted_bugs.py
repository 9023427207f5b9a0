"""Planted bugs: each is noticed by a check that passes without it.

The bugs are those of the literature and of other libraries: layers that mix examples, tied weights,
norms of other numbers than those that are summed, the realised batch size, a gate that is amplified
by itself, shared masks, noise that is reused, and a checkpoint that draws again.
"""

import contextlib

import numpy as np
import pytest
import torch
from _networks import CLASSES, ROWS, cross_entropy, curator, network, records, source
from torch import nn

from hushfit.errors import InvalidArgument
from hushfit.privacy import GaussianCost, PureCost, Relation, compose, epsilon_of
from hushfit.privacy.noise import _ahead
from hushfit.release import mechanism as release_mechanism
from hushfit.release.mechanisms import _gate as release_gate
from hushfit.torch import Network, NetworkGradient, PrivateMLPClassifier, RecordShape
from hushfit.torch import _fit as fitting
from hushfit.torch import _module_loss as module_losses
from hushfit.torch import _validation as validation
from hushfit.torch._parts import Outer
from hushfit.torch.solvers import NetworkBLS, NetworkSGD, run_network

RECORD = RecordShape((6,), classes=CLASSES)


# The checks: each returns whether something is wrong.


def accepts(make):
    """Whether a module that must be refused gets through."""
    with contextlib.suppress(InvalidArgument):
        Network.of(make(), cross_entropy, RECORD, 40, "add-remove", physical_batch=ROWS)
        return True
    return False


def moves_too_far():
    """Whether some record changes some batch by more than the radius."""
    net = network("mlp", n_units=3 * ROWS)
    X, y = records(net, 3 * ROWS, size=20.0)
    rows = source(net, X, y)
    query = NetworkGradient(net, net.start, 1e-3)
    for size in (1, 5, ROWS, 2 * ROWS + 1):
        units = np.arange(size)
        for gone in {0, size // 2, size - 1}:
            moved = query(rows, units) - query(rows, np.delete(units, gone))
            if np.linalg.norm(moved) > query.radius():
                return True
    return False


def price_is_too_small():
    """Whether gradient and gate on one batch cost less than both together can."""
    mechanism = NetworkBLS(rate=0.1, gate=1.0, candidates=4)._together
    stated = epsilon_of(mechanism.cost(1.0, 2, 1000), 1e-6, Relation.ADD_REMOVE)
    # Randomised response with the gate's epsilon and the gradient of one sampled record, twice.
    inner = epsilon_of(compose([GaussianCost(1.0), PureCost(1.0)]), 1e-6 / 0.1, Relation.ADD_REMOVE)
    return stated < np.log1p(0.1 * np.expm1(inner))


def noise_repeats():
    """Whether two coordinates or two steps have the same noise."""
    net = network("mlp", n_units=40)
    X, y = records(net, 40)
    solver = NetworkSGD(3, 1.0, 0.1, learning_rate=1e-12)
    answers = [curator(net, solver, source(net, X, y), m, seed=7) for m in (0.0, 1.0)]
    for door in answers:
        run_network(solver, net, door)
    exact, noisy = ([one.answer for one in door.transcript] for door in answers)
    noise = np.round(np.subtract(noisy, exact), 9).ravel()
    return len(np.unique(noise)) < noise.size


# The bugs.


def batch_norm():
    return nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, CLASSES))


def tied():
    module = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, CLASSES))
    module[1].weight = module[0].weight
    return module


class SharedMask(nn.Module):
    """A mask that all examples of a pass share: one example's gradient tells another's mask."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.last(x * (torch.rand(6) > 0.5))


def test_without_bugs_no_check_raises_an_alarm():
    assert not any(accepts(make) for make in (batch_norm, tied, SharedMask))
    assert not moves_too_far()
    assert not price_is_too_small()
    assert not noise_repeats()


def test_batch_statistics_slip_through_types_but_not_through_rows(monkeypatch):
    monkeypatch.setattr(validation, "refuse_known_layers", lambda module: None)
    assert not accepts(batch_norm)  # rows, or its state, give it away
    monkeypatch.setattr(validation, "_check_rows_apart", lambda *args: None)
    monkeypatch.setattr(validation, "_same", lambda one, other: True)
    monkeypatch.setattr(validation, "_agrees", lambda *args: True)
    assert accepts(batch_norm)


def test_tied_weights_are_noticed_twice(monkeypatch):
    original = module_losses.ModuleLoss.__post_init__
    monkeypatch.setattr(module_losses.ModuleLoss, "__post_init__", lambda self: None)
    # Without the comparison of names, gradients do not agree with one example at a time.
    net = None
    with contextlib.suppress(InvalidArgument):
        net = Network.of(tied(), cross_entropy, RECORD, 40, "add-remove", physical_batch=ROWS)
    assert net is None or type(net.engine).__name__ == "WrittenOut"
    monkeypatch.setattr(module_losses.ModuleLoss, "__post_init__", original)
    assert not accepts(tied)


def test_a_mask_for_all_examples_is_noticed(monkeypatch):
    assert not accepts(SharedMask)
    monkeypatch.setattr(validation, "_check_rows_apart", lambda *args: None)
    monkeypatch.setattr(validation, "_agrees", lambda *args: True)
    assert accepts(SharedMask)


def test_norms_in_half_precision_are_noticed(monkeypatch):
    exact = Outer.squared_norms
    monkeypatch.setattr(
        Outer, "squared_norms", lambda self: exact(self).sqrt().half().double().square()
    )
    assert type(network("mlp").engine).__name__ == "WrittenOut"  # the first engine is refused
    monkeypatch.setattr(validation, "_agrees", lambda *args: True)
    assert moves_too_far()


def test_half_the_radius_is_noticed(monkeypatch):
    whole = NetworkGradient.radius
    monkeypatch.setattr(NetworkGradient, "radius", lambda self: whole(self) / 2)
    assert moves_too_far()


def test_norms_of_one_layer_alone_are_noticed(monkeypatch):
    original = NetworkGradient._weighted

    def first_layer(self, parts, shares):
        return parts, original(self, parts[:1], shares)[1]

    monkeypatch.setattr(NetworkGradient, "_weighted", first_layer)
    assert moves_too_far()


def test_the_realised_batch_as_a_divisor_is_noticed(monkeypatch):
    original = NetworkGradient.__call__

    def mean(self, source, units):
        count = source.n_units if units is None else max(1, len(units))
        return original(self, source, units) * (len(np.arange(source.n_units)) / count)

    monkeypatch.setattr(NetworkGradient, "__call__", mean)
    assert moves_too_far()


def test_sums_of_rounded_numbers_are_noticed(monkeypatch):
    double = torch.Tensor.double
    monkeypatch.setattr(torch.Tensor, "double", lambda self: double(self.bfloat16()))
    with pytest.raises(InvalidArgument, match="could not be confirmed"):
        network("mlp")


def test_a_gate_that_is_amplified_by_itself_is_noticed(monkeypatch):
    def apart(self, noise_multiplier, count, n_units):
        gate = np.log1p(self.rate * np.expm1(self.gate / noise_multiplier))
        return compose(
            [release_gate.GatedCost(1e3, self.rate, self.noise, 2e3, 4e3, 1), PureCost(gate, count)]
        )

    monkeypatch.setattr(release_gate.GatedBatch, "cost", apart)
    assert price_is_too_small()


def test_noise_of_one_layer_for_all_is_noticed(monkeypatch):
    original = release_mechanism._gaussian_noise

    def repeated(query, log2_deviation, sampler):
        noise = original(query, log2_deviation, sampler)
        half = len(noise) // 2
        noise[half : 2 * half] = noise[:half]
        return noise

    monkeypatch.setattr(release_mechanism, "_gaussian_noise", repeated)
    assert noise_repeats()


def test_noise_drawn_ahead_that_stays_in_its_place_is_noticed(monkeypatch):
    class Numbers:
        secure = True

        def __init__(self):
            self.count = 0

        def gaussian(self, log2_variance, size):
            self.count += 1
            return np.full(size, self.count)

    def first_four():
        sampler = _ahead.AheadSampler(Numbers())
        return [int(sampler.gaussian(62, 1 << 14)[0]) for _ in range(4)]

    assert len(set(first_four())) == 4
    monkeypatch.setattr(
        _ahead.AheadSampler,
        "gaussian",
        lambda self, log2_variance, size: np.ones(size, dtype=np.int64),
    )
    assert len(set(first_four())) < 4


@pytest.mark.filterwarnings("ignore::hushfit.errors.WeakGuaranteeWarning")
def test_a_checkpoint_that_draws_again_is_noticed(tmp_path, monkeypatch):
    """Answers are counted: a run that forgets what it claimed makes more than its plan has."""
    calls, compute = [], NetworkGradient.__call__

    def counted(self, rows, units):
        calls.append(1)
        if len(calls) == 15:
            raise KeyboardInterrupt
        return compute(self, rows, units)

    monkeypatch.setattr(NetworkGradient, "__call__", counted)
    X, y = np.ones((40, 6), dtype=np.float32), np.arange(40) % CLASSES

    def draws(path):
        calls.clear()
        model = PrivateMLPClassifier(
            (3,), classes=range(CLASSES), solver=NetworkSGD(30, 1.0), checkpoint=path
        )
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        model.fit(X, y)
        return len(calls)

    assert draws(tmp_path / "right") <= 30
    original = fitting.Checkpoint.load.__func__

    def forgetful(cls, path, fit):
        found = original(cls, path, fit)
        return fitting.Checkpoint(found.fit, found.payment, found.state.step, found.state)

    monkeypatch.setattr(fitting.Checkpoint, "load", classmethod(forgetful))
    assert draws(tmp_path / "wrong") > 30
