"""Fast checks: whole runs can be replayed from their answers, and add the noise they paid for."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.audit.attacks import RELATIONS, TARGETS, USUAL_BUDGET, first_proved
from hushfit.audit.checks import (
    Finding,
    check_release_noise,
    check_replay,
    check_run_noise,
    check_sampler,
    example_queries,
    source_for,
)
from hushfit.audit.suite.fast._attacks import target
from hushfit.audit.suite.fast._check import Check
from hushfit.data import DataSource, as_source
from hushfit.losses import Logistic, OneVsRest, Softmax
from hushfit.penalties import L1, Zero
from hushfit.privacy import Budget, Relation, SecureSampler, SeededSampler
from hushfit.problem import Problem
from hushfit.release import Door, PoissonBatch, Quote
from hushfit.solvers import (
    DPSADMM,
    DPVRADMM,
    Iterate,
    PrivateGraph,
    ProximalGradient,
    Solver,
    finished,
)

# Algorithms that only choose, or name texts, and add no noise to an answer.
_ONLY_CHOICES = ("frank-wolfe", "priv-gene", "vocabulary")


def _variants() -> dict[str, tuple[Solver, Problem, DataSource]]:
    """Runs without a canary: several outputs, epochs that restart."""
    rng = np.random.default_rng(3)
    found: dict[str, tuple[Solver, Problem, DataSource]] = {}
    for name, loss in (("softmax", Softmax(3)), ("one against the rest", OneVsRest(Logistic(), 3))):
        problem = Problem(loss, Zero(), 12, 2, Relation.REPLACE_ONE, True, 3)
        source = as_source(rng.normal(size=(12, 2)), np.arange(12) % 3)
        found[f"proximal-gd, {name}"] = ProximalGradient(steps=3), problem, source
    strong = DPVRADMM(
        epochs=2, inner_steps=2, strongly_convex=True, ridge=0.1, sampling=PoissonBatch(0.5)
    )
    problem = Problem(Logistic(), Zero(), 12, 2, Relation.REPLACE_ONE)
    source = as_source(rng.normal(size=(12, 2)), rng.choice([-1.0, 1.0], 12))
    found["dp-vradmm, strongly convex"] = strong, problem, source
    found["private graph"] = (
        PrivateGraph(DPSADMM(steps=3, sampling=PoissonBatch(0.5))),
        replace(problem, penalty=L1(1e-3)),
        source,
    )
    return found


@cache
def _run_of(name: str) -> tuple[Solver, Problem, DataSource, Quote]:
    if name in TARGETS:
        attack = target(name, first_proved(name))
        return attack.solver, attack.problem, attack.neighbours.first, attack.quote
    solver, problem, source = _variants()[name]
    return solver, problem, source, solver.plan(problem).quote(problem, USUAL_BUDGET)


@dataclass(frozen=True, eq=False)
class _Quoted:
    """A solver whose plan has been quoted already."""

    solver: Solver
    known: Quote

    @property
    def takes_constraint(self) -> bool:
        return self.solver.takes_constraint

    def plan(self, problem: Problem) -> Any:
        return self

    def quote(self, problem: Problem, budget: Budget) -> Quote:
        return self.known

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        return self.solver.iterates(problem, door)

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        return finished(self.solver, problem, door, average)


def replays() -> Iterator[Check]:
    """Runs whose iterates follow from their answers alone."""
    for name in [*TARGETS, *_variants()]:
        yield Check(f"replay of {name}", partial(_replay, name))


def _replay(name: str, seed: int) -> list[Finding]:
    solver, problem, source, quote = _run_of(name)
    found = check_replay(_Quoted(solver, quote), problem, source, USUAL_BUDGET, seed)
    return [replace(finding, check=finding.check.replace("_Quoted", name)) for finding in found]


def noises() -> Iterator[Check]:
    """The noise of runs and of single releases, and the samplers it is drawn from."""
    for name in [*TARGETS, *_variants()]:
        if name not in _ONLY_CHOICES:
            yield Check(f"noise of {name}", partial(_run_noise, name), tests=3)
    for relation in RELATIONS:
        for name in ("gradient, logistic", "second moment", "gradient in a metric"):
            yield Check(
                f"noise on {name} ({relation})", partial(_release_noise, name, relation), tests=3
            )
    yield Check("sampler, secure", lambda seed: check_sampler(SecureSampler(), 60_000), tests=18)
    yield Check(
        "sampler, seeded", lambda seed: check_sampler(SeededSampler(seed), 60_000), tests=10
    )


def _run_noise(name: str, seed: int) -> list[Finding]:
    solver, problem, source, quote = _run_of(name)
    draws = math.prod(problem.shape) * sum(part.count for part in quote.plan.parts)
    return check_run_noise(solver, problem, source, quote, name, max(30, 300 // draws), seed)


def _release_noise(name: str, relation: Relation, seed: int) -> list[Finding]:
    example = example_queries(relation, seed)[name]
    source = source_for(example.query.problem, example.rows, example.labels)
    return check_release_noise(example.query, source, 1.7, relation, SecureSampler(), releases=150)
