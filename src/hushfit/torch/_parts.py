"""Per-example gradients of one layer, stored as compactly as the layer allows.

Every part knows the exact norms of what it adds to a sum: the norm that clips an example is that of
the numbers which are summed. Sums are in float64, or in float32 where the number of examples is
small enough for a useful bound on its rounding. Proof: docs/proofs/networks.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import torch
from torch import Tensor

from hushfit.kernels.networks import row_squares

Totals = Mapping[str, Tensor]
"""Sums by the names of their parameters, written in place."""

# Gradients of so many examples are converted to float64 at a time.
_WIDENED = 8
# Gradients that are longer, or that have a longer factor, count as not finite.
LONGEST = 2.0**64


class Part(Protocol):
    """Gradients of some examples with respect to the parameters of a layer."""

    def squared_norms(self) -> Tensor:
        """Squared norm of each example's gradient, in float64; infinite where the gradient is a
        product of which a factor is longer than LONGEST.
        """

    def add_to(self, totals: Totals, weights: Tensor) -> None:
        """Add the sum of the gradients times ``weights`` to the totals of the layer, in float64."""

    def write_rounded(self, sums: Totals, weights: Tensor) -> None:
        """Write the sum of the gradients times ``weights`` (float32) in place of the sums of the
        layer, which are in float32. No weighted gradient is much longer than one.
        """

    def without(self, rows: Tensor) -> "Part":
        """The same with the gradients of some examples set to zero."""

    def some(self, rows: slice) -> Self:
        """The gradients of some examples, in memory of their own: products may round numbers
        differently at other addresses.
        """

    def with_more(self, others: Sequence[Self]) -> Self:
        """The same, followed by the gradients of further examples."""

    def tensors(self) -> tuple[Tensor, ...]:
        """What was computed of each example, in the order of the examples."""


def _squares(values: Tensor) -> Tensor:
    """Sum of the squares of each row, in float64; each row by itself, so that its place does not
    show.
    """
    flat = values.detach().flatten(1).contiguous()
    if flat.device.type == "cpu":
        return torch.from_numpy(row_squares(flat.numpy()))
    return torch.linalg.vector_norm(flat, dim=1, dtype=torch.float64).square()


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
        inputs, slopes = _squares(self.inputs), _squares(self.slopes)
        both = (inputs if self.weight is not None else 0) + (self.bias is not None)
        return (both * slopes).masked_fill(~(inputs + slopes < LONGEST**2), math.inf)

    def add_to(self, totals: Totals, weights: Tensor) -> None:
        slopes = self.slopes.double() * weights[:, None]
        if self.weight is not None:
            totals[self.weight].addmm_(slopes.T, self.inputs.double())
        if self.bias is not None:
            totals[self.bias].add_(slopes.sum(0))

    def write_rounded(self, sums: Totals, weights: Tensor) -> None:
        # One layout in memory, whatever the examples were taken from: products depend on it.
        slopes = self.slopes.contiguous()
        if self.weight is not None:
            scaled = slopes * weights[:, None]
            torch.mm(scaled.T, self.inputs.contiguous(), out=sums[self.weight])
        if self.bias is not None:
            torch.mv(slopes.T, weights, out=sums[self.bias])

    def without(self, rows: Tensor) -> "Outer":
        return replace(self, inputs=_zeroed(self.inputs, rows), slopes=_zeroed(self.slopes, rows))

    def some(self, rows: slice) -> "Outer":
        return replace(self, inputs=self.inputs[rows].clone(), slopes=self.slopes[rows].clone())

    def with_more(self, others: Sequence["Outer"]) -> "Outer":
        return replace(
            self,
            inputs=torch.cat([self.inputs, *(one.inputs for one in others)]),
            slopes=torch.cat([self.slopes, *(one.slopes for one in others)]),
        )

    def tensors(self) -> tuple[Tensor, ...]:
        return self.inputs, self.slopes


@dataclass(frozen=True, eq=False)
class Whole:
    """Gradients written out: one array of the shape of the parameter for each example.

    Parameters
    ----------
    name : str
    values : tensor of shape (rows, \\*shape of the parameter)
    axes : tuple of int, default=()
        Axes of the parameter in the order in which ``values`` has them; empty for their own order.
    """

    name: str
    values: Tensor
    axes: tuple[int, ...] = ()

    def squared_norms(self) -> Tensor:
        return _squares(self.values)

    def add_to(self, totals: Totals, weights: Tensor) -> None:
        place = self._place_in(totals)
        for some, its_weights in zip(
            self.values.split(_WIDENED), weights.split(_WIDENED), strict=True
        ):
            place.add_(self._sum(some.double(), its_weights))

    def write_rounded(self, sums: Totals, weights: Tensor) -> None:
        self._place_in(sums).copy_(self._sum(self.values, weights))

    def _sum(self, values: Tensor, weights: Tensor) -> Tensor:
        flat = values.flatten(1).contiguous()
        return torch.mv(flat.T, weights).view(values.shape[1:])

    def _place_in(self, totals: Totals) -> Tensor:
        whole = totals[self.name]
        return whole.permute(self.axes) if self.axes else whole

    def without(self, rows: Tensor) -> "Whole":
        return replace(self, values=_zeroed(self.values, rows))

    def some(self, rows: slice) -> "Whole":
        return replace(self, values=self.values[rows].clone())

    def with_more(self, others: Sequence["Whole"]) -> "Whole":
        return replace(self, values=torch.cat([self.values, *(one.values for one in others)]))

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
        return _squares(self.values)

    def add_to(self, totals: Totals, weights: Tensor) -> None:
        scaled = (self.values * weights[:, None, None]).flatten(0, 1)
        totals[self.name].index_add_(0, self.places.flatten(), scaled)

    def write_rounded(self, sums: Totals, weights: Tensor) -> None:
        scaled = (self.values.float() * weights[:, None, None]).flatten(0, 1)
        sums[self.name].zero_().index_add_(0, self.places.flatten(), scaled)

    def without(self, rows: Tensor) -> "Lookup":
        return replace(self, values=_zeroed(self.values, rows))

    def some(self, rows: slice) -> "Lookup":
        return replace(self, places=self.places[rows].clone(), values=self.values[rows].clone())

    def with_more(self, others: Sequence["Lookup"]) -> "Lookup":
        return replace(
            self,
            places=torch.cat([self.places, *(one.places for one in others)]),
            values=torch.cat([self.values, *(one.values for one in others)]),
        )

    def tensors(self) -> tuple[Tensor, ...]:
        return self.places, self.values
