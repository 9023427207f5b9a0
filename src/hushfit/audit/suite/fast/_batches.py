"""Fast checks: which rows a mechanism reads."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from hushfit.audit.checks import Finding, check_batches
from hushfit.audit.suite.fast._check import Check
from hushfit.audit.suite.fast._examples import gated_step, loss_gate
from hushfit.data import Persons, as_source
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release import (
    ClippedGradient,
    FixedSizeBatch,
    FreshGate,
    FullBatch,
    GatedBatch,
    Passes,
    PermutedRun,
    PoissonBatch,
    SecretOrder,
)
from hushfit.unit import ROW, PrivacyUnit

# With a bound on rows that persons exceed.
FEW_ROWS = PrivacyUnit.person(rows_per_person=7)


def batches() -> Iterator[Check]:
    """The rows that each kind of sampling reads."""
    makers: dict[str, Callable[[Problem], tuple[Any, Any]]] = {
        "Poisson batches": lambda p: (PoissonBatch(0.3), _gradient(p)),
        "batches of fixed size": lambda p: (FixedSizeBatch(5), _gradient(p)),
        "gated batches": lambda p: (GatedBatch(0.3, queries=4), gated_step(p)),
        "gates": lambda p: (FreshGate(0.3, queries=3), loss_gate(p)),
        "all rows": lambda p: (FullBatch(), _gradient(p)),
        "a secret order": _ordered,
    }
    for name, make in makers.items():
        yield Check(f"rows read by {name}", partial(_rows_read, make, ROW), tests=2)
        yield Check(f"persons: rows read by {name}", partial(_rows_read, make, FEW_ROWS), tests=2)


def _rows_read(
    make: Callable[[Problem], tuple[Any, Any]], unit: PrivacyUnit, seed: int
) -> list[Finding]:
    problem = Problem(Logistic(), Zero(), 20, 2, Relation.REPLACE_ONE, privacy_unit=unit)
    rng = np.random.default_rng(seed)
    codes = np.arange(20)
    if unit.is_person:  # three rows each, and one person with more than are used
        codes = rng.permutation(np.append(np.arange(60) % 20, np.zeros(unit.rows_per_person, int)))
    source = as_source(
        rng.normal(size=(len(codes), 2)),
        rng.choice([-1.0, 1.0], len(codes)),
        persons=Persons(codes, 20, unit) if unit.is_person else None,
    )
    mechanism, query = make(problem)
    return check_batches(mechanism, query, source, problem.relation, seed=seed)


def _gradient(problem: Problem) -> ClippedGradient:
    return ClippedGradient(problem, np.zeros(problem.shape), 0.5)


def _ordered(problem: Problem) -> tuple[Any, Any]:
    run = PermutedRun(problem, Passes.even(problem.n_units, 3, (0.5,)), 0.5)
    return SecretOrder.of(run), run
