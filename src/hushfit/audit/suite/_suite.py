"""The whole audit: every algorithm, query, sampler and estimator, with one false-alarm rate for
all of it together.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np

from hushfit._typing import AnyArray
from hushfit.audit._bounds import Claim, Verdict
from hushfit.audit._network_names import (
    NETWORK_ATTACKS,
    NETWORK_CHECKS,
    ONE_RUN_NETWORK,
    network_audits,
    network_check,
    networks_installed,
)
from hushfit.audit.attacks import (
    BLACK,
    RANKING_TARGETS,
    RELATIONS,
    ROW_LEVEL_TARGETS,
    SEARCHES,
    TARGETS,
    USUAL_BUDGET,
    WHITE,
    Attack,
    Audit,
    OneRun,
    OwnerAttack,
    attack_on,
    audit,
    audit_solver,
    first_proved,
    gradient_canaries,
    one_run,
    owner_attacks,
    proved,
    row_level_attack,
)
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
    list_examples,
    source_for,
)
from hushfit.estimators import PrivateLinearSVC, PrivateLogisticRegression
from hushfit.models import Model, RankingModel
from hushfit.privacy import OpenDPSampler, Relation, Sampler, SecureSampler, SeededSampler
from hushfit.solvers import SOLVERS, ProximalGradient
from hushfit.unit import PrivacyUnit

FALSE_ALARMS = 1e-3
"""Probability that the whole audit, run on correct code, raises any alarm: half for attacks, half
for tests of noise.
"""

_ONE_RUNS = ("one run, proximal-gd",)
_NOISE_CHECKS_ALLOWED = 400  # times LEVEL: less than half of FALSE_ALARMS
_ADDITIVE = (
    "gradient, logistic",
    "gradient, softmax",
    "gradient in a metric",
    "second moment",
    "curvature",
    "step of ADMM",
)
# View of the attack on a person where the fit protects single rows: it must be violated.
ROW_LEVEL = "row-level fit"
_PERSON_TARGETS = tuple(name for name, target in TARGETS.items() if target.canary.unit.is_person)
_MEASURED = "measured.json"
# Queries that are attacked by themselves, and the names of their targets.
_ATTACKED_AS = {
    "ColumnHistogram": "quantiles",
    "Vocabulary": "vocabulary",
    "MarginHistogram": "recalibrated",
}
# Name of the one release of a search.
_SEARCHED = "best of a random number of trials"
_READ_WRONGLY = "the claim is for one row; a person with many rows is not covered by it"
_BY_CURVE = (
    "the best of many trials is accounted by a Renyi curve; at most 0.82 of the claim is attained"
)


@dataclass(frozen=True)
class Job:
    """One attack of the suite."""

    name: str
    relation: Relation
    view: str


def attack_jobs() -> list[Job]:
    """All attacks on algorithms with a guarantee."""
    jobs = [
        Job(name, relation, WHITE)
        for name in TARGETS
        for relation in TARGETS[name].relations
        if proved(name, relation)
    ]
    jobs += [Job(name, relation, BLACK) for name in SEARCHES for relation in RELATIONS]
    jobs += [
        Job(name, TARGETS[name].relations[0], BLACK)
        for name in (*SOLVERS, *RANKING_TARGETS.values())
        if name in TARGETS
    ]
    jobs += [
        Job(name, relation, WHITE) for relation in RELATIONS for name in owner_attacks(relation)
    ]
    jobs += [Job(name, relation, "one run") for name in _ONE_RUNS for relation in RELATIONS]
    if networks_installed():
        jobs += [Job(name, relation, WHITE) for name in NETWORK_ATTACKS for relation in RELATIONS]
        jobs += [Job(ONE_RUN_NETWORK, relation, "one run") for relation in RELATIONS]
    return jobs + [
        Job(name, relation, ROW_LEVEL) for name in ROW_LEVEL_TARGETS for relation in RELATIONS
    ]


def alarm_level(jobs: Sequence[Job]) -> float:
    """False-alarm rate of each attack, given that of all together."""
    return FALSE_ALARMS / 2 / max(len(jobs), 1)


def run_attack(job: Job, trials: int, alarm: float, seed: int = 0) -> dict[str, Any]:
    """Run one attack; return plain values."""
    if job.name in NETWORK_ATTACKS:
        return _network(job, trials // 4, alarm, seed)
    if job.view == "one run":
        return _one_run(job, alarm, seed)
    if job.view == ROW_LEVEL:
        shown = row_level_attack(job.name, job.relation)
        found = _by_transcript(job, shown, trials // 4, alarm, seed)  # nearly every guess is right
        line = {**found.to_dict(), "goal": 1.0, "note": _READ_WRONGLY, "broken_claim": True}
        return {**line, "unit": "one row, read as one person"}
    if job.name in SEARCHES:
        # A search takes twenty times as long as a run.
        found = audit_solver(
            job.name, job.relation, USUAL_BUDGET, job.view, trials // 2, seed=seed, alarm=alarm
        )
        return {**found.to_dict(), "goal": 0.5, "note": _BY_CURVE}
    if job.name not in TARGETS:
        # The measured share is close to the goal: more trials reduce random error.
        attack = owner_attacks(job.relation)[job.name]
        found = _by_transcript(job, attack, 4 * trials, alarm, seed)
        return {**found.to_dict(), "goal": 0.8, "note": ""}
    target = TARGETS[job.name]
    goal = target.goal_under(job.relation) if job.view == WHITE else 0.0
    # Black-box results are reported but have no goal: half the trials are enough.
    trials = target.repeats * trials if job.view == WHITE else trials // 2
    found = audit_solver(
        job.name, job.relation, USUAL_BUDGET, job.view, trials, seed=seed, alarm=alarm
    )
    return {**found.to_dict(), "goal": goal, "note": target.note}


def _network(job: Job, trials: int, alarm: float, seed: int) -> dict[str, Any]:
    """An attack on a network; a step takes twenty times as long as one of a linear model."""
    found = network_audits().attack_network(
        job.name, job.relation, USUAL_BUDGET, trials, seed=seed, alarm=alarm
    )
    return {**found.to_dict(), "goal": 0.5, "note": "one network of two weights"}


def _by_transcript(
    job: Job, attack: OwnerAttack | Attack, trials: int, alarm: float, seed: int
) -> Audit:
    """An attack that sees all releases of an algorithm."""
    return audit(
        attack.white_box,
        attack.claim,
        trials,
        name=job.name,
        seed=seed,
        view=job.view,
        canary=attack.neighbours.words,
        alarm=alarm,
    )


def _one_run(job: Job, alarm: float, seed: int) -> dict[str, Any]:
    if job.name == ONE_RUN_NETWORK:
        found: OneRun = network_audits().one_run_network(job.relation, seed=seed)
        return _one_run_line(job, found, alarm, goal=0.5, note="one fit of three steps")
    found = one_run(
        gradient_canaries(ProximalGradient(steps=4), job.relation, USUAL_BUDGET),
        Claim(USUAL_BUDGET.epsilon, USUAL_BUDGET.delta, job.relation),
        canaries=2000,
        seed=seed,
    )
    return _one_run_line(job, found, alarm, goal=0.1, note="one fit; the bound is looser")


def _one_run_line(
    job: Job, found: OneRun, alarm: float, *, goal: float, note: str
) -> dict[str, Any]:
    verdict = Verdict.VIOLATED if found.p_value <= alarm else found.verdict
    return {
        "name": job.name,
        "view": job.view,
        "relation": str(job.relation),
        "unit": found.claim.unit.in_words,
        "canary": f"{found.canaries} records of orthogonal gradients, each in or out",
        "claimed": found.claim.epsilon,
        "delta": found.claim.delta,
        "measured": round(found.epsilon, 4),
        "direct": round(found.epsilon, 4),
        "family": None,
        "ratio": round(found.ratio, 4),
        "p_value": found.p_value,
        "level": found.level,
        "trials": 1,
        "verdict": str(verdict),
        "goal": goal,
        "note": note,
    }


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


# Stored results, for the report about a model


@cache
def measured() -> tuple[dict[str, Any], ...]:
    """Results of the last whole audit stored with the library."""
    return tuple(line for line in _stored() if not is_broken_claim(line))


def _stored() -> list[dict[str, Any]]:
    file = files("hushfit.audit").joinpath(_MEASURED)
    if not file.is_file():
        return []
    lines: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["attacks"]
    return lines


def is_broken_claim(line: dict[str, Any]) -> bool:
    """Whether an attack is on a claim that is known to be wrong, and must find that."""
    return bool(line.get("broken_claim", False))


def is_wrong(line: dict[str, Any]) -> bool:
    """Whether an attack found what it should not: a claim violated, or a wrong one not."""
    violated = str(line["verdict"]) == str(Verdict.VIOLATED)
    return violated != is_broken_claim(line)


def merged(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Stored results with those of some attacks replaced, in the order of the suite."""

    def key(line: dict[str, Any]) -> tuple[str, str, str]:
        return line["name"], line["relation"], line["view"]

    known = {key(line): line for line in [*_stored(), *lines]}
    jobs = [(job.name, str(job.relation), job.view) for job in attack_jobs()]
    return [known[job] for job in jobs if job in known]


