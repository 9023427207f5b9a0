"""The sum of clipped gradients of a network never moves further than its proof says."""

import math
from dataclasses import replace
from itertools import count, pairwise

import numpy as np
import pytest
import torch
from _networks import CLASSES, FLAT, MODULES, ROWS, network, records, source
from torch import nn

from hushfit.data import persons_of
from hushfit.errors import InvalidArgument
from hushfit.privacy import RECORD_RELATIONS, Relation
from hushfit.torch import (
    Network,
    NetworkGradient,
    NetworkLossDrop,
    RecordShape,
    _engines,
    _network,
)
from hushfit.torch._arithmetic import one_thread
from hushfit.torch._engines import _copy, _windows
from hushfit.torch._groups import GROUP_ROWS, Weighted, group_ends
from hushfit.torch._parts import Outer
from hushfit.torch._validation import _behind, _rounded_sum, sums_repeat
from hushfit.unit import PrivacyUnit

BUILDERS = [
    pytest.param(name, normalise, id=f"{name}-{'normalised' if normalise else 'clipped'}")
    for name in MODULES
    for normalise in (False, True)
]


def one_at_a_time(net, X, y):
    """Gradients of single records, by plain differentiation in float64."""
    model = net.model.copied(torch.float64)
    rows = []
    for x, label in zip(X, y, strict=True):
        x = torch.as_tensor(x)[None]
        x = x.double() if x.is_floating_point() else x
        loss = model.losses(x, torch.tensor([label])).sum()
        found = torch.autograd.grad(loss, list(model.trained.values()))
        rows.append(torch.cat([one.flatten() for one in found]).numpy())
    return np.array(rows)


@pytest.mark.parametrize(("name", "normalise"), BUILDERS)
def test_engines_agree_with_one_example_at_a_time(name, normalise):
    net = network(name)
    assert type(net.engine).__name__ == MODULES[name][2]
    X, y = records(net, 40)
    rows = one_at_a_time(net, X, y)
    norms = np.linalg.norm(rows, axis=1)
    clip = float(np.median(norms))
    weights = clip / (norms + 0.01) if normalise else np.minimum(1, clip / norms)
    answer = NetworkGradient(net, net.start, clip, normalise)(source(net, X, y), None)
    np.testing.assert_allclose(answer, weights @ rows, atol=3e-5 * clip * len(y))


