"""What ``hushfit plan --schema`` takes from a schema: sizes, unit of privacy and kind of model."""

from collections.abc import Collection
from typing import Any, Final

import click

from hushfit.cli._models import FitOptions
from hushfit.cli._options import as_written
from hushfit.cli._penalties import chosen_penalty
from hushfit.cli._printing import print_message

# Options that a schema states, and would otherwise contradict.
_STATED: Final = ("columns", "classes", "unit", "person_weight", "rows_per_person")
# Penalties whose noise the plan knows.
_PLANNED: Final = ("none", "l1", "l2", "elasticnet")


def with_stated(given: dict[str, Any], written: Collection[str]) -> dict[str, Any]:
    """The options of a plan, with what its schema states.

    Parameters
    ----------
    given : dict
        All options, by name.
    written : collection of str
        Those that were written on the command line.

    Returns
    -------
    dict
    """
    from hushfit.data.lists import RankingSchema
    from hushfit.data.schema import read_schema

    path = given["schema_path"]
    if twice := [as_written(name) for name in _STATED if name in written]:
        raise click.UsageError(f"{path} states what {', '.join(twice)} would. Leave it out.")
    lists = RankingSchema.read(path)
    if lists is not None:
        return {**given, **_of_lists(lists, given)}
    return {**given, **_of_rows(read_schema(path).schema, given, written)}


def _of_lists(schema: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The sizes of a ranking model."""
    width = len(schema.columns) or schema.n_features
    if given["lists"] is None and given["persons"] is None:
        wanted = "--lists" if schema.person is None else "--persons"
        raise click.UsageError(
            f"{given['schema_path']} describes lists of documents, and does not state how many "
            f"there are. Give {wanted}."
        )
    return {"columns": width, "unit": schema.unit}


def _of_rows(schema: Any, given: dict[str, Any], written: Collection[str]) -> dict[str, Any]:
    """The sizes of a model of rows, its kind, penalty and unit."""
    from hushfit.data.design import MainEffects
    from hushfit.data.schema import with_sorted_classes

    schema = with_sorted_classes(schema)  # refuses one without a target
    _refuse_other_units(schema, given)
    penalty = chosen_penalty({**given, "graph_path": None}, set(written), schema)
    model = FitOptions(given, schema, penalty).model
    if schema.features != "linear":
        print_message(
            f"features = {schema.features!r}: counted are the encoded columns, which the rule is "
            "about. The map of the numbers costs no budget.",
            word="note",
        )
    if schema.target.kind == "categorical" and penalty.name not in _PLANNED:
        print_message(
            f"the plan is that of a model without the schema's penalty, {penalty.name!r}.",
            word="note",
        )
    names = MainEffects(schema).names if given["inference"] else schema.feature_names
    sizes = {"columns": len(names), "protected": schema.privacy_unit}
    if given["theory"]:
        return sizes
    classes = schema.target.categories if schema.target.kind == "categorical" else ()
    planned = classes and penalty.name in _PLANNED
    return {
        **sizes,
        "model": model,
        "classes": len(classes) or None,
        "penalty": penalty.name if planned else "none",
    }


def _refuse_other_units(schema: Any, given: dict[str, Any]) -> None:
    """The schema says whether rows or persons are protected."""
    path = given["schema_path"]
    if given["lists"] is not None:
        raise click.UsageError(f"--lists is for a schema with a `query`, and {path} has none.")
    if schema.person is not None and given["rows"] is not None:
        raise click.UsageError(
            f"{path} protects persons, by column {schema.person!r}. Give their number with "
            "--persons instead of --rows."
        )
    if schema.person is None and given["persons"] is not None:
        raise click.UsageError(
            f"{path} names no column of ids of persons, so single rows are protected. Give --rows, "
            "or write person = ... into the schema."
        )
