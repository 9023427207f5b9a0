"""The fast audit: attacks on every algorithm with few trials, and all checks that need no attack,
in about a minute.

``trimmed_checks`` lists it. Each entry has a name, a function of a seed, and a bound on its
false-alarm rate; all together stay below `FALSE_ALARMS`. `make test` runs the list on the library
as it is, and the entries that should detect a planted bug on the library with that bug.
"""

import base64
import json
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from hushfit._typing import Vector
from hushfit.audit._bounds import Claim, Verdict
from hushfit.audit._curators import seeded_curator
from hushfit.audit._network_names import NETWORK_CHECKS, network_check, networks_installed
from hushfit.audit.attacks import (
    RELATIONS,
    ROWS,
    TARGETS,
    USUAL_BUDGET,
    Attack,
    Canary,
    Neighbours,
    OwnerAttack,
    attack_on,
    audit,
    first_proved,
    owner_attacks,
    proved,
)
from hushfit.audit.checks import (
    LAYOUTS,
    LEVEL,
    Bare,
    Example,
    Finding,
    ObjectiveGradient,
    PersonTable,
    check_batch_sensitivity,
    check_batches,
    check_cells,
    check_certificate,
    check_choices,
    check_conversation,
    check_disk_ledger,
    check_label_batch_price,
    check_ledger,
    check_list_batches,
    check_list_sensitivity,
    check_mechanism_price,
    check_moves_on_grid,
    check_ndcg_grows,
    check_order,
    check_overwritten,
    check_paid,
    check_parts,
    check_person_sensitivity,
    check_positions,
    check_quote,
    check_refusals,
    check_release_noise,
    check_replay,
    check_rows_of_persons,
    check_run_noise,
    check_sampler,
    check_scores,
    check_sealed,
    check_search_price,
    check_sensitivity,
    check_shares,
    check_side_channels,
    check_small_noise,
    choice_law,
    example_queries,
    gate_law,
    list_examples,
    opposite_grades,
    sampled_list_examples,
    source_for,
)
from hushfit.audit.suite._suite import FALSE_ALARMS, other_labels, with_odd_cell, with_odd_label
from hushfit.data import DataSource, Persons, SeededCoins, as_source
from hushfit.data.schema import NumericColumn, Schema, encode
from hushfit.data.tables import parse_schema
from hushfit.errors import HushfitError, LedgerError, UnsupportedRelation
from hushfit.estimators import PrivateLasso, PrivateLinearSVC, PrivateLogisticRegression
from hushfit.federated import (
    DPADMM,
    DVP,
    IPPADMM,
    MADMM,
    PPADMM,
    RADMM,
    Algorithm,
    Network,
    Owner,
    Run,
    Seat,
    SharedSolver,
    deployment,
)
from hushfit.losses import Logistic, OneVsRest, Softmax, Squared
from hushfit.model_selection import PrivateSearchCV
from hushfit.penalties import L1, Zero
from hushfit.preprocessing import (
    BoundedScaler,
    PrivatePipeline,
    PrivateQuantileScaler,
    SchemaEncoder,
)
from hushfit.privacy import (
    Budget,
    GaussianCost,
    Ledger,
    PoissonGaussianCost,
    PureCost,
    Relation,
    SecureSampler,
    SeededSampler,
    compose,
    epsilon_of,
    labels_only,
    rdp_epsilon,
    replaces_one,
)
from hushfit.privacy.accounting import stopping_rule
from hushfit.problem import Problem
from hushfit.release import (
    AdmmState,
    AdmmStep,
    AnchoredBatch,
    Backtracking,
    Choice,
    ClippedGradient,
    ColumnHistogram,
    Door,
    Entropy,
    FixedSizeBatch,
    FreshGate,
    FullBatch,
    Gate,
    GatedBatch,
    GatedStep,
    GaussianInside,
    GaussianRun,
    GradientDifference,
    GradientNorm,
    LaplaceInside,
    ListStatistic,
    LossDrop,
    MarginHistogram,
    NoisyChoice,
    NoisyCorner,
    NormAbove,
    Passes,
    PermutedRun,
    PersonCurvature,
    PerturbedMinimiser,
    Plan,
    Planned,
    PoissonBatch,
    Quote,
    RegularisedMinimiser,
    RenyiRun,
    RestartedGate,
    SecondMoment,
    SecretOrder,
    Snapshot,
    SteepestCorner,
    TextColumns,
    Thresholded,
    TotalScore,
    VarianceReducedGradient,
    Vocabulary,
    anchored_batch,
    vocabulary_of,
)
from hushfit.solvers import (
    DPSADMM,
    DPSGD,
    DPVRADMM,
    SSADMM,
    Iterate,
    PrivateGraph,
    ProximalGradient,
    Solver,
    finished,
)
from hushfit.unit import ROW, PrivacyUnit

# Trials of each attack.
_TRIALS = 300
_ATTACKS_ALLOWED = 150
_MILD = Budget(1.0, 1e-6)
# Algorithms that only choose, or name texts, and add no noise to an answer.
_ONLY_CHOICES = ("frank-wolfe", "priv-gene", "vocabulary")

# Runs that partition rows into batches by their position in the table, which is public.
_PARTITIONED = ("run in batches", "run with restarts", "run in uneven batches")

ATTACK_LEVEL = FALSE_ALARMS / 2 / _ATTACKS_ALLOWED
"""False-alarm rate of each attack of the fast audit."""


@dataclass(frozen=True)
class Check:
    """One entry of the fast audit.

    Parameters
    ----------
    name : str
    run : callable
        Maps a seed to findings.
    attacks : int, default=0
        Number of its findings that are statistical tests at level `ATTACK_LEVEL`.
    tests : int, default=0
        Number of its findings that are statistical tests at level `LEVEL`.
    """

    name: str
    run: Callable[[int], list[Finding]]
    attacks: int = 0
    tests: int = 0


