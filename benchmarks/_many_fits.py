"""Many fits of one shape: what follows from public numbers alone is computed once.

That is the calibration of the noise and the text of the guarantee. Everything that reads rows,
draws noise or uses an answer is what `private_fit` does, to the last bit.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hushfit.data import DataSource
from hushfit.estimators._private_fit import Fit
from hushfit.privacy import Budget, Guarantee
from hushfit.problem import Problem
from hushfit.release import Contract, Quote, Randomness, Terms
from hushfit.release.curator import Curator
from hushfit.solvers import run, solver_from


@dataclass(eq=False)
class ManyFits:
    """Fits of one problem by one solver at one budget, to different rows."""

    problem: Problem
    solver: Any
    budget: Budget
    _guarantee: Guarantee | None = None

    @cached_property
    def _chosen(self) -> Any:
        return solver_from(self.solver, self.problem, self.budget)

    @cached_property
    def _quote(self) -> Quote:
        return self._chosen.plan(self.problem).quote(self.problem, self.budget)

    def fit(self, source: DataSource, seed: int) -> Fit:
        """A fit with the noise of a seed."""
        quote, relation, randomness = self._quote, self.problem.relation, Randomness.of(seed)
        if self._guarantee is None:
            terms = Terms(self.budget, "benchmark", randomness, warn=False)
            self._guarantee = Contract.signed(source, quote, relation, terms).guarantee
        curator = Curator(
            source, quote.plan, quote.multipliers, relation, *randomness, quote.reserve
        )
        result = run(self._chosen, self.problem, curator)
        return Fit(self._chosen, result, self._guarantee, None, curator.transcript)
