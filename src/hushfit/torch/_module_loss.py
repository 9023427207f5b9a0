"""A module with a loss for each example: the public function whose gradients are asked for."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument

# Weights of the largest linear layer that may be computed row by row.
_SMALL_LAYER = 2**16

PerExample: TypeAlias = Callable[[Any, Tensor], Tensor]
"""Loss of each example, of shape (rows,), from the outputs of a module and the targets."""


def per_example(loss: Any) -> PerExample:
    """A loss of torch (or any function) as a function with one value for each example."""
    if not callable(loss):
        raise InvalidArgument(
            f"loss={loss!r} is not a function of (outputs, targets). Give one with a value for "
            "each example, or a loss of torch.nn."
        )
    if not isinstance(loss, nn.Module):
        return loss
    if any(True for _ in loss.parameters()):
        raise InvalidArgument(
            f"{type(loss).__name__} has parameters of its own, which would get no gradient. Make "
            "them part of the module."
        )
    single = copy.deepcopy(loss)
    if isinstance(single, nn.modules.loss._Loss):
        single.reduction = "none"

    def value(outputs: Any, targets: Tensor) -> Tensor:
        losses: Tensor = single(outputs, targets)
        return losses if losses.ndim == 1 else losses.flatten(1).mean(1)

    return value


@dataclass(frozen=True, eq=False)
class ModuleLoss:
    """A working copy of a module, whose weights are set before each use, and its loss.

    Parameters
    ----------
    module : nn.Module
        Not the caller's: parameters are overwritten.
    loss : callable
        From outputs and targets to one value for each example.
    """

    module: nn.Module
    loss: PerExample

    def __post_init__(self) -> None:
        if any(isinstance(one, UninitializedParameter) for one in self.module.parameters()):
            raise InvalidArgument(
                f"{type(self.module).__name__} has layers whose sizes are not known yet (lazy "
                "layers). Nothing was charged. Call the module once on public records, or give the "
                "sizes."
            )
        # One tensor under two names is listed once; gradients of it would be halved.
        seen: dict[int, str] = {}
        for name, parameter in self.module.named_parameters(remove_duplicate=False):
            if id(parameter) in seen:
                raise InvalidArgument(
                    f"The parameters {seen[id(parameter)]!r} and {name!r} are one tensor (tied "
                    "weights), which per-example gradients do not support. Untie them."
                )
            seen[id(parameter)] = name
        if not self.trained:
            raise InvalidArgument(
                f"{type(self.module).__name__} has no parameters with requires_grad=True, so there "
                "is nothing to fit. Give a module with some."
            )
        kinds = {parameter.dtype for parameter in self.trained.values()}
        if len(kinds) > 1 or not kinds <= {torch.float32, torch.float64}:
            raise InvalidArgument(
                f"Parameters have the types {sorted(map(str, kinds))}; they should all be float32, "
                "or all float64. Call module.float(). Nothing was charged."
            )

    @cached_property
    def trained(self) -> dict[str, nn.Parameter]:
        """The parameters to be fitted, by their names, in the order of the weights."""
        return {
            name: parameter
            for name, parameter in self.module.named_parameters()
            if parameter.requires_grad
        }

    @property
    def size(self) -> int:
        """Number of weights."""
        return sum(parameter.numel() for parameter in self.trained.values())

    @property
    def dtype(self) -> torch.dtype:
        """Type of the parameters."""
        return next(iter(self.trained.values())).dtype

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(iter(self.trained.values())).device

    @property
    def weights(self) -> Vector:
        """All weights in one vector of float64."""
        with torch.no_grad():
            flat = torch.cat([one.detach().flatten().double() for one in self.trained.values()])
        return np.asarray(flat.cpu().numpy())

    def load(self, weights: Vector) -> None:
        """Set all weights; they are rounded to the type of the parameters."""
        ends = np.cumsum(self._sizes)[:-1]
        for parameter, part in zip(
            self.trained.values(), np.split(np.asarray(weights), ends), strict=True
        ):
            values = part.reshape(parameter.shape)
            if self.device.type == "cpu":  # in one pass over the memory
                np.copyto(parameter.detach().numpy(), values, casting="same_kind")
            else:
                parameter.detach().copy_(torch.from_numpy(values.copy()))

    @property
    def _sizes(self) -> list[int]:
        return [parameter.numel() for parameter in self.trained.values()]

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Parts of a flat vector, by the names of their parameters and in their shapes."""
        parts = flat.split(self._sizes)
        return {
            name: part.view(parameter.shape)
            for (name, parameter), part in zip(self.trained.items(), parts, strict=True)
        }

    def losses(self, x: Tensor, y: Tensor) -> Tensor:
        """Loss of each example."""
        return self.loss(self.module(x), y)

    def row_by_row(self) -> "ModuleLoss":
        """The same with small linear layers computed by one product for each example.

        Some libraries round the rows of one small product in different ways, depending on where
        they stand; products of equal shapes are all computed alike.
        """
        model = self.copied()
        for layer in model.module.modules():
            if type(layer) is nn.Linear and layer.weight.numel() <= _SMALL_LAYER:
                layer.forward = partial(_linear_row_by_row, layer)
        return model

    def copied(self, dtype: torch.dtype | None = None) -> "ModuleLoss":
        """The same with a module of its own, in another floating-point type."""
        module = copy.deepcopy(self.module)
        return ModuleLoss(module if dtype is None else module.to(dtype), self.loss)


def _linear_row_by_row(layer: nn.Linear, x: Tensor) -> Tensor:
    rows = x.reshape(-1, 1, layer.in_features)
    weight = layer.weight.mT.expand(len(rows), -1, -1)
    outputs = torch.bmm(rows, weight).view(*x.shape[:-1], layer.out_features)
    return outputs if layer.bias is None else outputs + layer.bias
