"""Small networks, records and curators for the tests of `hushfit.torch`."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hushfit.data import SeededCoins
from hushfit.privacy import SeededSampler
from hushfit.release import Randomness, unpaid_curator
from hushfit.release.plan import Quote
from hushfit.torch import ArrayRecords, Network, NetworkRows, RecordShape

CLASSES = 3
ROWS = 32  # the smallest physical batch


class Residual(nn.Module):
    """A linear layer around which its input passes."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(6, 6), nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.last(x + torch.tanh(self.inner(x)))


class Scaled(nn.Module):
    """A parameter outside any known layer."""

    def __init__(self):
        super().__init__()
        self.scale, self.last = nn.Parameter(torch.ones(6)), nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.last(x * self.scale)


class Twice(nn.Module):
    """A layer that is called twice."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(6, 6), nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.last(torch.tanh(self.inner(torch.tanh(self.inner(x)))))


class MeanPool(nn.Module):
    def forward(self, x):
        return x.mean(1)


def seeded(make):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return make()


FLAT, IMAGE, TOKENS = (6,), (2, 8, 8), (5,)
# name -> (module, shape of a record, whether it has tokens, name of its engine)
MODULES = {
    "linear": (lambda: nn.Linear(6, CLASSES), FLAT, "BookKeeping"),
    "mlp": (
        lambda: nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, CLASSES)),
        FLAT,
        "BookKeeping",
    ),
    "overwriting": (
        lambda: nn.Sequential(nn.Linear(6, 16), nn.ReLU(inplace=True), nn.Linear(16, CLASSES)),
        FLAT,
        "BookKeeping",
    ),
    "residual": (Residual, FLAT, "BookKeeping"),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, stride=2, padding=1),
            nn.GroupNorm(2, 4),
            nn.Tanh(),
            nn.Conv2d(4, 4, 2, groups=2, dilation=2, bias=False),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.LayerNorm(4),
            nn.Linear(4, CLASSES),
        ),
        IMAGE,
        "BookKeeping",
    ),
    "tokens": (
        lambda: nn.Sequential(
            nn.Embedding(4, 6, padding_idx=0),
            nn.LayerNorm(6),
            nn.Linear(6, 5),
            nn.Tanh(),
            MeanPool(),
            nn.Linear(5, CLASSES),
        ),
        TOKENS,
        "BookKeeping",
    ),
    "scaled": (Scaled, FLAT, "WrittenOut"),
    "twice": (Twice, FLAT, "WrittenOut"),
}


def cross_entropy(outputs, classes):
    return F.cross_entropy(outputs, classes, reduction="none")


def network(
    name,
    n_units=40,
    relation="replace-one",
    unit=None,
    double=False,
    precise=False,
    batch=ROWS,
):
    """A network that has passed its checks."""
    make, shape, _ = MODULES[name]
    module = seeded(make)
    module = module.double() if double else module
    record = RecordShape(shape, integers=name == "tokens", classes=CLASSES)
    more = {} if unit is None else {"privacy_unit": unit}
    more = {**more, "physical_batch": batch, "precise_sums": precise}
    return Network.of(module, cross_entropy, record, n_units, relation, **more)


def records(net, n_rows, seed=0, size=1.0):
    """Random records of a network."""
    rng = np.random.default_rng(seed)
    if net.record.integers:
        X = rng.integers(0, 4, size=(n_rows, *net.record.input))
    else:
        X = (size * rng.normal(size=(n_rows, *net.record.input))).astype(np.float32)
    return X, rng.integers(0, CLASSES, size=n_rows)


def source(net, X, y, persons=None):
    return NetworkRows(ArrayRecords(X, y), net.record, persons)


def curator(net, solver, rows, multiplier=0.0, seed=0, **more):
    """A curator for the plan of a solver, at given noise."""
    plan = solver.plan(net)
    quote = Quote(plan, {part.name: multiplier for part in plan.parts}, None, math.inf)
    randomness = Randomness(SeededSampler(seed), SeededCoins(seed))
    return unpaid_curator(rows, quote, net.relation, randomness, **more)