def trimmed_checks() -> dict[str, Check]:
    """The whole fast audit, by name.

    Returns
    -------
    dict of str to Check
    """
    parts = (
        _sensitivities,
        _persons,
        _batches,
        _replays,
        _noises,
        _prices,
        _laws,
        _attacks,
        _side_channels,
        _rankings,
        _federated,
        _networks,
        _others,
    )
    found = {check.name: check for part in parts for check in part()}
    assert sum(check.attacks for check in found.values()) <= _ATTACKS_ALLOWED
    assert sum(check.tests for check in found.values()) * LEVEL <= FALSE_ALARMS / 2
    return found


def alarms(checks: dict[str, Check], seed: int = 0) -> list[tuple[str, Finding]]:
    """All failed findings of these checks."""
    return [
        (name, finding)
        for name, check in checks.items()
        for finding in check.run(seed)
        if not finding.passed
    ]


# Sensitivities


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


def _sensitivities() -> Iterator[Check]:
    for relation in RELATIONS:
        for name in [*example_queries(relation), *more_examples(relation)]:
            yield Check(f"sensitivity of {name} ({relation})", partial(_hill_climb, name, relation))
    for name in example_queries(Relation.LABEL):
        yield Check(f"sensitivity of {name}", partial(_hill_climb, name, Relation.LABEL))
    for name in example_queries(Relation.REPLACE_ONE):
        yield Check(f"sensitivity of {name} after writing into it", partial(_overwritten, name))
    sampled = [
        name
        for name, example in example_queries(Relation.ADD_REMOVE).items()
        if example.query.sampled
    ]
    for name in sampled:
        yield Check(f"sensitivity of {name} in batches", partial(_in_batches, name))
    for name, example in example_queries(Relation.REPLACE_ONE).items():
        if example.query.in_parts:
            yield Check(f"{name} in parts", partial(_in_parts, name))
    for relation in RELATIONS:
        for name in [*example_queries(relation), *more_examples(relation)]:
            if name not in _PARTITIONED:
                yield Check(
                    f"order of rows for {name} ({relation})", partial(_in_order, name, relation)
                )


def _examples(relation: Relation, seed: int, unit: PrivacyUnit = ROW) -> dict[str, Example]:
    if labels_only(relation):
        return example_queries(relation, seed, unit)
    return {**example_queries(relation, seed, unit), **more_examples(relation, seed, unit)}


def _hill_climb(name: str, relation: Relation, seed: int) -> list[Finding]:
    example = _examples(relation, seed)[name]
    # Where the position of a row matters, several positions of the replaced row are tried.
    places = (0, 6, len(example.rows) - 1) if isinstance(example.query, PermutedRun) else (0,)
    search: dict[str, Any] = {
        "draw_label": example.draw_label,
        "climbs": 30,
        "starts": 3,
        "seed": seed,
    }
    return [
        check_sensitivity(
            name, example.query, relation, example.rows, example.labels, row=row, **search
        )
        for row in places
    ]


def _overwritten(name: str, seed: int) -> list[Finding]:
    example = example_queries(Relation.REPLACE_ONE, seed)[name]
    return [
        check_overwritten(
            name,
            example.query,
            Relation.REPLACE_ONE,
            example.rows,
            example.labels,
            example.draw_label,
            seed,
        )
    ]


def _in_order(name: str, relation: Relation, seed: int) -> list[Finding]:
    # Always the same rows: with random ones, about one in a hundred thousand lies half way
    # between two steps of its grid.
    example = _examples(relation, 0)[name]
    return [check_order(name, example.query, relation, example.rows, example.labels)]


def _in_parts(name: str, seed: int) -> list[Finding]:
    # The same rows always, as for their order.
    return check_parts(
        name, example_queries(Relation.REPLACE_ONE, 0)[name], Relation.REPLACE_ONE, seed=seed
    )


def _in_batches(name: str, seed: int) -> list[Finding]:
    example = example_queries(Relation.REPLACE_ONE, seed)[name]
    return [
        check_batch_sensitivity(
            name, example.query, example.rows, example.labels, example.draw_label, seed=seed
        )
    ]


# Persons

# Two bounds on rows per person: the usual one, at which rounding shows, and a small one, which
# persons exceed.
_PERSONS = PrivacyUnit.person()
_FEW_ROWS = PrivacyUnit.person(rows_per_person=7)
_CAPPED = PrivacyUnit.person("cap", 3)


@cache
def person_examples(relation: Relation, seed: int = 0, unit: PrivacyUnit = _PERSONS) -> Any:
    """All examples with persons as units, and a histogram of margins whose edges lie on margins of
    the rows, so that the last bit of any shows.
    """
    found = _examples(relation, seed, unit)
    rng = np.random.default_rng(seed)
    rows, labels = rng.normal(size=(40, 30)), rng.choice([-1.0, 1.0], 40)
    problem = Problem(Logistic(), Zero(), 40, 30, relation, privacy_unit=unit)
    w = rng.normal(size=problem.shape)
    example = Example(None, rows, labels, found["margin histogram"].draw_label)
    source = PersonTable.of(example, unit).source(True)
    signed = np.concatenate([source.y[b.place] * b.margins(w) for b in source.blocks()])
    edges = np.unique(signed)
    found["margin histogram at margins"] = replace(
        example, query=MarginHistogram(problem, w, edges)
    )
    return found


def _persons() -> Iterator[Check]:
    for relation in RELATIONS:
        for name in person_examples(relation):
            yield Check(
                f"persons: sensitivity of {name} ({relation})",
                partial(_person_climb, name, relation),
            )
            yield Check(
                f"persons: rows of {name} ({relation})", partial(_person_rows, name, relation)
            )
    yield Check("persons: weights", _weights)
    yield Check("persons: positions", _positions)


def _person_climb(name: str, relation: Relation, seed: int) -> list[Finding]:
    found = []
    for unit in (_PERSONS, _CAPPED):
        example = person_examples(relation, seed, unit)[name]
        places = (0, len(example.rows) - 1) if isinstance(example.query, PermutedRun) else (0,)
        found += [
            check_person_sensitivity(
                name, example, relation, unit, person=person, starts=3, climbs=9, seed=seed
            )
            for person in places
        ]
    return found


def _person_rows(name: str, relation: Relation, seed: int) -> list[Finding]:
    # Always the same rows, as for the order of rows.
    example = person_examples(relation, 0, _FEW_ROWS)[name]
    return check_rows_of_persons(name, example, relation, _FEW_ROWS)


