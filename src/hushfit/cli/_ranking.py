"""What the verbs do with lists of documents: a schema with a ``query``, or a ranking model."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from hushfit.cli._dry_run import payer_of
from hushfit.cli._files import TableOptions
from hushfit.cli._options import OF_EVERY_FIT, refuse_ignored_options, written_options
from hushfit.cli._printing import at_terminal, print_json, print_message, print_table

DEPTHS = (1, 2, 4, 8, 10)
_WARNING = (
    "These scores are computed from the lists you gave, without noise. Use lists that were held "
    "out of training."
)


# Options of `fit` that lists take; the others say nothing about them.
_TAKEN: Final = (
    *OF_EVERY_FIT,
    *("person", "rows_per_person", "adjacency", "solver", "loss", "allow_large_delta"),
)


def fit_lists(schema: Any, open_ledger: Callable[[], Any], given: dict[str, Any]) -> None:
    """``hushfit fit`` with a schema of lists: read, pay, fit, write."""
    from hushfit.cli._files import reserved_space
    from hushfit.cli._paid_model import (
        note_account_of_rows,
        note_bound_account,
        print_paid,
        refuse_large_delta,
        units_in,
        write_paid,
    )
    from hushfit.data.lists import list_starts
    from hushfit.models import Provenance, RankingModel, paid_receipt, ranker_json
    from hushfit.privacy.ledger import redacted
    from hushfit.unit import LIST

    schema = _settled(schema, given)
    ledger = open_ledger()
    estimator = _estimator(schema, payer_of(ledger, given), given)
    note_account_of_rows(ledger, schema.person)
    table = documents_in(given["tables"], schema, TableOptions.of(given))
    persons = _persons(table.list_persons(), schema)
    n_lists = len(list_starts(len(table.qid), table.qid)) - 1
    units = units_in(n_lists, persons, LIST)
    refuse_large_delta(given["delta"], *units, given["allow_large_delta"])
    with reserved_space(given["output"], (1 << 16) + 96 * table.X.shape[1]):
        estimator.fit(table.X, table.y, qid=table.qid, persons=persons)
    command = redacted(shlex.join(["hushfit", *click.get_current_context().find_root().obj]))
    receipt, record = paid_receipt(ledger, estimator.receipt_)
    model = RankingModel(estimator, schema, receipt, Provenance.now(command))
    text, digest = ranker_json(model)
    write_paid(text, digest, record, ledger, Path(given["output"]))
    print_paid(model, ledger, digest, given, "lists")
    note_bound_account(ledger, receipt)


def _settled(schema: Any, given: dict[str, Any]) -> Any:
    """The schema with the options about persons; refuses options that would be ignored."""
    from dataclasses import replace

    from hushfit.errors import InvalidArgument

    refuse_ignored_options(
        _TAKEN, f"{given['schema_path']} has a `query`, so a ranking model is fitted"
    )
    if schema.unconfirmed:
        raise InvalidArgument(
            f"{given['schema_path']} was drafted from the rows and is not confirmed. Replace its "
            "values by what is publicly known, and delete `confirm = true`. Nothing was spent."
        )
    if given["person"] is not None:
        schema = replace(schema, person=given["person"])
    if given["rows_per_person"] is not None:
        schema = replace(schema, lists_per_person=given["rows_per_person"])
    if schema.person is not None and schema.unit == "list":
        raise InvalidArgument(
            f"a column of persons is named ({schema.person!r}), but unit 'list' protects single "
            "lists. Nothing was spent. Use unit 'person' in the schema, which protects all lists "
            "of a person, 'labels', which protects all grades of a person, or name no person."
        )
    if "adjacency" in written_options():
        _refuse_other_adjacency(schema, given["adjacency"])
    return schema


def _refuse_other_adjacency(schema: Any, adjacency: str) -> None:
    if schema.unit != "labels":
        allowed = ["replace-one", "add-remove"]
    else:
        allowed = ["label" if schema.person is None else "person-label"]
    if adjacency not in allowed:
        units = " with persons" if schema.person is not None and schema.unit == "labels" else ""
        raise click.UsageError(
            f"--adjacency {adjacency} does not suit unit {schema.unit!r}{units} of the schema, "
            f"which takes {' or '.join(allowed)}. Leave --adjacency out, or change the unit. "
            "Nothing was spent."
        )


def _persons(ids: Any, schema: Any) -> Any:
    """Whose list each is, with the name of the column, which accounts of persons ask for."""
    from hushfit.data import persons_of
    from hushfit.unit import PrivacyUnit

    if ids is None:
        return None
    unit = PrivacyUnit.person("mean", schema.lists_per_person, schema.person, record="list")
    return persons_of(ids, len(ids), unit)


def _estimator(schema: Any, ledger: Any, given: dict[str, Any]) -> Any:
    from hushfit import Budget, PrivateRanker

    Budget(given["epsilon"], given["delta"])  # refuses invalid values before a large file is read
    loss = given["loss"] or ("bayesrank" if given["solver"] == "privbr" else "listnet")
    return PrivateRanker(
        epsilon=given["epsilon"],
        delta=given["delta"],
        unit=schema.unit,
        loss=loss,
        adjacency="replace-one" if schema.unit == "labels" else given["adjacency"],
        solver=given["solver"],
        max_grade=schema.max_grade,
        max_list_length=schema.max_list_length,
        feature_bounds=schema.feature_bounds,
        lists_per_person=schema.lists_per_person,
        ledger=ledger,
        random_state=given["seed"],
        verbose=int(at_terminal(given["as_json"])),
    )


def evaluate_lists(
    model_path: str, tables: tuple[str, ...], options: TableOptions, as_json: bool
) -> None:
    """``hushfit evaluate`` with a ranking model: NDCG by depth."""
    found = ndcg_of(model_path, tables, options)
    if as_json:
        print_json({**{f"ndcg@{k}": value for k, value in found.items()}, "warning": _WARNING})
        return
    rows = [[f"NDCG@{depth}", f"{value:.4f}"] for depth, value in found.items()]
    print_table(f"{model_path} on held-out lists", ["score", "value"], rows)
    print_message(
        "gains are 2**grade - 1, and a list without a relevant document counts as 0.", word="note"
    )
    print_message(_WARNING, word="warning")


def ndcg_of(model_path: str, tables: tuple[str, ...], options: TableOptions) -> dict[int, float]:
    """Mean NDCG of a ranking model on held-out lists, by depth."""
    from hushfit.models import load_ranker

    model = load_ranker(model_path)
    table = documents_in(tables, _schema_of(model, model_path), options)
    values = model.estimator.ndcg(table.X, table.y, table.qid, depths=DEPTHS)
    return dict(zip(DEPTHS, map(float, values), strict=True))


def documents_in(paths: Sequence[str], schema: Any, options: TableOptions, **wanted: Any) -> Any:
    """Documents of tables or of LETOR text, which has but one form."""
    from hushfit.data.lists import read_documents

    if schema.n_features is None:
        options.tables(paths)  # refuses those that are about none of them
        return read_documents(paths, schema, options.format, form=options.form(), **wanted)
    options.refuse("the schema is of LETOR text")
    return read_documents(paths, schema, **wanted)


def _schema_of(model: Any, path: str) -> Any:
    from hushfit.errors import InvalidArgument

    if model.schema is None:
        raise InvalidArgument(f"{path} has no schema, so it cannot read tables. Use load_ranker.")
    return model.schema


def scored_documents(
    model_path: str,
    tables: tuple[str, ...],
    options: TableOptions,
    keep: Sequence[str],
) -> tuple[list[str], list[Any]]:
    """The columns of ``hushfit predict`` with a ranking model and their names: kept ones, query,
    score and place of each document.
    """
    import numpy as np

    from hushfit.models import load_ranker

    model = load_ranker(model_path)
    schema = _schema_of(model, model_path)
    table = documents_in(tables, schema, options, graded=False, keep=keep)
    scores = model.estimator.predict(table.X)
    places = np.empty(len(scores), dtype=int)
    for order in model.estimator.rank(table.X, table.qid):
        places[order] = np.arange(1, len(order) + 1)
    header = [*keep, schema.query, "score", "place"]
    return header, [*(table.kept[name] for name in keep), table.qid, scores, places]
