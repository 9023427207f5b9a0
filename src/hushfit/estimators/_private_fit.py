"""A fit, after the arguments have been checked: plan, calibrate, charge, then read the rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.estimators._progress import progress_bar
from hushfit.privacy import Budget, Guarantee, Receipt
from hushfit.problem import Problem
from hushfit.release import Contract, Quote, Released, Terms
from hushfit.solvers import Result, Solver, run, solver_from


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of a private fit; all of it is public.

    Parameters
    ----------
    solver : Solver
        The solver chosen for the budget.
    result : Result
    guarantee : Guarantee
    receipt : Receipt or None
        The payment; None without a ledger.
    transcript : sequence of Released
        Every query of the solver with its noisy answer.
    """

    solver: Solver
    result: Result
    guarantee: Guarantee
    receipt: Receipt | None
    transcript: Sequence[Released]


def private_fit(
    source: DataSource, problem: Problem, solver: Any, terms: Terms, verbose: int = 0
) -> Fit:
    """Fit one model. Everything that can be refused is refused before the ledger is charged."""
    chosen = solver_from(solver, problem, terms.budget)
    quote = chosen.plan(problem).quote(problem, terms.budget)
    contract = Contract.signed(source, quote, problem.relation, terms)
    steps = max(part.count for part in quote.plan.parts)
    with progress_bar(terms.label, steps, shown=verbose > 0) as watch:
        result = run(chosen, problem, contract.curator, watch)
    transcript = contract.curator.transcript
    return Fit(chosen, result, contract.guarantee, contract.receipt, transcript)


def check_sizes(**sizes: Any) -> None:
    """Refuse numbers of units and columns of which there can be no table."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
            # Rows that were given by mistake are private, so they are named by their type.
            named = size is None or isinstance(size, Real | str)
            given = repr(size) if named else type(size).__name__
            raise InvalidArgument(
                f"{name} is {given}, which is no size. Give an int of at least 1, not the rows: "
                "a quote needs none."
            )


def quote_for(problem: Problem, solver: Any, budget: Budget) -> Quote:
    """Cost and noise of a fit, from public numbers alone; nothing is charged and no row is read."""
    return solver_from(solver, problem, budget).plan(problem).quote(problem, budget)