def measured_for(name: str) -> list[dict[str, Any]]:
    """Stored results of one algorithm and its variants."""
    return [
        line for line in measured() if line["name"] == name or line["name"].startswith(f"{name},")
    ]


@dataclass(frozen=True)
class Explanation:
    """What was audited for a model's algorithm.

    Parameters
    ----------
    summary : str
    releases : tuple of (release, query, proof, checks)
    measured : tuple of dict
        Attacks on the algorithm, those under the model's own adjacency relation first.
    """

    summary: str
    releases: tuple[tuple[str, str, str, str], ...]
    measured: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def explain(model: Model | RankingModel) -> Explanation:
    """State what was checked about the algorithm of a model.

    Parameters
    ----------
    model : Model or RankingModel

    Returns
    -------
    Explanation
    """
    guarantee = model.guarantee
    # A part of a pipeline prefixes its releases with its own name.
    made = {(release.name.rpartition(": ")[2], release.query) for release in guarantee.releases}
    attacked = (
        RANKING_TARGETS
        if isinstance(model, RankingModel)
        else {name: name for name in SOLVERS if name in TARGETS}
    )
    names = _algorithms_of(getattr(model.estimator, "solver", "auto"), made, attacked)
    lines = sorted(
        (line for name in names for line in measured_for(name)),
        key=lambda line: line["relation"] != str(guarantee.relation),
    )
    if guarantee.nonprivate:
        summary = "The model has no guarantee (epsilon is infinite), so there is nothing to audit."
    elif not lines:
        summary = (
            "No attack is stored for this combination of releases. Its queries have proofs and "
            "checks, which `hushfit audit MODEL` lists."
        )
    else:
        own = [line for line in lines if line["relation"] == str(guarantee.relation)]
        best = max((line["ratio"] for line in own), default=math.nan)
        broken = [line for line in lines if line["verdict"] == str(Verdict.VIOLATED)]
        summary = (
            f"Guarantee: epsilon {guarantee.epsilon:.4g} at delta {guarantee.delta:.3g}, "
            f"{guarantee.relation}. The algorithm ({', '.join(names)}) was "
            f"attacked on artificial tables made to attain its accounted epsilon. "
            + (
                f"The best attack under {guarantee.relation} measured {best:.0%} of the claim; "
                if own
                else ""
            )
            + (
                f"{len(broken)} of {len(lines)} attacks broke the claim."
                if broken
                else f"none of {len(lines)} attacks broke it."
            )
            + " The model itself was not attacked: that would need its rows."
        )
    releases = tuple(
        (
            f"{release.count} x {release.name}",
            release.query,
            proof_of(release.query, release.name),
            _checks_of(release.query, release.name),
        )
        for release in guarantee.releases
    )
    return Explanation(summary, releases, tuple(lines))


