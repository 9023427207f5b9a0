"""Scores of a model on private held-out rows, released with noise.

Classes: the confusion matrix, whose entries are counts of records of K x K classes
(docs/proofs/histogram.md). Numbers: means and mean squares of residuals and of targets
(docs/proofs/regression.md, part 1). Every score is post-processing of these.

By group: classes are counted in G x K x K cells, of which a record is in one, so the bound is that
of K x K cells. Of numbers, each group has two releases of its own, which share the budget with the
others: a record that is replaced may leave one group and enter another.
"""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from hushfit._typing import Matrix
from hushfit.data import DataSource, RecordScaling, as_source, persons_of
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
from hushfit.report.scores._class_scores import Confusion
from hushfit.report.scores._evaluate import DeclaredGroups, HeldOut
from hushfit.unit import PrivacyUnit

_CONFUSION, _RESIDUALS, _TARGETS = "confusion matrix", "residuals", "targets"
_BY_GROUP = "sizes and residuals of groups"


@dataclass(frozen=True)
class GroupScore:
    """Noisy scores of the rows of one group; public.

    Parameters
    ----------
    name : str
    units : float
        Noisy number of rows, or of persons by their weight.
    accuracy : float or None
        Of classes; None where noise hides it.
    rmse : (float, float) or None
        Of numbers, as in `PrivateScores`.
    noise : float or None
        Standard deviation of the noise in the accuracy.
    """

    name: str
    units: float
    accuracy: float | None = None
    rmse: tuple[float, float] | None = None
    noise: float | None = None

    @property
    def written(self) -> str:
        """Its score in words; empty where noise hides it."""
        if self.accuracy is None:
            return _interval(self.rmse)
        return f"{self.accuracy:.3g} +- {self.noise or 0.0:.2g}"


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
    by : tuple of GroupScore, default=()
        Of groups whose names are public.
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
    by: tuple[GroupScore, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        confusion = None if self.confusion is None else asdict(self.confusion)
        groups = {one.name: _group_dict(one) for one in self.by}
        made = {"confusion": confusion, "by": groups, "guarantee": self.guarantee.to_dict()}
        return {**plain, **made}

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


def _group_dict(group: GroupScore) -> dict[str, Any]:
    return {key: value for key, value in asdict(group).items() if key != "name"}


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


def _groups(held: HeldOut) -> DeclaredGroups:
    """The declared groups; one of all rows if there are none."""
    return held.declared or DeclaredGroups(("",), np.zeros(len(held.truth), dtype=np.int64))


def _classes(
    held: HeldOut, terms: Terms, relation: Relation, unit: PrivacyUnit | None
) -> PrivateScores:
    assert isinstance(held.target, CategoricalColumn)
    classes, groups = held.target.categories, _groups(held)
    K, G, known = len(classes), len(groups.names), ~np.isnan(held.truth)
    cells = np.where(known, (groups.codes * K + held.truth) * K + held.predicted, 0.0)
    empty = np.where(known, 0.0, np.nan)[:, None]  # not a number: the zero record
    source = as_source(empty, cells, persons=_persons(held, unit))
    outputs = G * K * K
    place = source.n_units, 1, relation
    problem = Problem(
        Softmax(outputs), Zero(), *place, outputs=outputs, privacy_unit=source.privacy_unit
    )
    query = ClassCounts(problem)
    quote = Plan((Planned(_CONFUSION, ClassCounts, 1),)).quote(problem, terms.budget)
    contract = Contract.signed(source, quote, relation, terms)
    found = contract.curator.release(_CONFUSION, query).reshape(G, K, K)
    counts = np.maximum(found.sum(axis=0), 0.0)  # zero only after groups are added up
    confusion = Confusion(classes, tuple(tuple(row) for row in counts.tolist()))
    seen = counts.sum() > 0
    noise = quote.multipliers[_CONFUSION] * query.sensitivity(relation)
    return PrivateScores(
        source.n_units,
        contract.guarantee,
        noise * math.sqrt(K * G) / source.n_units,
        confusion.accuracy if seen else None,
        confusion.balanced_accuracy if seen else None,
        confusion,
        by=()
        if held.declared is None
        else tuple(map(_group_of_classes, groups.names, found, [noise] * G)),
    )


def _group_of_classes(name: str, counts: Matrix, noise: float) -> GroupScore:
    """Accuracy in one group, if its rows stand out from the noise in their number."""
    total, K = float(counts.sum()), len(counts)
    if total <= 4 * noise * K:  # the deviation of a sum of K x K counts, four times
        return GroupScore(name, max(total, 0.0))
    accuracy = min(max(float(np.trace(counts)) / total, 0.0), 1.0)
    right, wrong = (1 - accuracy) * math.sqrt(K), accuracy * math.sqrt(K * (K - 1))
    return GroupScore(name, total, accuracy, noise=noise * math.hypot(right, wrong) / total)


def _numbers(
    held: HeldOut, terms: Terms, relation: Relation, unit: PrivacyUnit | None
) -> PrivateScores:
    low, high = held.target.low, held.target.high  # type: ignore[union-attr]
    width = high - low
    names = () if held.declared is None else held.declared.names
    source = _residual_source(held, low, width, unit)
    problem = Problem(
        LeastSquares(),
        Zero(),
        source.n_units,
        source.n_features,
        relation,
        fit_intercept=False,
        privacy_unit=source.privacy_unit,
        scaling=RecordScaling.BOUNDED,
    )
    parts = [Planned(_RESIDUALS, MeanAndSquare, 1), Planned(_TARGETS, MeanAndSquare, 1)]
    if names:
        parts.append(Planned(_BY_GROUP, MeanAndSquare, 2 * len(names), share=2.0))
    quote = Plan(tuple(parts)).quote(problem, terms.budget)
    contract = Contract.signed(source, quote, relation, terms)

    def released(part: str, query: MeanAndSquare) -> tuple[float, float]:
        return query.moments(contract.curator.release(part, query))

    # A weight of one selects a feature.
    of_residuals, *of_groups = (
        MeanAndSquare(problem, Prediction(one)) for one in np.eye(source.n_features)
    )
    bias, square = released(_RESIDUALS, of_residuals)
    mean, spread = released(_TARGETS, MeanAndSquare(problem, Target()))
    by_group = [released(_BY_GROUP, query) for query in of_groups]
    bound = of_residuals.sensitivity(relation)
    # Standard deviations of the noise in a mean; that in a mean square is smaller by sqrt(2).
    noise = quote.multipliers[_RESIDUALS] * bound / source.n_units
    in_group = quote.multipliers[_BY_GROUP] * bound / source.n_units if names else 0.0
    error = _around(square, noise / math.sqrt(2))
    return PrivateScores(
        source.n_units,
        contract.guarantee,
        noise * width,
        bias=bias * width,
        rmse=(math.sqrt(error[0]) * width, math.sqrt(error[1]) * width),
        r2=_explained(error, mean, spread, noise),
        by=tuple(
            _group_of_numbers(name, size, own, in_group, source.n_units, width)
            for name, (size, _), (_, own) in zip(
                names, by_group[: len(names)], by_group[len(names) :], strict=True
            )
        ),
    )


def _residual_source(
    held: HeldOut, low: float, width: float, unit: PrivacyUnit | None
) -> DataSource:
    """Residuals in units of the width of the range, as the first feature; by group further ones:
    whether a row is in the group, and its residual if it is. Targets are mapped to [-1, 1].
    """
    known = ~np.isnan(held.truth)
    residuals = np.where(known, (held.truth - held.predicted) / width, np.nan)[:, None]
    names = () if held.declared is None else held.declared.names
    inside = np.eye(len(names))[_groups(held).codes] if names else np.empty((len(residuals), 0))
    return as_source(
        np.hstack([residuals, inside, np.where(inside > 0, residuals, 0.0)]),
        np.where(known, 2 * (held.truth - low) / width - 1, 0.0),
        fit_intercept=False,
        persons=_persons(held, unit),
        scaling=RecordScaling.BOUNDED,
    )


def _explained(
    error: tuple[float, float], mean: float, spread: float, noise: float
) -> tuple[float, float] | None:
    """R2 as an interval, from that of the mean square of residuals and from the noisy mean and mean
    square of the targets in [-1, 1]; None where noise hides their variance.
    """
    in_variance = math.hypot(noise / math.sqrt(2), 2 * abs(mean) * noise)
    # In units of the width, of which the range [-1, 1] has two.
    low, high = _around((spread - mean**2) / 4, in_variance / 4)
    return (1 - error[1] / low, 1 - error[0] / high) if low > 0 else None


def _group_of_numbers(
    name: str, share: float, square: float, noise: float, n_units: int, width: float
) -> GroupScore:
    """Root mean squared error in one group, if its rows stand out from the noise in their number.

    ``share`` is its noisy share of all units, ``square`` its sum of squared residuals over their
    number; ``noise`` is the deviation of the first, and that of the second is smaller by sqrt(2).
    """
    if share <= 4 * noise:
        return GroupScore(name, max(share, 0.0) * n_units)
    low, high = _around(square, noise / math.sqrt(2))
    few, many = _around(share, noise)
    worst = min(math.sqrt(high / few), 1.0)
    return GroupScore(name, share * n_units, rmse=(math.sqrt(low / many) * width, worst * width))


def _around(value: float, deviation: float) -> tuple[float, float]:
    """Two standard deviations to each side of a number that is at least zero."""
    return max(value - 2 * deviation, 0.0), max(value + 2 * deviation, 0.0)
