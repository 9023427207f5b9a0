"""What the verbs do with networks: ``hushfit fit --model mlp``, and the files it writes."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hushfit.cli._dry_run import payer_of
from hushfit.cli._files import refuse_other_format
from hushfit.cli._paid_model import note_account_of_rows, refuse_large_delta, units_in
from hushfit.cli._printing import at_terminal, print_json, print_panel, reading_bar


def fit_perceptron(
    file: Any, penalty: Any, open_ledger: Callable[[], Any], given: dict[str, Any]
) -> None:
    """``hushfit fit --model mlp``: read, pay, fit, write."""
    from hushfit.data.schema import schema_hash
    from hushfit.errors import InvalidArgument
    from hushfit.estimators import public_of
    from hushfit.models import Model, Provenance, paid_receipt
    from hushfit.privacy.ledger import redacted
    from hushfit.torch import network_bytes
    from hushfit.torch import save_network as save
    from hushfit.unit import ROW

    if penalty.name != "none" or penalty.choice.constraint is not None:
        key = "constraint" if penalty.name == "none" else "name"
        raise InvalidArgument(
            f"{penalty.called(key)} is for linear models. Leave it out with --model mlp."
        )
    if file.schema.features != "linear":
        raise InvalidArgument(
            f"features = {file.schema.features!r} of the schema is for linear models: a network "
            "bends its inputs by itself. Nothing was spent. Delete that line, or leave out --model "
            "mlp."
        )
    refuse_other_format(given["output"], ".safetensors")
    ledger = open_ledger()
    estimator = _estimator(file, payer_of(ledger, given), given)
    note_account_of_rows(ledger, file.schema.person)
    X, y, persons = _read(file.schema, given)
    units = units_in(len(X), persons, ROW)
    refuse_large_delta(given["delta"], *units, given["allow_large_delta"])
    estimator.fit(X, y, groups=persons)
    promise = estimator.privacy_
    estimator.privacy_ = replace(promise, public=(*promise.public, public_of(file.schema)))
    command = redacted(shlex.join(["hushfit", *click.get_current_context().find_root().obj]))
    receipt, record = paid_receipt(ledger, estimator.receipt_)
    made = Provenance.now(command, schema_hash(file.schema))
    model = Model(estimator, file.schema, None, receipt, made)
    record(network_bytes(model)[1])  # before the file exists: every model file is in the ledger
    digest = save(model, Path(given["output"]))
    if given["as_json"]:
        result = {"model": given["output"], "hash": digest}
        print_json({**result, "guarantee": model.guarantee.to_dict()})
        return
    print_panel("Guarantee", str(model.guarantee))
    click.echo(f"Model:  {given['output']}  (sha256 {digest[:12]}...)")


def _estimator(file: Any, ledger: Any, given: dict[str, Any]) -> Any:
    from hushfit import Budget
    from hushfit.errors import InvalidArgument
    from hushfit.torch import PrivateMLPClassifier, PrivateMLPRegressor

    Budget(given["epsilon"], given["delta"])  # refuses invalid values before a large file is read
    if file.unconfirmed:
        raise InvalidArgument(
            "--model mlp takes confirmed schemas only. Confirm the drafted values first."
        )
    settings = {
        **{name: given[name] for name in ("epsilon", "delta", "adjacency", "solver")},
        "ledger": ledger,
        "person_weight": file.schema.privacy_unit.weighting,
        "rows_per_person": file.schema.rows_per_person,
        "random_state": given["seed"],
        "verbose": int(at_terminal(given["as_json"])),
    }
    target, hidden = file.schema.target, _widths(given["hidden"])
    if target.kind == "categorical":
        return PrivateMLPClassifier(hidden, classes=list(target.categories), **settings)
    return PrivateMLPRegressor(hidden, target_bounds=(target.low, target.high), **settings)


def _widths(text: str) -> tuple[int, ...]:
    from hushfit.errors import InvalidArgument

    try:
        return tuple(int(width) for width in text.split(","))
    except ValueError:
        raise InvalidArgument(
            f"--hidden {text} is not a list of widths. Write numbers with commas, as in 256,256."
        ) from None


def _read(schema: Any, given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Encoded rows, their targets and, if the schema names ids, their persons; a row without a
    target, or with a label that is no class, becomes one that contributes nothing.
    """
    import numpy as np

    from hushfit.cli._files import TableOptions
    from hushfit.data.rows import PersonIndex
    from hushfit.data.tables import RowCodec, table_batches, target_values

    target = schema.target
    codec, names = RowCodec(schema), [column.name for column in schema.columns]
    names += [target.name, *([] if schema.person is None else [schema.person])]
    found = TableOptions.of(given).tables(given["tables"], schema)
    parts = [np.empty((0, codec.n_features), np.float32)]
    targets, owners = [np.empty(0)], [np.empty(0, np.int64)]
    index = PersonIndex()
    with reading_bar([table.path for table in found], at_terminal(given["as_json"])) as watch:
        for table in found:
            for batch in table_batches(table, names, watch):
                if batch.num_rows:
                    parts.append(codec.matrix(batch).toarray().astype(np.float32))
                    targets.append(target_values(batch.column(target.name), target))
                    if schema.person is not None:
                        owners.append(index.add(batch.column(schema.person)))
    X, y = np.concatenate(parts), np.concatenate(targets)
    unknown = np.isnan(y)
    X[unknown], y[unknown] = np.nan, 0
    if target.kind == "categorical":
        y = np.array(target.categories)[y.astype(np.int64)]
    persons = None
    if schema.person is not None:
        persons = index.persons(owners, schema.privacy_unit, f"column {schema.person!r}")
    return X, y, persons