def _algorithms_of(
    solver: Any, made: set[tuple[str, str]], attacked: Mapping[str, str]
) -> list[str]:
    """Names of the attacked targets that match a model's releases; ``attacked`` has those of the
    solvers that the model could have been fitted with.
    """
    queries = {query for _, query in made}
    extra = [name for query, name in _ATTACKED_AS.items() if query in queries]
    if any(name == _SEARCHED for name, _ in made):
        extra += list(SEARCHES)
    if isinstance(solver, str) and (solver in attacked or solver in TARGETS):
        return [attacked.get(solver, solver), *extra]
    found = []
    for name in attacked.values():
        relation = first_proved(name)
        attack = attack_on(name, relation)
        if {
            (part.name, part.query.__name__) for part in attack.solver.plan(attack.problem).parts
        } <= made:
            found.append(name)
    # A second moment identifies an algorithm better than a gradient, which many release.
    return [*found[:2], *extra]


def proof_of(query: str, release: str = "") -> str:
    """The page of docs/proofs that the query's module cites, or the page of model selection."""
    kind = getattr(import_module("hushfit.release"), query, None)
    module = (
        "hushfit.model_selection"
        if release.rpartition(": ")[2] == _SEARCHED
        else getattr(kind, "__module__", None)
    )
    text = (import_module(module).__doc__ or "") if module is not None else ""
    cited = re.search(r"docs/proofs/([\w{},]+)\.md", text)
    return "" if cited is None else f"docs/proofs/{cited.group(1)}.md"


