"""``hushfit evaluate``: scores of a model on held-out rows, exact or with noise."""

from collections.abc import Sequence
from typing import Any

import click

from hushfit.cli._files import TableOptions, table_options
from hushfit.cli._options import as_written, written_options
from hushfit.cli._printing import (
    at_terminal,
    json_option,
    print_guarantee,
    print_json,
    print_message,
    print_table,
    reading_bar,
)

_WARNING = (
    "These scores are computed from the rows you gave, without noise. Use rows that were held out "
    "of training: scores on the training rows would reveal information about the people in them, "
    "outside the guarantee."
)
_MAX_SHOWN_CLASSES = 12


@click.command(
    "evaluate",
    short_help="Score a model on rows it has not seen.",
    epilog="""\b
Examples:
  hushfit evaluate model.json held-out.csv
  hushfit evaluate model.json held-out.csv --by sex
  hushfit evaluate model.json held-out.csv --private --epsilon 0.1 --delta 1e-6 \\
      --ledger ledger.db --dataset held-out --by sex""",
)
@click.argument("model_path", metavar="MODEL", type=click.Path(dir_okay=False))
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("--by", metavar="COLUMN", help="Also give the scores of each value of this column.")
@click.option(
    "--private",
    is_flag=True,
    help="The held-out rows are private too: release their scores with noise, paying first.",
)
@click.option("--epsilon", type=float, help="With --private: privacy loss to spend on the scores.")
@click.option("--delta", type=float, help="With --private: as for fit.")
@click.option(
    "--adjacency",
    type=click.Choice(["replace-one", "add-remove"]),
    default="replace-one",
    show_default=True,
    help="With --private: adjacency relation.",
)
@click.option("--ledger", metavar="PATH|URL", help="With --private: the ledger, as for fit.")
@click.option("--dataset", metavar="NAME", help="With --private: account in the ledger.")
@click.option("--seed", type=int, help="With --private: reproducible, INSECURE noise, for tests.")
@table_options
@json_option
def command(model_path: str, tables: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Print scores of MODEL on the held-out TABLE, each beside that of a trivial prediction.

    Classes: accuracy, balanced accuracy, ROC-AUC, PR-AUC, log-loss, calibration, recall and
    precision of each class, and which class was taken for which. Numbers: RMSE, MAE and R2; counts
    also the Poisson deviance; grades also the share of right ones. A ranking model: NDCG by depth.

    If the model's schema names a column of ids of persons and TABLE has it, standard errors are
    clustered by person: rows of one person are not independent.

    With --private the rows of TABLE are protected as those of a fit: the confusion matrix, or
    means and mean squares of residuals and targets, are released with noise and charged to the
    ledger, and every score follows from them. The unit of privacy is that of the model's schema.
    With --by too, the column must be a categorical one of the schema, and the budget covers all
    groups together: small ones are hidden by the noise.
    """
    from hushfit.cli._ranking import evaluate_lists
    from hushfit.models import is_ranker
    from hushfit.report import held_out, table_model

    _refuse_unused(given)
    options = TableOptions.of(given)
    if is_ranker(model_path):
        if given["by"] or given["private"]:
            raise click.UsageError("--by and --private are not for ranking models.")
        evaluate_lists(model_path, tables, options, as_json)
        return
    model = table_model(model_path)
    found = options.tables(tables, model.schema)
    shown = at_terminal(as_json)
    if given["private"] and given["by"] is not None:
        _refuse_undeclared(model.schema, given["by"])
    with reading_bar([table.path for table in found], shown, not given["private"]) as watch:
        held = held_out(model, found, watch, given["by"])
    if given["private"]:
        _release(model, held, given, model_path, as_json)
        return
    scores, groups = held.scores(), held.by_group()
    if as_json:
        extra = {"by": {name: own.to_dict() for name, own in groups.items()}} if groups else {}
        told = {"standard_errors": scores.independence, "warning": _WARNING}
        print_json({**scores.to_dict(), **extra, **told})
        return
    title = f"{model_path} on {scores.rows} held-out rows"
    print_table(title, ["score", "value", "meaning"], scores.lines())
    _print_details(scores)
    if groups:
        _print_groups(groups, given["by"])
    print_message(scores.independence, word="note")
    print_message(_WARNING, word="warning")


def _refuse_unused(given: dict[str, Any]) -> None:
    payment = ("epsilon", "delta", "adjacency", "ledger", "dataset", "seed")
    if given["private"]:
        if given["epsilon"] is None or given["delta"] is None:
            raise click.UsageError("--private needs --epsilon and --delta.")
        return
    unused = [as_written(name) for name in payment if name in written_options()]
    if unused:
        raise click.UsageError(f"{', '.join(unused)}: only with --private, which adds noise.")


def _refuse_undeclared(schema: Any, by: str) -> None:
    """Which groups there are must be public."""
    known = [column.name for column in schema.columns if column.kind == "categorical"]
    if by not in known:
        names = ", ".join(map(repr, known)) or "none"
        raise click.UsageError(
            f"--by {by} with --private: which groups there are must be public, so the column must "
            f"be a categorical one of the model's schema ({names}). Nothing was spent."
        )


def _print_details(scores: Any) -> None:
    """Tables by class, and of calibration."""
    if scores.confusion is not None:
        _print_confusion(scores.confusion)
    if scores.calibration:
        cells = [
            [f"{c.low:.0%} to {c.high:.0%}", f"{c.rows}", f"{c.predicted:.1%}", f"{c.observed:.1%}"]
            for c in scores.calibration
        ]
        of = f"probability of {scores.positive}" if scores.positive else "of the chosen label"
        print_table(
            f"Calibration: {of}", ["predicted", "rows", "mean predicted", "observed"], cells
        )


def _print_confusion(confusion: Any, counted: str = "rows") -> None:
    rows = [
        [s.label, f"{s.rows:.0f}", _share(s.recall), _share(s.precision)]
        for s in confusion.by_class
    ]
    print_table("By class", ["class", counted, "recall", "precision"], rows)
    if len(rows) <= _MAX_SHOWN_CLASSES:
        cells = [
            [label, *(f"{count:.0f}" for count in row)]
            for label, row in zip(confusion.classes, confusion.counts, strict=True)
        ]
        heads = ["true \\ predicted", *confusion.classes]
        print_table("Which class was taken for which", heads, cells)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _print_groups(groups: dict[str, Any], by: str) -> None:
    names: Sequence[str] = [line[0] for line in next(iter(groups.values())).lines()]
    rows = []
    for name, scores in groups.items():
        values = {line[0]: line[1] for line in scores.lines()}
        rows.append([name, f"{scores.rows}", *(values.get(score, "-") for score in names)])
    print_table(f"By {by}", [by, "rows", *names], rows)


def _release(model: Any, held: Any, given: dict[str, Any], model_path: str, as_json: bool) -> None:
    from hushfit import Budget
    from hushfit.cli._paid_model import ledger_of, refuse_large_delta
    from hushfit.release import Randomness, Terms
    from hushfit.report import private_scores

    budget, unit = Budget(given["epsilon"], given["delta"]), model.schema.privacy_unit
    refuse_large_delta(given["delta"], held.n_units(unit), unit)
    terms = Terms(
        budget,
        "hushfit evaluate",
        Randomness.of(given["seed"]),
        ledger_of(given),
        ("the model, and the range or the classes of the target",),
        ("A row whose target is missing or unknown counts as the zero record.",),
    )
    scores = private_scores(held, terms, given["adjacency"], unit)
    if as_json:
        print_json(scores.to_dict())
        return
    plural = unit.plural
    title = f"{model_path} on {scores.units} private {plural}, with noise"
    print_table(title, ["score", "value", "meaning"], scores.lines())
    if scores.confusion is not None:
        _print_confusion(scores.confusion, plural)
    if scores.by:
        _print_noisy_groups(scores.by, given["by"], plural)
    print_guarantee(scores.guarantee)


def _print_noisy_groups(groups: Sequence[Any], by: str, plural: str) -> None:
    name = "accuracy" if any(one.accuracy is not None for one in groups) else "RMSE"
    rows = [[one.name, f"{one.units:.0f}", one.written or "hidden by noise"] for one in groups]
    print_table(f"By {by}, with noise", [by, plural, name], rows)
