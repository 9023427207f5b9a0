"""DPSC: private ADMM with noise in the objective of its primal step.

This is the corrected form (docs/algorithms/dpsc.md). The published algorithm draws its noise once,
before the loop, which reveals it; here every iteration draws its own. ``"objective"`` solves the
same problem with one release instead of many: prefer it, unless the iteration itself is wanted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.penalties import Zero
from hushfit.problem import Problem
from hushfit.release import Door, GaussianInside, LaplaceInside, PerturbedMinimiser, Plan, Planned
from hushfit.solvers.base import Iterate
from hushfit.solvers.perturbation import tolerance_for

_NAME = "primal step"
_NOISE: dict[str, type[GaussianInside] | type[LaplaceInside]] = {
    "gaussian": GaussianInside,
    "pure": LaplaceInside,
}


@dataclass(frozen=True)
class DPSC:
    r"""ADMM with a perturbed primal step, for any penalty with a prox, convex or not.

    An iteration is ``Z = prox(w - V/c)``, then ``w`` = the noisy minimiser of mean loss +
    :math:`\frac c2 \|Z - w + V/c\|^2`, then ``V = V + c (Z - w)``. The result is the sparse ``Z``
    of one more prox.

    Parameters
    ----------
    steps : int, default=10
        Iterations; each one is a release.
    c : float, default=0.1
        Weight of the quadratic, which is also the strong convexity that the proof needs. The prox
        has step size 1/c.
    noise : {"gaussian", "pure"}, default="gaussian"
        Pure noise (Laplace) gives every release delta 0; it is larger.
    output_share : float, default=0.01
        Share of the budget for output noise, which hides the error of the numerical minimiser.
    tolerance : float or None
        Bound on the gradient norm at the minimiser. None is 1e-8, or 1e-6 for more than 600
        weights.
    output : {"sparse", "dense"}, default="sparse"
        ``Z`` or ``w``; both are functions of the releases.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import DPSC
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = DPSC().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('primal step', 10)]
    """

    steps: int = 10
    c: float = 0.1
    noise: str = "gaussian"
    output_share: float = 0.01
    tolerance: float | None = None
    output: str = "sparse"

    takes_constraint = False

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 < self.c < float("inf"):
            raise InvalidArgument(f"{self} needs steps >= 1 and a finite c > 0.")
        if self.noise not in _NOISE or self.output not in ("sparse", "dense"):
            raise InvalidArgument(
                f"{self} needs noise 'gaussian' or 'pure' and output 'sparse' or 'dense'."
            )

    def plan(self, problem: Problem) -> Plan:
        query = self._query(problem, np.zeros(problem.shape))
        noise = _NOISE[self.noise].of(query, self.output_share)
        return Plan((Planned(_NAME, PerturbedMinimiser, self.steps, sampling=noise),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        c = self.c
        w, V = np.zeros(problem.shape), np.zeros(problem.shape)

        for k in range(1, self.steps + 1):
            Z = problem.prox(w - V / c, 1 / c)
            w = door.release(_NAME, self._query(problem, -(c * Z + V))).reshape(problem.shape)
            V = V + c * (Z - w)
            result = w if self.output == "dense" else problem.prox(w - V / c, 1 / c)
            yield Iterate(result, weight=float(k == self.steps))

    def _query(self, problem: Problem, linear: Vector) -> PerturbedMinimiser:
        """The primal step: mu = c and a linear term make the quadratic; the penalty is outside."""
        return PerturbedMinimiser(
            replace(problem, penalty=Zero()), self.c, linear, tolerance_for(problem, self.tolerance)
        )
