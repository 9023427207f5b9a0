r"""One release of what labels contribute, then any public minimisation, for features that are
public.

    b = sum_i x_i s(y_i) + noise                       the only release
    w = argmin of  mean_i psi(x_i w) - b w / n + (w - c) Q (w - c) / 2 + penalty(w)

Labels enter a loss with canonical link through b alone, whatever w is, so there is nothing to
clip, no composition over steps and no step size: docs/algorithms/one-release.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.losses import CanonicalLoss
from hushfit.penalties import Zero
from hushfit.privacy import require_labels
from hushfit.problem import Problem
from hushfit.release import Door, LabelStatistic, Metric, Plan, Planned, PublicRows, canonical
from hushfit.solvers._known_noise import (
    POWERS,
    QUANTILES,
    Spectrum,
    default_prior,
    expected_error,
    metric_squares,
    noise_in,
    quantile_bound,
    ridges,
    shares_by_block,
    signal_shares,
)
from hushfit.solvers._public_minimiser import PublicMinimiser
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Iterate

_NAME = "labels"
_MOST_SPECTRAL_COLUMNS = 1500
# Of the regression of a constant on the features, which need not contain one.
_CONSTANT_RIDGE = 1e-6
# Share of the range of means that a fitted mean may take.
_INSIDE = 0.998
# Keeps the constant finite if noise brings a mean outside its range.
_MARGIN_RIDGE = 1e-3


@dataclass(frozen=True)
class OneRelease:
    """Release the label statistic once; all else is public. For features that are public.

    Parameters
    ----------
    ridge : float or None
        Weight of an additional squared penalty on every weight, intercept included. None chooses
        it in each direction from the noise, the public features and the noisy statistic.
    power : float or None
        Noise is isotropic after features were multiplied by their second moment to the power of
        minus half of this. None chooses it, and the weights of long rows, from public features.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import OneRelease
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.LABEL)
    >>> plan = OneRelease().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('labels', 1)]
    """

    ridge: float | None = None
    power: float | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        check_settings(self, ridge=self.ridge)
        if self.power is not None and not -1 <= self.power <= 1:
            raise InvalidArgument(f"power={self.power!r} is outside [-1, 1]. Use 0, or None.")

    def plan(self, problem: Problem) -> Plan:
        require_labels(problem.relation, problem.privacy_unit)
        canonical(problem)
        if problem.constraint is not None:
            raise InvalidArgument(
                "OneRelease would ignore the constraint of the problem. Give a penalty of the "
                "weights themselves."
            )
        if not problem.penalty.convex:
            raise InvalidArgument(
                f"{problem.penalty!r} is not convex, so no minimum could be certified. Use a "
                "convex penalty, such as L1."
            )
        return Plan((Planned(_NAME, LabelStatistic, 1),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        rows = public_rows_of(door)
        design = chosen_design(problem, rows, door.noise_multiplier(_NAME), self.power)
        released = ReleasedLabels.of(problem, rows, door, _NAME, design)
        yield Iterate(LabelFit(problem, rows, design, released).minimum(self.ridge))


def public_rows_of(door: Door) -> PublicRows:
    """The public features behind a door, refused where features are private."""
    if door.public_rows is None:
        raise InvalidArgument(
            "solver='one-release' needs public features, and this door has none: they are "
            "public under adjacency='label' or 'person-label' only. Use another solver."
        )
    return door.public_rows


@dataclass(frozen=True, eq=False)
class Design:
    """The public choices before the release: a metric and weights of rows."""

    spectrum: Spectrum
    squares: Vector
    weights: Vector | None
    used: Vector

    @cached_property
    def metric(self) -> Metric | None:
        if np.all(self.squares == 1.0):
            return None
        return Metric(self.spectrum.matrix(np.sqrt(self.squares)))


def chosen_design(
    problem: Problem, rows: PublicRows, multiplier: float, power: float | None
) -> Design:
    """The metric and the row weights of least expected error under the default prior. Reads public
    features and the amount of noise.
    """
    d, loss = problem.dimension, canonical(problem)
    shares = rows.shares / problem.n_units
    spectrum = Spectrum.of(rows.moment(shares, d), _MOST_SPECTRAL_COLUMNS)
    plain = Design(spectrum, np.ones(d), None, spectrum.values)
    empty = not spectrum.values.any()
    if multiplier == 0 or spectrum.vectors is None or power == 0 or empty:
        return plain
    choices = _choices(POWERS if power is None else (power,))
    squares = np.array([metric_squares(spectrum.values, one) for one, _ in choices])
    weights, bounds = _row_weights(_lengths(rows, spectrum, squares), choices)
    used = used_by(rows, spectrum, shares[:, None] * weights)
    prior = default_prior(spectrum.values, loss.label_diameter)
    scale = multiplier * loss.label_diameter / problem.n_units
    errors = [
        expected_error(spectrum.values, own, noise_in(scale * bound, metric), prior)
        for own, bound, metric in zip(used, bounds, squares, strict=True)
    ]
    best = int(np.argmin(errors))
    all_equal = choices[best][1] == 1.0
    return Design(spectrum, squares[best], None if all_equal else weights[:, best], used[best])


def _choices(powers: Sequence[float]) -> list[tuple[float, float]]:
    """Powers of a metric, and quantiles of lengths in it that longer records are scaled down to.
    Records have one length without a metric.
    """
    return [(one, q) for one in powers for q in (QUANTILES[:1] if one == 0 else QUANTILES)]


def _lengths(rows: PublicRows, spectrum: Spectrum, squares: Matrix) -> Matrix:
    """Norm of each record in several metrics, times the factor of its label."""
    d = len(spectrum.values)
    found = rows.per_row(lambda records: spectrum.into(records[:, :d]) ** 2 @ squares.T)
    factors = np.broadcast_to(rows.label_factors, rows.n_rows)
    return np.asarray(np.sqrt(found) * factors[:, None])


def _row_weights(lengths: Matrix, choices: list[tuple[float, float]]) -> tuple[Matrix, Vector]:
    """Weights of rows at each choice, and the longest weighted record."""
    pairs = zip(lengths.T, choices, strict=True)
    bounds = np.array([quantile_bound(own, quantile) for own, (_, quantile) in pairs])
    return bounds / np.maximum(np.maximum(lengths, bounds), 1e-300), bounds


def used_by(rows: PublicRows, spectrum: Spectrum, weights: Matrix) -> Matrix:
    """Second moment of the weighted records in each coordinate, for several weightings."""
    d = len(spectrum.values)
    total = np.zeros((weights.shape[1], d))
    for block in rows.blocks():
        total += weights[block.place].T @ spectrum.into(block.records[:, :d]) ** 2
    return total


@dataclass(frozen=True, eq=False)
class ReleasedLabels:
    """A noisy label statistic in the metric of a design, the weights of the rows in it, the public
    sum that it was taken less of, and the standard deviation of its noise.
    """

    answer: Vector
    weights: Vector
    centre: Vector
    deviation: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        rows: PublicRows,
        door: Door,
        name: str,
        design: Design,
        weights: Vector | None = None,
    ) -> "ReleasedLabels":
        """Release the statistic, rows weighted as the design has it and by ``weights``."""
        own = _product(design.weights, weights)
        query = LabelStatistic(problem, rows, own, design.metric)
        answer = door.release(name, query).reshape(problem.shape)
        deviation = door.noise_multiplier(name) * query.sensitivity(problem.relation)
        return cls(answer, np.ones(rows.n_rows) if own is None else own, query.centre(), deviation)

    def mixed_with(self, other: "ReleasedLabels", share: float) -> "ReleasedLabels":
        """The statistic of the weighted mean of both weights; ``share`` is that of the other."""
        own = 1 - share
        return ReleasedLabels(
            own * self.answer + share * other.answer,
            own * self.weights + share * other.weights,
            own * self.centre + share * other.centre,
            math.hypot(own * self.deviation, share * other.deviation),
        )


def _product(first: Vector | None, second: Vector | None) -> Vector | None:
    if first is None or second is None:
        return second if first is None else first
    return np.asarray(first * second)


@dataclass(frozen=True, eq=False)
class LabelFit:
    """A released statistic, and the public objective with it."""

    problem: Problem
    rows: PublicRows
    design: Design
    released: ReleasedLabels

    @property
    def loss(self) -> CanonicalLoss:
        return canonical(self.problem)

    @cached_property
    def row_weights(self) -> Vector:
        """Weight of each row in the mean loss."""
        return np.asarray(self.rows.shares * self.released.weights / self.problem.n_units)

    @cached_property
    def statistic(self) -> Vector:
        """The noisy mean of label statistic times features, without the metric."""
        released = self.design.spectrum.into(self.released.answer) / np.sqrt(self.design.squares)
        if self.problem.outputs > 1:  # statistics of a label add up to a constant over outputs
            released = released - released.mean(axis=0)
        centred = self.design.spectrum.back(released)
        return np.asarray((centred + self.released.centre) / self.problem.n_units)

    @cached_property
    def noise(self) -> Vector:
        """Its variance in each coordinate of the spectrum."""
        return noise_in(self.released.deviation / self.problem.n_units, self.design.squares)

    # The public half of the objective, less the statistic: a `SmoothPart`.

    def value(self, w: Vector) -> float:
        psi = self.loss.log_partition(self.rows.margins(w))
        return float(self.row_weights @ psi) - float(np.sum(self.statistic * w))

    def slope(self, w: Vector) -> Vector:
        return self._mean(self.loss.mean(self.rows.margins(w))) - self.statistic

    def hessian(self, w: Vector) -> Matrix:
        curvatures = self.loss.variance(self.rows.margins(w))
        return self.rows.moment(self.row_weights * curvatures, self.problem.dimension)

    def majorant(self) -> Matrix:
        moment = self.rows.moment(self.row_weights, self.problem.dimension)
        return np.asarray(self.loss.smoothness * moment)

    def _mean(self, of_rows: Vector) -> Vector:
        weighted = (of_rows.T * self.row_weights).T
        return self.rows.weighted_sum(weighted, self.problem.dimension)

    def constant(self) -> Vector:
        """Weights whose margins are about equal on all rows, with the mean of the statistic: where
        shrinking leads to.
        """
        d, spread = self.problem.dimension, (self.loss.label_diameter / 2) ** 2
        ones = np.broadcast_to(self.row_weights * self.rows.label_factors, self.rows.n_rows)
        total = self.rows.weighted_sum(ones, d)
        moment = self.rows.moment(self.row_weights, d) + _CONSTANT_RIDGE * np.eye(d)
        # Weights u with margins near one: u times the statistic is the mean statistic, up to the
        # variation of the margins, which labels may follow, and up to the noise along u.
        N = self.design.spectrum.matrix(self.noise)
        u = np.linalg.solve(spread * moment + N, total)
        u = u / max(float(total @ u), 1e-300)
        mean = _within(self.loss, np.atleast_2d(self.statistic) @ u, float(u @ N @ u))
        one = np.linalg.solve(moment, total)
        return np.asarray(np.outer(_margins_of(self.loss, mean), one).reshape(self.problem.shape))

    def minimum(self, ridge: float | None = None) -> Vector:
        """Of the objective with its ridge: as given, or by empirical Bayes."""
        if ridge is not None:
            Q, zero = ridge * np.eye(self.problem.dimension), np.zeros(self.problem.shape)
            return PublicMinimiser(self.problem, self, Q, zero)()
        start, spectrum, used = self.constant(), self.design.spectrum, self.design.used
        curvature = self._mean_curvature(start)
        z = np.atleast_2d(spectrum.into(-self.slope(start)))
        shares = signal_shares(z, used, self.noise)
        w = self._smooth(spectrum.matrix(ridges(used, curvature, shares)), start)
        # The statistic is not linear in the weights: what large directions leave in small ones
        # looks like signal from afar, and much less so from the first fit.
        moved = np.atleast_2d(spectrum.into(w - start))
        z = np.atleast_2d(spectrum.into(-self.slope(w))) + self._mean_curvature(w) * used * moved
        shares = np.minimum(shares, shares_by_block(z, used, self.noise))
        Q = spectrum.matrix(ridges(used, curvature, shares))
        return PublicMinimiser(self.problem, self, Q, start)(w)

    def _smooth(self, Q: Matrix, start: Vector) -> Vector:
        """The minimum without the penalty of the problem."""
        return PublicMinimiser(replace(self.problem, penalty=Zero()), self, Q, start)()

    def _mean_curvature(self, w: Vector) -> float:
        """Mean second derivative of the loss in a margin."""
        curvatures = self.loss.variance(self.rows.margins(w)).reshape(self.rows.n_rows, -1)
        total = max(float(self.row_weights.sum()), 1e-300)
        return float(self.row_weights @ curvatures.mean(axis=1)) / total


def _within(loss: CanonicalLoss, mean: Vector, noise: float) -> Vector:
    """A noisy mean statistic, shrunk towards the centre and inside the range of means."""
    half = loss.label_diameter / 2 if loss.outputs == 1 else 0.5
    middle = loss.label_centre if loss.outputs == 1 else 0.5
    spread = (half / 2) ** 2
    shrunk = loss.label_centre + (mean - loss.label_centre) * spread / (spread + noise)
    return np.clip(shrunk, middle - _INSIDE * half, middle + _INSIDE * half)


def _margins_of(loss: CanonicalLoss, mean: Vector) -> Vector:
    """Margins of one record at which the expected statistic has this value, or about it."""

    def value_and_slope(t: Vector) -> tuple[float, Vector]:
        shaped = t if loss.outputs == 1 else t[None]
        value = float(loss.log_partition(shaped).sum()) - float(t @ mean)
        slope = loss.mean(shaped).reshape(t.shape) - mean
        return value + 0.5 * _MARGIN_RIDGE * float(t @ t), slope + _MARGIN_RIDGE * t

    found = scipy.optimize.minimize(
        value_and_slope, np.zeros(len(mean)), jac=True, method="L-BFGS-B"
    )
    return np.asarray(found.x)
