"""``hushfit evaluate``: scores of a model on held-out rows."""

import click

from hushfit.cli._files import FORMATS
from hushfit.cli._printing import (
    at_terminal,
    json_option,
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


@click.command(
    "evaluate",
    short_help="Score a model on rows it has not seen.",
    epilog="\b\nExample:\n  hushfit evaluate model.json held-out.csv",
)
@click.argument("model_path", metavar="MODEL", type=click.Path(dir_okay=False))
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Format of the table, if its name does not show it.",
)
@json_option
def command(model_path: str, tables: tuple[str, ...], format_: str | None, as_json: bool) -> None:
    """Print accuracy, log-loss, ROC-AUC and calibration of MODEL on the held-out TABLE; NDCG by
    depth for a ranking model.

    If the model's schema names a column of ids of persons and TABLE has it, standard errors are
    clustered by person: rows of one person are not independent.
    """
    from hushfit.cli._files import tables_for
    from hushfit.cli._ranking import evaluate_lists
    from hushfit.models import is_ranker
    from hushfit.report import evaluate_model, table_model

    if is_ranker(model_path):
        evaluate_lists(model_path, tables, format_, as_json)
        return
    model = table_model(model_path)
    found = tables_for(tables, format_, model.schema)
    with reading_bar([table.path for table in found], at_terminal(as_json)) as watch:
        scores = evaluate_model(model, found, watch=watch)
    if as_json:
        print_json(
            {**scores.to_dict(), "standard_errors": scores.independence, "warning": _WARNING}
        )
        return
    print_table(
        f"{model_path} on {scores.rows} held-out rows",
        ["score", "value", "meaning"],
        scores.lines(),
    )
    if scores.calibration:
        cells = [
            [f"{c.low:.0%} to {c.high:.0%}", f"{c.rows}", f"{c.predicted:.1%}", f"{c.observed:.1%}"]
            for c in scores.calibration
        ]
        title = (
            f"Calibration: probability of {scores.positive}"
            if scores.positive
            else "Calibration: of the chosen label"
        )
        print_table(title, ["predicted", "rows", "mean predicted", "observed"], cells)
    print_message(scores.independence, word="note")
    print_message(_WARNING, word="warning")
