"""Mini-batch descent that keeps its way to itself and releases only where it ends (NSGD and
RSGD-AR, thesis chapter 3).

    deal the rows into batches B_1, ..., B_m                      (secretly for "rsgd-ar")
    for each epoch, for each batch j:  w <- prox(w - eta (mean gradient over B_j + mu w), eta)
    after each `restart` epochs:       w <- mean of the iterates since the last time, and eta starts
                                       afresh
    release w + noise                                             once

How far one record can move the end is computed for each batch in lock-step with the run. What the
thesis got wrong, and what is guaranteed here: docs/algorithms/rsgd.md.
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
# Length that the weights are taken to need, in the rule for how long to run.
_RADIUS = 10.0
# Averages lag behind, in noise as in what they learnt: a run with restarts goes on so much longer.
_LAG = 1.5
# What is spent when nobody said: only the length of the run depends on it.
_USUAL_BUDGET = Budget(1.0, 1e-6)
_USUAL_EPOCHS, _MOST_EPOCHS = 20, 1000
# A batch has at least so many rows, so that its gradient is worth a step.
_LEAST_BATCH = 1000
# The length of logistic gradients at the start: what clipping the few longer ones loses, less noise
# makes up for.
_LOGISTIC_CLIP = 0.5
# Without privacy a run is as long as patience: the sum of its steps times the smoothness.
_OPEN_STEPS = 4000.0


@dataclass(frozen=True)
class PermutedSGD:
    r"""Mini-batch proximal gradient descent with noise on its end only.

    Parameters
    ----------
    time : float or None
        Sum of all step sizes, which is what noise grows with. None chooses it from the budget and
        the number of rows. Ignored when ``epochs`` is given.
    epochs : int or None
        Passes over the rows. None takes as many as ``time`` needs.
    batches : int or None
        Batches of (almost) equal size. None takes about a twentieth of the steps that ``time``
        needs, of 1000 rows at least.
    step_size : float or None
        First step, at most; None is 1 / smoothness.
    schedule : {"constant", "harmonic"}, default="harmonic"
        Whether steps stay or are divided by 1, 2, 3, ... from epoch to epoch, starting afresh after
        each restart.
    restart : int or None, default=5
        Epochs after which the mean of the iterates replaces the iterate. None never averages.
    order : {"secret", "as-given"} or int, default="secret"
        How rows are dealt into batches: secretly; as they lie; or shuffled by a public seed. What
        is not secret costs a little more, as it has to hide a record wherever it is.
    mu : float, default=0.0
        Weight of :math:`\frac12 \|w\|^2`, on the intercept too. It bounds how far a record can move
        a long run.
    clip : float or None
        Largest length of a record's gradient. None is 0.5 for the logistic loss, and no clipping
        for others or when epsilon is infinite.
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
                "usual."
            )
        if any(
            value is not None and value != int(value)
            for value in (self.epochs, self.batches, self.restart)
        ):
            raise InvalidArgument(
                f"{self} needs whole numbers of epochs, batches and epochs between restarts."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "PermutedSGD":
        """The same with what was left open chosen for a budget: how long to run, and whether to
        clip.
        """
        if not budget.is_private:
            clip = problem.loss.slope_bound if self.clip is None else self.clip
            return replace(self, clip=clip, time=self.time or _OPEN_STEPS / problem.loss.smoothness)
        return replace(self, time=self.time or self._usual_time(budget, problem))

    def plan(self, problem: Problem) -> Plan:
        run = self._query(
            problem
        )  # refuses here, before anything is paid, what it would refuse when asked
        if len(run.passes.sizes) > 1 and not replaces_one(problem.relation):
            raise UnsupportedRelation(
                "A run over several batches is proved under 'replace-one' only: adding or removing "
                "a record moves others from batch "
                "to batch. Use adjacency='replace-one', or solver='outpert-gd', whose one batch "
                "has all rows."
            )
        secret = self.order == "secret" and len(run.passes.sizes) > 1
        mechanism: Mechanism = SecretOrder.of(run) if secret else FullBatch()
        return Plan((Planned(_NAME, PermutedRun, 1, sampling=mechanism),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        run = self._query(problem)
        noise = door.noise_multiplier(_NAME) * run.sensitivity(problem.relation)
        yield Iterate(tidied(run.weights(door.release(_NAME, run)), problem, noise))

    def _query(self, problem: Problem) -> PermutedRun:
        order = self.order if isinstance(self.order, int) else None
        return PermutedRun(problem, self._passes(problem), self._clip(problem), self.mu, order)

    def _clip(self, problem: Problem) -> float:
        if self.clip is not None:
            return self.clip
        return _LOGISTIC_CLIP if isinstance(problem.loss, Logistic) else problem.loss.slope_bound

    def _usual_time(self, budget: Budget, problem: Problem) -> float:
        """Where half the squared radius over the time, what is not yet learnt, balances the
        noise that time brings.
        """
        hidden = problem.n_rows * gaussian_mu(budget.epsilon, budget.delta) / self._clip(problem)
        time = math.pow(_RADIUS * hidden, 2 / 3) / math.pow(8 * problem.loss.smoothness, 1 / 3)
        return time if self.restart is None else _LAG * time

    def _passes(self, problem: Problem) -> Passes:
        first = self.step_size or 1 / (problem.loss.smoothness + self.mu)
        time = self.time or self._usual_time(_USUAL_BUDGET, problem)
        batches = self.batches or self._usual_batches(problem, time / first)
        if self.epochs is not None:
            return Passes.even(
                problem.n_rows, batches, tuple(first * self._shape(self.epochs)), self.restart
            )
        shape = self._shape(_MOST_EPOCHS)
        epochs = 1 + int(np.searchsorted(batches * first * np.cumsum(shape), time))
        epochs = min(_MOST_EPOCHS, self._whole(epochs))
        shape = shape[:epochs]
        return Passes.even(
            problem.n_rows,
            batches,
            tuple(min(first, time / (batches * shape.sum())) * shape),
            self.restart,
        )

    def _usual_batches(self, problem: Problem, steps: float) -> int:
        return max(1, min(math.ceil(steps / _USUAL_EPOCHS), problem.n_rows // _LEAST_BATCH))

    def _shape(self, epochs: int) -> Vector:
        """Step of each epoch, over the first."""
        epoch = np.arange(epochs)
        since = epoch if self.restart is None else epoch % self.restart
        return 1 / (since + 1.0) if self.schedule == "harmonic" else np.ones(epochs)

    def _whole(self, epochs: int) -> int:
        """Rounded up, such that the run ends with an average if it has any."""
        return epochs if self.restart is None else self.restart * math.ceil(epochs / self.restart)


def tidied(w: Vector, problem: Problem, noise: float) -> Vector:
    """Released weights as the penalty would have them: zero where noise alone would look like
    this, and inside its set.
    """
    w = w.copy()
    columns = problem.columns(w)  # a view
    if noise > 0 and _makes_zeros(problem):
        columns[np.abs(columns) <= noise * math.sqrt(2 * math.log(max(columns.size, 2)))] = 0.0
    return problem.prox(w, np.finfo(np.float64).tiny)


def _makes_zeros(problem: Problem) -> bool:
    """Whether the penalty sends small weights to zero, whatever their sign."""
    small = np.full(problem.columns(np.zeros(problem.shape)).shape, 1e-12)
    return not (problem.penalty.prox(small, 1.0).any() or problem.penalty.prox(-small, 1.0).any())
