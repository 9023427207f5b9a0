"""Gradient descent in the metric of a private second moment.

Tables of one-hot and ranged columns are badly conditioned: plain gradient descent spends its budget
on a few directions. A tenth of the budget buys the second moment of the records; in the metric of
its inverse root the loss is nearly round and sixty clipped steps suffice. All settings follow from
public numbers and from the release itself. What the rule is, and what each part of it was measured
to bring, is in docs/algorithms/auto.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.losses import HuberHinge
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, Metric, Plan, Planned, SecondMoment
from hushfit.solvers._whitening import Spectrum, relation_factor, release_spectrum
from hushfit.solvers.base import Iterate
from hushfit.solvers.newton._denoised import Walk, denoised

_MOMENT, _GRADIENT = "second moment", "gradient"
# an edge of noise beyond which, of eigenvalues that add up to one, hardly any but the mean record's
# can be seen
_DULL = 0.25
_LIGHTER_MEAN = (
    1 / 0.7**2
)  # how much larger its eigenvalue is then taken to be, so that noise shifts the threshold less
# of the columns: a metric in which records have a larger mean square than that is no rounder than
# none
_MOST_DIMENSION = 0.9
_USUAL_COLUMNS = 125  # the rule was measured on tables of about so many
# as many weights as noise may spread over before its length, not only its size, limits the walk
_USUAL_WEIGHTS = 1000


@dataclass(frozen=True)
class Settings:
    """How to walk, given ``nu``: the noise of a whole run against the size of a whitened record.

    ``crowd``, for many weights, is how much longer the noise is than usual: the walk is shorter and
    waits for momentum.
    """

    clip: float
    momentum: float
    first_step: float
    largest_step: float
    averaged: float = (
        1.0  # share of the result that is an average over the walk; the rest is its end
    )

    @classmethod
    def for_noise(cls, nu: float, dimension: float, steps: int, crowd: float = 1.0) -> "Settings":
        """The rule: with less noise clip later, step further, and gather momentum."""
        nu = max(nu, 1e-12)
        looseness = float(np.clip(0.25 * (0.02 / nu) ** 0.75, 0.25, 4.0))
        momentum = float(np.clip(0.7 * (0.02 / (crowd * nu) - 1), 0.0, 0.7))
        return cls(
            clip=looseness * math.sqrt(dimension),
            momentum=momentum,
            first_step=0.015 / (math.sqrt(steps) * nu**2) / looseness / crowd,
            # Momentum carries a step on, up to 1 / (1 - momentum) times as far, but never beyond
            # the longest step without it.
            largest_step=min(4.0 / looseness, 16.0 * (1 - momentum)) / crowd,
        )

    def for_smooth(self, nu: float) -> "Settings":
        """The same for penalties without corners: where noise is large, the end of the walk in
        place of its average.

        Noise keeps the walk near its start, where all gradients say the same. Its end weighs them
        equally, while an average of positions has a fifth more variance. Shorter steps make up for
        the end being further out than the average. Where the walk arrives, longer first steps get
        it there sooner.
        """
        averaged = float(np.clip((0.06 - nu) / 0.02, 0.0, 1.0))
        return replace(
            self,
            first_step=(0.7 + 0.3 * averaged + 0.5 * _arriving(nu)) * self.first_step,
            averaged=averaged,
        )

    def for_hinge(self, nu: float) -> "Settings":
        """The same for a hinge, whose first gradients are twice as long: shorter steps where
        noise limits them.
        """
        return replace(self, first_step=(0.7 + 0.15 * _arriving(nu)) * self.first_step)

    def for_columns(self, columns: int) -> "Settings":
        """With many columns, shorter steps while noise limits them: its length grows with their
        root, the signal's hardly.
        """
        return replace(
            self, first_step=self.first_step * min(1.0, math.sqrt(_USUAL_COLUMNS / columns))
        )

    def stretched(self, factor: float) -> "Settings":
        """The same with longer steps: several outputs share a record's slope, so each sees less
        of it.
        """
        return replace(
            self, first_step=factor * self.first_step, largest_step=factor * self.largest_step
        )

    def step(self, t: int, steps: int) -> float:
        return min(self.first_step, self.largest_step * (1 - t / steps))

    def weights(self, steps: int) -> Vector:
        """What each position counts in the result; they add up to one."""
        rising = np.arange(1, steps + 1) / (steps * (steps + 1) / 2)
        end = np.arange(1, steps + 1) == steps
        return np.asarray(self.averaged * rising + (1 - self.averaged) * end)


def _arriving(nu: float) -> float:
    """From 0 to 1: whether a walk gets to where it is going before noise stops it."""
    return float(np.clip((0.045 - nu) / 0.01, 0.0, 1.0))


@dataclass(frozen=True)
class WhitenedGradientDescent:
    """Clipped gradient steps in the metric of a private second moment; the default for smooth
    problems.

    Parameters
    ----------
    steps : int, default=60
    moment_share : float, default=0.1
        Part of the budget (of mu squared) for the second moment.
    """

    steps: int = 60
    moment_share: float = 0.1

    takes_constraint = False

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 < self.moment_share < 1:
            raise InvalidArgument(f"{self} needs steps >= 1 and a moment_share in (0, 1).")

    def plan(self, problem: Problem) -> Plan:
        if problem.penalty.ridge is None:
            raise InvalidArgument(
                "WhitenedGradientDescent takes a squared penalty or none, not "
                f"{problem.penalty!r}. Use solver='prox-newton'."
            )
        return Plan(
            (
                Planned(_MOMENT, SecondMoment, 1, self.moment_share),
                Planned(_GRADIENT, ClippedGradient, self.steps, 1 - self.moment_share),
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        spectrum = _to_walk_by(release_spectrum(problem, door, _MOMENT))
        metric = Metric(spectrum.power(-0.5))
        settings = self._settings(problem, door, spectrum.effective_dimension)
        shrink = _Shrinkage.of(problem, metric.A)
        schedule = np.array([settings.step(t, self.steps) for t in range(self.steps)])
        weights = settings.weights(self.steps)
        u = velocity = result = np.zeros(problem.shape)
        points, gradients, noise = [], [], 0.0

        for t in range(self.steps):
            ahead = u + settings.momentum * velocity
            query = ClippedGradient(problem, ahead @ metric.A, settings.clip, metric)
            g = door.release(_GRADIENT, query).reshape(problem.shape) / problem.n_rows
            noise = (
                door.noise_multiplier(_GRADIENT)
                * query.sensitivity(problem.relation)
                / problem.n_rows
            )
            points.append(ahead.ravel())
            gradients.append(g.ravel())
            u, before = shrink(ahead - schedule[t] * g, schedule[t]), u
            velocity = u - before
            result = result + weights[t] * u
            if t < self.steps - 1:
                yield Iterate(u @ metric.A, weight=0.0)
        walk = Walk(
            np.array(points), np.array(gradients), schedule, weights, settings.momentum, noise
        )
        yield Iterate(_cleared(result, walk, problem) @ metric.A)

    def _settings(self, problem: Problem, door: Door, dimension: float) -> Settings:
        per_step = door.noise_multiplier(_GRADIENT) * relation_factor(problem) / problem.n_rows
        nu = dimension * per_step / math.sqrt(self.steps)
        crowd = max(1.0, math.sqrt(problem.dimension * problem.outputs / _USUAL_WEIGHTS))
        settings = (
            Settings.for_noise(nu, dimension, self.steps, crowd)
            .for_smooth(crowd * nu)
            .for_columns(problem.dimension)
        )
        if isinstance(problem.loss, HuberHinge):
            settings = settings.for_hinge(crowd * nu)
        return settings if problem.outputs == 1 else settings.stretched(2.0)


def _to_walk_by(spectrum: Spectrum) -> Spectrum:
    """Less than the spectrum says, where noise has had too much of a say in it."""
    rounder = spectrum.drawn_together(_MOST_DIMENSION * len(spectrum.released))
    return (
        rounder.with_first(_LIGHTER_MEAN)
        if spectrum.edge > _DULL and spectrum.shows_its_first
        else rounder
    )


def _cleared(u: Vector, walk: Walk, problem: Problem) -> Vector:
    """The result with the noise in its columns put down. With a penalty, what shrinks the
    weights was asked for.
    """
    if problem.penalty.ridge != 0:
        return u
    cleared = u.copy()
    columns = problem.columns(u)
    cleared[..., : problem.n_features] = denoised(columns.ravel(), walk.average_noise).reshape(
        columns.shape
    )
    return cleared


@dataclass(frozen=True, eq=False)
class _Shrinkage:
    """Proximal step of a squared penalty on the weights, seen from whitened space, where it is an
    ellipsoid.

    An explicit step would blow up along directions that whitening stretches; the implicit one never
    does.
    """

    vectors: Matrix
    curvatures: Vector

    @classmethod
    def of(cls, problem: Problem, A: Matrix) -> "_Shrinkage":
        ridge = problem.penalty.ridge
        if not ridge:
            return cls(np.eye(len(A)), np.zeros(len(A)))
        penalised = A[:, : problem.n_features]
        curvatures, vectors = np.linalg.eigh(penalised @ penalised.T)
        return cls(vectors, ridge * np.maximum(curvatures, 0.0))

    def __call__(self, u: Vector, step: float) -> Vector:
        return (u @ self.vectors / (1 + step * self.curvatures)) @ self.vectors.T