def _weights(seed: int) -> list[Finding]:
    return [
        finding for unit in (_PERSONS, _FEW_ROWS, _CAPPED) for finding in check_shares(unit, seed)
    ]


def _positions(seed: int) -> list[Finding]:
    return [finding for sparse in (False, True) for finding in check_positions(sparse, seed)]


# Which rows are read


def _batches() -> Iterator[Check]:
    makers: dict[str, Callable[[Problem], tuple[Any, Any]]] = {
        "Poisson batches": lambda p: (
            PoissonBatch(0.3),
            ClippedGradient(p, np.zeros(p.shape), 0.5),
        ),
        "batches of fixed size": lambda p: (
            FixedSizeBatch(5),
            ClippedGradient(p, np.zeros(p.shape), 0.5),
        ),
        "gated batches": lambda p: (GatedBatch(0.3, queries=4), _gated(p)),
        "gates": lambda p: (FreshGate(0.3, queries=3), _gate(p)),
        "all rows": lambda p: (FullBatch(), ClippedGradient(p, np.zeros(p.shape), 0.5)),
        "a secret order": lambda p: _ordered(p),
    }
    for name, make in makers.items():
        yield Check(f"rows read by {name}", partial(_rows_read, make, ROW), tests=2)
        yield Check(f"persons: rows read by {name}", partial(_rows_read, make, _FEW_ROWS), tests=2)


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


def _drop(problem: Problem) -> LossDrop:
    w = np.ones(problem.shape)
    mixes = np.array([[1.0, 0.0], [1.0, -0.5], [1.0, -1.0], [1.0, -2.0]])
    return LossDrop(problem, np.stack([w, w[::-1].copy()]), mixes, np.array([0.5, 1.0, 1.0]))


def _gate(problem: Problem, required: float = 0.0) -> Gate:
    return Gate(_drop(problem), np.full(3, required))


def _gated(problem: Problem) -> GatedStep:
    gradient = ClippedGradient(problem, np.zeros(problem.shape), 0.5)
    return GatedStep(
        gradient, Backtracking(np.array([1.0, 0.5, 0.25]), 0.3 * problem.n_units, 1.0, 0.1, 0.0)
    )


def _ordered(problem: Problem) -> tuple[Any, Any]:
    run = PermutedRun(problem, Passes.even(problem.n_units, 3, (0.5,)), 0.5)
    return SecretOrder.of(run), run


# Runs


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
def _target(name: str, relation: Relation) -> Attack:
    """An attack, cached with its quote: calibrating sampled batches is slower than most checks."""
    return attack_on(name, relation)


@cache
def _run_of(name: str) -> tuple[Solver, Problem, DataSource, Quote]:
    if name in TARGETS:
        attack = _target(name, first_proved(name))
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


def _replays() -> Iterator[Check]:
    for name in [*TARGETS, *_variants()]:
        yield Check(f"replay of {name}", partial(_replay, name))


def _replay(name: str, seed: int) -> list[Finding]:
    solver, problem, source, quote = _run_of(name)
    found = check_replay(_Quoted(solver, quote), problem, source, USUAL_BUDGET, seed)
    return [replace(finding, check=finding.check.replace("_Quoted", name)) for finding in found]


def _noises() -> Iterator[Check]:
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


# Prices


def _prices() -> Iterator[Check]:
    for name in TARGETS:
        for relation in TARGETS[name].relations:
            if proved(name, relation):
                yield Check(f"price of {name} ({relation})", partial(_price, name, relation))
    for name in _mechanisms():
        yield Check(f"price of {name}", partial(_mechanism_price, name))
    for rule in ("geometric", "logarithmic", "poisson"):
        yield Check(f"price of a {rule} search", partial(_search_price, rule))


def _price(name: str, relation: Relation, seed: int) -> list[Finding]:
    attack = _target(name, relation)
    return check_quote(attack.quote, attack.budget, attack.problem.n_units, relation, name)


def _mechanisms() -> dict[str, tuple[Any, float, int, Relation]]:
    """Mechanism, noise multiplier, number of answers and relation, at settings where curvature,
    sampling or rare events matter most.
    """
    replacing, removing = Relation.REPLACE_ONE, Relation.ADD_REMOVE
    return {
        "steep objectives": (GaussianInside(1.0), 2.0, 2, removing),
        "steep objectives, pure": (LaplaceInside(1.0), 2.0, 2, removing),
        "steep objectives of persons": (
            GaussianInside(3.0, person=PersonCurvature(3.0, 2)),
            60.0,
            1,
            removing,
        ),
        "steep objectives of persons, pure": (
            LaplaceInside(3.0, person=PersonCurvature(3.0, 2)),
            60.0,
            1,
            removing,
        ),
        "gates over all rows": (FreshGate(1.0, queries=6), 1.5, 2, replacing),
        "gates, gaussian": (FreshGate(0.2, "gaussian", queries=4), 1.0, 3, removing),
        "gates with their gradient": (GatedBatch(0.1, gate=2.0, queries=6), 0.7, 2, removing),
        "gates with their gradient, replacing": (
            GatedBatch(0.1, gate=2.0, queries=6),
            0.7,
            2,
            replacing,
        ),
        "gates that restart": (RestartedGate(3), 4.0, 60, replacing),
        "choices": (NoisyChoice(), 2.0, 3, replacing),
        "corners": (NoisyCorner(), 2.0, 3, replacing),
        "vocabularies": (Thresholded(0.01, 3), 1.0, 1, replacing),
        "small Poisson batches": (PoissonBatch(0.02), 0.7, 20, replacing),
        "small Poisson batches, removing": (PoissonBatch(0.02), 0.7, 20, removing),
        "anchored batches": (AnchoredBatch(0.1, 0.1), 1.0, 5, removing),
        "a secret order": (SecretOrder((0.5, 0.3, 0.2), (0.4, 0.7, 1.0)), 0.5, 1, replacing),
        "adaptive runs": (GaussianRun(), 1.0, 100, replacing),
        "adaptive runs, Renyi": (RenyiRun(1e-5), 1.0, 100, replacing),
    }


