"""Per-example gradients of one layer, stored as compactly as the layer allows.

Every part knows the exact norms of what it adds to a sum, and adds it in float64: the norm that
clips an example is that of the numbers which are summed. Proof: docs/proofs/networks.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

Totals = Mapping[str, Tensor]
"""Sums by the names of their parameters: float64, written in place."""


class Part(Protocol):
    """Gradients of some examples with respect to the parameters of a layer."""

    def squared_norms(self) -> Tensor:
        """Squared norm of each example's gradient, in float64."""

    def add_to(self, totals: Totals, weights: Tensor) -> None:
        """Add the sum of the gradients times ``weights`` (float64) to the totals of the layer."""

    def without(self, rows: Tensor) -> "Part":
        """The same with the gradients of some examples set to zero."""

    def tensors(self) -> tuple[Tensor, ...]:
        """What was computed of each example, in the order of the examples."""


def _zeroed(values: Tensor, rows: Tensor) -> Tensor:
    return values.masked_fill(rows.view(-1, *[1] * (values.ndim - 1)), 0)


@dataclass(frozen=True, eq=False)
class Outer:
    """Gradients of rank one: slope times input, and the slope itself for the bias.

    Parameters
    ----------
    weight, bias : str or None
        Names of the parameters; None if it is not fitted.
    inputs : tensor of shape (rows, inputs)
    slopes : tensor of shape (rows, outputs)
    """

    weight: str | None
    bias: str | None
    inputs: Tensor
    slopes: Tensor

    def squared_norms(self) -> Tensor:
        one = torch.zeros(len(self.slopes), dtype=torch.float64, device=self.slopes.device)
        if self.weight is not None:
            one += self.inputs.double().square().sum(1)
        if self.bias is not None:
            one += 1
        return one * self.slopes.double().square().sum(1)

    def add_to(self, totals: Totals, weights: Tensor) -> None:
        slopes = self.slopes.double() * weights[:, None]
        if self.weight is not None:
            totals[self.weight].addmm_(slopes.T, self.inputs.double())
        if self.bias is not None:
            totals[self.bias].add_(slopes.sum(0))

    def without(self, rows: Tensor) -> "Outer":
        return Outer(self.weight, self.bias, _zeroed(self.inputs, rows), _zeroed(self.slopes, rows))

    def tensors(self) -> tuple[Tensor, ...]:
        return self.inputs, self.slopes


@dataclass(frozen=True, eq=False)
class Whole:
    """Gradients written out: one array of the shape of the parameter for each example.

    Parameters
    ----------
    name : str
    values : tensor of shape (rows, \\*shape of the parameter)
    """

    name: str
    values: Tensor

    def squared_norms(self) -> Tensor:
        return self.values.flatten(1).double().square().sum(1)

    def add_to(self, totals: Totals, weights: Tensor) -> None:
        total = totals[self.name].view(-1)
        total.addmv_(self.values.flatten(1).double().T, weights)

    def without(self, rows: Tensor) -> "Whole":
        return Whole(self.name, _zeroed(self.values, rows))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.values,)


@dataclass(frozen=True, eq=False)
class Lookup:
    """Gradients of the rows of a table that an example looks up, those of equal rows added up.

    Parameters
    ----------
    name : str
    places : int tensor of shape (rows, lookups)
        Which row of the table each lookup reads.
    values : float64 tensor of shape (rows, lookups, width)
        Gradient of each table row at its first lookup in the example, and zero at later ones.
    """

    name: str
    places: Tensor
    values: Tensor

    @classmethod
    def of(cls, name: str, places: Tensor, slopes: Tensor) -> "Lookup":
        """From the gradient of each lookup by itself."""
        same = places[:, :, None] == places[:, None, :]
        first = same.to(torch.int8).argmax(2)  # the first lookup of the same table row
        values = torch.zeros(slopes.shape, dtype=torch.float64, device=slopes.device)
        values.scatter_add_(1, first[:, :, None].expand_as(values), slopes.double())
        return cls(name, places, values)

    def squared_norms(self) -> Tensor:
        return self.values.flatten(1).square().sum(1)

    def add_to(self, totals: Totals, weights: Tensor) -> None:
        scaled = (self.values * weights[:, None, None]).flatten(0, 1)
        totals[self.name].index_add_(0, self.places.flatten(), scaled)

    def without(self, rows: Tensor) -> "Lookup":
        return Lookup(self.name, self.places, _zeroed(self.values, rows))

    def tensors(self) -> tuple[Tensor, ...]:
        return self.places, self.values
