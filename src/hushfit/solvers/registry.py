"""Solvers by name, and the solver of a user's argument."""

from collections.abc import Callable
from functools import partial
from typing import Any

from hushfit._settings import refuse_beyond_floats
from hushfit.errors import InvalidArgument, UnknownName
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.solvers.admm import DPSADMM, DPSC, DPVRADMM, MPADMM, SSADMM
from hushfit.solvers.auto import choose_solver
from hushfit.solvers.base import Solver, settled
from hushfit.solvers.gradient import (
    DPAGD,
    DPBLS,
    DPSGD,
    DPSVRG,
    DPAdam,
    ExactMinimiser,
    FrankWolfe,
    PermutedSGD,
    PrivGene,
    ProximalGradient,
)
from hushfit.solvers.newton import DoubleNoiseNewton, ProxNewton, WhitenedGradientDescent
from hushfit.solvers.perturbation import (
    ClassicObjective,
    ObjectivePerturbation,
    OneRelease,
    OutputPerturbation,
    SufficientStatistics,
    TwoReleases,
)
from hushfit.solvers.regression import WhitenedLeastSquares, WhitenedPoisson

SOLVERS: dict[str, Callable[[], Solver]] = {
    "whitened-gd": WhitenedGradientDescent,
    "prox-newton": ProxNewton,
    "proximal-gd": ProximalGradient,
    "exact": ExactMinimiser,
    "ss-admm": SSADMM,
    "mp-admm": MPADMM,
    "objective": ObjectivePerturbation,
    "dpsc": DPSC,
    "dp-sadmm": DPSADMM,
    "dp-vradmm": DPVRADMM,
    "dp-sgd": DPSGD,
    "dp-adam": DPAdam,
    "dp-svrg": DPSVRG,
    "newton": DoubleNoiseNewton,
    "frank-wolfe": FrankWolfe,
    "objective-kifer": ClassicObjective,
    "ssp": SufficientStatistics,
    "rsgd-ar": PermutedSGD,
    "nsgd": partial(PermutedSGD, schedule="constant", restart=None, order=0),
    "outpert-gd": partial(PermutedSGD, schedule="constant", restart=None, batches=1),
    "output": OutputPerturbation,
    "one-release": OneRelease,
    "two-releases": TwoReleases,
    "least-squares": WhitenedLeastSquares,
    "poisson": WhitenedPoisson,
    "bls": DPBLS,
    "dp-agd": DPAGD,
    "priv-gene": PrivGene,
}


_MEMBERS = ("takes_constraint", "plan", "iterates")


def solver_from(solver: Any, problem: Problem, budget: Budget) -> Solver:
    """The solver of a user's argument: ``"auto"``, another name, or a solver object.

    Examples
    --------
    >>> from hushfit import Budget, Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import solver_from
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> type(solver_from("ss-admm", problem, Budget(1.0, 1e-6))).__name__
    'SSADMM'
    """
    if solver == "auto":
        return choose_solver(problem, budget)
    if isinstance(solver, str):
        if solver not in SOLVERS:
            names = ", ".join(repr(name) for name in ("auto", *SOLVERS))
            raise UnknownName(
                f"solver={solver!r} is not known. Use one of {names}, or an object of "
                "hushfit.solvers."
            )
        return _fit_for(budget, problem, SOLVERS[solver]())
    missing = [name for name in _MEMBERS if not hasattr(solver, name)]
    if missing:
        raise InvalidArgument(
            f"solver={solver!r} is neither a name nor a solver: it does not declare "
            f"{', '.join(missing)}. "
            "Use 'auto', an object of hushfit.solvers, or a class with all members of "
            "solvers.Solver."
        )
    refuse_beyond_floats(solver)
    return _fit_for(budget, problem, solver)


def _fit_for(budget: Budget, problem: Problem, solver: Solver) -> Solver:
    """Refuse, before any charge, what would be refused or ignored at run time; choose settings."""
    if problem.constraint is not None and not solver.takes_constraint:
        raise InvalidArgument(
            f"{type(solver).__name__} would ignore the constraint of the problem. Use 'dp-sadmm' "
            "or 'dp-vradmm'."
        )
    return settled(solver, budget, problem)