def _mechanism_price(name: str, seed: int) -> list[Finding]:
    mechanism, noise_multiplier, count, relation = _mechanisms()[name]
    return [check_mechanism_price(mechanism, noise_multiplier, count, 1000, relation, name)]


def _search_price(rule: str, seed: int) -> list[Finding]:
    return [
        check_search_price(stopping_rule(rule, 8.0), mu, Relation.REPLACE_ONE)
        for mu in (0.25, 1.0, 3.0)
    ]


# Distributions of choices


def _laws() -> Iterator[Check]:
    for name in ("laplace", "gaussian"):
        yield Check(f"distribution of gates, {name}", partial(_gate_law, name), tests=1)
    yield Check("distribution of gates with their gradient", _gated_law, tests=1)
    yield Check("distribution of gates that restart", _restarted_law, tests=1)
    yield Check("distribution of choices", _choice_law, tests=1)
    yield Check("distribution of corners", _corner_law, tests=1)
    yield Check("distribution of vocabularies", _vocabulary_law, tests=1)
    yield Check("persons: distribution of vocabularies", _person_vocabulary_law, tests=1)


def _small(seed: int, columns: int = 2) -> tuple[Problem, DataSource]:
    rng = np.random.default_rng(seed)
    problem = Problem(Logistic(), Zero(), 10, columns, Relation.REPLACE_ONE)
    return problem, as_source(rng.normal(size=(10, columns)), rng.choice([-1.0, 1.0], 10))


def _entropy(seed: int) -> Entropy:
    return Entropy(Relation.REPLACE_ONE, SeededSampler(seed), SeededCoins(seed + 1))


def _gate_law(noise: str, seed: int) -> list[Finding]:
    problem, source = _small(seed)
    gate, mechanism, entropy = _gate(problem), FreshGate(1.0, noise, queries=3), _entropy(seed)
    scores = gate.scores(source, None) / gate.sensitivity(Relation.REPLACE_ONE)
    law = np.exp(gate_law(noise, 1.0, 2.0 if noise == "laplace" else math.sqrt(2), scores))
    return [
        check_choices(
            lambda: int(mechanism.answer(gate, source, 1.0, entropy)[0]), law, f"gate, {noise}"
        )
    ]


def _gated_law(seed: int) -> list[Finding]:
    """Check that a gate stops as one whose candidates are computed from the released gradient."""
    problem, source = _small(seed)
    step, mechanism, entropy = (
        _gated(problem),
        GatedBatch(1.0, gate=60.0, queries=3),
        _entropy(seed),
    )
    # Much noise on the gradient, little in the gate: candidates of the exact gradient would stop
    # much earlier.
    threshold, query = mechanism.gate_multipliers(3.0)
    surplus = variance = 0.0
    for _ in range(300):
        answer = mechanism.answer(step, source, 3.0, entropy)
        gate = step.gate(answer[:-1])
        law = np.exp(
            gate_law(
                "laplace",
                threshold,
                query,
                gate.scores(source, None) / gate.sensitivity(Relation.REPLACE_ONE),
            )
        )
        places = np.arange(len(law))
        surplus += float(answer[-1] - law @ places)
        variance += float(law @ places**2 - (law @ places) ** 2)
    p = 2 * float(ndtr(-abs(surplus) / math.sqrt(variance)))
    return [
        Finding(
            "gate with its gradient: distribution of its choices",
            p > LEVEL,
            f"{surplus / math.sqrt(variance):.2f} standard deviations, p = {p:.3g}",
        )
    ]


def _restarted_law(seed: int) -> list[Finding]:
    """Check the distribution of one segment, and that segments are no more than were paid for."""
    problem, source = _small(seed)
    rounds, mechanism = 12, RestartedGate(2)
    norm = GradientNorm(PerturbedMinimiser(problem, 0.3), np.zeros(problem.shape))
    unit = norm.sensitivity(Relation.REPLACE_ONE)
    threshold = float(norm(source, None)[0]) + 3.0 * unit
    entropies = iter(range(10**9))

    def draw() -> int:
        entropy = _entropy(2 * next(entropies) + 10**6 * seed)
        for place in range(rounds):
            if mechanism.answer(NormAbove(norm, threshold, 0, place), source, 1.0, entropy)[0] == 1:
                return place
        return rounds

    law = np.exp(gate_law("laplace", 1.0, 2.0, np.full(rounds, -3.0)))
    opened = sum(
        mechanism.objection(NormAbove(norm, -math.inf, segment), Relation.REPLACE_ONE) is None
        for segment in range(8)
    )
    priced = mechanism.cost(1.0, 100, 10)
    return [
        check_choices(draw, law, "gate that restarts"),
        Finding(
            "gate that restarts: no more segments than were paid for",
            opened <= sum(part.count for part in priced.entries()),
            f"{opened} segments",
        ),
    ]


def _choice_law(seed: int) -> list[Finding]:
    problem, source = _small(seed)
    choice, mechanism, entropy = Choice(_drop(problem), np.zeros(3)), NoisyChoice(), _entropy(seed)
    law = np.exp(
        choice_law(0.7, choice.scores(source, None) / choice.sensitivity(Relation.REPLACE_ONE))
    )
    return [
        check_choices(lambda: int(mechanism.answer(choice, source, 0.7, entropy)[0]), law, "choice")
    ]


def _corner_law(seed: int) -> list[Finding]:
    problem, source = _small(seed)
    problem = replace(problem, fit_intercept=False)
    source = as_source(source.X, source.y, fit_intercept=False)  # type: ignore[attr-defined]
    query, mechanism, entropy = (
        SteepestCorner(problem, np.zeros(problem.shape), 0.5),
        NoisyCorner(),
        _entropy(seed),
    )
    sums = query.sums(source)
    utilities = (
        np.column_stack([-sums, sums]).ravel() / query.sensitivity(Relation.REPLACE_ONE) / 0.5
    )
    law = np.exp(utilities - utilities.max())

    def draw() -> int:
        answer = int(mechanism.answer(query, source, 0.5, entropy)[0])
        return 2 * (abs(answer) - 1) + (answer < 0)

    return [check_choices(draw, law / law.sum(), "corner")]


