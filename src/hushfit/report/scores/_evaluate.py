"""Scores of a model on held-out rows. They have no noise, so these must not be the training
rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from hushfit._typing import AnyArray, BoolVector, IntVector, Matrix, Vector
from hushfit.data.rows import PersonIndex
from hushfit.data.schema import CategoricalColumn, OrdinalTarget, Schema, Target, label_of
from hushfit.data.tables import RowCodec, Table, table_batches, target_values
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.models import Model, is_network, read_model
from hushfit.report.scores._class_scores import Evaluation, class_scores
from hushfit.report.scores._number_scores import NumberEvaluation, number_scores
from hushfit.unit import PrivacyUnit

# More groups than this are an id and no property.
_MAX_GROUPS = 100
_MISSING = "<missing>"

AnyEvaluation: TypeAlias = Evaluation | NumberEvaluation


class Scores(Protocol):
    """What pages and tables show of an evaluation."""

    @property
    def rows(self) -> int: ...

    @property
    def headline(self) -> tuple[str, str]: ...

    @property
    def independence(self) -> str: ...

    def lines(self) -> list[list[str]]: ...

    def to_dict(self) -> dict[str, Any]: ...


def table_model(path: str) -> Model:
    """Load a model with a schema, which can encode tables.

    Parameters
    ----------
    path : str

    Returns
    -------
    Model

    Raises
    ------
    InvalidArgument
        If it has no schema.
    """
    model = _loaded(path)
    if model.schema is None:
        raise InvalidArgument(
            f"{path} was saved without a schema, so it cannot read tables. Use it from Python."
        )
    return model


def _loaded(path: str) -> Model:
    if not is_network(path):
        return read_model(path)[0]
    from hushfit.torch import load_network  # loads torch, which other models do not need

    return load_network(path)


def scored_batches(
    model: Model,
    tables: Sequence[Table],
    columns: Sequence[str] = (),
    watch: Any = None,
    optional: Sequence[str] = (),
) -> Iterator[tuple[Any, AnyArray, Matrix | None]]:
    """Predict batch by batch.

    Parameters
    ----------
    model : Model
        With a schema.
    tables : sequence of Table
    columns : sequence of str, default=()
        Further columns to read.
    watch : callable, optional
        Called with the number of bytes read since the last call.
    optional : sequence of str, default=()
        Columns that are read if the tables have them.

    Yields
    ------
    batch, predictions, probabilities
        Predictions of the estimator: labels, numbers, or positions of grades. Probabilities are
        None for a model that has none.
    """
    if model.schema is None:
        raise InvalidArgument(
            "the model has no schema, so it cannot read tables. Save it with one."
        )
    codec = RowCodec(model.schema)
    names = [column.name for column in model.schema.columns]
    others = [name for name in columns if name not in names]
    for table in tables:
        for batch in table_batches(table, [*names, *others], watch, optional):
            if batch.num_rows:
                X = model.from_encoded(codec.matrix(batch))
                proba = (
                    model.estimator.predict_proba(X)
                    if hasattr(model.estimator, "predict_proba")
                    else None
                )
                yield batch, model.estimator.predict(X), proba


@dataclass(frozen=True, eq=False)
class DeclaredGroups:
    """Groups of rows by a column whose values a schema lists.

    Parameters
    ----------
    names : tuple of str
        Public: the listed values, and what all others share.
    codes : int array of shape (n_rows,)
        The group of each row. NOT public.
    """

    names: tuple[str, ...]
    codes: IntVector


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions of a model and what held-out rows have. NOT public.

    Parameters
    ----------
    target : Target
    truth : array of shape (n_rows,)
        Class numbers, numbers, or positions; NaN where it is missing or unknown.
    predicted : array of shape (n_rows,)
        The same of the predictions.
    probabilities : array of shape (n_rows, n_classes) or None
    persons : int array of shape (n_rows,) or None
    person_column : str or None
    groups : array of str of shape (n_rows,) or None
        The values of a column that scores are grouped by.
    declared : DeclaredGroups or None
        The same, if the model's schema lists the values of that column.
    """

    target: Target
    truth: Vector
    predicted: Vector
    probabilities: Matrix | None = None
    persons: IntVector | None = None
    person_column: str | None = None
    groups: AnyArray | None = None
    declared: "DeclaredGroups | None" = None

    def scores(self, chosen: BoolVector | None = None) -> AnyEvaluation:
        """Scores of all rows, or of some.

        Parameters
        ----------
        chosen : bool array of shape (n_rows,), optional

        Returns
        -------
        Evaluation or NumberEvaluation
        """
        own = np.ones(len(self.truth), dtype=bool) if chosen is None else chosen
        known = own & ~np.isnan(self.truth)
        if not known.any():
            raise TooFewRows(
                "no row has one of the model's labels, or a target, so there is nothing to score. "
                "Check the target column."
            )
        persons = None if self.persons is None else self.persons[known]
        skipped = int(own.sum() - known.sum())
        y, predicted = self.truth[known], self.predicted[known]
        if isinstance(self.target, CategoricalColumn):
            p = None if self.probabilities is None else self.probabilities[known]
            numbers = y.astype(np.int64), predicted.astype(np.int64)
            labels = self.target.categories
            place = self.target.positive_place
            return class_scores(*numbers, p, labels, persons, self.person_column, skipped, place)
        return number_scores(
            y,
            predicted,
            counts=self.target.kind == "count",
            grades=self.target.categories if isinstance(self.target, OrdinalTarget) else (),
            persons=persons,
            person_column=self.person_column,
            skipped=skipped,
        )

    def n_units(self, unit: PrivacyUnit) -> int:
        """Number of privacy units: rows, or persons, whose ids the table must have then.

        Parameters
        ----------
        unit : PrivacyUnit

        Returns
        -------
        int
        """
        if not unit.is_person:
            return len(self.truth)
        if self.persons is None:
            raise InvalidArgument(
                f"the model protects persons, and the table has no column {self.person_column!r} "
                "of their ids. Nothing was spent. Add the column."
            )
        return len(np.unique(self.persons))

    def by_group(self) -> dict[str, AnyEvaluation]:
        """Scores of the rows of each group that has a target, by the name of the group."""
        if self.groups is None:
            return {}
        known = ~np.isnan(self.truth)
        names = [str(name) for name in np.unique(self.groups[known])]
        if len(names) > _MAX_GROUPS:
            raise InvalidArgument(
                f"the column to group by has {len(names)} different values. Scores are given for "
                f"at most {_MAX_GROUPS} groups: choose a column with few values."
            )
        return {name: self.scores(self.groups == name) for name in names}


