"""``hushfit audit``: attack an algorithm, or show how a model's algorithm was attacked."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hushfit.cli._printing import at_terminal, json_option, print_json, print_panel, print_table


@click.command(
    "audit",
    short_help="Attack an algorithm, or show how a model's algorithm was attacked.",
    epilog=(
        "\b\nExamples:\n  hushfit audit model.json\n  hushfit audit --solver ss-admm --trials "
        "20000 -o audit.html\n  hushfit audit --solver one-release --adjacency person-label"
    ),
)
@click.argument("model_path", metavar="[MODEL]", required=False, type=click.Path(dir_okay=False))
@click.option("--solver", help="Algorithm to attack; --list shows them.")
@click.option("--list", "listed", is_flag=True, help="List the algorithms that can be attacked.")
@click.option(
    "--trials", default=20_000, show_default=True, help="Runs, half of them on either table."
)
@click.option(
    "--epsilon",
    default=8.0,
    show_default=True,
    help="Epsilon that the algorithm is calibrated to; large ones are easiest to test.",
)
@click.option("--delta", default=1e-5, show_default=True)
@click.option(
    "--adjacency",
    type=click.Choice(["replace-one", "add-remove", "label", "person-label"]),
    help="Adjacency relation.  [default: the first that the algorithm has a proof for]",
)
@click.option(
    "--view",
    type=click.Choice(["white-box", "black-box"]),
    default="white-box",
    show_default=True,
    help="All releases, or the final weights.",
)
@click.option(
    "--confidence", default=0.999, show_default=True, help="Of the lower bound on epsilon."
)
@click.option("--seed", default=0, show_default=True, help="Of the trials.")
@click.option(
    "--secure",
    is_flag=True,
    help="Draw noise from the operating system, as releases do; not reproducible.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Where to write the page (HTML)."
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@json_option
def command(model_path: str | None, as_json: bool, **given: Any) -> None:
    """Run an algorithm many times on two artificial tables that differ in one row (under label in
    its label alone; for ranking in one list; or in all rows, labels or lists of a person), and
    measure how well an attacker distinguishes them. The result is a lower bound on epsilon and a
    verdict: consistent, violated, or no power. With -o, also a page with pictures.

    With MODEL, show instead what was checked about the algorithm that fitted it, and what the
    attacks measured. No rows are read.
    """
    if given["listed"]:
        _list(as_json)
    elif model_path is not None:
        _explain(model_path, as_json)
    elif given["solver"] is not None:
        _attack(as_json, **given)
    else:
        raise click.UsageError(
            "Give a MODEL to explain, or --solver to attack; --list shows the algorithms."
        )


def _list(as_json: bool) -> None:
    from hushfit.audit import SEARCHES, TARGETS, measured_for
    from hushfit.privacy import Relation

    names, relations = [*TARGETS, *SEARCHES], list(map(str, Relation))
    if as_json:
        print_json({"algorithms": names})
        return
    rows = [
        [
            name,
            *(_ratio(measured_for(name), name, relation) for relation in relations),
        ]
        for name in names
    ]
    print_table(
        "Algorithms, and what the best attack measured of their claim",
        ["name", *relations],
        rows,
    )


def _ratio(lines: list[dict[str, Any]], name: str, relation: str) -> str:
    found = [
        line["ratio"] for line in lines if (line["name"], line["relation"]) == (name, relation)
    ]
    return f"{max(found):.2f}" if found else "-"


def _explain(path: str, as_json: bool) -> None:
    from hushfit.audit import explain
    from hushfit.models import is_ranker, load_model, load_ranker

    explanation = explain(load_ranker(path) if is_ranker(path) else load_model(path))
    if as_json:
        print_json(explanation.to_dict())
        return
    print_panel("Audit", explanation.summary)
    print_table(
        "What was released",
        ["release", "query", "proof", "checks"],
        [list(line) for line in explanation.releases],
    )
    if explanation.measured:
        cells = [
            [
                m["name"],
                m["view"],
                m["relation"],
                f"{m['claimed']:g}",
                f"{m['measured']:.2f}",
                f"{m['ratio']:.0%}",
                m["verdict"],
            ]
            for m in explanation.measured
        ]
        print_table(
            "Attacks on the algorithm",
            ["algorithm", "view", "relation", "claimed", "measured", "ratio", "verdict"],
            cells,
        )


def _attack(
    as_json: bool, solver: str, output: str | None, overwrite: bool, listed: bool, **given: Any
) -> None:
    from hushfit.audit import TARGETS, audit_page, audit_solver, first_proved
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.models import write_whole
    from hushfit.privacy import Budget

    if output is not None:
        refuse_to_overwrite(output, overwrite, ".html", ".htm")
    budget = Budget(given["epsilon"], given["delta"])
    relation = given["adjacency"] or (first_proved(solver) if solver in TARGETS else "replace-one")
    with _trial_bar(solver, given["trials"], at_terminal(as_json)) as watch:
        found = audit_solver(
            solver,
            relation,
            budget,
            given["view"],
            given["trials"],
            given["confidence"],
            seed=given["seed"],
            secure=given["secure"],
            watch=watch,
        )
    if output is not None:
        write_whole(Path(output), audit_page(found))
    if as_json:
        print_json({**found.to_dict(), "page": output})
        return
    print_panel(str(found.verdict), str(found))
    if output is not None:
        click.echo(f"Page: {output}")


@contextmanager
def _trial_bar(label: str, trials: int, shown: bool) -> Iterator[Callable[[int], None] | None]:
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(f"Attacking {label}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task("attack", total=trials)
        yield lambda done: progress.update(task, completed=done)