def _checks_of(query: str, release: str) -> str:
    if release.rpartition(": ")[2] == _SEARCHED:
        return (
            "exact distribution of the best of several trials; one payment, of the quoted cost; "
            "side channels"
        )
    fuzzed = any(
        type(example.query).__name__ == query
        for relation in (*RELATIONS, Relation.LABEL)
        for example in example_queries(relation).values()
    ) or any(
        type(example.make(example.problem)).__name__ == query
        for _, example in list_examples().values()
    )
    return (
        "sensitivity by hill climbing; " if fuzzed else ""
    ) + "distribution, scale and freshness of noise; replay from releases; side channels"


def markdown_tables(lines: Sequence[dict[str, Any]]) -> str:
    """Claimed and measured epsilon of claims for one row, one list or, under person-label, one
    person; one table for each adjacency relation.
    """
    parts = []
    for relation in Relation:
        own = [
            line
            for line in lines
            if line["relation"] == str(relation) and line["name"] not in _PERSON_TARGETS
        ]
        if relation not in RELATIONS and not own:
            continue
        parts.append(
            f"### {relation}\n\n| algorithm | attacker sees | claimed | measured | no assumption | "
            "measured / claimed | verdict |"
        )
        parts.append("|---|---|---|---|---|---|---|")
        parts += [
            f"| {line['name']} | {line['view']} | {line['claimed']:g} | {line['measured']:.2f} | "
            f"{line['direct']:.2f} | {line['ratio']:.2f} | {line['verdict']} |"
            for line in own
        ]
        parts.append("")
    return "\n".join(parts)


def persons_table(lines: Sequence[dict[str, Any]]) -> str:
    """Claimed and measured epsilon of attacks on a person, of fits that protect persons and of
    fits that protect rows.
    """
    rows = [
        "| algorithm | the fit protects | relation | claimed epsilon, delta | measured | "
        "measured / claimed | trials | verdict |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        if line["name"] in _PERSON_TARGETS:
            solver = line["name"].partition(",")[0]
            unit = "rows" if is_broken_claim(line) else "persons"
            rows.append(
                f"| {solver} | {unit} | {line['relation']} | {line['claimed']:g}, "
                f"{line['delta']:g} | {line['measured']:.2f} | {line['ratio']:.2f} | "
                f"{line['trials']} | {line['verdict']} |"
            )
    return "\n".join(rows)