def held_out(
    model: Model, tables: Sequence[Table], watch: Any = None, by: str | None = None
) -> HeldOut:
    """Predict the rows of held-out tables, with what they have.

    Parameters
    ----------
    model : Model
        With a schema that has a target.
    tables : sequence of Table
    watch : callable, optional
        Called with the number of bytes read since the last call.
    by : str, optional
        A column to group by.

    Returns
    -------
    HeldOut
    """
    schema = _with_target(model.schema)
    target: Any = schema.target
    optional = () if schema.person is None else (schema.person,)
    truth: list[Vector] = [np.empty(0)]
    predicted: list[Vector] = [np.empty(0)]
    proba: list[Matrix] = []
    groups: list[AnyArray] = [np.empty(0, dtype=str)]
    listed = next((c for c in schema.columns if c.name == by), None)
    column = listed if isinstance(listed, CategoricalColumn) else None
    codes: list[IntVector] = [np.empty(0, dtype=np.int64)]
    index, persons, batches = PersonIndex(), [], 0
    read = [target.name, *([] if by is None else [by])]
    for batch, predictions, p in scored_batches(model, tables, read, watch, optional):
        batches += 1
        truth.append(target_values(batch.column(target.name), target))
        predicted.append(_numbered(predictions, target))
        proba += [] if p is None else [p]
        if by is not None:
            groups.append(_group_names(batch.column(by)))
        if column is not None:
            codes.append(column.codes(batch.column(column.name)))
        if schema.person in batch.schema.names:
            persons.append(index.add(batch.column(schema.person)))
    everyone = bool(persons) and len(persons) == batches
    return HeldOut(
        target,
        np.concatenate(truth),
        np.concatenate(predicted),
        np.concatenate(proba) if proba else None,
        index.numbered(persons)[0] if everyone else None,
        schema.person,
        None if by is None else np.concatenate(groups),
        None if column is None else DeclaredGroups(_names(column), np.concatenate(codes)),
    )


def _names(column: CategoricalColumn) -> tuple[str, ...]:
    """The listed values of a column, and what other ones become."""
    return tuple(name.removeprefix(f"{column.name}=") for name in column.feature_names)


def evaluate_model(model: Model, tables: Sequence[Table], watch: Any = None) -> AnyEvaluation:
    """Score a model on held-out tables.

    Parameters
    ----------
    model : Model
        With a schema that has a target.
    tables : sequence of Table
    watch : callable, optional
        Called with the number of bytes read since the last call.

    Returns
    -------
    Evaluation or NumberEvaluation

    Raises
    ------
    TooFewRows
        If no row has one of the model's labels, or a target.
    """
    return held_out(model, tables, watch).scores()


def _with_target(schema: Schema | None) -> Schema:
    if schema is None or schema.target is None:
        raise InvalidArgument(
            "the model's schema names no target, so there is nothing to compare with. Add one."
        )
    return schema


def _numbered(predictions: AnyArray, target: Target) -> Vector:
    """Predicted labels as class numbers; numbers as they are."""
    if not isinstance(target, CategoricalColumn):
        return np.asarray(predictions, dtype=np.float64)
    numbers = {label: k for k, label in enumerate(target.categories)}
    return np.array([numbers[str(label)] for label in predictions], dtype=np.float64)


def _group_names(cells: Any) -> AnyArray:
    """The text by which each cell is compared with those of other rows."""
    return np.array([label_of(cell) or _MISSING for cell in cells.to_pylist()], dtype=str)