@pytest.mark.parametrize("name", ["cnn", "tokens", "twice"])
def test_large_gradients_are_computed_and_added_a_few_examples_at_a_time(monkeypatch, name):
    """With a limit at which the small networks of these tests are large."""
    usual = network(name, n_units=400, batch=None)
    assert (usual.physical_batch, usual.precise_sums) == (256, False)
    limit = 4 * usual.size
    for module in (_engines, _network):
        monkeypatch.setattr(module, "WRITTEN_AT_ONCE", limit)
    few = network(name, n_units=400, batch=None)
    assert (few.physical_batch, few.precise_sums) == (ROWS, True)
    X, y = records(few, 400)
    answer = NetworkGradient(few, few.start, 1.0)(source(few, X, y), None)
    expected = NetworkGradient(usual, usual.start, 1.0)(source(usual, X, y), None)
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)
    assert NetworkGradient(few, few.start, 1.0).radius() < 1.001  # that of sums in float64
    x, labels = torch.as_tensor(X[:ROWS]), torch.as_tensor(y[:ROWS])
    lengths = [place.stop - place.start for place, _ in few.engine.parts(x, labels)]
    assert lengths == ([4] * (ROWS // 4) if name == "twice" else [ROWS])


def test_a_batch_is_not_larger_than_the_records():
    assert network("mlp", n_units=33, batch=None).physical_batch == 2 * ROWS
    assert network("mlp", n_units=10**6, batch=None).physical_batch == 256


@pytest.mark.parametrize(("name", "normalise"), BUILDERS)
def test_neighbours_of_any_batch_stay_within_the_sensitivity(name, normalise):
    """Batches of all sizes around the physical one: a record more moves all that come later."""
    net = network(name, n_units=3 * ROWS)
    X, y = records(net, 3 * ROWS, size=3.0)
    rows = source(net, X, y)
    query = NetworkGradient(net, net.start, 0.05, normalise)
    rng = np.random.default_rng(1)
    for size in (1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS, 3 * ROWS - 1):
        units = np.sort(rng.choice(3 * ROWS, size=size, replace=False))
        without = np.delete(units, rng.integers(size))
        moved = np.linalg.norm(query(rows, units) - query(rows, without))
        assert moved <= query.radius()
        if not normalise:
            assert moved >= 0.99 * 0.05  # every record is clipped
    for relation, factor in zip(RECORD_RELATIONS, (2, 1), strict=True):
        assert query.sensitivity(relation) == factor * query.radius()
    assert query.radius() < 0.05 * 1.0125  # rounding of sums in float32


@pytest.mark.parametrize("name", ["mlp", "cnn", "scaled"])
def test_hill_climbing_stays_within_the_radius_and_reaches_it(name):
    """An adversary climbs over records, of all sizes, for the largest move."""
    net = network(name, n_units=ROWS)
    X, y = records(net, ROWS)
    query = NetworkGradient(net, net.start, 0.5)
    base = query(source(net, X[1:], y[1:]), None)
    rng = np.random.default_rng(0)
    best, record = 0.0, X[0]
    for turn in range(60):
        step = 10.0 ** rng.uniform(-3, 3) * rng.normal(size=record.shape)
        other = (record + step * (rng.random(record.shape) < 0.3)).astype(np.float32)
        trial = np.concatenate([other[None], X[1:]])
        label = np.append(rng.integers(CLASSES), y[1:])
        moved = np.linalg.norm(query(source(net, trial, label), None) - base)
        assert moved <= query.radius(), turn
        if moved > best:
            best, record = moved, other
    assert best >= (1 - 1e-6) * query.clip  # half the radius would be exceeded


def test_replaced_records_reach_twice_the_clipping_norm():
    net = network("linear", n_units=1)
    query = NetworkGradient(net, np.zeros(net.size), 0.3)
    one, other = (
        query(source(net, np.full((1, 6), x, dtype=np.float32), np.array([0])), None)
        for x in (400.0, -400.0)
    )
    moved = np.linalg.norm(one - other)
    assert 0.999 * 2 * 0.3 <= moved <= query.sensitivity(Relation.REPLACE_ONE)


@pytest.mark.parametrize("name", MODULES)
def test_place_and_neighbours_do_not_show_in_a_single_bit(name):
    net = network(name)
    X, y = records(net, ROWS)
    order = np.random.default_rng(5).permutation(ROWS)

    def tensors(X, y):
        x = torch.from_numpy(X)
        [*pieces] = net.engine.parts(x, torch.from_numpy(y))
        return [
            torch.cat([parts[k].tensors()[j] for _, parts in pieces])
            for k, part in enumerate(pieces[0][1])
            for j in range(len(part.tensors()))
        ]

    for one, other in zip(tensors(X, y), tensors(X[order], y[order]), strict=True):
        assert torch.equal(one[order], other)


def test_an_empty_batch_answers_zeros_and_every_pass_has_the_fixed_size(monkeypatch):
    net = network("mlp", precise=True)
    X, y = records(net, 40)
    sizes = []
    parts = type(net.engine).parts

    def watched(self, x, y):
        sizes.append(len(x))
        return parts(self, x, y)

    monkeypatch.setattr(type(net.engine), "parts", watched)
    query, rows = NetworkGradient(net, net.start, 1.0), source(net, X, y)
    assert not query(rows, np.empty(0, dtype=np.int64)).any()
    whole = query(rows, np.arange(5))
    np.testing.assert_allclose(whole, sum(query(rows, np.array([k])) for k in range(5)), atol=1e-12)
    query(rows, None)
    assert set(sizes) == {ROWS}


@pytest.mark.parametrize("name", MODULES)
def test_the_order_of_the_records_does_not_show_in_a_single_bit(name):
    net = network(name, n_units=3 * ROWS)
    X, y = records(net, 3 * ROWS)
    order = np.random.default_rng(2).permutation(3 * ROWS)
    query = NetworkGradient(net, net.start, 0.5)
    answer = query(source(net, X, y), None)
    assert np.array_equal(answer, query(source(net, X[order], y[order]), None))


@pytest.mark.parametrize("name", ["mlp", "cnn", "tokens"])
def test_sums_in_float32_stay_within_their_bound(name):
    """Rounded and precise sums differ by less than the radii do, over many groups."""
    precise = network(name, n_units=3 * GROUP_ROWS, precise=True)
    rounded = replace(precise, precise_sums=False)
    X, y = records(precise, 3 * GROUP_ROWS, size=10.0)
    rows = source(precise, X, y)
    one, other = (NetworkGradient(net, net.start, 1e-3) for net in (precise, rounded))
    moved = np.linalg.norm(one(rows, None) - other(rows, None))
    assert 0 < moved <= other.radius() - one.radius()
    assert one.radius() < 1e-3 * (1 + 1e-6)


def test_a_record_changes_the_groups_of_few_others():
    """Groups are the same for all records but those that share a part of the range of keys."""
    rng = np.random.default_rng(3)
    for size in (5, 300, 330, 640, 2000):
        keys = np.sort(rng.integers(0, 2**64, size, dtype=np.uint64))
        whole = _groups(keys)
        assert max(map(len, whole)) <= GROUP_ROWS
        for gone in rng.integers(size, size=20):
            less = _groups(np.delete(keys, gone))
            touched = [one for one in whole if one not in less]
            merged = [one for one in less if one not in whole]
            assert sum(map(len, touched)) <= GROUP_ROWS + 1
            assert sum(map(len, merged)) <= GROUP_ROWS


def test_a_record_that_is_not_finite_changes_no_bit_of_the_others():
    net = network("mlp", n_units=700)
    X, y = records(net, 700)
    query = NetworkGradient(net, net.start, 0.5)
    without = query(source(net, X, y), np.delete(np.arange(700), 9))
    X[9, 2] = np.nan
    assert np.array_equal(query(source(net, X, y), None), without)


def _groups(keys):
    ends = group_ends(keys)
    return [tuple(keys[a:b].tolist()) for a, b in pairwise([0, *ends])]


def test_many_records_of_one_key_are_added_in_float64_batch_by_batch(monkeypatch):
    """Among others, and never more than a group of them at once."""
    net = network("mlp", n_units=GROUP_ROWS + 50)
    X, y = records(net, 41)
    X, y = (np.concatenate([np.repeat(v[:1], GROUP_ROWS + 10, axis=0), v[1:]]) for v in (X, y))
    rows = source(net, X, y)
    chosen, ends, repeated = rows.groups_of(None)
    assert ends[-1] == 40
    assert sorted(chosen) == list(range(GROUP_ROWS + 10, GROUP_ROWS + 50))
    assert sorted(repeated) == list(range(GROUP_ROWS + 10))
    sizes, add_to = [], Weighted.add_to
    monkeypatch.setattr(
        Weighted, "add_to", lambda self, totals: sizes.append(len(self)) or add_to(self, totals)
    )
    query = NetworkGradient(net, net.start, 0.5)
    answer = query(rows, None)
    assert max(sizes) <= ROWS
    assert sum(sizes) == GROUP_ROWS + 10
    one, others = query(rows, repeated[:1]), query(rows, chosen)
    np.testing.assert_allclose(answer, others + (GROUP_ROWS + 10) * one, atol=1e-4)


@pytest.mark.parametrize("name", ["mlp", "cnn", "tokens", "twice"])
def test_a_group_has_the_same_bits_wherever_its_records_stand(name):
    """Also where it comes from several batches, up to the largest group."""
    net = network(name)
    batch = [torch.from_numpy(values) for values in records(net, ROWS)]
    with one_thread():
        chunks = {before: _behind(net.engine, *batch, before) for before in (0, 5, 16)}
        for size in (1, 33, 257, 300, GROUP_ROWS):
            one, *others = (_rounded_sum(net.engine, chunks[k], k, size) for k in chunks)
            assert all(torch.equal(one, other) for other in others)


def test_sums_that_depend_on_the_place_are_found(monkeypatch):
    """A planted bug: the sum over a large group is not the same each time."""
    net = network("mlp")
    assert sums_repeat(net.engine, net.record, ROWS)
    write, calls = Outer.write_rounded, count()

    def moody(self, sums, weights):
        write(self, sums, weights)
        if len(weights) > 256:
            sums[self.weight][0, 0] *= 1 + 2**-22 * next(calls)

    monkeypatch.setattr(Outer, "write_rounded", moody)
    assert not sums_repeat(net.engine, net.record, ROWS)


@pytest.mark.parametrize("size", [1e-30, 1e-18, 1e10, 1e25, 1e37])
@pytest.mark.parametrize("clip", [1e-9, 1.0, 1e9])
def test_tiny_and_huge_records_stay_within_the_radius(size, clip):
    """At the ends of the range of float32, where products underflow or overflow."""
    net = network("linear", n_units=8)
    X, y = records(net, 8)
    query = NetworkGradient(net, net.start, clip)
    X[:3] *= np.float32(size)
    rows = source(net, X, y)
    answer = query(rows, None)
    for gone in range(3):
        moved = np.linalg.norm(answer - query(rows, np.delete(np.arange(8), gone)))
        assert moved <= query.radius()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_a_record_that_is_not_finite_contributes_nothing(bad):
    """A huge record overflows inside the network; the others do not notice."""
    net = network("mlp")
    X, y = records(net, 8)
    query = NetworkGradient(net, net.start, 1.0)
    others = query(source(net, X[1:], y[1:]), None)
    X[0] = bad
    assert np.linalg.norm(query(source(net, X, y), None) - others) <= query.radius()
    assert np.isfinite(query(source(net, X, y), None)).all()


def test_all_records_of_a_person_stay_within_the_radius():
    unit = PrivacyUnit.person(rows_per_person=4)
    net = network("mlp", n_units=20, unit=unit)
    X, y = records(net, 60)
    ids = np.arange(60) % 20
    query = NetworkGradient(net, net.start, 0.2)
    rows = source(net, X, y, persons_of(ids, 60, unit))
    answer = query(rows, None)
    for person in range(3):
        others = np.delete(np.arange(20), person)
        assert np.linalg.norm(answer - query(rows, others)) <= query.radius()
    other_X = X.copy()
    other_X[ids == 0] *= -50
    moved = query(source(net, other_X, y, persons_of(ids, 60, unit)), None) - answer
    assert np.linalg.norm(moved) <= query.sensitivity(Relation.REPLACE_ONE)


def test_norms_in_float32_would_exceed_the_radius(monkeypatch):
    """A planted bug: norms in float32 are too small for some records."""
    net = network("mlp", n_units=ROWS, precise=True)
    X, y = records(net, ROWS, size=30.0)
    query = NetworkGradient(net, net.start, 1e-3)
    rows = source(net, X, y)
    assert all(np.linalg.norm(query(rows, np.array([k]))) <= query.radius() for k in range(ROWS))
    exact = Outer.squared_norms
    monkeypatch.setattr(
        Outer, "squared_norms", lambda self: exact(self).float().double() * 0.999999
    )
    assert any(np.linalg.norm(query(rows, np.array([k]))) > query.radius() for k in range(ROWS))


def test_weights_of_another_size_and_clips_that_are_none_are_refused():
    net = network("linear")
    with pytest.raises(InvalidArgument, match="w has shape"):
        NetworkGradient(net, np.zeros(3), 1.0)
    with pytest.raises(InvalidArgument, match="is not a norm"):
        NetworkGradient(net, net.start, 0.0)


def test_float64_modules_and_frozen_parameters_work():
    net = network("mlp", double=True)
    X, y = records(net, 10)
    answer = NetworkGradient(net, net.start, 1e6)(source(net, X.astype(np.float64), y), None)
    np.testing.assert_allclose(answer, one_at_a_time(net, X, y).sum(0), rtol=1e-10, atol=1e-12)
    frozen = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, CLASSES))
    frozen[0].weight.requires_grad_(False)
    net = Network.of(
        frozen, nn.CrossEntropyLoss(), RecordShape(FLAT, classes=CLASSES), 10, "add-remove"
    )
    assert net.size == 4 + 4 * CLASSES + CLASSES
    found = NetworkGradient(net, net.start, 1e6)(source(net, X, y), None)
    np.testing.assert_allclose(found, one_at_a_time(net, X, y).sum(0), atol=1e-4)


