"""The life of a fit, after the arguments have been checked: plan, calibrate, pay, then look."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushfit.data import DataSource, SecureCoins, SeededCoins
from hushfit.errors import InsecureNoiseWarning, InvalidArgument, WeakGuaranteeWarning
from hushfit.estimators._progress import progress_bar
from hushfit.privacy import Budget, Guarantee, Ledger, Sampler, sampler_for
from hushfit.problem import Problem
from hushfit.release import Curator
from hushfit.solvers import Result, run, solver_from


@dataclass(frozen=True)
class Terms:
    """On what terms rows may be used: who pays, how much, and with which noise."""

    budget: Budget
    ledger: Ledger | None
    random_state: Any
    label: str
    public: tuple[str, ...]
    notes: tuple[str, ...] = ()
    verbose: int = 0


def private_fit(source: DataSource, problem: Problem, solver: Any, terms: Terms) -> tuple[Result, Guarantee]:
    """Fit one model. Everything that can be refused is refused before the ledger is charged."""
    if not isinstance(terms.ledger, Ledger | None):
        raise InvalidArgument(f"ledger={terms.ledger!r} keeps no account. Give a Ledger(epsilon, delta), or None for none.")
    n = problem.n_rows
    chosen = solver_from(solver, problem, terms.budget)
    quote = chosen.plan(problem).quote(problem, terms.budget)
    sampler, coins = noise_and_coins(terms.random_state)
    guarantee = Guarantee(
        terms.budget.epsilon,
        terms.budget.delta,
        problem.relation,
        public=(f"the number of rows, {n}", *terms.public),
        releases=quote.records(),
        cost=quote.cost,
        secure=sampler.secure,
        notes=terms.notes,
    )
    _warn_about(terms.budget, n, sampler)
    if terms.ledger is not None:
        terms.ledger.charge(quote.cost, terms.label, problem.relation)
    curator = Curator(source, quote.plan, quote.multipliers, problem.relation, sampler, coins, quote.reserve)
    steps = max(part.count for part in quote.plan.parts)
    with progress_bar(terms.label, steps, shown=terms.verbose > 0) as watch:
        return run(chosen, problem, curator, watch), guarantee


def noise_and_coins(random_state: Any) -> tuple[Sampler, SecureCoins | SeededCoins]:
    """Secure for None; for a seed, two independent reproducible streams."""
    if random_state is None:
        return sampler_for(None), SecureCoins()
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        draw = random_state.randint if isinstance(random_state, np.random.RandomState) else random_state.integers
        random_state = int(draw(2**31 - 1))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise InvalidArgument(
            f"random_state={random_state!r} is not a seed. Use None for secure noise, or an int of at least 0 or a numpy "
            "generator for reproducible, insecure noise."
        )
    noise, batches = np.random.SeedSequence(int(random_state)).generate_state(2)
    return sampler_for(int(noise)), SeededCoins(int(batches))


def _warn_about(budget: Budget, n_rows: int, sampler: Sampler) -> None:
    if budget.delta > 1 / n_rows and budget.is_private:
        warnings.warn(
            f"delta={budget.delta:g} is above 1/n = {1 / n_rows:.2g}: publishing one row in full, chosen at random, would "
            f"also keep that promise. Ask for a delta well below it, for instance {0.1 / n_rows:.0e}.",
            WeakGuaranteeWarning,
            stacklevel=4,
        )
    if not sampler.secure and budget.is_private:
        warnings.warn(
            "random_state makes the noise reproducible, so whoever knows the seed can subtract it: for tests and "
            "simulations only. Leave random_state=None for a release.",
            InsecureNoiseWarning,
            stacklevel=4,
        )