def _vocabulary_law(seed: int) -> list[Finding]:
    """Check that a text of a single record is named with the accounted probability."""
    mechanism, query, entropy = Thresholded(0.05, 2), Vocabulary(2), _entropy(seed)
    source: Any = TextColumns((("common",) * 20, (*("common",) * 19, "rare")))
    scale = query.sensitivity(Relation.REPLACE_ONE)
    # One column has a rare text, and each column has half of the failure probability.
    named = 0.05 / 2

    def draw() -> int:
        return int("rare" in vocabulary_of(mechanism.answer(query, source, 1.0, entropy))[1])

    assert scale > 0
    return [check_choices(draw, np.array([1 - named, named]), "vocabulary", 3000)]


def _person_vocabulary_law(seed: int) -> list[Finding]:
    """Check that any of the texts that only one person has is named with the accounted
    probability, where the person has as many as are used.
    """
    rows, lost, multiplier = 20, 0.05, 2.0
    unit = PrivacyUnit.person(rows_per_person=rows)
    codes = np.append(np.arange(20), np.full(rows + 5, 20))
    texts = ("common",) * 20 + tuple(f"rare {k}" for k in range(rows + 5))
    source: Any = TextColumns((texts,), Persons(codes, 21, unit))
    mechanism, query, entropy = Thresholded(lost, 1), Vocabulary(1), _entropy(seed)
    # So many texts of weight 1 / sqrt(j) each are named with probability lost / j at the threshold
    # of j; with this much noise the threshold of all rows is the highest.
    scale = multiplier * query.sensitivity(Relation.REPLACE_ONE)
    number = np.arange(1, rows + 1)
    threshold = (1 / np.sqrt(number) - scale * ndtri(lost / number)).max()
    one = ndtr((1 / math.sqrt(rows) - threshold) / scale)
    named = 1 - (1 - one) ** rows

    def draw() -> int:
        answer = vocabulary_of(mechanism.answer(query, source, multiplier, entropy))
        return int(any(text.startswith("rare") for text in answer[0]))

    law = np.array([1 - named, named])
    return [check_choices(draw, law, "vocabulary of persons", 3000)]


# Attacks


def _attacks() -> Iterator[Check]:
    for name in TARGETS:
        for relation in TARGETS[name].relations:
            if proved(name, relation):
                yield Check(
                    f"attack on {name} ({relation})", partial(_attack, name, relation), attacks=1
                )
    yield Check("attack on lists of texts", _attack_texts, attacks=1)


def _attacked(
    mechanism: Any, claim: Claim, name: str, seed: int, trials: int = _TRIALS
) -> list[Finding]:
    found = audit(mechanism, claim, trials, name=name, seed=seed, alarm=ATTACK_LEVEL)
    evidence = f"measured {found.measured:.2f} of {claim.epsilon:g}, p = {found.bound.p_value:.3g}"
    return [
        Finding(
            f"{name} ({claim.relation}): attack", found.verdict is not Verdict.VIOLATED, evidence
        )
    ]


def _attack(name: str, relation: Relation, seed: int) -> list[Finding]:
    attack = _target(name, relation)
    return _attacked(attack.white_box, attack.claim, name, seed)


def _attack_texts(seed: int) -> list[Finding]:
    """Two texts with about equal counts: does the list of names show which has one record more?"""
    texts = [("b",) * 300 + ("a",) * 300 + (odd,) for odd in ("a", "b")]
    plan = Plan((Planned("vocabulary", Vocabulary, 1, sampling=Thresholded(1e-6, 1)),))

    def mechanism(world: int, seed: int) -> Vector:
        source: Any = TextColumns((texts[world],))
        quote = Quote.at(plan, {"vocabulary": 1.0}, source.n_units)
        door = seeded_curator(source, quote, Relation.REPLACE_ONE, seed)
        answer = np.zeros(40)
        named = door.release("vocabulary", Vocabulary(1))[:40]
        answer[: len(named)] = named
        return answer

    return _attacked(mechanism, Claim.gaussian(5.0, 1e-5), "lists of texts", seed)


# Outputs of estimators


def _estimators() -> dict[str, Callable[[Any, int], Any]]:
    """Maps from ledger and seed to an estimator, all at the same budget."""

    def terms(ledger: Any, seed: int) -> dict[str, Any]:
        return {
            "epsilon": _MILD.epsilon,
            "delta": _MILD.delta,
            "ledger": ledger,
            "random_state": seed,
        }

    def model(ledger: Any = None, seed: int = 0, **more: Any) -> Any:
        return PrivateLogisticRegression(
            classes=[0, 1], **terms(ledger, seed), **{"solver": "proximal-gd", "verbose": 1, **more}
        )

    def pipeline(ledger: Any, seed: int) -> Any:
        steps = [
            ("scale", PrivateQuantileScaler(missing="middle")),
            ("fit", PrivateLogisticRegression(classes=[0, 1], solver="proximal-gd")),
        ]
        return PrivatePipeline(steps, **terms(ledger, seed))

    return {
        "logistic regression, auto": lambda ledger, seed: model(ledger, seed, solver="auto"),
        "logistic regression, bounded": lambda ledger, seed: model(
            ledger, seed, feature_bounds=(-3.0, 3.0)
        ),
        "logistic regression, objective": lambda ledger, seed: model(
            ledger, seed, solver="objective"
        ),
        "logistic regression, in batches": lambda ledger, seed: model(
            ledger, seed, solver=DPSGD(steps=3, sampling=PoissonBatch(0.5))
        ),
        "linear SVC, ss-admm": lambda ledger, seed: PrivateLinearSVC(
            classes=[0, 1], solver=SSADMM(steps=5), **terms(ledger, seed)
        ),
        "lasso": lambda ledger, seed: PrivateLasso(
            target_bounds=(0, 1), solver="proximal-gd", **terms(ledger, seed)
        ),
        "quantile scaler": lambda ledger, seed: PrivateQuantileScaler(**terms(ledger, seed)),
        "pipeline": pipeline,
        "search": lambda ledger, seed: PrivateSearchCV(
            PrivateLogisticRegression(classes=[0, 1], penalty="l2", solver="proximal-gd"),
            {"alpha": [1e-3, 1e-2]},
            expected_trials=3,
            **terms(ledger, seed),
        ),
    }


