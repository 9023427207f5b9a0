"""Scores of predicted classes and probabilities on held-out rows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from hushfit._typing import AnyArray, BoolVector, IntVector, Matrix, Vector
from hushfit.report.scores._score_errors import (
    auc_influences,
    independence,
    mean_influences,
    plus_minus,
    standard_error,
)

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
class ClassScore:
    """How well one class is recognised.

    Parameters
    ----------
    label : str
    rows : float
        Rows of the class.
    recall : float or None
        Share of them that were predicted so; None without rows.
    precision : float or None
        Share of the rows predicted so that are of the class; None if none was.
    """

    label: str
    rows: float
    recall: float | None
    precision: float | None


@dataclass(frozen=True)
class Confusion:
    """How often each class was taken for each other one.

    Parameters
    ----------
    classes : tuple of str
    counts : tuple of tuples of float
        Rows of the true class (outer) that were predicted as another (inner).
    """

    classes: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, truth: IntVector, predicted: IntVector, classes: Sequence[str]) -> "Confusion":
        """From class numbers."""
        K = len(classes)
        counts = np.bincount(truth * K + predicted, minlength=K * K).reshape(K, K)
        return cls(tuple(classes), tuple(tuple(row) for row in counts.tolist()))

    @property
    def matrix(self) -> Matrix:
        return np.array(self.counts, dtype=np.float64)

    @property
    def accuracy(self) -> float:
        """Share of right predictions."""
        return float(np.trace(self.matrix) / self.matrix.sum())

    @property
    def majority(self) -> float:
        """Accuracy of always predicting the most frequent class."""
        return float(self.matrix.sum(axis=1).max() / self.matrix.sum())

    @property
    def by_class(self) -> tuple[ClassScore, ...]:
        """Recall and precision of each class."""
        matrix = self.matrix
        return tuple(
            ClassScore(
                label,
                float(matrix[k].sum()),
                _ratio(matrix[k, k], matrix[k].sum()),
                _ratio(matrix[k, k], matrix[:, k].sum()),
            )
            for k, label in enumerate(self.classes)
        )

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the classes that occur."""
        return float(np.mean([s.recall for s in self.by_class if s.recall is not None]))


