"""What wrappers of solvers have in common."""

from dataclasses import replace

from hushfit.problem import Problem
from hushfit.release import Planned
from hushfit.solvers.base import Solver


def inner_parts(solver: Solver, problem: Problem, share: float) -> tuple[Planned, ...]:
    """The releases of a solver that leaves this share of the budget to its wrapper."""
    plan = solver.plan(problem)
    shares = plan.shares()
    return tuple(replace(part, share=(1 - share) * shares[part.name]) for part in plan.parts)
