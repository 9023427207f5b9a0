"""A few gradient steps, to tell which columns matter rather than how much.

The first gradient already ranks columns by their correlation with the label; each further step
takes away a little of what neighbouring columns lend each other, and divides the budget once more.
So the steps are few while noise is loud. Plain steps rank best where records are nearly round;
where the released second moment shows that they are not, steps in its metric keep common columns
from ranking first for being common.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, Metric, Plan, Planned, SecondMoment
from hushfit.solvers._whitening import Spectrum, relation_factor, release_spectrum
from hushfit.solvers.base import Iterate

# of the usual length of a record in the metric: the slope of the logistic loss at the start
_CLIP = 0.5
_STEP = 2.5
# Fitted on the papers' correlated design only. On real tables (area under the curve of a fit on the
# ten columns ranked first) it was level with ssADMM on a9a, a little below on mushrooms at epsilon
# .05 and .2, on bank below there and far above at .8.
_LOUD = 0.022
# Largest over smallest eigenvalue, as believed, up to which a second moment is taken to be a
# multiple of the identity.
_NEARLY_ROUND = 4.0
_MOST_STEPS = 60


@dataclass(frozen=True)
class Screening:
    """A few clipped gradient steps without a penalty, for ranking columns.

    Parameters
    ----------
    steps : int or None
        None lets the budget decide, see ``for_budget``.
    moment_share : float, default=0.02
        Part of the budget (of mu squared) for the second moment.
    """

    steps: int | None = None
    moment_share: float = 0.02

    takes_constraint = False

    def __post_init__(self) -> None:
        if not (self.steps is None or self.steps >= 1) or not 0 < self.moment_share < 1:
            raise InvalidArgument(f"{self} needs steps >= 1 and 0 < moment_share < 1.")

    def for_budget(self, budget: Budget, problem: Problem) -> "Screening":
        """The number of steps: one while the noise of a single gradient, against the length of a
        record, is loud; more as it falls.
        """
        if self.steps is not None:
            return self
        multiplier = (
            Plan((Planned("gradient", ClippedGradient, 1),))
            .quote(problem, budget)
            .multipliers["gradient"]
        )
        noise = multiplier * relation_factor(problem) / problem.n_rows
        quiet = _LOUD / max(noise * math.sqrt(problem.dimension * problem.outputs), 1e-12)
        return replace(self, steps=int(np.clip(round(quiet), 1, _MOST_STEPS)))

    def plan(self, problem: Problem) -> Plan:
        if problem.penalty.ridge != 0:
            raise InvalidArgument(
                f"Screening takes no penalty, not {problem.penalty!r}. Use solver='prox-newton'."
            )
        return Plan(
            (
                Planned("second moment", SecondMoment, 1, self.moment_share),
                Planned("gradient", ClippedGradient, self.steps or 1, 1 - self.moment_share),
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        metric = _metric(release_spectrum(problem, door, "second moment"))
        steps, w = self.steps or 1, np.zeros(problem.shape)

        for t in range(steps):
            query = ClippedGradient(problem, w, _CLIP * metric.usual_length, metric.metric)
            g = door.release("gradient", query).reshape(problem.shape) / problem.n_rows
            w = w - _STEP * g @ metric.metric.A
            yield Iterate(w, weight=float(t == steps - 1))


@dataclass(frozen=True, eq=False)
class _Metric:
    """A metric and about the length that records have in it."""

    metric: Metric
    usual_length: float


def _metric(spectrum: Spectrum) -> _Metric:
    """That of the second moment, or the plain one where eigenvalues hardly differ: noise would
    turn it for nothing.
    """
    root = math.sqrt(len(spectrum.believed))
    if spectrum.believed.max() <= _NEARLY_ROUND * spectrum.believed.min():
        return _Metric(Metric(root * np.eye(len(spectrum.believed))), root)
    return _Metric(Metric(spectrum.power(-0.5)), math.sqrt(spectrum.effective_dimension))
