r"""Coefficients with intervals: a few looks at scores, curvature and covariance of the scores.
docs/algorithms/inference.md.

Records z = (x, sqrt(1/2)) have entries in [-1, 1]. Each look releases, at public weights w and in a
public metric, the sums of scores, of curvatures and of outer products of scores (`ScoreMoments`).
Shares are of the squared Gaussian parameter mu.

    look 1   5 %   at zero, in the metric of the box; moved to the model with an intercept alone
    look 2  20 %   in the metric of the curvature of look 1
    look 3  25 %   in that of look 2, with weights as even as noise allows
    look 4  50 %   in the same
    between looks: posterior mean of the weights, under a prior of margins of variance 2
    at the end: looks 3 and 4 as one, one Newton step without a prior, and the third derivative

With three times as many units as are needed, noise is small, and what counts is that Newton's
method converges: there are seven looks then.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import (
    Door,
    Moments,
    Plan,
    Planned,
    RecordScaling,
    Released,
    ScoreFamily,
    ScoreMoments,
    score_family,
)
from hushfit.solvers.base import Iterate
from hushfit.solvers.inference._covariance import (
    COVARIANCES,
    Covariance,
    Look,
    covariance,
    left_out,
    model_scale,
    pooled,
)
from hushfit.solvers.inference._feasible import least_units
from hushfit.solvers.inference._metric import (
    Seen,
    farthest_square,
    longer_reach,
    squared_reach,
    total_curvature,
    whitened,
)
from hushfit.solvers.inference._start import moved_to_intercept

_SHARES = (0.05, 0.20, 0.25, 0.50)
# With so many times the units that are needed, noise is small beside what too few steps leave out.
_AMPLE, _MORE_SHARES = 3, (0.03, 0.03, 0.04, 0.05, 0.10, 0.20, 0.55)
# Looks at the end that have one metric and are pooled.
POOLED = 2
# Looks after which the metric is chosen anew. More would go round in a circle: rows of a rare label
# weigh less, so their direction is stretched, so they weigh less.
_METRICS = 2
# Prior variances of the margins and of the intercept.
_MARGIN_VARIANCE, _INTERCEPT_VARIANCE = 2.0, 16.0
# How often looks are weighted anew by how far the weights are from where they were made.
_WEIGHINGS = 4
# Residuals of least squares are clipped to so many of their standard deviations.
RESIDUALS, _LEAST_UNIT = 4.0, 0.02
# Without noise: looks, and a unit that residuals of targets in [-1, 1] hardly exceed.
_EXACT_LOOKS, _EXACT_UNIT = 15, 4.0


@dataclass(frozen=True)
class ScoreSteps:
    """Newton steps on noisy scores; the last one has a covariance.

    Parameters
    ----------
    shares : tuple of float
        Shares of the looks in the budget.
    robust : bool, default=False
        Whether the model may be wrong. Then the weights of records change what is estimated, and
        they are evener, at the price of more noise.
    even_weights : bool, default=False
        Whether all records of the box weigh the same in the last looks, whatever noise that takes.
    """

    shares: tuple[float, ...] = _SHARES
    robust: bool = False
    even_weights: bool = False

    takes_constraint = False
    scaling: ClassVar[RecordScaling] = RecordScaling.BOUNDED

    def __post_init__(self) -> None:
        if len(self.shares) <= POOLED or min(self.shares) <= 0:
            raise InvalidArgument(
                f"shares={self.shares!r} are not more than {POOLED} positive numbers. Give one "
                "for each look."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "ScoreSteps":
        """The same; with more looks where noise is small, if shares were not given, and without
        privacy with so many that Newton's method converges.
        """
        if not budget.is_private:
            return replace(self, shares=_EXACT_LOOKS * (1.0,))
        ample = problem.n_units >= _AMPLE * least_units(problem, budget)
        return replace(self, shares=_MORE_SHARES) if ample and self.shares == _SHARES else self

    def names(self) -> list[str]:
        """Names of the releases, in order."""
        return [f"look {number}" for number in range(1, len(self.shares) + 1)]

    def plan(self, problem: Problem) -> Plan:
        require_inference(problem)
        return Plan(
            tuple(
                Planned(name, ScoreMoments, 1, share)
                for name, share in zip(self.names(), self.shares, strict=True)
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        exact = door.noise_multiplier(self.names()[0]) == 0
        path = _Path(problem, _EXACT_UNIT if exact else 1.0)
        for number, name in enumerate(self.names(), start=1):
            query = path.query()
            moments = query.moments(door.release(name, query), door.noise_multiplier(name))
            free = len(self.shares) - POOLED
            kept = number > min(_METRICS, free)
            path.saw(query, moments, keeps_metric=kept, keeps_unit=number > free)
            if number == free:
                share = sum(self.shares[-POOLED:]) / self.shares[number - 1]
                path.lengthen_reach(moments, query.family, share, self.robust)
                if self.even_weights:
                    path.reach_all()
            if number < len(self.shares):
                yield Iterate(path.w, weight=0.0)
        yield Iterate(self._covariance(problem, path.looks, COVARIANCES[0]).w)

    def covariance(
        self,
        problem: Problem,
        transcript: Sequence[Released],
        multipliers: dict[str, float],
        kind: str = COVARIANCES[0],
    ) -> Covariance:
        """Estimate and covariance from what a run has released."""
        looks = []
        for released in transcript[-POOLED:]:
            query = released.query
            assert isinstance(query, ScoreMoments)
            moments = query.moments(released.answer, multipliers[released.name])
            looks.append(_look(query, moments))
        return self._covariance(problem, looks, kind)

    def _covariance(self, problem: Problem, looks: Sequence[Look], kind: str) -> Covariance:
        look = pooled(looks[-POOLED:])
        scale, means = model_scale(look, problem), score_family(problem.loss).means
        return covariance(look, kind, scale, problem.constant, means)


def require_inference(problem: Problem) -> None:
    """Refuse problems whose estimates have no intervals."""
    score_family(problem.loss)  # refuses other losses
    if problem.scaling is not RecordScaling.BOUNDED or not problem.fit_intercept:
        raise InvalidArgument(
            "Inference needs an intercept and records that keep their lengths. Use it through "
            "inference=True of an estimator, with fit_intercept=True."
        )
    if problem.penalty.ridge != 0 or problem.constraint is not None:
        raise InvalidArgument(
            f"Inference is for coefficients without a penalty or constraint, not for "
            f"{problem.penalty!r}. Leave the penalty out: it would bias every interval."
        )


def _look(query: ScoreMoments, moments: Moments) -> Look:
    return Look(query.A.T, query.w, moments, query.family.margin_unit)


@dataclass
class _Path:
    """Weights, metric and clipping of the next look."""

    problem: Problem
    images: Matrix = field(init=False)
    w: Vector = field(init=False)
    unit: float = 1.0
    looks: list[Look] = field(default_factory=list)
    _longer: float = 1.0
    _seen: list["_Quadratic"] = field(default_factory=list)
    _intercept: float = 0.0

    def __post_init__(self) -> None:
        p = self.problem.dimension
        self.images, self.w = np.eye(p) / self.longest, np.zeros(p)

    @property
    def longest(self) -> float:
        """Largest length of a record."""
        return math.sqrt(self.problem.n_features + self.problem.constant**2)

    def query(self) -> ScoreMoments:
        family = score_family(self.problem.loss, self.unit)
        return ScoreMoments(self.problem, self.w, self.images.T / math.sqrt(self._longer), family)

    def saw(
        self, query: ScoreMoments, moments: Moments, keeps_metric: bool, keeps_unit: bool
    ) -> None:
        """Go on from what a look has released."""
        look = _look(query, moments)
        self.looks.append(look)
        if moments.score_noise == 0:
            self._newton_step(look)
            return
        score, seen = (
            moments.score,
            Seen(moments.curvature / look.unit, moments.curvature_noise / look.unit),
        )
        means = query.family.means
        if len(self.looks) == 1 and means is not None:
            image = self.problem.constant / self.longest
            margin, score, seen = moved_to_intercept(moments, means, image, self.problem.n_units)
            self._intercept = margin / self.problem.constant
            self.w = np.append(np.zeros(self.problem.n_features), self._intercept)
        self._remember(look, seen, score)
        if means is None and not keeps_unit:
            self.unit = _residual_unit(moments, self.unit)
        if not keeps_metric:
            self.images = whitened(seen, self.images, self.problem.constant)
        self.w = self._posterior_mean()

    def lengthen_reach(
        self, moments: Moments, family: ScoreFamily, share: float, robust: bool
    ) -> None:
        """From now on let further records have full weight, as far as noise allows; ``share`` is
        that of the last looks over that of this one, whose ``moments`` are.
        """
        if moments.score_noise == 0:
            return
        square = squared_reach(len(self.w))
        seen = Seen(moments.curvature, moments.curvature_noise / math.sqrt(share))
        reached = total_curvature(seen, self.looks[-1].images, self.problem.constant) / square
        added = moments.score_noise**2 / share / reached
        if family.dispersed:
            spread = max(float(np.trace(moments.spread)), moments.spread_noise)
            scale = spread / max(float(np.trace(moments.curvature)), 1e-300)
            added /= scale * (family.unit / score_family(self.problem.loss, self.unit).unit) ** 2
        most = farthest_square(self.images, self.problem.constant)
        self._longer = max(1.0, min(longer_reach(added, seen.edge / reached, robust), most))

    def reach_all(self) -> None:
        """From now on let all records of the box have full weight."""
        self._longer = max(1.0, farthest_square(self.images, self.problem.constant))

    def _newton_step(self, look: Look) -> None:
        """Without noise records keep their weights, and there is no prior."""
        curvature = look.moments.curvature / look.unit
        step = np.linalg.lstsq(curvature, look.moments.score, rcond=None)[0]
        self.w = self.w - self.images.T @ step

    def _remember(self, look: Look, seen: Seen, score: Vector) -> None:
        curvature, to_images = seen.floored(), np.asarray(np.linalg.inv(look.images.T))
        theta = to_images @ self.w
        variance = look.moments.score_noise**2 + seen.noise**2 * float(theta @ theta) / 2 + 1e-12
        self._seen.append(_Quadratic(curvature, to_images, score, variance, self.w))

    def _posterior_mean(self) -> Vector:
        p, constant = len(self.w), self.problem.constant
        # In the metric squares of records are about one.
        prior = _MARGIN_VARIANCE * self.images.T @ self.images
        prior[-1, -1] += _INTERCEPT_VARIANCE / constant**2
        known = np.linalg.inv(prior)
        w, variances = self.w, [look.variance for look in self._seen]
        for _ in range(_WEIGHINGS):
            precision, information = known, known[:, -1] * self._intercept
            for look, variance in zip(self._seen, variances, strict=True):
                precision = precision + look.square / variance
                information = information + look.product / variance
            # Never an error after payment: with hardly any noise it may be close to singular.
            w = np.asarray(np.linalg.lstsq(precision, information, rcond=None)[0]).reshape(p)
            variances = [look.variance_at(w) for look in self._seen]
        return w


@dataclass(frozen=True, eq=False)
class _Quadratic:
    """What a look says about the scores at other weights.

    ``to_images`` maps weights to those of the images of the look, ``variance`` is that of the
    noise, and ``w`` are the weights where the look was made.
    """

    curvature: Matrix
    to_images: Matrix
    score: Vector
    variance: float
    w: Vector

    @cached_property
    def _of_weights(self) -> Matrix:
        return self.curvature @ self.to_images

    @cached_property
    def square(self) -> Matrix:
        return self._of_weights.T @ self._of_weights

    @cached_property
    def product(self) -> Vector:
        return self._of_weights.T @ (self._of_weights @ self.w - self.score)

    def variance_at(self, w: Vector) -> float:
        """Variance of a score at other weights: noise, and what the quadratic leaves out."""
        moved = self.to_images @ (w - self.w)
        return self.variance + left_out(moved, self.curvature) ** 2


def _residual_unit(moments: Moments, unit: float) -> float:
    """Where to clip residuals from now on: a few of their standard deviations."""
    p, weight = len(moments.score), max(float(np.trace(moments.curvature)), 1e-300)
    square = max(float(np.trace(moments.spread)), 0.0) / weight
    error = 2 * moments.spread_noise * math.sqrt(p) / weight
    return min(1.0, max(RESIDUALS * unit * math.sqrt(square + error), _LEAST_UNIT))
