"""Probabilities that can be believed: rescale the weights of another solver by one number, found
privately.

Clipping, shrinking and early stopping leave weights that rank well but are too long or too short
for their probabilities. The right factor ``a`` makes the derivative of the log-loss along the
weights vanish. A noisy histogram of the signed margins gives that derivative for every ``a`` at
once; where its noise drowns it, a prior decides. The factor is positive, so no prediction changes.
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
# Cells of the signed margin, in units of its root mean square, on either side of zero.
_EDGES = np.array([0.3, 0.8, 1.6])
_OUTER_CELL = 1.1  # where an unbounded cell is taken to lie, in units of its edge
# Prior of log a: half way between "nearly right already" and "margins of about 3.6".
_USUAL_FACTOR, _USUAL_MARGIN, _PRIOR_DEVIATION = 0.85, 3.6, 0.4
_LOG_FACTORS = np.linspace(-3, 3, 601)


@dataclass(frozen=True)
class Recalibrated:
    """A solver that releases a second moment, followed by a private rescaling of its weights; for
    two classes.

    Parameters
    ----------
    solver : Solver
        Its plan must name a ``"second moment"``, from which the size of the margins is known.
    share : float, default=0.03
        Part of the budget (of mu squared) for the histogram; the solver's own releases share the
        rest.
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
                f"{problem.outputs} outputs and "
                f"{sorted(shares)}. Use the solver alone."
            )
        kept = [replace(part, share=(1 - self.share) * shares[part.name]) for part in inner.parts]
        return Plan((*kept, Planned(_NAME, MarginHistogram, 1, self.share)))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        return self.solver.iterates(problem, door)

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        w = finished(self.solver, problem, door, average)
        spread = max(margin_spread(w, problem, door, "second moment"), 1e-12)
        edges = spread * np.concatenate([-_EDGES[::-1], [0.0], _EDGES])
        query = MarginHistogram(problem, w, edges)
        counts = door.release(_NAME, query)
        noise = door.noise_multiplier(_NAME) * query.sensitivity(problem.relation)
        return w * _factor(counts, edges, noise, spread)


def _factor(counts: Vector, edges: Vector, noise: float, spread: float) -> float:
    """Most probable factor on the weights, given noisy counts of the cells."""
    middles = (edges[1:] + edges[:-1]) / 2
    margins = np.concatenate([[_OUTER_CELL * edges[0]], middles, [_OUTER_CELL * edges[-1]]])
    slopes = margins * expit(-np.exp(_LOG_FACTORS)[:, None] * margins)
    derivative = slopes @ counts
    deviation = max(noise, 1.0) * np.linalg.norm(slopes, axis=1)
    usual = 0.5 * np.log(_USUAL_FACTOR) + 0.5 * np.log(_USUAL_MARGIN / spread)
    surprise = (derivative / deviation) ** 2 + ((_LOG_FACTORS - usual) / _PRIOR_DEVIATION) ** 2
    return float(np.exp(_LOG_FACTORS[surprise.argmin()]))
