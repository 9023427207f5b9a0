"""Output perturbation: noise on the certified minimiser of a strongly convex objective.

    find w_hat with a proof that its gradient in  mean loss + penalty + (mu/2) |w|^2  is below gamma
        mu
    release w_hat + noise for the sensitivity 2 L / (n mu) + 2 gamma

Implementations usually omit the second term: a numerical minimiser is inexact, and its error
depends on the rows. When to use it: docs/algorithms/output.md. Proof: docs/proofs/permuted.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import Door, Plan, Planned, RegularisedMinimiser
from hushfit.solvers._whitening import relation_factor
from hushfit.solvers.base import Iterate
from hushfit.solvers.gradient import tidied
from hushfit.solvers.perturbation._objective import tolerance_for

_NAME = "minimiser"
# Assumed norm of the weights, in the rule that balances the shrinkage by mu against the noise that
# it saves.
_RADIUS = 7.0
# Budget assumed when none is given; only mu depends on it.
_DEFAULT_BUDGET = Budget(1.0, 1e-6)
# Without privacy: too small to matter.
_NONPRIVATE_MU = 1e-5
_MIN_MU, _MAX_MU = 1e-5, 1.0


@dataclass(frozen=True)
class OutputPerturbation:
    r"""Release the minimiser of mean loss + penalty + :math:`\frac\mu2 \|w\|^2`, with noise added.

    Parameters
    ----------
    mu : float or None
        Weight of the squared norm, on the intercept too; noise is proportional to 1 / (n mu). None
        chooses it from the budget and the number of rows.
    tolerance : float or None
        Bound on the gradient norm at the minimiser; enforced, and part of the sensitivity. None is
        1e-8, or 1e-6 for more than 600 weights.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import OutputPerturbation
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = OutputPerturbation().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('minimiser', 1)]
    """

    mu: float | None = None
    tolerance: float | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        if any(
            value is not None and not 0 < value < math.inf for value in (self.mu, self.tolerance)
        ):
            raise InvalidArgument(
                f"{self} needs mu and tolerance finite and above 0, or None for the defaults."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "OutputPerturbation":
        """The same with ``mu`` chosen for a budget, unless it was given."""
        if self.mu is not None:
            return self
        return replace(
            self,
            mu=_default_mu(budget, problem)
            if budget.is_private
            else _NONPRIVATE_MU * problem.loss.smoothness / 0.25,
        )

    def plan(self, problem: Problem) -> Plan:
        # Refuses here, before any charge, what the query would refuse.
        self._query(problem)
        return Plan((Planned(_NAME, RegularisedMinimiser, 1),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        query = self._query(problem)
        noise = door.noise_multiplier(_NAME) * query.sensitivity(problem.relation)
        yield Iterate(tidied(query.weights(door.release(_NAME, query)), problem, noise))

    def _query(self, problem: Problem) -> RegularisedMinimiser:
        mu = self.mu or _default_mu(_DEFAULT_BUDGET, problem)
        return RegularisedMinimiser(problem, mu, tolerance_for(problem, self.tolerance))


def _default_mu(budget: Budget, problem: Problem) -> float:
    """The mu that balances bias and noise.

    Bias is mu radius^2 / 2, noise is smoothness / 2 times its variance along a record.
    """
    noise_times_mu = (
        relation_factor(problem)
        * problem.loss.slope_bound
        / (problem.n_units * gaussian_mu(budget.epsilon, budget.delta))
    )
    mu = math.pow(2 * problem.loss.smoothness * (noise_times_mu / _RADIUS) ** 2, 1 / 3)
    return min(max(mu, _MIN_MU), _MAX_MU)