class _Watched(nn.Module):
    """Remembers on how many threads it was computed."""

    def __init__(self):
        super().__init__()
        self.layer, self.threads = nn.Linear(*FLAT, CLASSES), set()

    def forward(self, x):
        self.threads.add(torch.get_num_threads())
        return self.layer(x)


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def of_classes(module, shape, physical_batch):
    record = RecordShape(shape, classes=CLASSES)
    loss = nn.CrossEntropyLoss()
    return Network.of(module, loss, record, 40, "add-remove", physical_batch=physical_batch)


@pytest.mark.usefixtures("three_threads")
def test_examples_are_computed_on_one_thread_and_the_setting_is_restored():
    """Several threads round what is left over at the end of their shares in another way."""
    net = of_classes(_Watched(), FLAT, ROWS)
    rows = source(net, *records(net, ROWS))
    NetworkGradient(net, net.start, 1.0)(rows, None)
    NetworkLossDrop(net, net.start, net.start, np.array([0.1]), 1.0)(rows, None)
    assert net.model.module.threads == {1}
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("layer", [nn.Sigmoid, nn.SiLU, nn.ELU])
def test_a_smooth_layer_gives_one_record_the_same_bits_in_every_place(layer):
    """At a width at which three threads leave something over: 260 units, 256 examples."""
    net = of_classes(nn.Sequential(nn.Linear(8, 260), layer(), nn.Linear(260, CLASSES)), (8,), 256)
    x = torch.randn((20, 8), generator=torch.Generator().manual_seed(0))
    for record in x:
        with one_thread():
            pieces = net.engine.parts(record.repeat(256, 1), torch.zeros(256, dtype=torch.int64))
            for values in (v for _, parts in pieces for part in parts for v in part.tensors()):
                assert torch.equal(values, values[:1].expand_as(values))


