"""``hushfit fit``: encode, pay, fit, write the model, in this order."""

import shlex
import warnings
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hushfit.cli._dask import cluster_rows, dask_options, refuse_ignored
from hushfit.cli._dry_run import option as dry_run_option
from hushfit.cli._dry_run import payer_of
from hushfit.cli._files import table_options
from hushfit.cli._models import MODELS, FitOptions
from hushfit.cli._options import as_written, written_options
from hushfit.cli._penalties import (
    CONSTRAINTS,
    PENALTIES,
    USUAL_L1_RATIO,
    WITH_L1_RATIO,
    chosen_penalty,
)
from hushfit.cli._printing import at_terminal, json_option, print_message, reading_bar

# Numeric columns up to which an additive model was better on nearly all benchmark tables.
_MAX_ADDITIVE_COLUMNS = 30
_OF_PENALTIES = ("alpha", "l1_ratio")
_LINEAR = tuple(name for name in MODELS if name != "mlp")
# The models that look at an option; all look at the others.
_OF_MODELS = {
    "hidden": ("mlp",),
    "threshold": ("logistic",),
    "features": _LINEAR,
    "monotone": _LINEAR,
    "smoothness": _LINEAR,
    **dict.fromkeys(_OF_PENALTIES, _LINEAR),
    **dict.fromkeys(("inference", "cov_type", "even_weights", "expected_mean"), _LINEAR),
    **dict.fromkeys(("cache", "dask"), _LINEAR),
}
_MOST_INTERVALS = 8  # of a numeric column of an additive model
_BYTES_OF_COVARIANCES = 280  # of each pair of coefficients with intervals: up to seven numbers


