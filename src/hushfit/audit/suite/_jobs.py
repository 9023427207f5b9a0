"""All attacks of the whole audit, with one false-alarm rate for all of it together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hushfit.audit._bounds import Claim, Verdict
from hushfit.audit._network_names import (
    NETWORK_ATTACKS,
    ONE_RUN_NETWORK,
    network_audits,
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
    audit,
    audit_solver,
    gradient_canaries,
    one_run,
    owner_attacks,
    proved,
    row_level_attack,
)
from hushfit.privacy import Relation
from hushfit.solvers import SOLVERS, ProximalGradient

FALSE_ALARMS = 1e-3
"""Probability that the whole audit, run on correct code, raises any alarm: half for attacks, half
for tests of noise.
"""
_ONE_RUNS = ("one run, proximal-gd",)
# View of the attack on a person where the fit protects single rows: it must be violated.
ROW_LEVEL = "row-level fit"
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
