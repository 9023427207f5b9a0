"""Scores of a model on held-out rows. They have no noise, so these must not be the training
rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.data.rows import PersonIndex
from hushfit.data.schema import CategoricalColumn
from hushfit.data.tables import RowCodec, Table, codes_of, table_batches
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.models import Model, is_network, load_model
from hushfit.report._score_errors import auc_influences, mean_influences, standard_error

_BINS = 10
_SMALLEST_PROBABILITY = 1e-15


@dataclass(frozen=True)
class CalibrationCell:
    """Rows with a predicted probability in one range, and their observed frequency."""

    low: float
    high: float
    rows: int
    predicted: float
    observed: float


@dataclass(frozen=True)
class Evaluation:
    """Scores on held-out rows.

    Parameters
    ----------
    rows : int
        Rows with one of the model's labels.
    skipped : int
        Rows with another label, or none.
    accuracy : float
    majority : float
        Accuracy of always predicting the most frequent label.
    log_loss, auc, calibration_error : float or None
        None where the model gives no probabilities, or only one label occurs.
    positive : str
        The label whose probability is calibrated, for two classes; else empty.
    calibration : tuple of CalibrationCell
    accuracy_error, log_loss_error, auc_error : float or None
        Standard errors, clustered by person if persons are known; None where the score is None, or
        nothing shows its spread.
    persons : int or None
        Persons with such rows; None if rows were taken as independent.
    person_column : str or None
        The column of ids that the model's schema names.
    """

    rows: int
    skipped: int
    accuracy: float
    majority: float
    log_loss: float | None
    auc: float | None
    calibration_error: float | None
    positive: str
    calibration: tuple[CalibrationCell, ...]
    accuracy_error: float | None = None
    log_loss_error: float | None = None
    auc_error: float | None = None
    persons: int | None = None
    person_column: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def lines(self) -> list[list[str]]:
        """Name, value and meaning of each score."""
        lines = [
            [
                "accuracy",
                f"{self.accuracy:.4f}",
                f"{_plus_minus(self.accuracy_error)}the most frequent label alone: "
                f"{self.majority:.4f}",
            ]
        ]
        if self.auc is not None:
            meaning = f"{_plus_minus(self.auc_error)}0.5 is guessing, 1 is perfect ranking"
            lines.append(["ROC-AUC", f"{self.auc:.4f}", meaning])
        if self.log_loss is not None:
            meaning = (
                f"{_plus_minus(self.log_loss_error)}lower is better; punishes confident errors"
            )
            lines.append(["log-loss", f"{self.log_loss:.4f}", meaning])
        if self.calibration_error is not None:
            lines.append(
                [
                    "calibration error",
                    f"{self.calibration_error:.4f}",
                    "mean gap of predicted and observed",
                ]
            )
        if self.skipped:
            lines.append(
                ["skipped rows", f"{self.skipped}", "their label is not among the classes"]
            )
        return lines

    @property
    def independence(self) -> str:
        """What the standard errors take as independent, in words."""
        if self.persons is not None:
            return (
                f"Standard errors (+-) are clustered by person: {self.persons:,} persons, by "
                f"column {self.person_column!r}."
            )
        rows = "Standard errors (+-) take rows as independent."
        if self.person_column is None:
            return rows
        return (
            f"{rows} They are too small if persons have several rows: the held-out rows have no "
            f"column {self.person_column!r} to cluster by."
        )


def _plus_minus(error: float | None) -> str:
    return "" if error is None else f"+- {error:.4f}; "


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
        return load_model(path)
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
    batch, labels, probabilities
        Probabilities are None for a model that has none.
    """
    if model.schema is None:
        raise InvalidArgument(
            "the model has no schema, so it cannot read tables. Save it with one."
        )
    codec = RowCodec(model.schema)
    names = [column.name for column in model.schema.columns]
    for table in tables:
        for batch in table_batches(table, [*names, *columns], watch, optional):
            if batch.num_rows:
                X = codec.matrix(batch)
                proba = (
                    model.estimator.predict_proba(X)
                    if hasattr(model.estimator, "predict_proba")
                    else None
                )
                yield batch, model.estimator.predict(X), proba


