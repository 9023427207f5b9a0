"""Stored results of attacks, and their tables."""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from hushfit.audit._bounds import Verdict
from hushfit.audit.attacks import RELATIONS, TARGETS
from hushfit.audit.suite._jobs import attack_jobs
from hushfit.privacy import Relation

_PERSON_TARGETS = tuple(name for name, target in TARGETS.items() if target.canary.unit.is_person)
_MEASURED = "measured.json"


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
