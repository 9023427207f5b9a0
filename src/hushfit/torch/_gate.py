"""Private line search on networks: decreases of the loss at candidates along a released gradient,
behind an above-threshold test over the same batch. Proof: docs/proofs/{networks,gated}.md.

The gate differs from that of linear models in one thing: a network's loss has no Lipschitz constant
that we know, so the decrease of a record is clipped to the same bound for every candidate.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from hushfit._arrays import keep_read_only
from hushfit._typing import IntVector, Vector
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation, by_relation
from hushfit.release.queries import clipped_requirements, first_passed
from hushfit.torch._arithmetic import one_thread
from hushfit.torch._failures import losses_of
from hushfit.torch._gradient import UNIT_ROUNDOFF, NetworkGradient, summation_error
from hushfit.torch._network import Network
from hushfit.torch._rows import NetworkRows, network_rows

# Upper bound on the noise values that a gate draws, for the reserve that covers discrete noise.
_MOST_VALUES = 1024


@dataclass(frozen=True, eq=False)
class NetworkLossDrop:
    r"""Sums over the records of :math:`\ell_i(w) - \ell_i(w - \eta_k s)` for public step sizes,
    each difference clipped to ``bound``.

    Parameters
    ----------
    problem : Network
    w, direction : array of shape ``problem.shape``
        Public.
    step_sizes : array
    bound : float
    """

    problem: Network
    w: Vector
    direction: Vector
    step_sizes: Vector
    bound: float

    doubled = None
    sampled: ClassVar[bool] = True
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        keep_read_only(self, "step_sizes")
        if not 0 < self.bound < math.inf or self.step_sizes.ndim != 1:
            raise InvalidArgument(
                f"bound={self.bound!r} is not a bound on a loss. Give a number above 0, and one "
                "list of step sizes."
            )

    @staticmethod
    def coordinates(problem: Any) -> int:
        return _MOST_VALUES

    @property
    def size(self) -> int:
        return len(self.step_sizes)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        rows = network_rows(source)
        with one_thread():
            before = self._losses(rows, units, self.w)
            totals = []
            for step in self.step_sizes.tolist():
                after = self._losses(rows, units, self.w - step * self.direction)
                totals.append(sum(self._drop(*pair) for pair in zip(before, after, strict=True)))
        return np.asarray(totals, dtype=np.float64)

    def _losses(
        self, rows: NetworkRows, units: IntVector | None, w: Vector
    ) -> list[tuple[Tensor, Tensor]]:
        """Losses of the records at some weights, and their shares, batch by batch."""
        model = self.problem.model
        model.load(w)
        size, dtype, device = self.problem.physical_batch, model.dtype, model.device
        return [
            losses_of(self.problem.engine, batch)
            for batch in rows.batches(rows.rows_of(units), size, dtype, device)
        ]

    def _drop(self, before: tuple[Tensor, Tensor], after: tuple[Tensor, Tensor]) -> float:
        drops = torch.nan_to_num(before[0].double() - after[0].double(), nan=0.0)
        # A record may fail at one of two weights only.
        shares = torch.minimum(before[1], after[1])
        return float((drops.clamp(-self.bound, self.bound) * shares).sum())

    @property
    def radii(self) -> Vector:
        """Bound on the contribution of one unit to each sum."""
        problem = self.problem
        records = problem.n_units * problem.rows_per_unit
        summation = 2 * summation_error(records + 4, UNIT_ROUNDOFF)
        return np.full(self.size, self.bound * (1 + summation * problem.n_units))

    def radius(self) -> float:
        return float(np.linalg.norm(self.radii))

    def sensitivity(self, relation: Relation) -> float:
        # Replace-one removes one contribution and adds another; add-remove only removes one.
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


@dataclass(frozen=True, eq=False)
class NetworkGate:
    """Index of the first step size whose decrease is at least the required one, or their number if
    there is none.

    Parameters
    ----------
    drop : NetworkLossDrop
    asked : array
        Required decrease of each candidate, in units of the sums; public.
    """

    drop: NetworkLossDrop
    asked: Vector

    doubled = None
    sampled: ClassVar[bool] = True
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "FreshGate"

    def __post_init__(self) -> None:
        if self.asked.shape != (self.drop.size,):
            # One sum compared with many thresholds would reveal more than the cost covers.
            raise InvalidArgument(
                f"asked has shape {self.asked.shape}, but there are {self.drop.size} candidates. "
                "Give one number for each."
            )

    @staticmethod
    def coordinates(problem: Any) -> int:
        return _MOST_VALUES

    @property
    def problem(self) -> Network:
        return self.drop.problem

    @property
    def size(self) -> int:
        return 1

    @property
    def candidates(self) -> int:
        return self.drop.size

    def scores(self, source: DataSource, units: IntVector | None) -> Vector:
        """Decreases minus the required ones, in units of the clipping bound."""
        required = clipped_requirements(self.asked / self.drop.bound, self.problem.n_units)
        return np.asarray(self.drop(source, units) / self.drop.bound - required)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return first_passed(self.scores(source, units) >= 0)

    def radius(self) -> float:
        # Division and subtraction have rounding errors of a few units in the last place of numbers
        # up to three times the number of units.
        rounding = 16 * self.problem.n_units * UNIT_ROUNDOFF
        return float(self.drop.radii.max()) / self.drop.bound * (1 + 1e-12) + rounding

    def sensitivity(self, relation: Relation) -> float:
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


@dataclass(frozen=True, eq=False)
class NetworkSearch:
    r"""A backtracking line search along a released gradient.

    A step passes if the decrease over the batch, plus the public one of the weight decay, is at
    least ``sufficient`` times what the gradient predicts,
    :math:`\eta_k \bar b \max(0, |g|^2 - d \sigma^2)`.

    Parameters
    ----------
    step_sizes : array
        In the order of trial.
    expected_units : float
        Expected batch size; the divisor of the gradient sum.
    objective_clip : float
        Clipping bound on the decrease of one record.
    sufficient : float
        Between 0 and 1.
    gradient_noise : float
        Standard deviation of the noise on a coordinate of the mean gradient.
    weight_decay : float, default=0.0
    """

    step_sizes: Vector
    expected_units: float
    objective_clip: float
    sufficient: float
    gradient_noise: float
    weight_decay: float = 0.0

    def direction(self, w: Vector, g: Vector) -> Vector:
        """Mean gradient, including that of the weight decay, from a sum of gradients."""
        return g / self.expected_units + self.weight_decay * w

    def gate(self, problem: Network, w: Vector, g: Vector) -> NetworkGate:
        """The gate over the candidates."""
        s = self.direction(w, g)
        predicted = max(0.0, float(s @ s) - problem.size * self.gradient_noise**2)
        # Half the weight decay times |w|^2 - |w - eta s|^2.
        shrinks = self.weight_decay * (
            self.step_sizes * float(w @ s) - self.step_sizes**2 * float(s @ s) / 2
        )
        asked = self.expected_units * (self.sufficient * self.step_sizes * predicted - shrinks)
        drop = NetworkLossDrop(problem, w, s, self.step_sizes, self.objective_clip)
        return NetworkGate(drop, np.asarray(asked))


@dataclass(frozen=True, eq=False)
class NetworkGatedStep:
    """Sum of clipped gradients, then the index of the first acceptable step size along it, over the
    same records.

    The answer has one entry more than the weights: the index, at its end.

    Parameters
    ----------
    gradient : NetworkGradient
    search : NetworkSearch
    """

    gradient: NetworkGradient
    search: NetworkSearch

    doubled = None
    sampled: ClassVar[bool] = True
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "GatedBatch"

    @staticmethod
    def coordinates(problem: Any) -> int:
        return int(problem.size) + _MOST_VALUES

    @property
    def problem(self) -> Network:
        return self.gradient.problem

    @property
    def size(self) -> int:
        return self.gradient.size + 1

    @property
    def candidates(self) -> int:
        return len(self.search.step_sizes)

    def gate(self, g: Vector) -> NetworkGate:
        """The gate for a released gradient: a public function of it."""
        return self.search.gate(self.problem, self.gradient.w, g)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        g = self.gradient(source, units)
        return np.append(g, self.gate(g)(source, units))

    def radius(self) -> float:
        return self.gradient.radius()

    def sensitivity(self, relation: Relation) -> float:
        # Of the gradient; the gate has its own sensitivity and its own noise.
        return self.gradient.sensitivity(relation)
