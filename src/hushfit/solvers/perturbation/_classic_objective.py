"""Objective perturbation by the classic theorem of Kifer, Smith and Thakurta (2012).

    mu >= 2 smoothness / (n epsilon)
    b ~ Gaussian of standard deviation  shift sqrt(8 log(2/delta) + 4 epsilon) / epsilon,
        shift = bound on the change of the gradient between neighbours
    release the minimiser of  mean loss + penalty + mu/2 |w|^2 + b . w

The same release as 'objective', with about twice the noise, as the theorem is older than its
sharper successors. It is a baseline. docs/algorithms/objective-kifer.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import ClassicInside, Door, PerturbedMinimiser, Plan, Planned
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Iterate
from hushfit.solvers.perturbation._objective import tolerance_for

_NAME = "minimiser"
# The theorem needs kappa <= epsilon / 2; a little is left for the noise on the output.
_KAPPA_PER_EPSILON = 0.4
_DEFAULT_KAPPA, _MAX_KAPPA = 0.04, 0.5
# The noise on the output grows as mu shrinks.
_MIN_MU = 1e-4


@dataclass(frozen=True)
class ClassicObjective:
    r"""Objective perturbation with the noise of the classic theorem.

    It releases the minimiser of mean loss + penalty + :math:`\frac\mu2 \|w\|^2` + noise . w. For
    models with one output and convex penalties.

    Parameters
    ----------
    mu : float or None
        Weight of the squared norm, on the intercept too. The theorem needs at least 2 smoothness /
        (n epsilon). None takes 1.25 times that, and at least 1e-4.
    output_share : float, default=0.01
        Share of the budget for output noise, which hides the error of the numerical minimiser; the
        theorem assumes an exact one.
    tolerance : float or None
        Bound on the gradient norm at the minimiser. None is 1e-8, or 1e-6 for more than 600
        weights.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import ClassicObjective
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = ClassicObjective().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('minimiser', 1)]
    """

    mu: float | None = None
    output_share: float = 0.01
    tolerance: float | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        check_settings(self, mu=self.mu, tolerance=self.tolerance)

    def for_budget(self, budget: Budget, problem: Problem) -> "ClassicObjective":
        """The same with ``mu`` chosen for a budget, or a given ``mu`` checked against it."""
        if self.mu is None:
            kappa = min(_KAPPA_PER_EPSILON * budget.epsilon, _MAX_KAPPA)
            return replace(self, mu=_mu_for(problem, kappa))
        least = 2 * problem.loss.smoothness / (problem.n_units * budget.epsilon)
        if self.mu < least:
            raise InvalidArgument(
                f"mu={self.mu:g} is below {least:.3g} = 2 smoothness / (n epsilon), which the "
                "classic theorem needs. Give at least that, or use 'objective', which has no such "
                "condition."
            )
        return self

    def plan(self, problem: Problem) -> Plan:
        if problem.outputs > 1:
            raise InvalidArgument(
                f"The classic theorem is for one output, not {problem.outputs}: it needs records "
                "with Hessians of rank one. Use 'objective'."
            )
        query = self._query(problem)
        inside = ClassicInside.of(query, self.output_share)
        return Plan((Planned(_NAME, PerturbedMinimiser, 1, sampling=inside),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        yield Iterate(door.release(_NAME, self._query(problem)).reshape(problem.shape))

    def _query(self, problem: Problem) -> PerturbedMinimiser:
        mu = self.mu or _mu_for(problem, _DEFAULT_KAPPA)
        return PerturbedMinimiser(problem, mu, tolerance=tolerance_for(problem, self.tolerance))


def _mu_for(problem: Problem, kappa: float) -> float:
    return max(problem.loss.smoothness / (kappa * problem.n_units), _MIN_MU)
