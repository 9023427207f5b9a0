"""Sum of clipped per-example gradients of a network. Proof: docs/proofs/networks.md."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from hushfit._typing import IntVector, Vector
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.kernels.networks import add_scaled
from hushfit.privacy import Relation, by_relation
from hushfit.torch._arithmetic import full_precision, one_thread
from hushfit.torch._failures import parts_of
from hushfit.torch._groups import GROUP_ROWS, Weighted, regrouped
from hushfit.torch._network import Network
from hushfit.torch._parts import LONGEST, Part
from hushfit.torch._rows import NetworkRows, network_rows

# Bound on the relative error of the length of one example's contribution, up to 2 million weights.
ARITHMETIC_SLACK = 1e-9
UNIT_ROUNDOFF = 2.0**-53
SINGLE_ROUNDOFF = 2.0**-24
# Clipping norms are far from the ends of the range of float32.
SHORTEST_CLIP, LONGEST_CLIP = 1e-9, 1e9
# Added to a norm before a gradient is divided by it: normalised gradients stay below the clipping
# norm, and a vanishing one is not blown up.
STABILITY = 0.01


CLIP_REMEDY = (
    f"Give a number between {SHORTEST_CLIP:g} and {LONGEST_CLIP:g}; if gradients are that "
    "short or long, multiply the loss by a constant."
)


def is_norm(clip: float) -> bool:
    """Whether a clipping norm is in the range of the proof."""
    return SHORTEST_CLIP <= clip <= LONGEST_CLIP


def summation_error(terms: int, roundoff: float) -> float:
    """Bound on the error of a sum of so many numbers, in any order, relative to the sum of their
    absolute values.
    """
    return terms * roundoff / (1 - terms * roundoff)


@dataclass(frozen=True, eq=False)
class NetworkGradient:
    r"""Sum over the records of their gradients :math:`g_i` at public weights, each clipped to norm
    ``clip``, or multiplied by :math:`C / (|g_i| + 0.01)`.

    Parameters
    ----------
    problem : Network
    w : array of shape ``problem.shape``
        Where gradients are taken; public.
    clip : float
    normalise : bool, default=False
        Scale all gradients to nearly the clipping norm, instead of clipping the long ones.
    """

    problem: Network
    w: Vector
    clip: float
    normalise: bool = False

    doubled = None
    sampled: ClassVar[bool] = True
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.w.shape != self.problem.shape:
            raise InvalidArgument(
                f"w has shape {self.w.shape}, but the network has {self.problem.size} weights."
            )
        if not is_norm(self.clip):
            raise InvalidArgument(f"clip={self.clip!r} is not a norm. {CLIP_REMEDY}")

    @staticmethod
    def coordinates(problem: Any) -> int:
        return int(problem.size)

    @property
    def size(self) -> int:
        return self.problem.size

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        rows, model = network_rows(source), self.problem.model
        model.load(self.w)
        total = torch.zeros(self.size, dtype=torch.float64, device=model.device)
        with one_thread():
            # Settings of torch may change between two steps; sums in float64 need none of them.
            if self.problem.precise_sums or not full_precision(model.device):
                self._add(rows, rows.rows_of(units), total)
            else:
                chosen, ends, repeated = rows.groups_of(units)
                self._add_groups(rows, chosen, ends, total)
                self._add(rows, repeated, total)
        return np.asarray(total.cpu().numpy())

    def _add(self, rows: NetworkRows, chosen: IntVector, total: Tensor) -> None:
        """Add gradients in float64."""
        for chunk in self._weighted(rows, chosen):
            chunk.add_to(self.problem.model.views(total))

    def _add_groups(
        self, rows: NetworkRows, chosen: IntVector, ends: list[int], total: Tensor
    ) -> None:
        """Add group by group, in float32 within a group and in float64 from one to the next."""
        rounded = torch.empty(self.size, dtype=torch.float32)
        sums = self.problem.model.views(rounded)
        for group in regrouped(self._weighted(rows, chosen), ends):
            group.write_rounded(sums, self.clip)
            add_scaled(total.numpy(), rounded.numpy(), self.clip)

    def _weighted(self, rows: NetworkRows, chosen: IntVector) -> Iterator[Weighted]:
        """Gradients of some records in their order, and what each is multiplied by."""
        network = self.problem
        size, dtype, device = network.physical_batch, network.model.dtype, network.model.device
        for batch in rows.batches(chosen, size, dtype, device):
            for place, parts, shares in parts_of(network.engine, batch):
                real = slice(0, min(place.stop, batch.n_records) - place.start)
                if real.stop > 0:
                    yield self._clipped(parts, shares).some(real)

    def _clipped(self, parts: list[Part], shares: Tensor) -> Weighted:
        """Gradients with their weights; those that are huge or not finite are zero."""
        first, *others = (part.squared_norms() for part in parts)
        squares = sum(others, start=first)  # one by one: a sum over parts may depend on the place
        lost = ~(squares < LONGEST**2)
        if bool(lost.any()):
            parts = [part.without(lost) for part in parts]
            squares = squares.masked_fill(lost, 0)
        norms = squares.sqrt()
        if self.normalise:
            return Weighted(parts, shares * self.clip / (norms + STABILITY))
        return Weighted(parts, shares * (self.clip / norms.clamp(min=self.clip)))

    def radius(self) -> float:
        problem = self.problem
        slack = max(ARITHMETIC_SLACK, 4 * self.size * UNIT_ROUNDOFF)
        longest = self.clip * (1 + slack)
        # Every summation order of at most so many records has this relative error, on each of two
        # batches; the absolute values add up to at most one clipping norm for each unit.
        records = problem.n_units * problem.rows_per_unit
        summation = 2 * summation_error(records + 4, UNIT_ROUNDOFF) * problem.n_units
        if not problem.precise_sums:
            # A record changes the groups of at most so many others.
            error = summation_error(GROUP_ROWS + 4, SINGLE_ROUNDOFF)
            summation += (2 * GROUP_ROWS + 1) * error
        return longest * (1 + summation)

    def sensitivity(self, relation: Relation) -> float:
        # Replace-one removes one contribution and adds another; add-remove only removes one.
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)
