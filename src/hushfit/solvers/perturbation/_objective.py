"""Objective perturbation: one release of the minimiser of a noisy objective.

One release gets the whole budget, where an iterative method divides it. For convex penalties, and
in stages for others. The noise is a linear term of the objective; its cost is proved in
docs/proofs/objective.md, and docs/algorithms/objective.md says when to use it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.penalties import FoldedConcave, Penalty
from hushfit.privacy import Budget, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import Door, GaussianInside, PerturbedMinimiser, Plan, Planned
from hushfit.solvers.base import Iterate

_NAME = "minimiser"
# Curvature of one record over mu costs about 1.4 kappa^2 of rho: a hundredth of it when the budget
# is known, and small for epsilon down to 0.1 when it is not. Without privacy mu is close to zero,
# which leaves the objective unchanged.
_CURVATURE_SHARE = 0.01
_DEFAULT_KAPPA, _MAX_KAPPA = 0.005, 0.25
_NONPRIVATE_MU = 2e-6  # times the smoothness
# The noise on the output grows as mu shrinks; below this it would be visible, while shrinkage by
# this much is not.
_MIN_MU = 1e-4
# With more weights than this a solve takes long, and the noise of the release hides a coarser one.
_MAX_FINE_WEIGHTS = 600
_FINE, _COARSE = 1e-8, 1e-6
# Noise on the output makes zeros non-zero; a weight below this many standard deviations was
# probably zero.
_ZERO_DEVIATIONS = 5.0


@dataclass(frozen=True)
class ObjectivePerturbation:
    r"""Release the minimiser of mean loss + penalty + :math:`\frac\mu2 \|w\|^2` + noise . w.

    A non-convex penalty is handled in stages: each minimises with the weighted lasso that is
    tangent to the penalty at the weights released by the stage before (at zero in the first).

    Parameters
    ----------
    mu : float or None
        Weight of the squared norm, on the intercept too; the privacy proof needs it above 0. None
        takes the smoothness of the loss over ``kappa`` times the number of rows, and at least 1e-4.
    stages : int or None
        Number of releases that share the budget. None is 1 for a convex penalty, which needs no
        more, and 2 for others.
    output_share : float, default=0.01
        Share of the budget (of the Gaussian mu squared) for output noise, which hides the error of
        the numerical minimiser.
    tolerance : float or None
        Bound on the gradient norm at the minimiser. None is 1e-8, or 1e-6 for more than 600
        weights.
    kappa : float or None
        Curvature of one record over mu, shared by the stages, when ``mu`` is None. None chooses it
        so that it costs a hundredth of the budget; 0.005 if the budget is not known.
    floor : float, default=0.01
        Smallest distance from zero at which a stage linearises a penalty whose slope at zero is
        infinite.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import ObjectivePerturbation
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = ObjectivePerturbation().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('minimiser', 1)]
    """

    mu: float | None = None
    stages: int | None = None
    output_share: float = 0.01
    tolerance: float | None = None
    kappa: float | None = None
    floor: float = 1e-2

    takes_constraint = False

    def __post_init__(self) -> None:
        if any(value is not None and not value > 0 for value in (self.mu, self.kappa, self.stages)):
            raise InvalidArgument(
                f"{self} needs mu > 0, kappa > 0 and stages >= 1, or None for the defaults."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "ObjectivePerturbation":
        """The same with ``kappa`` (without privacy, ``mu``) chosen for a budget, unless given."""
        if self.mu is not None or self.kappa is not None:
            return self
        if not budget.is_private:
            return replace(self, mu=_NONPRIVATE_MU * problem.loss.smoothness)
        rho = gaussian_mu(budget.epsilon, budget.delta) ** 2 / 2
        return replace(self, kappa=min(math.sqrt(_CURVATURE_SHARE * rho), _MAX_KAPPA))

    def plan(self, problem: Problem) -> Plan:
        stages = self._stages(problem.penalty)
        query = self._query(problem, np.zeros(problem.shape))
        noise = GaussianInside.of(query, self.output_share)
        return Plan((Planned(_NAME, PerturbedMinimiser, stages, sampling=noise),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        w = np.zeros(problem.shape)
        stages = self._stages(problem.penalty)
        for stage in range(1, stages + 1):
            query = self._query(problem, w)
            released = door.release(_NAME, query).reshape(problem.shape)
            w = _with_zeros(released, query, self.output_share, door.noise_multiplier(_NAME))
            yield Iterate(w, weight=float(stage == stages))

    def _stages(self, penalty: Penalty) -> int:
        if penalty.convex and self.stages not in (None, 1):
            raise InvalidArgument(
                f"stages={self.stages} would divide the budget, but the convex {penalty!r} needs "
                "one release. Use stages=1."
            )
        return self.stages or (1 if penalty.convex else 2)

    def _query(self, problem: Problem, w: Vector) -> PerturbedMinimiser:
        """The query of the next stage, given the weights that the last one released."""
        convex = replace(
            problem, penalty=_convex_at(problem.penalty, problem.columns(w), self.floor)
        )
        return PerturbedMinimiser(
            convex, self._mu(problem), tolerance=tolerance_for(problem, self.tolerance)
        )

    def _mu(self, problem: Problem) -> float:
        if self.mu is not None:
            return self.mu
        kappa = (self.kappa or _DEFAULT_KAPPA) / math.sqrt(
            self._stages(problem.penalty) * problem.loss.hessian_rank
        )
        return max(problem.loss.smoothness / (kappa * problem.n_units), _MIN_MU)


def tolerance_for(problem: Problem, given: float | None) -> float:
    """Tolerance on the gradient norm of a minimiser: as given, or by the number of weights."""
    if given is not None:
        return given
    return _FINE if np.prod(problem.shape) <= _MAX_FINE_WEIGHTS else _COARSE


def _convex_at(penalty: Penalty, columns: Vector, floor: float) -> Penalty:
    """The penalty itself if convex, else its tangent weighted lasso."""
    if penalty.convex:
        return penalty
    if isinstance(penalty, FoldedConcave):
        return penalty.linearised(columns, floor)
    raise InvalidArgument(
        f"{penalty!r} is not convex and cannot be linearised, so no stage of objective "
        "perturbation is proved for it. Use 'dpsc', whose prox is post-processing."
    )


def _with_zeros(
    released: Vector, query: PerturbedMinimiser, output_share: float, noise_multiplier: float
) -> Vector:
    """Weights that were probably zero before output noise, set to zero.

    Unchanged for smooth penalties, which have no zeros.
    """
    problem = query.problem
    if problem.penalty.ridge is not None or noise_multiplier == 0:
        return released
    w = released.copy()
    columns = problem.columns(w)  # a view
    scale = query.output_scale(noise_multiplier, GaussianInside.of(query, output_share))
    columns[np.abs(columns) <= _ZERO_DEVIATIONS * scale] = 0.0
    return w
