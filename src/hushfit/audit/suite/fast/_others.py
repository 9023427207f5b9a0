"""Fast checks of ledgers, refusals, relations given by name, and rare cases."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hushfit.audit.attacks import RELATIONS
from hushfit.audit.checks import (
    Finding,
    check_certificate,
    check_disk_ledger,
    check_ledger,
    check_moves_on_grid,
    check_refusals,
    check_small_noise,
)
from hushfit.audit.suite.fast._check import Check
from hushfit.audit.suite.fast._examples import all_examples, small_case
from hushfit.data import DataSource, as_source
from hushfit.errors import UnsupportedRelation
from hushfit.losses import Logistic, Squared
from hushfit.penalties import Zero
from hushfit.privacy import (
    GaussianCost,
    PoissonGaussianCost,
    PureCost,
    Relation,
    compose,
    epsilon_of,
    rdp_epsilon,
)
from hushfit.problem import Problem
from hushfit.release import (
    ClippedGradient,
    FullBatch,
    GradientDifference,
    PerturbedMinimiser,
    SecondMoment,
    Snapshot,
    VarianceReducedGradient,
    anchored_batch,
)


def others() -> Iterator[Check]:
    """Ledgers, refusals, names of relations, rare cases and certificates."""
    yield Check("ledger", lambda seed: check_ledger())
    yield Check("ledger on disk", lambda seed: check_disk_ledger())
    yield Check("refusals", _refusals)
    yield Check("relations by name", _by_name)
    yield Check("a record outside its anchored batch", _outside)
    yield Check("noise of tiny sensitivities", _tiny)
    for relation in RELATIONS:
        yield Check(f"certificate ({relation})", partial(_certificate, relation))


def _refusals(seed: int) -> list[Finding]:
    problem, source = small_case(seed)
    return check_refusals(
        source,
        ClippedGradient(problem, np.zeros(problem.shape), 0.5),
        SecondMoment(problem),
        Relation.REPLACE_ONE,
    )


def _by_name(seed: int) -> list[Finding]:
    """Check that sensitivities and costs are the same for a relation given by its name."""
    found = []
    for relation in RELATIONS:
        name: Any = relation.value
        moved = [
            key
            for key, example in all_examples(relation, seed).items()
            if not _same_sensitivity(example.query, relation, name)
        ]
        found.append(
            Finding(
                f"relation by name: sensitivities under {name}", not moved, ", ".join(moved[:3])
            )
        )
        for cost in (PoissonGaussianCost(1.0, 0.1, 5), compose([GaussianCost(2.0), PureCost(0.5)])):
            ratios = [
                epsilon(cost, 1e-6, name) / epsilon(cost, 1e-6, relation)
                for epsilon in (rdp_epsilon, epsilon_of)
            ]
            found.append(
                Finding(
                    f"relation by name: price under {name}",
                    ratios == [1.0, 1.0],
                    f"{min(ratios):.2f} of the price",
                )
            )
    return found


def _same_sensitivity(query: Any, relation: Relation, name: str) -> bool:
    """Whether sensitivities are equal; refusing a relation given by its name counts as unequal."""
    try:
        return bool(query.sensitivity(name) == query.sensitivity(relation))
    except UnsupportedRelation:
        return False


def _outside(seed: int) -> list[Finding]:
    """Almost no record is in the batch; each changes the answer by some hundred grid steps."""
    columns, rate = 60, 1e-6
    problem = Problem(Logistic(), Zero(), 6, columns, Relation.ADD_REMOVE)
    rng = np.random.default_rng(seed)

    def neighbours() -> tuple[DataSource, DataSource]:
        X, y = rng.normal(size=(6, columns)), rng.choice([-1.0, 1.0], 6)
        without = X.copy()
        without[0] = np.nan  # the null record
        return as_source(X, y), as_source(without, y)

    batch = anchored_batch(problem, rate)
    zero = np.zeros(problem.shape)
    query = VarianceReducedGradient(problem, zero, Snapshot(zero, 0.5), rate)
    tables = [neighbours() for _ in range(20)]
    return [check_moves_on_grid(batch, query, tables, 20.0, problem.relation, batch.ratio, seed)]


def _tiny(seed: int) -> list[Finding]:
    problem, source = small_case(seed)
    w = np.ones(problem.shape)
    queries = [
        GradientDifference(problem, w, 0 * w, 1e-295, 0.0),
        ClippedGradient(replace(problem, loss=Squared(1e-300)), w, 1e-300),
    ]
    relation = problem.relation
    return [check_small_noise(FullBatch(), query, source, 1.0, relation) for query in queries]


def _certificate(relation: Relation, seed: int) -> list[Finding]:
    problem, source = small_case(seed)
    query = PerturbedMinimiser(replace(problem, relation=relation), 0.3, tolerance=0.05)
    return check_certificate(query, source, "minimiser", seed)