def _tables() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 3)), np.tile([0, 1], 30)
    tables = [(X, y)]
    for odd in (
        [0.0, 0.0, 0.0],
        [1e3, -1e3, 0.0],
        [1e300, -1e300, 0.0],
        [np.nan, 0.0, 1.0],
        [np.inf, 0.0, 0.0],
    ):
        other = X.copy()
        other[7] = odd
        tables.append((other, y))
    tables += [(cells, y) for cells in with_odd_cell(X, 7)]
    return [*tables, *other_labels(X, y)]


def _person_tables() -> list[tuple[Any, Any, Any]]:
    """Tables that differ in all rows of one person: in their values, their number, or both."""
    rng = np.random.default_rng(6)
    ids = np.array([f"person {k}" for k in np.sort(np.append(np.arange(40), np.arange(20)))])
    X, y, other = rng.normal(size=(60, 3)), np.tile([0, 1], 30), ids != "person 7"
    tables = []
    for rows in (
        X[:1],
        X[:2],
        rng.normal(size=(40, 3)),
        np.full((30, 3), 1e300),
        np.full((3, 3), np.nan),
        np.zeros((1, 3)),
    ):
        # The first row stands in one place: persons are numbered by it.
        later = len(rows) - 1
        tables.append(
            (
                np.concatenate([rows[:1], X[other], rows[1:]]),
                np.concatenate([[0], y[other], np.ones(later)]),
                np.array(["person 7", *ids[other].tolist(), *["person 7"] * later]),
            )
        )
    return tables


_WITH_GROUPS = (
    "logistic regression, auto",
    "logistic regression, objective",
    "logistic regression, in batches",
    "linear SVC, ss-admm",
    "lasso",
    "quantile scaler",
    "pipeline",
    "search",
)


def _side_channels() -> Iterator[Check]:
    for name in _WITH_GROUPS:
        yield Check(f"persons: sealed door of {name}", partial(_sealed_persons, name))
        yield Check(f"persons: payment of {name}", partial(_paid_persons, name))
    yield Check(
        "persons: side channels of logistic regression, auto",
        partial(_side_channel_persons, "logistic regression, auto"),
    )
    for name in _estimators():
        yield Check(f"sealed door of {name}", partial(_sealed, name))
        yield Check(f"payment of {name}", partial(_paid, name))
    for name in (
        "logistic regression, auto",
        "logistic regression, objective",
        "linear SVC, ss-admm",
        "lasso",
    ):
        yield Check(f"side channels of {name}", partial(_side_channel, name))
    yield Check("sealed door of bounded scaler", _sealed_scaler)
    yield Check("sealed door of encoder", _sealed_encoder)
    yield Check("scores of a search", _scores)
    yield Check("cells of a table", _cells_alone)
    yield Check("fits with secure noise", _secure_fits)


def _sealed(name: str, seed: int) -> list[Finding]:
    return check_sealed(partial(_estimators()[name], None, seed), _tables(), name)


def _sealed_persons(name: str, seed: int) -> list[Finding]:
    return check_sealed(partial(_estimators()[name], None, seed), _person_tables(), name)


def _paid_persons(name: str, seed: int) -> list[Finding]:
    X, y, ids = _person_tables()[2]
    make = _estimators()[name]
    return check_paid(
        lambda ledger: make(ledger, seed), X, y, _MILD, Relation.REPLACE_ONE, name, ids
    )


def _side_channel_persons(name: str, seed: int) -> list[Finding]:
    make = _estimators()[name]
    return check_side_channels(lambda: make(None, seed), _person_tables(), name)


def _paid(name: str, seed: int) -> list[Finding]:
    X, y = _tables()[0]
    make = _estimators()[name]
    return check_paid(lambda ledger: make(ledger, seed), X, y, _MILD, Relation.REPLACE_ONE, name)


def _scores(seed: int) -> list[Finding]:
    """Tables that differ in the label of one row; some of them are held out."""
    X, y = _tables()[0]
    tables = [(X, y.tolist()), *(pair for row in range(8) for pair in with_odd_label(X, y, row))]
    return [check_scores(partial(_estimators()["search"], None, seed), tables)]


def _side_channel(name: str, seed: int) -> list[Finding]:
    make = _estimators()[name]
    return check_side_channels(lambda: make(None, seed), _tables(), name)


def _sealed_scaler(seed: int) -> list[Finding]:
    """Check that replacing a row changes no other row of a public scaler's output."""
    scaled = [BoundedScaler(bounds=(-3.0, 3.0)).fit(X).transform(X) for X, _ in _tables()]
    others = np.arange(60) != 7
    moved = max(int((one[others] != scaled[0][others]).any(axis=1).sum()) for one in scaled)
    return [
        Finding(
            "bounded scaler: replacing a row changes no other",
            moved == 0,
            f"{moved} other rows changed",
        )
    ]


def _sealed_encoder(seed: int) -> list[Finding]:
    texts = np.random.default_rng(1).choice(["a", "b"], 400)
    tables = []
    for odd in ("a", "b", "rare", None):
        column = [*texts.tolist(), odd]
        tables.append(({"text": column}, None))

    def make() -> Any:
        return _Known(SchemaEncoder(_schema(), discover=["text"], random_state=seed))

    return check_sealed(make, tables, "encoder")


def _cells_alone(seed: int) -> list[Finding]:
    """Check that replacing a cell changes no other cell that a schema reads."""

    def read(column: Any, cells: Any) -> Any:
        return encode({column.name: cells}, Schema((column,)))[0]

    return check_cells(LAYOUTS, read)


def _schema() -> Schema:
    return Schema((NumericColumn("age", 0, 100),))


class _Known:
    """An encoder fitted on a table with a public column next to the texts."""

    def __init__(self, encoder: SchemaEncoder) -> None:
        self._encoder = encoder

    def fit(self, X: Any, y: Any) -> "_Known":
        fitted = self._encoder.fit({**X, "age": [1.0] * len(X["text"])})
        for name, value in vars(fitted).items():
            if name.endswith("_"):
                setattr(self, name, value)
        return self