def test_products_with_fewer_digits_are_added_up_in_float64():
    net = network("mlp")
    rows = source(net, *records(net, ROWS))
    precise = NetworkGradient(replace(net, precise_sums=True), net.start, 1.0)(rows, None)
    assert not np.array_equal(NetworkGradient(net, net.start, 1.0)(rows, None), precise)
    torch.set_float32_matmul_precision("medium")
    try:
        assert np.array_equal(NetworkGradient(net, net.start, 1.0)(rows, None), precise)
    finally:
        torch.set_float32_matmul_precision("highest")


FAILING = {
    "token beyond its table": ("tokens", lambda X, y: X.__setitem__((3, 1), 4)),
    "negative token": ("tokens", lambda X, y: X.__setitem__((3, 1), -1)),
    "label beyond the classes": ("mlp", lambda X, y: y.__setitem__(3, CLASSES)),
    "label, by vmap": ("twice", lambda X, y: y.__setitem__(3, -7)),
}


@pytest.mark.parametrize("what", FAILING)
def test_a_record_on_which_the_module_fails_contributes_nothing(what):
    """An error in the middle of a fit would tell that the record is there."""
    name, spoil = FAILING[what]
    net = network(name, n_units=ROWS + 8, precise=True)
    X, y = records(net, ROWS + 8)
    spoil(X, y)
    rows, others = source(net, X, y), np.delete(np.arange(ROWS + 8), 3)
    query = NetworkGradient(net, net.start, 0.5)
    np.testing.assert_allclose(query(rows, None), query(rows, others), atol=1e-12)
    rounded = NetworkGradient(replace(net, precise_sums=False), net.start, 0.5)
    moved = np.linalg.norm(rounded(rows, None) - rounded(rows, others))
    assert moved <= rounded.radius() - rounded.clip  # by rounding alone
    drop = NetworkLossDrop(net, net.start, np.ones(net.size), np.array([0.1]), 1.0)
    np.testing.assert_allclose(drop(rows, None), drop(rows, others), atol=1e-12)


