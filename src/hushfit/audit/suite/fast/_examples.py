"""Problems, rows and queries that several fast checks share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hushfit.audit.checks import Bare, Example, ObjectiveGradient, example_queries
from hushfit.data import DataSource, as_source
from hushfit.losses import Logistic, Squared
from hushfit.penalties import L1, Zero
from hushfit.privacy import Relation, labels_only, replaces_one
from hushfit.problem import Problem
from hushfit.release import (
    AdmmState,
    AdmmStep,
    Backtracking,
    ClippedGradient,
    ColumnHistogram,
    Gate,
    GatedStep,
    GradientNorm,
    LossDrop,
    Passes,
    PermutedRun,
    PerturbedMinimiser,
    RegularisedMinimiser,
    TotalScore,
)
from hushfit.unit import ROW, PrivacyUnit


def more_examples(relation: Relation, seed: int = 0, unit: PrivacyUnit = ROW) -> dict[str, Example]:
    """Queries at settings that `example_queries` leaves out: long steps, restarts, uneven
    batches, large tolerances.
    """
    rng, made = np.random.default_rng(seed), {}

    def add(
        name: str,
        query: Any,
        columns: int,
        draw: Callable[[np.random.Generator], float],
        rows: int = 12,
    ) -> None:
        made[name] = Example(
            query,
            rng.normal(size=(rows, columns)),
            np.array([draw(rng) for _ in range(rows)]),
            draw,
        )

    def random_sign(rng: np.random.Generator) -> float:
        return float(rng.choice([-1.0, 1.0]))

    def far(rng: np.random.Generator) -> float:
        return 1e4 * random_sign(rng)

    def problem(loss: Any, columns: int = 3, rows: int = 12, intercept: bool = True) -> Problem:
        return Problem(loss, Zero(), rows, columns, relation, intercept, privacy_unit=unit)

    p = problem(Logistic())
    w = rng.normal(size=p.shape)
    add(
        "step of ADMM, long",
        AdmmStep(replace(p, penalty=L1(0.1)), AdmmState(w, 0.5 * w, -w), 8.0, 0.5, 0.5),
        3,
        random_sign,
    )
    add("minimiser, loosely solved", RegularisedMinimiser(p, 0.3, tolerance=0.02), 3, random_sign)
    steep = PerturbedMinimiser(replace(p, loss=Squared(1.0)), 0.3)
    add("objective's gradient", ObjectiveGradient(steep, w), 3, far)
    add("norm of a gradient", GradientNorm(steep, w), 3, far)
    add("histogram of columns", Bare(ColumnHistogram((np.linspace(-2, 2, 6),) * 3)), 3, random_sign)
    add("total of scores", Bare(TotalScore()), 1, lambda rng: float(10 * rng.normal()))
    if replaces_one(relation):
        line = problem(Squared(1.0), 1, 10, False)
        restarted = Passes((3, 3, 2, 2), (0.5, 0.25) * 4, 2)
        add("run with restarts", PermutedRun(line, restarted, 1.0), 1, far, 10)
        add(
            "run in uneven batches",
            PermutedRun(line, Passes((4, 4, 2), (0.5, 0.5)), 1.0),
            1,
            far,
            10,
        )
    return made


def all_examples(relation: Relation, seed: int, unit: PrivacyUnit = ROW) -> dict[str, Example]:
    """All queries that have a bound under the relation."""
    if labels_only(relation):
        return example_queries(relation, seed, unit)
    return {**example_queries(relation, seed, unit), **more_examples(relation, seed, unit)}


def small_case(seed: int, columns: int = 2) -> tuple[Problem, DataSource]:
    """Ten rows for logistic regression."""
    rng = np.random.default_rng(seed)
    problem = Problem(Logistic(), Zero(), 10, columns, Relation.REPLACE_ONE)
    return problem, as_source(rng.normal(size=(10, columns)), rng.choice([-1.0, 1.0], 10))


def loss_drop(problem: Problem) -> LossDrop:
    """By how much three steps lower the loss."""
    w = np.ones(problem.shape)
    mixes = np.array([[1.0, 0.0], [1.0, -0.5], [1.0, -1.0], [1.0, -2.0]])
    return LossDrop(problem, np.stack([w, w[::-1].copy()]), mixes, np.array([0.5, 1.0, 1.0]))


def loss_gate(problem: Problem, required: float = 0.0) -> Gate:
    """Stops at the first of three steps that lowers the loss by so much."""
    return Gate(loss_drop(problem), np.full(3, required))


def gated_step(problem: Problem) -> GatedStep:
    """A gradient, and how far to go along it."""
    gradient = ClippedGradient(problem, np.zeros(problem.shape), 0.5)
    return GatedStep(
        gradient, Backtracking(np.array([1.0, 0.5, 0.25]), 0.3 * problem.n_units, 1.0, 0.1, 0.0)
    )