@click.command(
    "fit",
    short_help="Fit a model with a privacy guarantee, paying first.",
    epilog="""\b
Examples:
  hushfit fit patients.csv --schema schema.toml --epsilon 1 --delta 1e-6 \\
      --ledger ledger.db --dataset patients -o model.json
  hushfit fit visits.parquet --schema schema.toml --person patient_nbr \\
      --epsilon 1 --delta 1e-6 -o model.json
  hushfit fit visits.parquet --schema schema.toml --person patient_nbr \\
      --adjacency person-label --epsilon 1 --delta 1e-6 -o model.json
  hushfit fit stays.csv --schema stays.toml --model lasso --alpha select \\
      --epsilon 1 --delta 1e-6 -o model.json
  hushfit fit patients.csv --schema schema.toml --inference --cov-type robust \\
      --epsilon 1 --delta 1e-6 -o table.json
  hushfit fit ranks.csv --schema ranks.toml --epsilon 1 --delta 1e-6 -o ranker.json
  zcat part-*.csv.gz | hushfit fit - --schema schema.toml --epsilon 0.5 \\
      --delta 1e-7 --penalty l1 --alpha 0.001 -o model.json
  hushfit fit 'data/*.parquet' --dask tls://scheduler:8786 --dask-ca ca.pem \\
      --dask-cert client.pem --dask-key client.key --schema schema.toml \\
      --epsilon 1 --delta 1e-6 -o model.json
  hushfit fit "duckdb:///hospital.db?table=visits" --schema schema.toml \\
      --epsilon 1 --delta 1e-6 -o model.json""",
)
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--schema",
    "schema_path",
    required=True,
    type=click.Path(dir_okay=False),
    help="Public description (TOML).",
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False),
    help="Folder in which the packed rows are kept, for you alone, so that further fits of the "
    "same files do not parse them again. They are not encrypted.",
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
    help="Adjacency relation: which tables are neighbours. With label (of one row) and "
    "person-label (all labels of one person) FEATURES ARE NOT PROTECTED.",
)
@click.option(
    "--model",
    type=click.Choice(MODELS),
    help="What to fit: logistic or svm to classes; linear, ridge, lasso, elasticnet or huber to "
    "numbers and grades; poisson to counts; mlp (a network; needs hushfit[torch]) to classes, "
    "numbers and grades.  [default: the first for the schema's target]",
)
@click.option(
    "--hidden",
    default="256,256",
    show_default=True,
    help="Widths of the hidden layers of mlp.",
)
@click.option(
    "--penalty",
    type=click.Choice(PENALTIES),
    metavar="NAME",
    help=f"Of the coefficients of classes: {', '.join(PENALTIES)}. group and sparse-group: of all "
    "features of one column together; graph: of differences along the edges of --graph. For "
    "numbers l1, l2 and elasticnet are --model lasso, ridge and elasticnet. Replaces [penalty] of "
    "the schema.  [default: by the schema, or else none]",
)
@click.option(
    "--constraint",
    type=click.Choice(CONSTRAINTS),
    help="What the penalty is a function of: the coefficients (identity), differences of "
    "neighbouring ones (chain), or along the edges of --graph (graph). Others are written in "
    "[penalty] of the schema.",
)
@click.option(
    "--graph",
    "graph_path",
    metavar="FILE",
    help="With --penalty or --constraint graph: CSV whose lines name two features each, such as "
    "age,city=Bern. It must be public.",
)
@click.option(
    "--alpha",
    metavar="FLOAT|auto|select",
    help="Weight of the penalty. For numbers and counts auto chooses it from the releases, for "
    "prediction; select (lasso, elasticnet) keeps fewer columns.  [default: 0.0001 for classes, "
    "else auto]",
)
@click.option(
    "--l1-ratio",
    type=float,
    help="Share of L1 in elasticnet, fused and sparse-group.  [default: by the schema, or else "
    f"{USUAL_L1_RATIO}]",
)
@click.option(
    "--solver",
    default="auto",
    show_default=True,
    help="Algorithm; auto chooses from public numbers.",
)
@click.option(
    "--loss",
    type=click.Choice(["listnet", "listmle", "bayesrank"]),
    help="For a ranking model.  [default: bayesrank with --solver privbr, else listnet]",
)
@click.option(
    "--threshold",
    metavar="NUMBER|balanced",
    help="Probability from which on the positive class is predicted (`positive` of the schema's "
    "target); balanced: the frequency of each class, counted privately for 2 % of the budget.  "
    "[default: 0.5]",
)
@click.option(
    "--features",
    type=click.Choice(["linear", "additive", "centred"]),
    help="What the model is linear in: the encoded columns, piecewise linear functions of the "
    "numeric ones (an additive model), or the numeric ones centred in their range. Overrides the "
    "schema.  [default: linear]",
)
@click.option(
    "--scaling",
    type=click.Choice(["unit", "public"]),
    help="What the rows of a classifier are divided by: each by its own length, or all by the "
    "largest length that the schema allows, so that coefficients are log-odds. Overrides the "
    "schema.  [default: unit]",
)
@click.option(
    "--inference",
    is_flag=True,
    help="Estimate ordinary coefficients with standard errors, intervals and tests that cover "
    "sampling and noise: logistic (two classes), linear, poisson.",
)
@click.option(
    "--cov-type",
    type=click.Choice(["model", "robust", "cluster"]),
    help="With --inference: covariance if the model holds, or also if it does not (with persons "
    "clustered by person, for which cluster is another name).  [default: model]",
)
@click.option(
    "--even-weights",
    is_flag=True,
    help="With --inference: all rows weigh the same. Otherwise rows with unusual features weigh "
    "less, which changes what is estimated if the model is wrong. Noise is larger.",
)
@click.option(
    "--expected-mean",
    type=float,
    help="With --inference: share of a class, or mean count, that you expect from what is public. "
    "A fit with too few rows for it is refused before anything is spent.  [default: a class of "
    "28 %, a fifth of the largest count]",
)
@click.option(
    "--monotone",
    multiple=True,
    metavar="COLUMN=+1|-1",
    help="Additive: the shape of this numeric column rises (+1) or falls (-1).",
)
@click.option(
    "--smoothness",
    type=float,
    default=0.0,
    show_default=True,
    help="Additive: how much curved shapes are smoothed, such as 1e-3.",
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
@table_options
@dask_options
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    help="Where to write the model (JSON).",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@dry_run_option
@json_option
def command(**given: Any) -> None:
    """Fit a model to TABLE and write it as JSON. A TABLE is a file (CSV, Parquet, Arrow, or a
    spreadsheet with ?sheet=NAME if it has several sheets), a pattern, - for standard input, or a
    table of a database, such as duckdb:///file.db?table=visits.

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

    With --features additive each numeric column gets a curved effect: a piecewise linear function
    with up to nine knots, through a public map that costs no budget. The report draws them.

    The schema's target decides what is fitted: classes (kind = "categorical"), numbers in a public
    range ("numeric"), counts up to a public cap ("count"), or ordered grades ("ordinal").
    Predictions never leave the public range.

    With --inference coefficients are in the units of the columns (log-odds, units of the target, or
    logarithms of rate ratios), with the first label of a column as the reference. Too few rows are
    refused before anything is spent. A row with a label that the schema does not list is left out,
    and one without a number, unless the schema has a `fill` or an indicator of missing values.

    A schema with a `query` describes lists of documents: a ranking model is fitted. Tables may then
    also be LETOR (SVMlight) text. Its `unit` says what is protected.
    """
    from hushfit.cli._files import (
        TableOptions,
        refuse_other_format,
        refuse_to_overwrite,
        reserved_space,
    )
    from hushfit.cli._networks import fit_perceptron
    from hushfit.cli._paid_model import (
        ledger_of,
        note_account_of_rows,
        note_bound_account,
        print_paid,
        write_paid,
    )
    from hushfit.cli._ranking import fit_lists
    from hushfit.data.lists import RankingSchema
    from hushfit.models import model_json

    refuse_to_overwrite(given["output"], given["overwrite"])
    refuse_ignored(given)
    lists = RankingSchema.read(given["schema_path"])
    if lists is not None:
        if given["dask"] is not None:
            raise click.UsageError("Ranking models are fitted on one machine. Leave out --dask.")
        refuse_other_format(given["output"], ".json")
        fit_lists(lists, lambda: ledger_of(given), given)
        return
    if given["loss"] is not None:
        raise click.UsageError(
            "--loss is for a ranking model, whose schema has a `query`. Leave it out."
        )
    file = _schema(given["schema_path"], given["accept_draft"], _person_options(given))
    form = TableOptions.of(given).form(file.schema)
    file = replace(file, schema=replace(file.schema, file=form))
    _refuse_other_labels(given["adjacency"], file.schema.person)
    if given["features"] is not None:
        file = replace(file, schema=replace(file.schema, features=given["features"]))
    if given["scaling"] is not None:
        file = replace(file, schema=replace(file.schema, scaling=given["scaling"]))
    written = written_options()
    penalty = chosen_penalty(given, written, file.schema)
    options = FitOptions(given, file.schema, penalty)
    _refuse_unused(written, options)
    _refuse_scaling(given, options.model, file.schema)
    if options.model == "mlp":
        fit_perceptron(file, penalty, lambda: ledger_of(given), given)
        return
    refuse_other_format(given["output"], ".json")
    estimator, ledger = options.estimator(), ledger_of(given)
    if options.classes and not given["inference"]:
        _recommend_additive(estimator, file.schema)
    note_account_of_rows(ledger, file.schema.person)
    print_message(
        "whether rows match the schema's target, ranges and labels is not checked before "
        "payment. The owner of the data can: hushfit schema --check TABLE... SCHEMA",
        word="note",
    )
    with reserved_space(given["output"], _max_bytes(file.schema, given["inference"])):
        model, record = _fitted(estimator, file, ledger, given)
    text, digest = model_json(model)
    write_paid(text, digest, record, ledger, Path(given["output"]))
    print_paid(model, ledger, digest, given)
    note_bound_account(ledger, model.receipt)


def _refuse_unused(written: set[str], options: FitOptions) -> None:
    """Refuse options that the model would not look at: the fit would be paid for, and be another
    one than was asked for.
    """
    model, penalty = options.model, options.penalty.name
    foreign = [name for name, known in _OF_MODELS.items() if name in written and model not in known]
    if foreign:
        raise click.UsageError(
            f"{', '.join(map(as_written, foreign))} would be ignored by --model {model}. Leave it "
            "out. Nothing was spent."
        )
    weights = [as_written(name) for name in _OF_PENALTIES if name in written]
    if weights and options.classes and penalty == "none" and "penalty" not in written:
        raise click.UsageError(
            f"{', '.join(weights)} would be ignored: there is no penalty. Give one too, such as "
            "--penalty l2. Nothing was spent."
        )
    shared = penalty in WITH_L1_RATIO if options.classes else model == "elasticnet"
    if "l1_ratio" in written and not shared:
        raise click.UsageError(
            f"--l1-ratio would be ignored: it is for {', '.join(WITH_L1_RATIO)}. Leave it out, or "
            "choose one of them. Nothing was spent."
        )


def _refuse_scaling(given: dict[str, Any], model: str, schema: Any) -> None:
    """A public length is for linear classifiers whose rows would not keep their lengths anyway."""
    if schema.scaling != "public":
        return
    where = "--scaling public" if given["scaling"] else "scaling = 'public' of the schema"
    remedy = "Leave it out" if given["scaling"] else "Delete it, or give --scaling unit"
    if schema.features != "linear":
        raise click.UsageError(
            f"{where} is for --features linear, not for {schema.features}: the length of such "
            "features has no small public bound. Use one of them. Nothing was spent."
        )
    if model not in ("logistic", "svm"):
        raise click.UsageError(
            f"{where} is for --model logistic and svm, not for {model}, whose rows keep their "
            f"lengths. {remedy}. Nothing was spent."
        )
    if given["inference"]:
        raise click.UsageError(
            f"{where} is for models without --inference, with which coefficients are log-odds in "
            f"any case. {remedy}. Nothing was spent."
        )


def _refuse_other_labels(adjacency: str, person: str | None) -> None:
    """Labels of rows without a column of ids, labels of persons with one."""
    if not adjacency.endswith("label") or (adjacency == "person-label") is (person is not None):
        return
    if person is None:
        raise click.UsageError(
            "--adjacency person-label protects all labels of one person, but neither --person nor "
            "the schema names the column of their ids. Name it, or use --adjacency label, which "
            "protects the label of one row. Nothing was spent."
        )
    raise click.UsageError(
        f"--adjacency label protects the label of one row, but {person!r} is named as the column "
        "of ids of persons. Use --adjacency person-label, which protects all labels of one person, "
        "or take the column out of the schema. Nothing was spent."
    )


def _person_options(given: dict[str, Any]) -> dict[str, Any]:
    """The options about persons that were given, by their names in a schema."""
    names = ("person", "person_weight", "rows_per_person")
    return {name: given[name] for name in names if given[name] is not None}


def _schema(path: str, accept_draft: bool, persons: dict[str, Any]) -> Any:
    from hushfit.cli._paid_model import note_unit_of_schema
    from hushfit.data.schema import UNIT, read_schema, with_sorted_classes
    from hushfit.errors import InvalidArgument

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
    note_unit_of_schema(path, file.schema, "with --person")
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


def _recommend_additive(estimator: Any, schema: Any) -> None:
    """Say where an additive model is likely to predict better: from the schema alone."""
    numeric = sum(column.is_numeric for column in schema.inputs)
    if estimator.features == "linear" and 1 <= numeric <= _MAX_ADDITIVE_COLUMNS:
        verb = "is" if numeric == 1 else "are"
        print_message(
            f"{numeric} of the columns {verb} numeric. --features additive lets each have a curved "
            "effect, at the same epsilon, and usually predicts better.",
            word="note",
        )


def _fitted(estimator: Any, file: Any, ledger: Any, given: dict[str, Any]) -> Any:
    from hushfit.cli._paid_model import refuse_large_delta
    from hushfit.data.design import telling_gaps
    from hushfit.models import fit_rows
    from hushfit.privacy.ledger import redacted

    schema = telling_gaps(file.schema) if estimator.inference else file.schema
    with _rows(schema, given) as rows:
        allowed = given["allow_large_delta"]
        refuse_large_delta(given["delta"], rows.n_units, rows.privacy_unit, allowed)
        _warn_of_few(rows, given)
        return fit_rows(
            estimator,
            rows,
            file,
            payer_of(ledger, given),
            redacted(shlex.join(["hushfit", *click.get_current_context().find_root().obj])),
        )


def _rows(schema: Any, given: dict[str, Any]) -> AbstractContextManager[Any]:
    """The encoded rows of the tables: here, or on a cluster."""
    from hushfit.cli._files import TableOptions
    from hushfit.data.tables import CodedRows
    from hushfit.privacy import labels_only

    if given["dask"] is not None:
        return cluster_rows(given, schema)
    found = TableOptions.of(given).tables(given["tables"], schema)
    paths, shown = [table.path for table in found], at_terminal(given["as_json"])
    # Where features are public, which rows are used must not depend on labels.
    kept = labels_only(given["adjacency"])
    with reading_bar(paths, shown, sized=schema.person is None) as watch:
        return CodedRows.from_tables(
            found, schema, watch=watch, keep_unlabelled=kept, cache=given["cache"]
        )


def _warn_of_few(rows: Any, given: dict[str, Any]) -> None:
    """Say before anything is spent that a classifier will be near the majority class."""
    from hushfit.errors import TooLittleDataWarning
    from hushfit.forecast import warning_of_few

    budget = given["epsilon"], given["delta"], given["adjacency"]
    if rows.classes and not given["inference"]:
        text = warning_of_few(rows.n_units, rows.n_features, *budget, rows.privacy_unit)
        if text:
            print_message(text, word="warning")
            warnings.simplefilter("ignore", TooLittleDataWarning)  # it would say so again


def _max_bytes(schema: Any, inference: bool) -> int:
    """Upper bound on the size of a model file with this schema: coefficients, their errors and
    names, and metadata.
    """
    classes = len(schema.target.categories) if schema.target.kind == "categorical" else 1
    weights = _MOST_INTERVALS * 64 * classes + 128 * _MOST_INTERVALS  # and masses of its knots
    names = schema.feature_names
    covariances = _BYTES_OF_COVARIANCES * (len(names) + 1) ** 2 if inference else 0
    return (1 << 16) + covariances + sum(weights + 12 * (len(name) + 16) for name in names)