class _Worn(nn.Module):
    """Fails from some pass on, whatever its records are."""

    def __init__(self):
        super().__init__()
        self.layer, self.left = nn.Linear(*FLAT, CLASSES), None

    def forward(self, x):
        if self.left == 0:
            raise RuntimeError(f"no memory for {x}")
        return self.layer(x)


def test_a_module_that_fails_on_every_record_is_told_without_values():
    net = of_classes(_Worn(), FLAT, ROWS)
    net.model.module.left = 0
    with pytest.raises(InvalidArgument, match="records of zeros") as told:
        NetworkGradient(net, net.start, 1.0)(source(net, *records(net, 5)), None)
    assert "no memory" not in str(told.value)
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


CONVOLUTIONS = {
    "groups": nn.Conv2d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2),
    "depthwise": nn.Conv2d(4, 4, (3, 2), stride=(2, 1), padding=(0, 1), groups=4, bias=False),
    "one channel": nn.Conv2d(1, 3, (4, 3), stride=(3, 2), padding=(3, 1), dilation=(1, 2)),
    "one place": nn.Conv2d(2, 3, 8),
    "reflected": nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"),
    "same size": nn.Conv2d(2, 3, (5, 3), padding="same"),
    "around": nn.Conv2d(2, 3, 3, padding=(2, 1), padding_mode="circular"),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_patches_are_copied_as_torch_copies_them(name):
    """Compiled on the processor, by torch on other devices."""
    layer = CONVOLUTIONS[name]
    images = torch.randn(3, layer.in_channels, 15, 14).contiguous(memory_format=torch.channels_last)
    windows = _windows(layer, images[1:])
    if layer.in_channels == 1:
        windows = windows.permute(0, 1, 4, 5, 6, 2, 3)
    _, groups, *size = windows.shape
    found = torch.full((2 * groups, 2, math.prod(size)), torch.inf)
    _copy(windows, found)
    assert torch.equal(found[:, 0], windows.reshape(2 * groups, -1))
    assert bool(found[:, 1].isinf().all())
    _copy(windows.to("meta"), found.to("meta"))  # refuses shapes that do not fit


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_of_all_settings_have_the_gradients_of_single_examples(name):
    layer = CONVOLUTIONS[name]
    shape = (layer.in_channels, 8, 8)
    width = layer(torch.zeros(1, *shape)).numel()
    net = of_classes(
        nn.Sequential(layer, nn.Tanh(), nn.Flatten(), nn.Linear(width, CLASSES)), shape, ROWS
    )
    assert type(net.engine).__name__ == "BookKeeping"
    X, y = records(net, 5)
    whole = NetworkGradient(net, net.start, 1e6)(source(net, X, y), None)
    np.testing.assert_allclose(whole, one_at_a_time(net, X, y).sum(0), atol=1e-4)
    query = NetworkGradient(net, net.start, 1e-3)
    moved = query(source(net, X, y), None) - query(source(net, X, y), np.arange(4))
    assert 0.99 * query.clip <= np.linalg.norm(moved) <= query.radius()
