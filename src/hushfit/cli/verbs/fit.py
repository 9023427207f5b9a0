"""``hushfit fit``: encode, pay, fit, write the model, in this order."""

import shlex
from pathlib import Path
from typing import Any

import click

from hushfit.cli._printing import (
    at_terminal,
    json_option,
    print_json,
    print_message,
    print_panel,
    reading_bar,
)


@click.command(
    "fit",
    short_help="Fit a model with a privacy guarantee, paying first.",
    epilog="""\b
Examples:
  hushfit fit patients.csv --schema schema.toml --epsilon 1 --delta 1e-6 \\
      --ledger ledger.db --dataset patients -o model.json
  hushfit fit visits.parquet --schema schema.toml --person patient_nbr \\
      --epsilon 1 --delta 1e-6 -o model.json
  zcat part-*.csv.gz | hushfit fit - --schema schema.toml --epsilon 0.5 \\
      --delta 1e-7 --penalty l1 --alpha 0.001 -o model.json""",
)
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--schema",
    "schema_path",
    required=True,
    type=click.Path(dir_okay=False),
    help="Public description (TOML).",
)
@click.option("--epsilon", required=True, type=float, help="Privacy loss to spend on this model.")
@click.option(
    "--delta",
    required=True,
    type=float,
    help="Should be well below one over the number of rows, or of persons.",
)
@click.option(
    "--allow-large-delta",
    is_flag=True,
    help="Accept a delta above one over the number of rows or persons, a very weak guarantee.",
)
@click.option(
    "--person",
    metavar="COLUMN",
    help="Column of ids: protect all rows of one person together. Overrides the schema.",
)
@click.option(
    "--person-weight",
    type=click.Choice(["mean", "cap"]),
    help="Every person counts once (mean), or one with few rows counts less (cap).  "
    "[default: mean]",
)
@click.option(
    "--rows-per-person",
    type=int,
    help="With mean: rows of a person that are used, the first ones (1000 if not given). With cap: "
    "rows at which a person counts as one.",
)
@click.option(
    "--adjacency",
    type=click.Choice(["replace-one", "add-remove", "label", "person-label"]),
    default="replace-one",
    show_default=True,
    help="Adjacency relation: which tables are neighbours. With label, FEATURES ARE NOT PROTECTED.",
)
@click.option(
    "--model",
    type=click.Choice(["logistic", "svm"]),
    default="logistic",
    show_default=True,
    help="What to fit.",
)
@click.option(
    "--penalty",
    type=click.Choice(["none", "l1", "l2", "elasticnet"]),
    default="none",
    show_default=True,
)
@click.option("--alpha", type=float, default=1e-4, show_default=True, help="Weight of the penalty.")
@click.option(
    "--l1-ratio", type=float, default=0.5, show_default=True, help="Share of L1 in elasticnet."
)
@click.option(
    "--solver",
    default="auto",
    show_default=True,
    help="Algorithm; auto chooses from public numbers.",
)
@click.option(
    "--ledger",
    metavar="PATH|URL",
    help="SQLite file or postgresql:// address of the ledger.",
)
@click.option("--dataset", metavar="NAME", help="Account in the ledger.")
@click.option(
    "--accept-draft",
    is_flag=True,
    help="Use unconfirmed values of the schema; recorded in the guarantee.",
)
@click.option("--seed", type=int, help="Reproducible, INSECURE noise: for tests only.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["csv", "tsv", "parquet", "arrow"]),
    help="Format of the table, if its name does not show it.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    help="Where to write the model (JSON).",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@json_option
def command(**given: Any) -> None:
    """Fit a model to TABLE (files, patterns, or - for standard input) and write it as JSON.

    Unknown labels become <other>, numbers are clipped to their range, missing numbers get the
    declared fill value. Tables larger than memory are streamed. The ledger is charged, and the
    charge is on disk, before any row is used; a crash after that leaves the charge. The model is
    written atomically.

    Classes, ranges and labels are those of the schema. Whether any row matches them cannot be
    checked without a privacy cost, so a fit whose schema does not match the rows is paid for and
    useless: the owner of the data compares them with `hushfit schema --check`.

    The guarantee protects one row, or, with --person (or `person` in the schema), one person with
    all of their rows: those with the same id in COLUMN, in all files. Then the number of persons is
    public and the number of rows is private. A row without an id is its own person.

    A schema with a `query` describes lists of documents: a ranking model is fitted. Tables may then
    also be LETOR (SVMlight) text.
    """
    from hushfit.cli._files import refuse_to_overwrite, reserved_space
    from hushfit.cli._ranking import fit_lists
    from hushfit.data.lists import RankingSchema

    refuse_to_overwrite(given["output"], given["overwrite"])
    lists = RankingSchema.read(given["schema_path"])
    if lists is not None:
        fit_lists(lists, _ledger(given), given)
        return
    file = _schema(given["schema_path"], given["accept_draft"], _person_options(given))
    estimator, ledger = _estimator(given, file.schema), _ledger(given)
    _note_account_of_rows(ledger, file.schema.person)
    print_message(
        "whether rows match the schema's classes, ranges and labels is not checked before "
        "payment. The owner of the data can: hushfit schema --check TABLE... SCHEMA",
        word="note",
    )
    with reserved_space(given["output"], _max_bytes(file.schema)):
        model, record = _fitted(estimator, file, ledger, given)
    digest = _written(model, record, ledger, Path(given["output"]))
    _print_result(model, ledger, digest, given)
    _note_bound_account(ledger, model.receipt)


def _person_options(given: dict[str, Any]) -> dict[str, Any]:
    """The options about persons that were given, by their names in a schema."""
    names = ("person", "person_weight", "rows_per_person")
    return {name: given[name] for name in names if given[name] is not None}


def _schema(path: str, accept_draft: bool, persons: dict[str, Any]) -> Any:
    from dataclasses import replace

    from hushfit.data.schema import UNIT, read_schema
    from hushfit.errors import InvalidArgument
    from hushfit.models import with_sorted_classes

    file = read_schema(path)
    if persons:
        own = {**_dropped_bound(file.schema, persons), **persons}
        file = replace(file, schema=replace(file.schema, **own))
    if "person" in persons:  # whoever names the column has decided on the unit
        rest = tuple(name for name in file.unconfirmed if name != UNIT)
        file = replace(file, unconfirmed=rest)
    if file.unconfirmed and not accept_draft:
        names = ", ".join(file.unconfirmed[:5]) + (", ..." if len(file.unconfirmed) > 5 else "")
        raise InvalidArgument(
            f"{path} has {len(file.unconfirmed)} values that were drafted from the rows and not "
            f"confirmed ({names}). Replace them by what is publicly known and delete `confirm = "
            "true`, or use --accept-draft, which the guarantee will state."
        )
    if file.schema.unit != "row" and file.schema.person is None:
        print_message(
            f"{path} has the unit {file.schema.unit}. That is a label only: the guarantee "
            f"protects one row, and is weaker for a {file.schema.unit} with several rows. To "
            "protect all of them, name the column of ids with --person.",
            word="note",
        )
    return replace(file, schema=with_sorted_classes(file.schema))


def _dropped_bound(schema: Any, persons: dict[str, Any]) -> dict[str, Any]:
    """Without the schema's rows_per_person if the weighting is another than the schema's: under
    "cap" it is the number of rows at which a person counts as one, under "mean" a cut-off.
    """
    weight = persons.get("person_weight")
    if weight in (None, schema.person_weight or "mean") or schema.rows_per_person is None:
        return {}
    if "rows_per_person" not in persons:
        print_message(
            f"the schema's rows_per_person = {schema.rows_per_person} is for another "
            f"person_weight than {weight}, and is not used. Give --rows-per-person if you want "
            "one.",
            word="note",
        )
    return {"rows_per_person": None}


def _estimator(given: dict[str, Any], schema: Any) -> Any:
    from hushfit import Budget, PrivateLinearSVC, PrivateLogisticRegression

    Budget(given["epsilon"], given["delta"])  # refuses invalid values before a large file is read
    kind = {"logistic": PrivateLogisticRegression, "svm": PrivateLinearSVC}[given["model"]]
    return kind(
        epsilon=given["epsilon"],
        delta=given["delta"],
        adjacency=given["adjacency"],
        penalty=None if given["penalty"] == "none" else given["penalty"],
        alpha=given["alpha"],
        l1_ratio=given["l1_ratio"],
        solver=given["solver"],
        person_weight=schema.privacy_unit.weighting,
        rows_per_person=schema.rows_per_person,
        random_state=given["seed"],
        verbose=int(at_terminal(given["as_json"])),
    )


def _ledger(given: dict[str, Any]) -> Any:
    from hushfit import Ledger
    from hushfit.errors import InvalidArgument

    if given["ledger"] is None:
        if given["dataset"] is not None:
            raise InvalidArgument(
                f"--dataset {given['dataset']} names an account, but no --ledger was given. Give "
                "both."
            )
        print_message(
            "no --ledger was given, so the budget spent on these rows is not recorded.",
            word="warning",
        )
        return None
    return Ledger(given["ledger"], dataset=given["dataset"])


def _note_account_of_rows(ledger: Any, person: str | None) -> None:
    """The fit protects persons, but the total of the account is about rows."""
    from hushfit.privacy.ledger import redacted

    if ledger is None or person is None or ledger.unit.is_person:
        return
    place, column = shlex.quote(redacted(str(ledger.account.location))), shlex.quote(person)
    print_message(
        f"this fit protects persons, but its account {ledger.name!r} protects rows only: its total "
        "makes no statement about a person with several rows. An account for persons is opened "
        f"with: hushfit ledger init {place} --dataset NAME --epsilon E --delta D --unit person "
        f"--person-column {column}",
        word="note",
    )


def _note_bound_account(ledger: Any, receipt: Any) -> None:
    """Say so if this payment was the first for persons on an account without a column."""
    if ledger is None or receipt is None or not ledger.unit.is_person:
        return
    first = next((entry for entry in ledger.entries if entry.unit.is_person), None)
    if ledger.unit.column is None and first is not None and first.number == receipt.number:
        print_message(
            f"the account {ledger.name!r} was opened without --person-column. This fit, its first, "
            f"binds it: all later ones for persons must use column {first.unit.column!r} too.",
            word="note",
        )


def _fitted(estimator: Any, file: Any, ledger: Any, given: dict[str, Any]) -> Any:
    from hushfit.data.tables import CodedRows, find_tables
    from hushfit.models import fit_rows
    from hushfit.privacy import labels_only
    from hushfit.privacy.ledger import redacted

    found = find_tables(given["tables"], given["format_"])
    paths, shown = [table.path for table in found], at_terminal(given["as_json"])
    # Where features are public, which rows are used must not depend on labels.
    kept = labels_only(given["adjacency"])
    with reading_bar(paths, shown, sized=file.schema.person is None) as watch:
        rows = CodedRows.from_tables(found, file.schema, watch=watch, keep_unlabelled=kept)
    with rows:
        _refuse_large_delta(given, rows.n_units, rows.privacy_unit)
        return fit_rows(
            estimator,
            rows,
            file,
            ledger,
            redacted(shlex.join(["hushfit", *click.get_current_context().find_root().obj])),
        )


def _refuse_large_delta(given: dict[str, Any], n_units: int, unit: Any) -> None:
    from hushfit.errors import InvalidArgument

    if given["delta"] > 1 / n_units and not given["allow_large_delta"]:
        n = "n" if not unit.is_person else f"(number of {unit.plural})"
        raise InvalidArgument(
            f"--delta {given['delta']:g} is above 1/{n} = {1 / n_units:.2g}: publishing "
            f"{_everything_of(unit)}, chosen at random, would also satisfy that guarantee. Nothing "
            "was spent. Use a delta well below it, for instance "
            f"{0.1 / n_units:.0e}, or --allow-large-delta."
        )


def _everything_of(unit: Any) -> str:
    return "all rows of one person" if unit.is_person else "one row in full"


def _max_bytes(schema: Any) -> int:
    """Upper bound on the size of a model file with this schema: coefficients, their errors and
    names, and metadata.
    """
    classes = len(schema.target.categories)
    return (1 << 16) + sum(64 * classes + 12 * (len(name) + 16) for name in schema.feature_names)


def _written(model: Any, record: Any, ledger: Any, output: Path) -> str:
    from hushfit.errors import HushfitError
    from hushfit.models import model_json, write_whole

    text, digest = model_json(model)
    try:
        record(digest)  # before the file exists: every model file is in the ledger
        write_whole(output, text)
    except HushfitError as error:
        raise type(error)(f"{error} {_rescued(text, digest, ledger, output)}") from error
    return digest


def _rescued(text: str, digest: str, ledger: Any, output: Path) -> str:
    """Save a model that was paid for and could not be recorded or written; returns a text with its
    path.
    """
    import tempfile

    from hushfit.cli._files import saved_elsewhere

    location = "" if ledger is None else str(ledger.account.location)
    ledger_folder = [Path(location).parent] if location and "://" not in location else []
    place = saved_elsewhere(
        f"{output.name}.{digest[:12]}.rescued",
        text,
        [output.parent, *ledger_folder, Path(tempfile.gettempdir())],
    )
    if place is None:
        return "No other folder could be written either, so the model is lost; its payment stays."
    return f"The model was paid for and is saved as {place}: move it from there."


def _print_result(model: Any, ledger: Any, digest: str, given: dict[str, Any]) -> None:
    spent = None if ledger is None else ledger.spent()
    if given["as_json"]:
        total = None
        if spent is not None:
            total = {
                "epsilon": spent.epsilon,
                "delta": spent.delta,
                "budget": ledger.budget.epsilon,
                "rule": ledger.rule,
            }
        paid = (
            None
            if model.receipt is None
            else {"dataset": model.receipt.dataset, "number": model.receipt.number}
        )
        print_json(
            {
                "model": given["output"],
                "hash": digest,
                "guarantee": model.guarantee.to_dict(),
                "receipt": paid,
                "ledger_total": total,
            }
        )
        return
    print_panel("Guarantee", str(model.guarantee))
    click.echo(f"Model:  {given['output']}  (sha256 {digest[:12]}...)")
    if spent is not None and model.receipt is not None:
        click.echo(
            f"Ledger: payment {model.receipt.number} on {model.receipt.dataset!r}; composed total "
            f"epsilon={spent.epsilon:.4g} "
            f"of {ledger.budget.epsilon:g} at delta={spent.delta:g} ({ledger.rule})"
        )
    output = shlex.quote(given["output"])
    click.echo("\nNext steps:")
    click.echo(f"  hushfit evaluate {output} TEST.csv     on rows that were held out")
    click.echo(f"  hushfit report {output} -o report.html")
    click.echo(f"  hushfit predict {output} NEW.csv -o labels.csv")
