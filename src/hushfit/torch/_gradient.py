"""Sum of clipped per-example gradients of a network. Proof: docs/proofs/networks.md."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from hushfit._typing import IntVector, Vector
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation, by_relation
from hushfit.torch._network import Network
from hushfit.torch._parts import Part
from hushfit.torch._rows import network_rows

# Bound on the relative error of the length of one example's contribution, up to 2 million weights.
ARITHMETIC_SLACK = 1e-9
UNIT_ROUNDOFF = 2.0**-53
# Added to a norm before a gradient is divided by it: normalised gradients stay below the clipping
# norm, and a vanishing one is not blown up.
STABILITY = 0.01


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
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.w.shape != self.problem.shape:
            raise InvalidArgument(
                f"w has shape {self.w.shape}, but the network has {self.problem.size} weights."
            )
        if not 0 < self.clip < math.inf:
            raise InvalidArgument(f"clip={self.clip!r} is not a norm. Give a positive number.")

    @staticmethod
    def coordinates(problem: Any) -> int:
        return int(problem.size)

    @property
    def size(self) -> int:
        return self.problem.size

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        network, rows = self.problem, network_rows(source)
        model = network.model
        model.load(self.w)
        total = torch.zeros(self.size, dtype=torch.float64, device=model.device)
        views = model.views(total)
        for batch in rows.batches(units, network.physical_batch, model.dtype, model.device):
            for place, parts in network.engine.parts(batch.x, batch.y):
                parts, weights = self._weighted(parts, batch.shares[place])
                for part in parts:
                    part.add_to(views, weights)
        return np.asarray(total.cpu().numpy())

    def _weighted(self, parts: list[Part], shares: Tensor) -> tuple[list[Part], Tensor]:
        """The gradients, and what each is multiplied by; those that are not finite are zero."""
        squares = torch.stack([part.squared_norms() for part in parts]).sum(0)
        lost = ~torch.isfinite(squares)
        if bool(lost.any()):
            parts = [part.without(lost) for part in parts]
            squares = squares.masked_fill(lost, 0)
        norms = squares.sqrt()
        if self.normalise:
            return parts, shares * self.clip / (norms + STABILITY)
        return parts, shares * (self.clip / norms.clamp(min=self.clip))

    def radius(self) -> float:
        problem = self.problem
        slack = max(ARITHMETIC_SLACK, 4 * self.size * UNIT_ROUNDOFF)
        longest = self.clip * (1 + slack)
        # Every summation order of at most so many records has this relative error, on each of two
        # batches; the absolute values add up to at most one clipping norm for each unit.
        records = problem.n_units * problem.rows_per_unit
        summation = 2 * (records + 4) * UNIT_ROUNDOFF / (1 - (records + 4) * UNIT_ROUNDOFF)
        return longest * (1 + summation * problem.n_units)

    def sensitivity(self, relation: Relation) -> float:
        # Replace-one removes one contribution and adds another; add-remove only removes one.
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)
