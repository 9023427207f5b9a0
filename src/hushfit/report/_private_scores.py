"""Scores of a model on private held-out rows, released with noise.

Classes: the confusion matrix, whose entries are counts of records of K x K classes
(docs/proofs/histogram.md). Numbers: means and mean squares of residuals and of targets
(docs/proofs/regression.md, part 1). Every score is post-processing of these.
"""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from hushfit.data import RecordScaling, as_source, persons_of
from hushfit.data.schema import CategoricalColumn
from hushfit.losses import LeastSquares, Softmax
from hushfit.penalties import Zero
from hushfit.privacy import Guarantee, Relation
from hushfit.problem import Problem
from hushfit.release import (
    ClassCounts,
    Contract,
    MeanAndSquare,
    Plan,
    Planned,
    Prediction,
    Target,
    Terms,
)
from hushfit.report._class_scores import Confusion
from hushfit.report._evaluate import HeldOut
from hushfit.unit import PrivacyUnit

_CONFUSION, _RESIDUALS, _TARGETS = "confusion matrix", "residuals", "targets"


@dataclass(frozen=True)
class PrivateScores:
    """Noisy scores of a model on private rows; public.

    Parameters
    ----------
    units : int
        Rows, or persons.
    guarantee : Guarantee
        Of the release of these scores.
    noise : float
        Standard deviation of the noise in the accuracy, or in the bias.
    accuracy, balanced_accuracy : float or None
        Of classes.
    confusion : Confusion or None
        Noisy counts; those below zero were set to it.
    bias : float or None
        Of numbers: mean of target minus prediction.
    rmse, r2 : (float, float) or None
        Of numbers: root mean squared error and explained share of the variance, as intervals of
        two standard deviations of the noise to each side. None where noise hides the variance.
    """

    units: int
    guarantee: Guarantee
    noise: float
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    confusion: Confusion | None = None
    bias: float | None = None
    rmse: tuple[float, float] | None = None
    r2: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        confusion = None if self.confusion is None else asdict(self.confusion)
        return {**plain, "confusion": confusion, "guarantee": self.guarantee.to_dict()}

    def lines(self) -> list[list[str]]:
        """Name, value and meaning of each score."""
        noise = f"noise of about +- {self.noise:.2g}"
        found = [
            ("accuracy", _written(self.accuracy), noise),
            ("balanced accuracy", _written(self.balanced_accuracy), "mean recall; noisier"),
            ("RMSE", _interval(self.rmse), "root mean squared error, as far as the noise shows it"),
            ("bias", _written(self.bias), f"mean of target minus prediction; {noise}"),
            ("R2", _interval(self.r2), "explained share of the variance; 0 is the mean alone"),
        ]
        return [[name, text, meaning] for name, text, meaning in found if text]


def _written(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.3g} to {ends[1]:.3g}"


def private_scores(
    held: HeldOut, terms: Terms, adjacency: str, unit: PrivacyUnit | None = None
) -> PrivateScores:
    """Release scores of private held-out rows.

    Parameters
    ----------
    held : HeldOut
        A row without a target counts as the zero record.
    terms : Terms
        Budget, ledger and randomness.
    adjacency : str
    unit : PrivacyUnit, optional
        That of persons, if they are protected.

    Returns
    -------
    PrivateScores
    """
    released = _classes if isinstance(held.target, CategoricalColumn) else _numbers
    return released(held, terms, Relation.parse(adjacency), unit)


def _persons(held: HeldOut, unit: PrivacyUnit | None) -> Any:
    if unit is None or not unit.is_person:
        return None
    held.n_units(unit)  # refuses rows without ids
    return persons_of(held.persons, len(held.truth), unit)


def _classes(
    held: HeldOut, terms: Terms, relation: Relation, unit: PrivacyUnit | None
) -> PrivateScores:
    assert isinstance(held.target, CategoricalColumn)
    classes = held.target.categories
    K, known = len(classes), ~np.isnan(held.truth)
    cells = np.where(known, held.truth * K + held.predicted, 0.0)
    empty = np.where(known, 0.0, np.nan)[:, None]  # not a number: the zero record
    source = as_source(empty, cells, persons=_persons(held, unit))
    place = source.n_units, 1, relation
    problem = Problem(
        Softmax(K * K), Zero(), *place, outputs=K * K, privacy_unit=source.privacy_unit
    )
    query = ClassCounts(problem)
    quote = Plan((Planned(_CONFUSION, ClassCounts, 1),)).quote(problem, terms.budget)
    contract = Contract.signed(source, quote, relation, terms)
    counts = np.maximum(contract.curator.release(_CONFUSION, query).reshape(K, K), 0.0)
    confusion = Confusion(classes, tuple(tuple(row) for row in counts.tolist()))
    seen = counts.sum() > 0
    noise = quote.multipliers[_CONFUSION] * query.sensitivity(relation)
    return PrivateScores(
        source.n_units,
        contract.guarantee,
        noise * math.sqrt(K) / source.n_units,
        confusion.accuracy if seen else None,
        confusion.balanced_accuracy if seen else None,
        confusion,
    )


def _numbers(
    held: HeldOut, terms: Terms, relation: Relation, unit: PrivacyUnit | None
) -> PrivateScores:
    low, high = held.target.low, held.target.high  # type: ignore[union-attr]
    width, known = high - low, ~np.isnan(held.truth)
    # The residual is the only feature, and its weight is one.
    residuals = np.where(known, (held.truth - held.predicted) / width, np.nan)[:, None]
    targets = np.where(known, 2 * (held.truth - low) / width - 1, 0.0)
    source = as_source(
        residuals,
        targets,
        fit_intercept=False,
        persons=_persons(held, unit),
        scaling=RecordScaling.BOUNDED,
    )
    problem = Problem(
        LeastSquares(),
        Zero(),
        source.n_units,
        1,
        relation,
        fit_intercept=False,
        privacy_unit=source.privacy_unit,
        scaling=RecordScaling.BOUNDED,
    )
    plan = Plan((Planned(_RESIDUALS, MeanAndSquare, 1), Planned(_TARGETS, MeanAndSquare, 1)))
    quote = plan.quote(problem, terms.budget)
    contract = Contract.signed(source, quote, relation, terms)
    of_residuals = MeanAndSquare(problem, Prediction(np.ones(1)))
    of_targets = MeanAndSquare(problem, Target())
    bias, square = of_residuals.moments(contract.curator.release(_RESIDUALS, of_residuals))
    mean, spread = of_targets.moments(contract.curator.release(_TARGETS, of_targets))
    # Standard deviations of the noise in a mean, and in a mean square.
    noise = quote.multipliers[_RESIDUALS] * of_residuals.sensitivity(relation) / source.n_units
    in_square = noise / math.sqrt(2)
    error = _around(square, in_square)
    in_variance = math.hypot(in_square, 2 * abs(mean) * noise)
    variance = _around((spread - mean**2) / 4, in_variance / 4)  # in units of the width
    return PrivateScores(
        source.n_units,
        contract.guarantee,
        noise * width,
        bias=bias * width,
        rmse=(math.sqrt(error[0]) * width, math.sqrt(error[1]) * width),
        r2=(1 - error[1] / variance[0], 1 - error[0] / variance[1]) if variance[0] > 0 else None,
    )


def _around(value: float, deviation: float) -> tuple[float, float]:
    """Two standard deviations to each side of a number that is at least zero."""
    return max(value - 2 * deviation, 0.0), max(value + 2 * deviation, 0.0)
