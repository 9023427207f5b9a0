"""The public half of a fit of a network."""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn

from hushfit._arrays import read_only
from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation, labels_only, no_proof_for_labels
from hushfit.torch._engines import (
    VMAP_ROWS,
    WRITTEN_AT_ONCE,
    Engine,
    WrittenOut,
    numbers_kept,
)
from hushfit.torch._groups import GROUP_ROWS
from hushfit.torch._module_loss import ModuleLoss, per_example
from hushfit.torch._pooling import pool_first
from hushfit.torch._validation import RecordShape, engine_for, random_records, sums_repeat
from hushfit.unit import ROW, PrivacyUnit

PHYSICAL_BATCH = 256


@dataclass(frozen=True, eq=False)
class Network:
    """A module with its loss, and what is public about the records: it plays the part of a problem.

    Made by `Network.of`, which has checked it.

    Parameters
    ----------
    engine : Engine
        With a working copy of the module: weights are set before each use.
    record : RecordShape
    n_units : int
    relation : Relation
    privacy_unit : PrivacyUnit, default=ROW
    physical_batch : int, default=PHYSICAL_BATCH
        Examples that pass through the module at once; batches are padded to it.
    template : nn.Module or None
        The module as it was given.
    precise_sums : bool, default=False
        Whether all sums are in float64.
    """

    engine: Engine
    record: RecordShape
    n_units: int
    relation: Relation
    privacy_unit: PrivacyUnit = ROW
    physical_batch: int = PHYSICAL_BATCH
    template: nn.Module | None = None
    precise_sums: bool = False

    @classmethod
    def of(
        cls,
        module: nn.Module,
        loss: Any,
        record: RecordShape,
        n_units: int,
        relation: Relation | str,
        privacy_unit: PrivacyUnit = ROW,
        physical_batch: int | None = None,
        device: str | torch.device = "cpu",
        precise_sums: bool = False,
    ) -> "Network":
        """Copy a module, check it on random records, and choose how its gradients are computed.

        Parameters
        ----------
        module : nn.Module
            Is not changed.
        loss : callable
            From outputs and targets to one value for each example, or a loss of ``torch.nn``.
        record : RecordShape
        n_units : int
        relation : Relation or str
        privacy_unit : PrivacyUnit, default=ROW
        physical_batch : int, optional
            256, or fewer for few records or large gradients.
        device : str or torch.device, default="cpu"
        precise_sums : bool, default=False
            Add gradients in float64 only: slower, and with 1.2 % less noise. Modules in float64 and
            records of persons are always added so, and gradients too large to keep a group of them.

        Returns
        -------
        Network

        Raises
        ------
        InvalidArgument
            If the module is not one that the proof covers.
        """
        relation = Relation.parse(relation)
        if labels_only(relation):
            raise no_proof_for_labels(relation)
        if not isinstance(module, nn.Module):
            raise InvalidArgument(f"module={module!r} is not a torch.nn.Module. Give one.")
        _refuse_batch(physical_batch)
        working = ModuleLoss(_working_copy(module, _device(device)), per_example(loss))
        numbers = numbers_kept(working, *random_records(working, record, 2))
        if physical_batch is None:
            physical_batch = _batch_for(n_units * privacy_unit.rows_per_person, numbers)
        engine = engine_for(working, record, physical_batch)
        template = copy.deepcopy(module)
        precise = (
            precise_sums
            or privacy_unit != ROW
            or working.dtype == torch.float64
            or GROUP_ROWS * (working.size if type(engine) is WrittenOut else numbers)
            > WRITTEN_AT_ONCE
            or not sums_repeat(engine, record, physical_batch)
        )
        return cls(
            engine, record, n_units, relation, privacy_unit, physical_batch, template, precise
        )

    @property
    def model(self) -> ModuleLoss:
        """The working copy of the module, with its loss."""
        return self.engine.model

    @cached_property
    def start(self) -> Vector:
        """The weights that the module came with: public."""
        return read_only(self.model.weights)

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.model.size

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        return (self.size,)

    @property
    def rows_per_unit(self) -> int:
        """Largest number of records that one unit contributes."""
        return self.privacy_unit.rows_per_person

    def module_at(self, weights: Vector) -> nn.Module:
        """A new module with these weights, on the CPU."""
        model = ModuleLoss(copy.deepcopy(self.template or self.model.module), self.model.loss)
        model.load(weights)
        return model.module.cpu()


def _refuse_batch(rows: int | None) -> None:
    whole = isinstance(rows, int) and not isinstance(rows, bool)
    if rows is not None and (not whole or rows < VMAP_ROWS or rows % VMAP_ROWS):
        raise InvalidArgument(
            f"physical_batch={rows!r} is not a multiple of {VMAP_ROWS}. Use 256, or leave it None."
        )


def _batch_for(records: int, numbers: int) -> int:
    """Examples at once: no more than there are, and few if their gradients are large."""
    fitting = min(records + VMAP_ROWS - 1, WRITTEN_AT_ONCE // max(numbers, 1))
    return VMAP_ROWS * min(PHYSICAL_BATCH // VMAP_ROWS, max(1, fitting // VMAP_ROWS))


def _working_copy(module: nn.Module, device: torch.device) -> nn.Module:
    copied = copy.deepcopy(module).to(device)
    pool_first(copied)
    # Convolutions and pooling are faster with the channels next to each other in memory.
    if any(isinstance(layer, nn.Conv2d) for layer in copied.modules()):
        return copied.to(memory_format=torch.channels_last)
    return copied


def _device(device: str | torch.device) -> torch.device:
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InvalidArgument(
            f"device={str(device)!r} cannot be used here ({reason}). Nothing was charged. Use "
            "'cpu'."
        ) from None
    return chosen
