"""Calibration of probabilities: rescale the weights of another solver by one private factor.

Clipping, shrinkage and early stopping leave weights that rank well but are too long or too short
for their probabilities. The right factor ``a`` makes the derivative of the log-loss along the
weights vanish. A noisy histogram of the signed margins gives that derivative for every ``a`` at
once; where noise dominates it, a prior decides. The factor is positive, so no predicted class
changes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.problem import Problem
from hushfit.release import Door, MarginHistogram, Plan, Planned
from hushfit.solvers._whitening import margin_spread
from hushfit.solvers.base import Iterate, Solver, finished

_NAME = "calibration"
_MOMENT = "second moment"
# Bins of the signed margin, in units of its root mean square, on either side of zero.
_EDGES = np.array([0.3, 0.8, 1.6])
_OUTER_BIN = 1.1  # position assumed for an unbounded bin, in units of its edge
# Prior of log a: midway between "nearly calibrated already" and "margins of about 3.6".
_PRIOR_FACTOR, _PRIOR_MARGIN, _PRIOR_STD = 0.85, 3.6, 0.4
_LOG_FACTORS = np.linspace(-3, 3, 601)


@dataclass(frozen=True)
class Recalibrated:
    """A solver that releases a second moment, followed by a private rescaling; for two classes.

    Parameters
    ----------
    solver : Solver
        Its plan must have a ``"second moment"``, from which the size of the margins is estimated.
    share : float, default=0.03
        Share of the budget (of mu squared) for the histogram; the solver's releases have the rest.
    """

    solver: Solver
    share: float = 0.03

    takes_constraint = False

    def plan(self, problem: Problem) -> Plan:
        inner = self.solver.plan(problem)
        shares = inner.shares()
        if problem.outputs > 1 or _MOMENT not in shares:
            raise InvalidArgument(
                f"Recalibrated needs two classes and a solver that releases a {_MOMENT!r}, not "
                f"{problem.outputs} outputs and {sorted(shares)}. Use the solver alone."
            )
        inner_parts = [
            replace(part, share=(1 - self.share) * shares[part.name]) for part in inner.parts
        ]
        return Plan((*inner_parts, Planned(_NAME, MarginHistogram, 1, self.share)))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        return self.solver.iterates(problem, door)

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        w = finished(self.solver, problem, door, average)
        spread, mean_weight = margin_spread(w, problem, door, _MOMENT)
        spread = max(spread, 1e-12)
        edges = spread * np.concatenate([-_EDGES[::-1], [0.0], _EDGES])
        query = MarginHistogram(problem, w, edges)
        counts = door.release(_NAME, query)
        noise = door.noise_multiplier(_NAME) * query.sensitivity(problem.relation)
        # Counts as if every unit had the weight one, which the prior is measured against.
        return w * _factor(counts / mean_weight, edges, noise / mean_weight, spread)


def _factor(counts: Vector, edges: Vector, noise: float, spread: float) -> float:
    """Most probable factor on the weights, given noisy counts of the bins."""
    middles = (edges[1:] + edges[:-1]) / 2
    margins = np.concatenate([[_OUTER_BIN * edges[0]], middles, [_OUTER_BIN * edges[-1]]])
    slopes = margins * expit(-np.exp(_LOG_FACTORS)[:, None] * margins)
    derivative = slopes @ counts
    std = max(noise, 1.0) * np.linalg.norm(slopes, axis=1)
    prior_mean = 0.5 * np.log(_PRIOR_FACTOR) + 0.5 * np.log(_PRIOR_MARGIN / spread)
    misfit = (derivative / std) ** 2 + ((_LOG_FACTORS - prior_mean) / _PRIOR_STD) ** 2
    return float(np.exp(_LOG_FACTORS[misfit.argmin()]))