def _secure_fits(seed: int) -> list[Finding]:
    """Check that two fits without a seed share no noise and report secure noise."""
    X, y = _tables()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [
            PrivateLogisticRegression(classes=[0, 1], solver="proximal-gd").fit(X, y)
            for _ in range(2)
        ]
    same = np.array_equal(fits[0].coef_, fits[1].coef_)
    return [
        Finding("secure fits: two share no noise", not same),
        Finding("secure fits: they report secure noise", all(fit.privacy_.secure for fit in fits)),
    ]


# Owners


def _algorithms() -> dict[str, Algorithm]:
    return {
        "pp-admm": PPADMM(steps=3, eta=5.0),
        "ipp-admm": IPPADMM(steps=4, eta=5.0),
        "ipp-admm, laplace gate": IPPADMM(steps=4, eta=5.0, gate="laplace"),
        "dvp": DVP(steps=3, eta=5.0),
        "m-admm": MADMM(steps=3, eta=5.0),
        "r-admm": RADMM(steps=4, eta=5.0),
        "dp-admm": DPADMM(steps=3),
        "shared": SharedSolver(SSADMM(steps=4)),
    }


def _seat(relation: Relation, columns: int = 2) -> Seat:
    names = ("victim", "other")
    problem = Problem(Squared(1.0), Zero(), ROWS, columns, relation, fit_intercept=False)
    return Seat(
        "victim",
        Network.complete(names),
        problem,
        dict.fromkeys(names, ROWS),
        dict.fromkeys(names, USUAL_BUDGET),
    )


def _alternating_message(k: int) -> Vector:
    return np.full(2, 0.1 * (-1) ** k)


# Ranking


def _rankings() -> Iterator[Check]:
    for name in list_examples():
        yield Check(f"sensitivity of {name}", partial(_list_sensitivity, name))
    for name in sampled_list_examples():
        yield Check(f"batches of {name}", partial(_list_batches, name))
    yield Check("price of sampled grades", lambda seed: [check_label_batch_price()])
    yield Check("noise on grade statistic", _grade_noise, tests=3)
    yield Check("attack on grade statistic", _attack_grades, attacks=1)
    yield Check("direction of BayesRank", lambda seed: [check_ndcg_grows(seed)])


def _grade_noise(seed: int) -> list[Finding]:
    query, (source, _) = opposite_grades(seed)
    return check_release_noise(query, source, 1.7, Relation.LABEL, SecureSampler(), releases=150)


def _attack_grades(seed: int) -> list[Finding]:
    """One relevant document of a list or another: does the released statistic show which?"""
    query, sources = opposite_grades(seed)
    plan, budget = Plan((Planned("statistic", ListStatistic, 1),)), Budget(2.0, 1e-5)
    quote = plan.quote_for(sources[0].n_units, Relation.LABEL, budget, query.size)

    apart = query(sources[0], None) - query(sources[1], None)

    def mechanism(world: int, seed: int) -> float:
        door = seeded_curator(sources[world], quote, Relation.LABEL, seed)
        return float(door.release("statistic", query) @ apart)

    claim = Claim.gaussian(budget.epsilon, budget.delta, Relation.LABEL)
    return _attacked(mechanism, claim, "grade statistic", seed, trials=1200)


def _list_sensitivity(name: str, seed: int) -> list[Finding]:
    return [check_list_sensitivity(name, seed)]


def _list_batches(name: str, seed: int) -> list[Finding]:
    return [check_list_batches(name, seed)]


def _networks() -> Iterator[Check]:
    if networks_installed():
        for name in NETWORK_CHECKS:
            yield Check(name, network_check(name))


def _federated() -> Iterator[Check]:
    for name in _algorithms():
        yield Check(f"conversation of {name}", partial(_conversation, name))
        yield Check(f"price of owner, {name}", partial(_owner_price, name))
    for relation in RELATIONS:
        for name in owner_attacks(relation):
            yield Check(
                f"attack on {name} ({relation})", partial(_owner_attack, name, relation), attacks=1
            )
    for name in ("dvp", "r-admm", "dp-admm"):
        yield Check(f"attack on owner, {name}", partial(_other_owner, name), attacks=1)
    yield Check("payments and journal of an owner", _owner_books)
    yield Check("consent of an owner", _owner_consent)


def _conversation(name: str, seed: int) -> list[Finding]:
    relation = Relation.REPLACE_ONE
    source = Canary().neighbours(relation).first
    return check_conversation(
        _algorithms()[name], _seat(relation), source, _alternating_message, name, seed
    )


def _owner_price(name: str, seed: int) -> list[Finding]:
    found = []
    for relation in RELATIONS:
        seat = _seat(relation)
        quote = _algorithms()[name].plan(seat).quote(seat.problem, seat.budget)
        found += check_quote(quote, seat.budget, ROWS, relation, name)
    return found


def _owner_attack(name: str, relation: Relation, seed: int) -> list[Finding]:
    attack = owner_attacks(relation)[name]
    return _attacked(attack.white_box, attack.claim, name, seed)


def _diagonal(relation: Relation) -> Neighbours:
    """Opposite labels on a record between the axes, where the sum of absolute values is largest."""
    tables = []
    for label in (-1e4, 1e4):
        X, y = np.zeros((ROWS, 2)), np.full(ROWS, 1e4)
        X[0], y[0] = 1.0, label
        tables.append(as_source(X, y, fit_intercept=False))
    return Neighbours(tables[0], tables[1], 0, "opposite labels on a record between the axes")


def _other_owner(name: str, seed: int) -> list[Finding]:
    relation = Relation.REPLACE_ONE
    neighbours = _diagonal(relation)
    attack = OwnerAttack(
        _algorithms()[name],
        _seat(relation),
        neighbours,
        _alternating_message,
        gaussian=name == "dp-admm",
    )
    return _attacked(attack.white_box, attack.claim, f"owner, {name}", seed)


