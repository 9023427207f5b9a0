"""Mini-batch gradient descent that releases its last iterate only.

NSGD and RSGD-AR, thesis chapter 3.

    partition the rows into batches B_1, ..., B_m                 (secretly for "rsgd-ar")
    for each epoch, for each batch j:  w <- prox(w - eta (mean gradient over B_j + mu w), eta)
    after each `restart` epochs:       w <- mean of the iterates since the last restart, and eta is
                                       reset
    release w + noise                                             once

The sensitivity of the last iterate follows from a recursion over the batches. Errata of the thesis,
and what is guaranteed here: docs/algorithms/rsgd.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.losses import Logistic
from hushfit.privacy import Budget, gaussian_mu, replaces_one
from hushfit.problem import Problem
from hushfit.release import (
    Door,
    FullBatch,
    Mechanism,
    Passes,
    PermutedRun,
    Plan,
    Planned,
    SecretOrder,
)
from hushfit.solvers.base import Iterate

_NAME = "end of the run"
_ORDERS = ("secret", "as-given")
_SCHEDULES = ("constant", "harmonic")
# Assumed norm of the weights, in the rule for the length of a run.
_RADIUS = 10.0
# Averages lag behind, in noise as in signal: a run with restarts is longer by this factor.
_LAG = 1.5
# Budget assumed when none is given; only the length of the run depends on it.
_DEFAULT_BUDGET = Budget(1.0, 1e-6)
_DEFAULT_EPOCHS, _MAX_EPOCHS = 20, 1000
# Minimum number of rows of a batch, so that its gradient is worth a step.
_MIN_BATCH = 1000
# Norm of logistic gradients at the start. Lower noise compensates for clipping the few longer ones.
_LOGISTIC_CLIP = 0.5
# Length of a run without privacy: the sum of its step sizes times the smoothness.
_NONPRIVATE_STEPS = 4000.0


@dataclass(frozen=True)
class PermutedSGD:
    r"""Mini-batch proximal gradient descent with noise on its last iterate only.

    Parameters
    ----------
    time : float or None
        Sum of all step sizes, with which the noise grows. None chooses it from the budget and the
        number of rows. Ignored when ``epochs`` is given.
    epochs : int or None
        Passes over the rows. None takes as many as ``time`` needs.
    batches : int or None
        Batches of (almost) equal size. None takes about a twentieth of the steps that ``time``
        needs, of 1000 rows at least.
    step_size : float or None
        Upper bound on the first step size; None is 1 / smoothness.
    schedule : {"constant", "harmonic"}, default="harmonic"
        Whether step sizes are constant or divided by 1, 2, 3, ... from epoch to epoch, reset after
        each restart.
    restart : int or None, default=5
        Epochs after which the mean of the iterates replaces the iterate. None never averages.
    order : {"secret", "as-given"} or int, default="secret"
        How rows are partitioned into batches: secretly, in the given order, or shuffled by a public
        seed. An order that is not secret needs a little more noise, as it has to hide a record at
        every position.
    mu : float, default=0.0
        Weight of :math:`\frac12 \|w\|^2`, on the intercept too. It bounds the sensitivity of a long
        run.
    clip : float or None
        Clipping norm of a record's gradient. None is 0.5 for the logistic loss, and no clipping
        for others or when epsilon is infinite.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import PermutedSGD
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = PermutedSGD().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('end of the run', 1)]
    """

    time: float | None = None
    epochs: int | None = None
    batches: int | None = None
    step_size: float | None = None
    schedule: str = "harmonic"
    restart: int | None = 5
    order: str | int = "secret"
    mu: float = 0.0
    clip: float | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        if self.schedule not in _SCHEDULES:
            raise InvalidArgument(
                f"schedule={self.schedule!r} is not known. Use one of "
                f"{', '.join(map(repr, _SCHEDULES))}."
            )
        seed = isinstance(self.order, int) and not isinstance(self.order, bool) and self.order >= 0
        if not (seed or self.order in _ORDERS):
            raise InvalidArgument(
                f"order={self.order!r} is not known. Use 'secret', 'as-given' or a seed of at "
                "least 0."
            )
        given = [
            v
            for v in (self.time, self.epochs, self.batches, self.step_size, self.restart, self.clip)
            if v is not None
        ]
        if not all(0 < value < math.inf for value in given) or not 0 <= self.mu < math.inf:
            raise InvalidArgument(
                f"{self} needs mu >= 0 and everything else finite and above 0, or None for the "
                "default."
            )
        if any(
            value is not None and value != int(value)
            for value in (self.epochs, self.batches, self.restart)
        ):
            raise InvalidArgument(
                f"{self} needs whole numbers of epochs, batches and epochs between restarts."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "PermutedSGD":
        """The same with length of the run and clipping norm chosen for a budget, unless given."""
        if not budget.is_private:
            clip = problem.loss.slope_bound if self.clip is None else self.clip
            return replace(
                self, clip=clip, time=self.time or _NONPRIVATE_STEPS / problem.loss.smoothness
            )
        return replace(self, time=self.time or self._default_time(budget, problem))

    def plan(self, problem: Problem) -> Plan:
        # Refuses here, before any charge, what the query would refuse.
        run = self.query(problem)
        if len(run.passes.sizes) > 1 and not replaces_one(problem.relation):
            raise UnsupportedRelation(
                "A run over several batches is proved under 'replace-one' only: adding or removing "
                "a record moves others from batch to batch. Use adjacency='replace-one', or "
                "solver='outpert-gd', which has one batch of all rows."
            )
        secret = self.order == "secret" and len(run.passes.sizes) > 1
        if not secret:
            run.require_order_free()
        mechanism: Mechanism = SecretOrder.of(run) if secret else FullBatch()
        return Plan((Planned(_NAME, PermutedRun, 1, sampling=mechanism),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        run = self.query(problem)
        noise = door.noise_multiplier(_NAME) * run.sensitivity(problem.relation)
        yield Iterate(tidied(run.weights(door.release(_NAME, run)), problem, noise))

    def query(self, problem: Problem) -> PermutedRun:
        """The run whose last iterate is released."""
        order = self.order if isinstance(self.order, int) else None
        return PermutedRun(problem, self._passes(problem), self._clip(problem), self.mu, order)

    def _clip(self, problem: Problem) -> float:
        if self.clip is not None:
            return self.clip
        return _LOGISTIC_CLIP if isinstance(problem.loss, Logistic) else problem.loss.slope_bound

    def _default_time(self, budget: Budget, problem: Problem) -> float:
        """Sum of step sizes that balances optimisation error, radius^2 / (2 time), and noise."""
        inverse_noise = (
            problem.n_units * gaussian_mu(budget.epsilon, budget.delta) / self._clip(problem)
        )
        time = math.pow(_RADIUS * inverse_noise, 2 / 3) / math.pow(
            8 * problem.loss.smoothness, 1 / 3
        )
        return time if self.restart is None else _LAG * time

    def _passes(self, problem: Problem) -> Passes:
        first = self.step_size or 1 / (problem.loss.smoothness + self.mu)
        time = self.time or self._default_time(_DEFAULT_BUDGET, problem)
        batches = self.batches or self._default_batches(problem, time / first)
        if self.epochs is not None:
            return Passes.even(
                problem.n_units, batches, tuple(first * self._shape(self.epochs)), self.restart
            )
        shape = self._shape(_MAX_EPOCHS)
        epochs = 1 + int(np.searchsorted(batches * first * np.cumsum(shape), time))
        epochs = min(_MAX_EPOCHS, self._whole(epochs))
        shape = shape[:epochs]
        return Passes.even(
            problem.n_units,
            batches,
            tuple(min(first, time / (batches * shape.sum())) * shape),
            self.restart,
        )

    def _default_batches(self, problem: Problem, steps: float) -> int:
        return max(1, min(math.ceil(steps / _DEFAULT_EPOCHS), problem.n_units // _MIN_BATCH))

    def _shape(self, epochs: int) -> Vector:
        """Step size of each epoch, over the first."""
        epoch = np.arange(epochs)
        since = epoch if self.restart is None else epoch % self.restart
        return 1 / (since + 1.0) if self.schedule == "harmonic" else np.ones(epochs)

    def _whole(self, epochs: int) -> int:
        """Rounded up, so that the run ends with an average if it has any."""
        return epochs if self.restart is None else self.restart * math.ceil(epochs / self.restart)


def tidied(w: Vector, problem: Problem, noise: float) -> Vector:
    """Post-processing of released weights by the penalty.

    Weights that noise alone could have produced become zero if the penalty is sparse; the rest is
    projected on the penalty's domain.
    """
    w = w.copy()
    columns = problem.columns(w)  # a view
    if noise > 0 and _makes_zeros(problem):
        columns[np.abs(columns) <= noise * math.sqrt(2 * math.log(max(columns.size, 2)))] = 0.0
    return problem.prox(w, np.finfo(np.float64).tiny)


def _makes_zeros(problem: Problem) -> bool:
    """Whether the penalty sets small weights of either sign to zero."""
    small = np.full(problem.columns(np.zeros(problem.shape)).shape, 1e-12)
    return not (problem.penalty.prox(small, 1.0).any() or problem.penalty.prox(-small, 1.0).any())
