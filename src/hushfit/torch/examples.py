"""Small networks for audits: some that a fit accepts, and some that it must refuse."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from hushfit.privacy import Relation
from hushfit.torch._network import Network
from hushfit.torch._validation import RecordShape
from hushfit.unit import ROW, PrivacyUnit

COLUMNS, CLASSES = 6, 3
PASS = 32  # the smallest physical batch


def linear_network(
    width: int, n_units: int, relation: Relation, unit: PrivacyUnit = ROW
) -> Network:
    """A network whose gradient is the record itself times the target: a canary attains the clipping
    norm in a direction of its own.
    """
    module = nn.Linear(width, 1, bias=False)
    nn.init.zeros_(module.weight)
    return Network.of(
        module, _linear_loss, RecordShape((width,)), n_units, relation, unit, physical_batch=PASS
    )


def table_network(records: int, relation: Relation) -> Network:
    """A table with one weight for each record, which looks it up: gradients of different records
    are orthogonal.
    """
    module = nn.Sequential(nn.Embedding(records, 1), nn.Flatten())
    nn.init.zeros_(module[0].weight)
    return Network.of(module, _linear_loss, RecordShape((1,), integers=True), records, relation)


def _linear_loss(outputs: Tensor, y: Tensor) -> Tensor:
    return outputs[:, 0] * y


def perceptron(
    n_units: int, relation: Relation, unit: PrivacyUnit = ROW, precise_sums: bool = False
) -> Network:
    """A classifier with one hidden layer."""
    return accepted(_perceptron, n_units, relation, unit, precise_sums)


def accepted(
    make: Callable[[], nn.Module],
    n_units: int = 40,
    relation: Relation = Relation.ADD_REMOVE,
    unit: PrivacyUnit = ROW,
    precise_sums: bool = False,
) -> Network:
    """The network of a module, with weights of a public seed; refuses a module of no proof."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        module = make()
    return Network.of(
        module,
        cross_entropy,
        RecordShape((COLUMNS,), classes=CLASSES),
        n_units,
        relation,
        unit,
        physical_batch=PASS,
        precise_sums=precise_sums,
    )


def cross_entropy(outputs: Tensor, classes: Tensor) -> Tensor:
    """Loss of each example."""
    return F.cross_entropy(outputs, classes, reduction="none")


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(COLUMNS, 16), nn.ReLU(), nn.Linear(16, CLASSES))


def _tied() -> nn.Module:
    module = nn.Sequential(
        nn.Linear(COLUMNS, COLUMNS), nn.Linear(COLUMNS, COLUMNS), nn.Linear(COLUMNS, CLASSES)
    )
    module[1].weight = module[0].weight
    return module


class Killed(BaseException):
    """In place of a signal that ends the process."""


class CountedRecords(Dataset):
    """Records that count how often all of them were read, and kill their reader once.

    Parameters
    ----------
    n_records : int
    killed_at : int
        The pass in which `Killed` is raised.
    """

    def __init__(self, n_records: int, killed_at: int) -> None:
        self.n_records, self.killed_at, self.passes = n_records, killed_at, 0

    def __len__(self) -> int:
        return self.n_records

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        if place == self.n_records - 1:
            self.passes += 1
            if self.passes == self.killed_at:
                raise Killed
        return torch.full((COLUMNS,), place / self.n_records), torch.tensor(place % CLASSES)


class _Centred(nn.Module):
    """Subtracts the mean of the batch: batch normalisation under another name."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0)


class _SharedMask(nn.Module):
    """Drops the same columns of all examples of a pass."""

    def forward(self, x: Tensor) -> Tensor:
        return x * (torch.rand(x.shape[1]) > 0.5)


class _Counter(nn.Module):
    """Keeps a running mean of what it has seen."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(COLUMNS))

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x


class _Listing(nn.Module):
    """Keeps what it has seen in a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.detach())
        return x


def _before_linear(layer: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(layer(), nn.Linear(COLUMNS, CLASSES))


UNFIT: dict[str, Callable[[], nn.Module]] = {
    "batch normalisation": _before_linear(lambda: nn.BatchNorm1d(COLUMNS, affine=False)),
    "a centred batch": _before_linear(_Centred),
    "a mask that examples share": _before_linear(_SharedMask),
    "dropout": _before_linear(nn.Dropout),
    "running statistics": _before_linear(_Counter),
    "a list of what it has seen": _before_linear(_Listing),
    "tied weights": _tied,
}
"""Modules that a private fit must refuse, by what is wrong with them."""
