"""All checks of the whole audit that need no attack: queries, runs, samplers and estimators."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from hushfit._typing import AnyArray
from hushfit.audit._network_names import NETWORK_CHECKS, network_check, networks_installed
from hushfit.audit.attacks import RELATIONS, TARGETS, attack_on, first_proved
from hushfit.audit.checks import (
    LEVEL,
    Finding,
    check_person_sensitivity,
    check_positions,
    check_release_noise,
    check_replay,
    check_rows_of_persons,
    check_sampler,
    check_sensitivity,
    check_shares,
    check_side_channels,
    exact_findings,
    example_queries,
    source_for,
)
from hushfit.estimators import PrivateLinearSVC, PrivateLogisticRegression
from hushfit.privacy import OpenDPSampler, Relation, Sampler, SecureSampler, SeededSampler
from hushfit.unit import PrivacyUnit

_NOISE_CHECKS_ALLOWED = 400  # times LEVEL: less than half of FALSE_ALARMS
_ADDITIVE = (
    "gradient, logistic",
    "gradient, softmax",
    "gradient in a metric",
    "second moment",
    "curvature",
    "step of ADMM",
)


def deterministic_findings(seed: int = 0, climbs: int = 120) -> list[Finding]:
    """Sensitivities of every query, replay of every algorithm, side channels of the estimators,
    exact small cases.
    """
    return [
        *sensitivity_findings(seed, climbs),
        *person_findings(seed, climbs),
        *replay_findings(seed),
        *side_channel_findings(),
        *exact_findings(),
        *network_findings(seed),
    ]


def network_findings(seed: int = 0) -> list[Finding]:
    """Checks of networks, where torch is installed."""
    names = NETWORK_CHECKS if networks_installed() else ()
    return [finding for name in names for finding in network_check(name)(seed)]


def sensitivity_findings(seed: int = 0, climbs: int = 120) -> list[Finding]:
    """Sensitivity of every query, by hill climbing over neighbours."""
    found = []
    for relation in (*RELATIONS, Relation.LABEL):
        for name, example in example_queries(relation, seed).items():
            found.append(
                check_sensitivity(
                    name,
                    example.query,
                    relation,
                    example.rows,
                    example.labels,
                    draw_label=example.draw_label,
                    climbs=climbs,
                    seed=seed,
                )
            )
    return found


def person_findings(seed: int = 0, climbs: int = 120) -> list[Finding]:
    """Sensitivity of every query to all rows of one person, by hill climbing; weights, order and
    number of rows.
    """
    usual, few = PrivacyUnit.person(), PrivacyUnit.person(rows_per_person=7)
    found = [finding for unit in (usual, few) for finding in check_shares(unit, seed)]
    found += [finding for sparse in (False, True) for finding in check_positions(sparse, seed)]
    for relation in RELATIONS:
        for name, example in example_queries(relation, seed, usual).items():
            found.append(
                check_person_sensitivity(name, example, relation, usual, climbs=climbs, seed=seed)
            )
        # Always the same rows: random ones may lie half way between two steps of a grid.
        for name, example in example_queries(relation, 0, few).items():
            found += check_rows_of_persons(name, example, relation, few)
    return found


def replay_findings(seed: int = 0, names: Iterable[str] = tuple(TARGETS)) -> list[Finding]:
    """Replay of every algorithm from its releases."""
    found = []
    for name in names:
        relation = first_proved(name)
        attack = attack_on(name, relation)
        found += check_replay(
            attack.solver, attack.problem, attack.neighbours.first, attack.budget, seed
        )
    return found


def other_labels(X: AnyArray, y: AnyArray) -> list[tuple[AnyArray, Any]]:
    """Tables in which one row has another label, one that is no class, or none."""
    changed = [(X, np.where(np.arange(len(y)) == 7, label, y)) for label in (0, 9, np.nan)]
    return [*changed, *with_odd_label(X, y, 7)]


def with_odd_cell(X: AnyArray, row: int) -> list[AnyArray]:
    """The rows as objects, of which one has a cell that is no number."""
    found = []
    for cell in ("text", None, 10**400):
        cells = X.astype(object)
        cells[row, 0] = cell
        found.append(cells)
    return found


def with_odd_label(X: AnyArray, y: AnyArray, row: int) -> list[tuple[AnyArray, Any]]:
    """Tables with a list of labels of which one is another object than all others."""
    odd: tuple[Any, ...] = ("text", None, [1], 10**400)
    return [(X, [*y[:row].tolist(), one, *y[row + 1 :].tolist()]) for one in odd]


def side_channel_findings() -> list[Finding]:
    """Side channels of the estimators, on tables that differ in one unusual row."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 3)), np.tile([0, 1], 30)
    tables = [(X, y)]
    for odd in (
        np.zeros(3),
        np.array([1e300, -1e300, 0.0]),
        np.array([np.nan, 0.0, 1.0]),
        np.array([np.inf, 0.0, 0.0]),
    ):
        other = X.copy()
        other[7] = odd
        tables.append((other, y))
    tables += other_labels(X, y)
    found = []
    for kind in (PrivateLogisticRegression, PrivateLinearSVC):
        for solver in ("auto", "ss-admm", "objective"):

            def make(kind: Any = kind, solver: str = solver) -> Any:
                return kind(
                    epsilon=1.0,
                    delta=1e-6,
                    classes=[0, 1],
                    solver=solver,
                    random_state=3,
                    verbose=1,
                )

            found += check_side_channels(make, tables, f"{kind.__name__}, {solver}")
    return found


def noise_findings_of_all(
    size: int = 100_000, releases: int = 400, level: float = LEVEL
) -> list[Finding]:
    """Checks of all samplers, and of the noise that curators add to answers.

    OpenDP's sampler is checked where it is installed.
    """
    samplers: list[tuple[Sampler, int]] = [(SecureSampler(), size), (SeededSampler(1), size)]
    if OpenDPSampler.installed():
        samplers.append((OpenDPSampler(), size // 20))
    found = [
        finding for sampler, draws in samplers for finding in check_sampler(sampler, draws, level)
    ]
    for relation in RELATIONS:
        examples = example_queries(relation)
        for name in _ADDITIVE:
            example = examples[name]
            source = source_for(example.query.problem, example.rows, example.labels)
            for sampler in (SecureSampler(), SeededSampler(2)):
                found += check_release_noise(
                    example.query, source, 1.7, relation, sampler, releases, level
                )
    assert len(found) <= _NOISE_CHECKS_ALLOWED
    return found