def _owner_books(seed: int) -> list[Finding]:
    """Check that an owner pays once, before its first message, and repeats its messages after a
    restart.
    """
    source = Canary().neighbours(Relation.REPLACE_ONE).first
    ledger = Ledger(100.0, USUAL_BUDGET.delta)
    seat, algorithm = _seat(Relation.REPLACE_ONE), PPADMM(steps=3, eta=5.0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        owner = Owner(source, seat, Run("audit", algorithm), ledger, folder)
        paid_first = len(ledger.entries) == 1
        received: dict[str, Vector] = {}
        messages = []
        for k in range(2):
            messages.append(owner.turn(k, received))
            received = {"other": _alternating_message(k)}
        owner.close()
        again = Owner(source, seat, Run("audit", algorithm), ledger, folder)
        repeated = [again.turn(k, {}) for k in range(2)]
        rewritten = [one.answer for one in again._contract.curator.transcript]
        again.close()
    same = all(
        a is not None and b is not None and np.array_equal(a, b)
        for a, b in zip(messages, repeated, strict=True)
    )
    same_journal = len(rewritten) == 2 and all(
        a is not None and np.array_equal(a, b) for a, b in zip(messages, rewritten, strict=True)
    )
    return [
        Finding(
            "owner: pays before its first message", paid_first, f"{len(ledger.entries)} entries"
        ),
        Finding("owner: pays once", len(ledger.entries) == 1, f"{len(ledger.entries)} entries"),
        Finding(
            "owner: repeats its messages after a restart",
            same and same_journal,
            "" if same and same_journal else "another message for the same round",
        ),
        _old_journal(source, seat, algorithm),
    ]


def _old_journal(source: DataSource, seat: Seat, algorithm: Algorithm) -> Finding:
    """Check that an owner does not continue from a journal restored from a backup."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ledger = Ledger.create(Path(folder) / "ledger.db", "audit", 100.0, USUAL_BUDGET.delta)
        owner = Owner(source, seat, Run("audit", algorithm), ledger, folder)
        journal = Path(folder) / "audit.journal"
        owner.turn(0, {})
        if not journal.exists():
            return Finding(
                "owner: does not continue from an old journal", False, "it writes no journal"
            )
        backup = journal.read_bytes()
        owner.turn(1, {"other": _alternating_message(0)})
        owner.close()
        journal.write_bytes(backup)
        try:
            Owner(source, seat, Run("audit", algorithm), ledger, folder).close()
        except LedgerError:
            return Finding("owner: does not continue from an old journal", True)
    return Finding(
        "owner: does not continue from an old journal", False, "it would draw a round again"
    )


def _owner_consent(seed: int) -> list[Finding]:
    """Check that an owner takes part only in approved runs, and that a refusal reveals nothing of
    the run's description.
    """
    schema = parse_schema(_CONSENT_SCHEMA).schema
    names = ("victim", "other")
    spec = deployment.RunSpec(
        "audit", "pp-admm", {"steps": 3}, Network.complete(names), dict.fromkeys(names, ROWS),
        dict.fromkeys(names, USUAL_BUDGET), deployment.terms_of(schema),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        place = Path(home)
        (place / "schema.toml").write_text(_CONSENT_SCHEMA, encoding="utf-8")
        owner = deployment.OwnerConfig(
            "victim",
            place,
            ("rows.csv",),
            place / "schema.toml",
            "ledger.db",
            "victim",
            place,
            USUAL_BUDGET,
        )
        agreed = replace(owner, approved={spec.run: spec.fingerprint})
        alone = _refusal(lambda: owner.consider(spec)) is not None
        other = _refusal(lambda: agreed.consider(replace(spec, settings={"steps": 4}))) is not None
        willing = _refusal(lambda: agreed.consider(spec)) is None
    packed = json.dumps({**spec.to_dict(), "algorithm": _MARK})
    refusals = [
        _refusal(partial(deployment.RunSpec.unpacked, _coded(packed, code)))
        for code in ("utf-8", "utf-16", "utf-32")
    ]
    foreign = _refusal(
        partial(deployment.RunSpec.unpacked, _coded(json.dumps(spec.to_dict()), "utf-16"))
    )
    return [
        Finding(
            "owner: takes part in approved runs only",
            alone and other and willing,
            f"{alone}, {other}, {willing}",
        ),
        Finding("owner: reads no other encoding than UTF-8", foreign is not None),
        Finding(
            "owner: a refusal quotes nothing of the run",
            not any(_MARK in str(text) for text in refusals),
        ),
    ]


_MARK = "came-with-the-run"
_CONSENT_SCHEMA = """
[target]
name = "ill"
kind = "categorical"
categories = ["no", "yes"]
[columns.age]
kind = "numeric"
low = 0
high = 100
"""


def _coded(text: str, encoding: str) -> str:
    return base64.b64encode(text.encode(encoding)).decode("ascii")


def _refusal(act: Callable[[], Any]) -> str | None:
    """The message sent to others if it is refused, else None."""
    try:
        act()
    except HushfitError as error:
        return deployment.told_to_others(error)
    return None


# The rest


def _others() -> Iterator[Check]:
    yield Check("ledger", lambda seed: check_ledger())
    yield Check("ledger on disk", lambda seed: check_disk_ledger())
    yield Check("refusals", _refusals)
    yield Check("relations by name", _by_name)
    yield Check("a record outside its anchored batch", _outside)
    yield Check("noise of tiny sensitivities", _tiny)
    for relation in RELATIONS:
        yield Check(f"certificate ({relation})", partial(_certificate, relation))


def _refusals(seed: int) -> list[Finding]:
    problem, source = _small(seed)
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
            for key, example in _examples(relation, seed).items()
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
    problem, source = _small(seed)
    w = np.ones(problem.shape)
    queries = [
        GradientDifference(problem, w, 0 * w, 1e-295, 0.0),
        ClippedGradient(replace(problem, loss=Squared(1e-300)), w, 1e-300),
    ]
    relation = problem.relation
    return [check_small_noise(FullBatch(), query, source, 1.0, relation) for query in queries]


def _certificate(relation: Relation, seed: int) -> list[Finding]:
    problem, source = _small(seed)
    query = PerturbedMinimiser(replace(problem, relation=relation), 0.3, tolerance=0.05)
    return check_certificate(query, source, "minimiser", seed)
