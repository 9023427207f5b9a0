"""``python -m hushfit.audit``: the whole audit. Exit code 1 if any claim is violated, any check
fails, or any attack is weaker than its goal.
"""

import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import click

from hushfit._version import __version__
from hushfit.audit._network_names import LEFT_OUT, networks_installed
from hushfit.audit.checks import Finding
from hushfit.audit.suite import (
    FALSE_ALARMS,
    alarm_level,
    attack_jobs,
    deterministic_findings,
    is_wrong,
    markdown_tables,
    merged,
    noise_findings_of_all,
    persons_table,
    run_attack,
)
from hushfit.privacy import OpenDPSampler

_TABLES = {
    "measured": markdown_tables,
    "persons": persons_table,
}


@click.command()
@click.option("--trials", default=8000, show_default=True, help="Trials of each attack.")
@click.option("--workers", default=min(2, os.cpu_count() or 1), show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--only", multiple=True, help="Only attacks whose name contains this; may be given repeatedly."
)
@click.option(
    "-o",
    "--output",
    default="out/audit/audit.json",
    show_default=True,
    type=click.Path(dir_okay=False),
)
@click.option(
    "--keep",
    is_flag=True,
    help="Store the results in the package and in the table of docs/audit.md.",
)
def main(
    trials: int, workers: int, seed: int, only: tuple[str, ...], output: str, keep: bool
) -> None:
    """Run all attacks, then all checks that need no attack."""
    started = time.monotonic()
    jobs = [job for job in attack_jobs() if not only or any(text in job.name for text in only)]
    alarm = alarm_level(attack_jobs())
    click.echo(
        f"{len(jobs)} attacks of {trials} trials; false alarms of the whole audit: at most "
        f"{FALSE_ALARMS:g}"
    )
    if not networks_installed():
        click.echo(LEFT_OUT)
    if not OpenDPSampler.installed():
        click.echo("OpenDP's sampler is left out: it needs `pip install hushfit[reference]`")
    lines: dict[int, dict[str, Any]] = {}
    with ProcessPoolExecutor(workers) as pool:
        pending = {
            pool.submit(run_attack, job, trials, alarm, seed + place): place
            for place, job in enumerate(jobs)
        }
        checks = (
            []
            if only
            else [pool.submit(deterministic_findings, seed), pool.submit(noise_findings_of_all)]
        )
        for done in as_completed(pending):
            line = lines[pending[done]] = done.result()
            click.echo(_line(line))
        findings = [finding for check in checks for finding in check.result()]
    ordered = [lines[place] for place in sorted(lines)]
    broken = [line for line in ordered if is_wrong(line)]
    weak = [line for line in ordered if line["ratio"] < line["goal"]]
    failed = [finding for finding in findings if not finding.passed]
    click.echo(f"\n{len(ordered)} attacks: {len(broken)} wrong, {len(weak)} below their goal.")
    click.echo(
        f"{len(findings)} checks without an attack: {len(failed)} failed. "
        f"{time.monotonic() - started:.0f} s."
    )
    for line in weak:
        click.echo(
            f"  weak: {line['name']} ({line['view']}, {line['relation']}) {line['ratio']:.2f}, "
            f"goal {line['goal']}"
        )
    for finding in failed:
        click.echo(f"  failed: {finding.check}: {finding.evidence}")
    _write(Path(output), ordered, findings, trials)
    if keep:
        _keep(merged(ordered) if only else ordered, trials)
    sys.exit(1 if broken or failed or weak else 0)


def _line(line: dict[str, Any]) -> str:
    return (
        f"{line['name']:28} {line['relation']:12} {line['view']:10} claimed {line['claimed']:g} "
        f"measured {line['measured']:6.2f} "
        f"ratio {line['ratio']:5.2f}  {line['verdict']}"
    )


def _write(path: Path, lines: list[dict[str, Any]], findings: list[Finding], trials: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    checks = [{"check": f.check, "passed": f.passed, "evidence": f.evidence} for f in findings]
    path.write_text(
        json.dumps(
            {"version": __version__, "trials": trials, "attacks": lines, "checks": checks}, indent=1
        ),
        encoding="utf-8",
    )


def _keep(lines: list[dict[str, Any]], trials: int) -> None:
    """Store results in the package, for ``hushfit audit MODEL``, and in the docs."""
    here = Path(__file__).parent
    text = json.dumps({"version": __version__, "trials": trials, "attacks": lines}, indent=1)
    here.joinpath("measured.json").write_text(text + "\n", encoding="utf-8")
    page = here.parents[2] / "docs" / "audit.md"
    if page.is_file():
        text = page.read_text(encoding="utf-8")
        for name, table in _TABLES.items():
            opening, closing = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
            before, rest = text.split(opening)
            text = f"{before}{opening}\n{table(lines)}\n{closing}{rest.split(closing)[1]}"
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
