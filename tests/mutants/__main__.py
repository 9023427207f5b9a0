"""``make mutants``: plant every bug, run the checks that must detect it, print the table and write
it into docs/audit-mutants.md.

``make mutants ARGS="--clean 20"`` runs the same checks on the unmodified library, twenty times with
different seeds, and counts alarms.
"""

import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click

from hushfit.audit import ATTACK_LEVEL, FALSE_ALARMS, trimmed_checks
from hushfit.audit.checks._noise import LEVEL

from . import MUTANTS, alarms_of, planted

PAGE = Path(__file__).parents[2] / "docs" / "audit-mutants.md"
TABLE = "<!-- mutants: begin -->", "<!-- mutants: end -->"
CLEAN = "<!-- clean: begin -->", "<!-- clean: end -->"


def noticed(name: str) -> list[tuple[str, str]]:
    """The checks that detected a bug, and the evidence of each."""
    warnings.simplefilter("ignore")
    checks, mutant, found = trimmed_checks(), MUTANTS[name], []
    for check in mutant.caught_by:
        with planted(mutant):
            alarms = alarms_of(checks[check])
        # Of several alarms the one with the shortest evidence that is not empty.
        found += [
            (check, _evidence(alarm))
            for alarm in sorted(alarms, key=lambda alarm: len(alarm.evidence) or 10**6)[:1]
        ]
    return found


def clean_alarms(seed: int) -> list[str]:
    """Alarms on the unmodified library."""
    warnings.simplefilter("ignore")
    return [
        f"{name}: {finding.check}: {finding.evidence}"
        for name, check in trimmed_checks().items()
        for finding in alarms_of(check, seed)
    ]


def _evidence(finding) -> str:
    label = finding.check.split(": ")[-1]
    return f"{label}: {finding.evidence}" if finding.evidence else label


def table(lines: dict[str, list[tuple[str, str]]]) -> str:
    """The list of bugs as a Markdown table, with the evidence."""
    rows = [
        "| planted bug | what is wrong | found in | caught by | evidence |",
        "|---|---|---|---|---|",
    ]
    for name, mutant in MUTANTS.items():
        seen = dict(lines[name])
        caught = "; ".join(
            check if check in seen else f"**missed by** {check}" for check in mutant.caught_by
        )
        evidence = next(iter(seen.values()), "").replace("|", "\\|")[:160]
        rows.append(
            f"| {name} | {mutant.wrong} (`{mutant.where}`) | {mutant.source} | {caught} | "
            f"{evidence} |"
        )
    return "\n".join(rows)


def rewritten(page: str, marks: tuple[str, str], text: str) -> str:
    """The page with the part between two marks replaced."""
    before, rest = page.split(marks[0])
    return f"{before}{marks[0]}\n{text}\n{marks[1]}{rest.split(marks[1])[1]}"


@click.command()
@click.option(
    "--clean", default=0, help="Run the checks this many times on the unmodified library."
)
@click.option("--workers", default=min(2, os.cpu_count() or 1), show_default=True)
@click.option("--only", default="", help="Bugs whose name contains this; the page is left alone.")
def main(clean: int, workers: int, only: str) -> None:
    """Plant bugs, or count false alarms."""
    started = time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        if clean:
            sys.exit(_clean(clean, pool))
        names = [name for name in MUTANTS if only in name]
        lines = dict(zip(names, pool.map(noticed, names), strict=True))
    missed = [name for name in names if len(lines[name]) < len(MUTANTS[name].caught_by)]
    for name in names:
        for check, evidence in lines[name]:
            click.echo(f"{name:42} {check:58} {evidence[:150]}")
    click.echo(
        f"{len(names)} planted bugs, {len(missed)} missed. {time.monotonic() - started:.0f} s."
    )
    for name in missed:
        click.echo(
            f"  missed: {name} by "
            f"{', '.join(set(MUTANTS[name].caught_by) - set(dict(lines[name])))}"
        )
    if not only:
        PAGE.write_text(
            rewritten(PAGE.read_text(encoding="utf-8"), TABLE, table(lines)), encoding="utf-8"
        )
    sys.exit(1 if missed else 0)


def _clean(repeats: int, pool: ProcessPoolExecutor) -> int:
    """Count alarms, and write the number into the page."""
    checks, total = trimmed_checks(), 0
    for seed, found in enumerate(pool.map(clean_alarms, range(1, repeats + 1)), start=1):
        total += len(found)
        click.echo(f"seed {seed}: {len(found)} alarms")
        for line in found:
            click.echo(f"  {line}")
    attacks, tests = (
        sum(getattr(check, kind) for check in checks.values()) for kind in ("attacks", "tests")
    )
    summary = (
        f"{repeats} repeats of all {len(checks)} checks on the library as it is, each with another "
        f"seed: {total} alarms. In one repeat {attacks} attacks "
        f"may be wrong with probability {ATTACK_LEVEL:.1g} each and {tests} tests of noise with "
        f"{LEVEL:.0e} each: {attacks * ATTACK_LEVEL + tests * LEVEL:.1g} "
        f"in all, below the {FALSE_ALARMS:g} that is allowed."
    )
    click.echo(summary)
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), CLEAN, summary), encoding="utf-8")
    return 1 if total else 0


if __name__ == "__main__":
    main()
