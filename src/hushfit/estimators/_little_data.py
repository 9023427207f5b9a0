"""What is said, before anything is spent, where noise will hide what the rows tell."""

import warnings

from hushfit.errors import TooLittleDataWarning
from hushfit.losses import Poisson
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.solvers import units_needed, units_to_tell_classes


def warn_of_few_for_numbers(problem: Problem, budget: Budget) -> None:
    """Warn that a model of numbers or counts may be worse than one number for all."""
    needed = units_needed(budget, problem.dimension, isinstance(problem.loss, Poisson))
    _warn_below(needed, problem, budget, "predictions may be worse than one number for all")


def warn_of_few_for_classes(problem: Problem, budget: Budget) -> None:
    """Warn that a classifier may be no better than one class for all."""
    needed = units_to_tell_classes(budget, problem.dimension, problem.relation)
    _warn_below(needed, problem, budget, "the model may be no better than one class for all")


def _warn_below(needed: int, problem: Problem, budget: Budget, outcome: str) -> None:
    """From public numbers alone."""
    if problem.n_units >= needed:
        return
    units = problem.privacy_unit.plural
    warnings.warn(
        f"{problem.n_units} {units} with {problem.n_features} columns are too few at "
        f"epsilon={budget.epsilon:g} and delta={budget.delta:g}: noise hides most of what they "
        f"tell, and {outcome}. Use at least {needed} {units} or a larger epsilon. Nothing has been "
        "spent yet.",
        TooLittleDataWarning,
        stacklevel=4,
    )
