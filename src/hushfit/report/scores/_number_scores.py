"""Scores of predicted numbers, counts and grades on held-out rows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from hushfit._typing import IntVector, Vector
from hushfit.report.scores._class_scores import CalibrationCell, Confusion
from hushfit.report.scores._score_errors import (
    independence,
    mean_influences,
    plus_minus,
    standard_error,
)

# Rates of counts are at least this in a deviance, whose logarithm has no value at zero.
_SMALLEST_RATE = 1e-9


@dataclass(frozen=True)
class NumberEvaluation:
    """Scores of predicted numbers on held-out rows, in the units of the target.

    Parameters
    ----------
    rows, skipped : int
        Rows with a target, and those without.
    rmse, rmse_baseline : float
        Root mean squared error; and that of predicting the mean of these rows.
    mae, mae_baseline : float
        Mean absolute error; and that of predicting their median.
    r2 : float or None
        Share of the variance that is explained; 0 is the mean alone. None without variance.
    deviance, deviance_baseline : float or None
        For counts: mean Poisson deviance; and that of their mean.
    accuracy, confusion
        For grades: share of right grades, and which were taken for which.
    rmse_error, mae_error : float or None
        Standard errors, clustered by person if persons are known.
    persons : int or None
        Persons with such rows; None if rows were taken as independent.
    person_column : str or None
        The column of ids that the model's schema names.
    """

    rows: int
    skipped: int
    rmse: float
    rmse_baseline: float
    mae: float
    mae_baseline: float
    r2: float | None
    deviance: float | None = None
    deviance_baseline: float | None = None
    accuracy: float | None = None
    confusion: Confusion | None = None
    rmse_error: float | None = None
    mae_error: float | None = None
    persons: int | None = None
    person_column: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @property
    def headline(self) -> tuple[str, str]:
        """The first score and its value, for the head of a page."""
        return ("RMSE", f"{self.rmse:.4g}") if self.r2 is None else ("R²", f"{self.r2:.3f}")

    def lines(self) -> list[list[str]]:
        """Name, value and meaning of each score."""
        lines = [
            [
                "RMSE",
                f"{self.rmse:.4g}",
                f"{plus_minus(self.rmse_error)}root mean squared error; the mean alone: "
                f"{self.rmse_baseline:.4g}",
            ],
            [
                "MAE",
                f"{self.mae:.4g}",
                f"{plus_minus(self.mae_error)}mean absolute error; the median alone: "
                f"{self.mae_baseline:.4g}",
            ],
        ]
        if self.r2 is not None:
            meaning = "explained share of the variance; 0 is the mean alone"
            lines.append(["R2", f"{self.r2:.4f}", meaning])
        if self.deviance is not None:
            meaning = f"mean Poisson deviance; the mean alone: {self.deviance_baseline:.4g}"
            lines.append(["deviance", f"{self.deviance:.4g}", meaning])
        if self.accuracy is not None and self.confusion is not None:
            meaning = f"the right grade; the most frequent one alone: {self.confusion.majority:.4f}"
            lines.append(["accuracy", f"{self.accuracy:.4f}", meaning])
        if self.skipped:
            lines.append(["skipped rows", f"{self.skipped}", "their target is missing or unknown"])
        return lines

    @property
    def calibration(self) -> tuple[CalibrationCell, ...]:
        """None: there are no probabilities."""
        return ()

    @property
    def positive(self) -> str:
        """No label has a probability."""
        return ""

    @property
    def independence(self) -> str:
        """What the standard errors take as independent, in words."""
        return independence(self.persons, self.person_column)


def number_scores(
    y: Vector,
    predicted: Vector,
    *,
    counts: bool = False,
    grades: Sequence[str] = (),
    persons: IntVector | None = None,
    person_column: str | None = None,
    skipped: int = 0,
) -> NumberEvaluation:
    """Score predicted numbers.

    Parameters
    ----------
    y, predicted : arrays of shape (n_rows,)
        Positions, for grades.
    counts : bool, default=False
        Whether the deviance of a Poisson model has a meaning.
    grades : sequence of str, default=()
        The grades, if these are positions of them.
    persons : int array of shape (n_rows,), optional
        Whose row each is.
    person_column : str, optional
    skipped : int, default=0

    Returns
    -------
    NumberEvaluation
    """
    residual = y - predicted
    spread, rmse = float(np.std(y)), float(np.sqrt(np.mean(residual**2)))
    squared = standard_error(mean_influences(residual**2), persons)
    confusion = _confusion(y, predicted, grades) if grades else None
    return NumberEvaluation(
        rows=len(y),
        skipped=skipped,
        rmse=rmse,
        rmse_baseline=spread,
        mae=float(np.mean(np.abs(residual))),
        mae_baseline=float(np.mean(np.abs(y - np.median(y)))),
        r2=1 - (rmse / spread) ** 2 if spread > 0 else None,
        deviance=poisson_deviance(y, predicted) if counts else None,
        deviance_baseline=poisson_deviance(y, np.full(len(y), y.mean())) if counts else None,
        accuracy=None if confusion is None else confusion.accuracy,
        confusion=confusion,
        # The delta method: the square root has the derivative 1 / (2 rmse).
        rmse_error=None if squared is None or rmse == 0 else squared / (2 * rmse),
        mae_error=standard_error(mean_influences(np.abs(residual)), persons),
        persons=None if persons is None else len(np.unique(persons)),
        person_column=person_column,
    )


def _confusion(y: Vector, predicted: Vector, grades: Sequence[str]) -> Confusion:
    places = np.clip(np.rint(predicted), 0, len(grades) - 1).astype(np.int64)
    return Confusion.of(y.astype(np.int64), places, grades)


def poisson_deviance(y: Vector, rate: Vector) -> float:
    """Mean Poisson deviance of counts under rates.

    Parameters
    ----------
    y, rate : arrays of shape (n_rows,)

    Returns
    -------
    float
    """
    mean = np.maximum(rate, _SMALLEST_RATE)
    return float(2 * np.mean(xlogy(y, y / mean) - y + mean))