@dataclass(frozen=True)
class Evaluation:
    """Scores of a classifier on held-out rows.

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
        Of two classes, the one that areas under curves and calibration are about; else empty.
    calibration : tuple of CalibrationCell
    confusion : Confusion
    log_loss_baseline : float or None
        Log-loss of the frequencies of the classes among these rows.
    pr_auc, pr_auc_baseline : float or None
        Average precision (area under the precision-recall curve), the mean over more than two
        classes; and that of guessing, the frequency of the class.
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
    confusion: Confusion
    log_loss_baseline: float | None = None
    pr_auc: float | None = None
    pr_auc_baseline: float | None = None
    accuracy_error: float | None = None
    log_loss_error: float | None = None
    auc_error: float | None = None
    persons: int | None = None
    person_column: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        by_class = [asdict(score) for score in self.confusion.by_class]
        return {**asdict(self), "balanced_accuracy": self.balanced_accuracy, "by_class": by_class}

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the classes."""
        return self.confusion.balanced_accuracy

    @property
    def headline(self) -> tuple[str, str]:
        """The first score and its value, for the head of a page."""
        return "accuracy", f"{self.accuracy:.1%}"

    def lines(self) -> list[list[str]]:
        """Name, value and meaning of each score."""
        lines = [
            [
                "accuracy",
                f"{self.accuracy:.4f}",
                f"{plus_minus(self.accuracy_error)}the most frequent label alone: "
                f"{self.majority:.4f}",
            ],
            [
                "balanced accuracy",
                f"{self.balanced_accuracy:.4f}",
                f"mean recall of the classes; guessing: {1 / len(self.confusion.classes):.4f}",
            ],
        ]
        if self.auc is not None:
            meaning = f"{plus_minus(self.auc_error)}0.5 is guessing, 1 is perfect ranking"
            lines.append(["ROC-AUC", f"{self.auc:.4f}", meaning])
        if self.pr_auc is not None:
            of = f" for {self.positive}" if self.positive else ""
            meaning = f"average precision{of}; guessing: {self.pr_auc_baseline:.4f}"
            lines.append(["PR-AUC", f"{self.pr_auc:.4f}", meaning])
        if self.log_loss is not None:
            meaning = (
                f"{plus_minus(self.log_loss_error)}lower is better; class frequencies alone: "
                f"{self.log_loss_baseline:.4f}"
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
        return independence(self.persons, self.person_column)


def class_scores(
    y: IntVector,
    predicted: IntVector,
    p: Matrix | None,
    classes: Sequence[str],
    persons: IntVector | None = None,
    person_column: str | None = None,
    skipped: int = 0,
    positive: int | None = None,
) -> Evaluation:
    """Score predicted classes, and their probabilities if there are any.

    Parameters
    ----------
    y, predicted : int arrays of shape (n_rows,)
        Class numbers.
    p : array of shape (n_rows, n_classes), optional
    classes : sequence of str
    persons : int array of shape (n_rows,), optional
        Whose row each is.
    person_column : str, optional
    skipped : int, default=0
        Rows that have none of the classes.
    positive : int, optional
        Number of the positive class of two; the last if not given.

    Returns
    -------
    Evaluation
    """
    hit = predicted == y
    if len(classes) == 2 and positive is None:
        positive = 1
    confusion = Confusion.of(y, predicted, classes)
    counts = np.bincount(y, minlength=len(classes))
    cells = () if p is None else _calibration(*_calibrated(p, y, hit, positive))
    losses = None if p is None else _losses(p, y)
    ranked = [] if p is None else _ranked_classes(positive, counts)
    return Evaluation(
        rows=len(y),
        skipped=skipped,
        accuracy=confusion.accuracy,
        majority=confusion.majority,
        log_loss=None if losses is None else float(losses.mean()),
        auc=_mean(_auc(p[:, k], y == k) for k in ranked) if p is not None else None,
        calibration_error=sum(c.rows * abs(c.predicted - c.observed) for c in cells) / len(y)
        if cells
        else None,
        positive="" if positive is None else classes[positive],
        calibration=cells,
        confusion=confusion,
        log_loss_baseline=None if losses is None else _entropy(counts),
        pr_auc=_mean(average_precision(p[:, k], y == k) for k in ranked) if p is not None else None,
        pr_auc_baseline=_mean(counts[k] / len(y) for k in ranked),
        accuracy_error=standard_error(mean_influences(hit), persons),
        log_loss_error=None if losses is None else standard_error(mean_influences(losses), persons),
        auc_error=standard_error(
            np.mean([auc_influences(p[:, k], y == k) for k in ranked], axis=0), persons
        )
        if p is not None and ranked
        else None,
        persons=None if persons is None else len(np.unique(persons)),
        person_column=person_column,
    )


def _mean(values: Any) -> float | None:
    """The mean of some numbers; None of none."""
    found = list(values)
    return float(np.mean(found)) if found else None


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _entropy(counts: IntVector) -> float:
    """Log-loss of the frequencies themselves."""
    shares = counts[counts > 0] / counts.sum()
    return float(-np.sum(shares * np.log(shares)))


def _losses(p: Matrix, y: IntVector) -> Vector:
    """Logarithmic loss of each row."""
    own = p[np.arange(len(y)), y]
    losses: Vector = -np.log(np.clip(own, _SMALLEST_PROBABILITY, 1.0))
    return losses


def _ranked_classes(positive: int | None, counts: IntVector) -> list[int]:
    """Classes whose areas under curves are averaged: the positive of two classes, or all of more;
    if some rows have it and some have not.
    """
    classes = range(len(counts)) if positive is None else [positive]
    return [k for k in classes if 0 < counts[k] < counts.sum()]


def _auc(score: Vector, positive: AnyArray) -> float:
    """Probability that a positive row scores above a negative one, ties counting half."""
    ranks = rankdata(score)
    count = int(positive.sum())
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(score) - count)))


def average_precision(score: Vector, positive: BoolVector) -> float:
    """Mean precision over the positive rows, from the highest score down; rows with equal scores
    are taken at once.

    Parameters
    ----------
    score : array of shape (n_rows,)
    positive : bool array of shape (n_rows,)

    Returns
    -------
    float
    """
    order = np.argsort(-score, kind="stable")
    found = np.cumsum(positive[order])
    last = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))
    precision = found[last] / (last + 1)
    return float(np.sum(np.diff(found[last], prepend=0) * precision) / found[-1])


def _calibrated(
    p: Matrix, y: IntVector, hit: AnyArray, positive: int | None
) -> tuple[Vector, AnyArray]:
    """Probabilities and outcomes: of the positive of two classes, or of the chosen of more."""
    return (p.max(axis=1), hit) if positive is None else (p[:, positive], y == positive)


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