def evaluate_model(model: Model, tables: Sequence[Table], watch: Any = None) -> Evaluation:
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
    Evaluation

    Raises
    ------
    TooFewRows
        If no row has one of the model's labels.
    """
    schema = model.schema
    if schema is None or not isinstance(schema.target, CategoricalColumn):
        raise InvalidArgument(
            "the model's schema names no categorical target, so there is nothing to compare with. "
            "Add a target."
        )
    target = schema.target
    optional = () if schema.person is None else (schema.person,)
    truth: list[IntVector] = []
    scores: list[Matrix] = []
    hits: list[AnyArray] = []
    index, persons = PersonIndex(), []
    for batch, labels, proba in scored_batches(model, tables, [target.name], watch, optional):
        codes = codes_of(batch.column(target.name), target)
        truth.append(codes)
        hits.append(labels == np.array([*target.categories, ""])[codes])
        scores.append(np.empty((len(codes), 0)) if proba is None else proba)
        if schema.person in batch.schema.names:
            persons.append(index.add(batch.column(schema.person)))
    everyone = bool(persons) and len(persons) == len(truth)
    return _evaluation(
        truth,
        scores,
        hits,
        [str(label) for label in target.categories],
        index.numbered(persons)[0] if everyone else None,
        schema.person,
    )


def _evaluation(
    truth: list[IntVector],
    scores: list[Matrix],
    hits: list[AnyArray],
    classes: list[str],
    persons: IntVector | None,
    person_column: str | None,
) -> Evaluation:
    y = np.concatenate(truth) if truth else np.empty(0, dtype=np.int64)
    known = y < len(classes)
    if not known.any():
        raise TooFewRows(
            "no row has one of the model's labels, so there is nothing to score. Check the target "
            "column."
        )
    y, p, hit = y[known], np.concatenate(scores)[known], np.concatenate(hits)[known]
    persons = None if persons is None else persons[known]
    binary, probabilities = len(classes) == 2, p.shape[1] > 0
    counts = np.bincount(y, minlength=len(classes))
    cells = (
        _calibration(p[:, 1] if binary else p.max(axis=1), (y == 1) if binary else hit)
        if probabilities
        else ()
    )
    losses = _losses(p, y) if probabilities else None
    ranked = _ranked_classes(p, counts) if probabilities else []
    return Evaluation(
        rows=len(y),
        skipped=int((~known).sum()),
        accuracy=float(hit.mean()),
        majority=float(counts.max() / len(y)),
        log_loss=None if losses is None else float(losses.mean()),
        auc=float(np.mean([_auc(p[:, k], y == k) for k in ranked])) if ranked else None,
        calibration_error=sum(c.rows * abs(c.predicted - c.observed) for c in cells) / len(y)
        if cells
        else None,
        positive=classes[1] if binary else "",
        calibration=cells,
        accuracy_error=standard_error(mean_influences(hit), persons),
        log_loss_error=None if losses is None else standard_error(mean_influences(losses), persons),
        auc_error=standard_error(
            np.mean([auc_influences(p[:, k], y == k) for k in ranked], axis=0), persons
        )
        if ranked
        else None,
        persons=None if persons is None else len(np.unique(persons)),
        person_column=person_column,
    )


def _losses(p: Matrix, y: IntVector) -> Vector:
    """Logarithmic loss of each row."""
    own = p[np.arange(len(y)), y]
    losses: Vector = -np.log(np.clip(own, _SMALLEST_PROBABILITY, 1.0))
    return losses


def _ranked_classes(p: Matrix, counts: IntVector) -> list[int]:
    """Classes whose areas under the ROC curve are averaged: the second of two classes, or all of
    more; if some rows have it and some have not.
    """
    classes = [1] if p.shape[1] == 2 else range(p.shape[1])
    return [k for k in classes if 0 < counts[k] < counts.sum()]


def _auc(score: Vector, positive: AnyArray) -> float:
    """Probability that a positive row scores above a negative one, ties counting half."""
    ranks = rankdata(score)
    count = int(positive.sum())
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(score) - count)))


def _calibration(p: Vector, outcome: AnyArray) -> tuple[CalibrationCell, ...]:
    bins = np.minimum((p * _BINS).astype(int), _BINS - 1)
    return tuple(
        CalibrationCell(
            k / _BINS,
            (k + 1) / _BINS,
            int(own.sum()),
            float(p[own].mean()),
            float(np.mean(outcome[own])),
        )
        for k in range(_BINS)
        if (own := bins == k).any()
    )
