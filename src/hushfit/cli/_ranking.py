"""What the verbs do with lists of documents: a schema with a ``query``, or a ranking model."""

import shlex
from pathlib import Path
from typing import Any

import click

from hushfit.cli._printing import at_terminal, print_json, print_message, print_panel, print_table

DEPTHS = (1, 2, 4, 8, 10)
_WARNING = (
    "These scores are computed from the lists you gave, without noise. Use lists that were held "
    "out of training."
)


def fit_lists(schema: Any, ledger: Any, given: dict[str, Any]) -> None:
    """``hushfit fit`` with a schema of lists: read, pay, fit, write."""
    from hushfit.data.lists import read_documents
    from hushfit.models import Provenance, RankingModel, paid_receipt, ranker_json, write_whole
    from hushfit.privacy.ledger import redacted

    estimator = _estimator(schema, ledger, given)
    table = read_documents(given["tables"], schema)
    persons = table.list_persons()
    _refuse_large_delta(given, table, persons)
    estimator.fit(table.X, table.y, qid=table.qid, persons=persons)
    command = redacted(shlex.join(["hushfit", *click.get_current_context().find_root().obj]))
    receipt, record = paid_receipt(ledger, estimator.receipt_)
    model = RankingModel(estimator, schema, receipt, Provenance.now(command))
    text, digest = ranker_json(model)
    record(digest)  # before the file exists: every model file is in the ledger
    write_whole(Path(given["output"]), text)
    if given["as_json"]:
        result = {"model": given["output"], "hash": digest}
        print_json({**result, "guarantee": model.guarantee.to_dict()})
        return
    print_panel("Guarantee", str(model.guarantee))
    click.echo(f"Model:  {given['output']}  (sha256 {digest[:12]}...)")


def _estimator(schema: Any, ledger: Any, given: dict[str, Any]) -> Any:
    from hushfit import Budget, PrivateRanker

    Budget(given["epsilon"], given["delta"])  # refuses invalid values before a large file is read
    return PrivateRanker(
        epsilon=given["epsilon"],
        delta=given["delta"],
        unit=schema.unit,
        adjacency=given["adjacency"],
        solver=given["solver"],
        max_grade=schema.max_grade,
        feature_bounds=schema.feature_bounds,
        ledger=ledger,
        random_state=given["seed"],
        verbose=int(at_terminal(given["as_json"])),
    )


def _refuse_large_delta(given: dict[str, Any], table: Any, persons: Any) -> None:
    import numpy as np

    from hushfit.errors import InvalidArgument

    n_units = len(np.unique(table.qid if persons is None else persons))
    if given["delta"] > 1 / n_units and not given["allow_large_delta"]:
        raise InvalidArgument(
            f"--delta {given['delta']:g} is above one over the {n_units} units of privacy. Nothing "
            f"was spent. Use a delta well below it, for instance {0.1 / n_units:.0e}, or "
            "--allow-large-delta."
        )


def evaluate_lists(model_path: str, tables: tuple[str, ...], as_json: bool) -> None:
    """``hushfit evaluate`` with a ranking model: NDCG by depth."""
    found = ndcg_of(model_path, tables)
    if as_json:
        print_json({**{f"ndcg@{k}": value for k, value in found.items()}, "warning": _WARNING})
        return
    rows = [[f"NDCG@{depth}", f"{value:.4f}"] for depth, value in found.items()]
    print_table(f"{model_path} on held-out lists", ["score", "value"], rows)
    print_message(_WARNING, word="warning")


def ndcg_of(model_path: str, tables: tuple[str, ...]) -> dict[int, float]:
    """Mean NDCG of a ranking model on held-out lists, by depth."""
    from hushfit.data.lists import read_documents
    from hushfit.models import load_ranker

    model = load_ranker(model_path)
    table = read_documents(tables, _schema_of(model, model_path))
    values = model.estimator.ndcg(table.X, table.y, table.qid, depths=DEPTHS)
    return dict(zip(DEPTHS, map(float, values), strict=True))


def _schema_of(model: Any, path: str) -> Any:
    from hushfit.errors import InvalidArgument

    if model.schema is None:
        raise InvalidArgument(f"{path} has no schema, so it cannot read tables. Use load_ranker.")
    return model.schema


def predict_lists(model_path: str, tables: tuple[str, ...], output: str) -> None:
    """``hushfit predict`` with a ranking model: query, score and place of each document."""
    import numpy as np

    from hushfit.cli.verbs.predict import without_formula
    from hushfit.data.lists import read_documents
    from hushfit.models import load_ranker, write_whole

    model = load_ranker(model_path)
    schema = _schema_of(model, model_path)
    table = read_documents(tables, schema)
    scores = model.estimator.predict(table.X)
    places = np.empty(len(scores), dtype=int)
    for order in model.estimator.rank(table.X, table.qid):
        places[order] = np.arange(1, len(order) + 1)
    lines = [f"{schema.query},score,place\n"]
    lines += [
        f"{without_formula(q)},{score:.8g},{place}\n"
        for q, score, place in zip(table.qid, scores, places, strict=True)
    ]
    if output == "-":
        click.echo("".join(lines), nl=False)
        return
    write_whole(Path(output), lines)
    click.echo(f"{len(scores)} documents scored in {output}")


def report_lists(model_path: str, tables: tuple[str, ...], output: str) -> None:
    """``hushfit report`` with a ranking model."""
    from hushfit.models import load_ranker, ranker_json, write_whole
    from hushfit.report import ranking_page

    model = load_ranker(model_path)
    scores = ndcg_of(model_path, tables) if tables else None
    write_whole(Path(output), ranking_page(model, ranker_json(model)[1], scores))
    click.echo(f"Report: {output}")
