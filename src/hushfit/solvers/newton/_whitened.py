"""Gradient descent in the metric of a private second moment.

Tables of one-hot and bounded columns are badly conditioned: plain gradient descent spends its
budget on a few directions. A tenth of the budget pays for the second moment of the records. In the
metric of its inverse square root the loss is nearly isotropic, and sixty clipped steps suffice. All
settings follow from public numbers and from the release itself. The rule, and what each part of it
gains, is in docs/algorithms/auto.md.
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
from hushfit.solvers.newton._denoised import GradientTrajectory, denoised

_MOMENT, _GRADIENT = "second moment", "gradient"
# noise edge above which, of eigenvalues that sum to one, hardly any but that of the mean record is
# visible
_MOSTLY_NOISE_EDGE = 0.25
# factor on the estimated eigenvalue of the mean record then, so that noise shifts the threshold
# less
_MEAN_EIGENVALUE_FACTOR = 1 / 0.7**2
# share of the columns: a metric in which the mean squared length of a record is larger than that is
# no better conditioned than none
_MAX_DIMENSION_SHARE = 0.9
# noise levels of a penalised fit below which the clipping norm is at least one typical length of a
# record, and above one
_CLIPPED_NOISE, _UNCLIPPED_NOISE = 0.022, 0.005
# squared penalty per mean eigenvalue of the second moment below which it is weak
_WEAK_RIDGE = 0.0045
_REFERENCE_COLUMNS = 125  # the rule was measured on tables of about this size
# number of weights above which the norm of the noise, not only its standard deviation, limits the
# step size
_REFERENCE_WEIGHTS = 1000


@dataclass(frozen=True)
class Settings:
    """Clipping norm, momentum and step sizes, given the noise level ``nu``.

    ``nu`` is the noise of a whole run over the length of a whitened record. ``dimension_factor`` is
    above one for many weights: the norm of the noise is larger by this factor, so steps are shorter
    and momentum is switched on only at less noise.
    """

    clip: float
    momentum: float
    first_step: float
    largest_step: float
    # weight of the averaged iterate in the result; the rest is the last iterate
    averaged: float = 1.0

    @classmethod
    def for_noise(
        cls, nu: float, dimension: float, steps: int, dimension_factor: float = 1.0
    ) -> "Settings":
        """The rule: with less noise, a larger clipping norm, longer steps and more momentum."""
        nu = max(nu, 1e-12)
        clip_factor = float(np.clip(0.25 * (0.02 / nu) ** 0.75, 0.25, 4.0))
        momentum = float(np.clip(0.7 * (0.02 / (dimension_factor * nu) - 1), 0.0, 0.7))
        return cls(
            clip=clip_factor * math.sqrt(dimension),
            momentum=momentum,
            first_step=0.015 / (math.sqrt(steps) * nu**2) / clip_factor / dimension_factor,
            # Momentum extends a step up to 1 / (1 - momentum) times, but never beyond the longest
            # step without it.
            largest_step=min(4.0 / clip_factor, 16.0 * (1 - momentum)) / dimension_factor,
        )

    def for_smooth(self, nu: float) -> "Settings":
        """The same for smooth penalties: at large noise, the last iterate instead of the average.

        While noise keeps the iterates near the start, all gradients carry the same information. The
        last iterate weights them equally, while the average of the iterates has a fifth more
        variance. Shorter steps compensate for the last iterate being further out than the average.
        If the run converges, longer first steps make it converge sooner.
        """
        averaged = float(np.clip((0.06 - nu) / 0.02, 0.0, 1.0))
        return replace(
            self,
            first_step=(0.7 + 0.3 * averaged + 0.5 * _convergence_weight(nu)) * self.first_step,
            averaged=averaged,
        )

    def for_hinge(self, nu: float) -> "Settings":
        """The same for a hinge: shorter steps at large noise, as its first gradients are longer.

        They are twice as long as those of the logistic loss.
        """
        return replace(self, first_step=(0.7 + 0.15 * _convergence_weight(nu)) * self.first_step)

    def for_columns(self, columns: int) -> "Settings":
        """The same for many columns, with shorter first steps.

        The norm of the noise grows with the square root of their number, that of the signal hardly.
        """
        return replace(
            self, first_step=self.first_step * min(1.0, math.sqrt(_REFERENCE_COLUMNS / columns))
        )

    def with_clip_of_at_least(self, least: float) -> "Settings":
        """The same with a clipping norm of at least ``least`` and steps that are shorter by the
        same ratio, so that the noise moves the weights no further.
        """
        ratio = max(least / self.clip, 1.0)
        return replace(self.with_scaled_steps(1 / ratio), clip=ratio * self.clip)

    def with_scaled_steps(self, factor: float) -> "Settings":
        """The same with step sizes times ``factor``: several outputs share a record's slope."""
        return replace(
            self, first_step=factor * self.first_step, largest_step=factor * self.largest_step
        )

    def step(self, t: int, steps: int) -> float:
        return min(self.first_step, self.largest_step * (1 - t / steps))

    def weights(self, steps: int) -> Vector:
        """Weight of each iterate in the result; they sum to one."""
        rising = np.arange(1, steps + 1) / (steps * (steps + 1) / 2)
        end = np.arange(1, steps + 1) == steps
        return np.asarray(self.averaged * rising + (1 - self.averaged) * end)


def least_clip_factor(nu: float, ridge: float, columns: int) -> float:
    """Smallest clipping norm of a penalised fit, in units of the typical length of a record.

    A clipping norm that is active weakens the loss, but not the penalty: rows of a rare class lose
    most, and the fit is shrunk towards the frequent one. Without a penalty only the scale of the
    weights suffers, so the norm can be smaller; it is a fraction of the one here if the penalty is
    weak. ``nu`` is the noise level and ``ridge`` the weight of a squared penalty of that strength.
    """
    least = np.clip(_CLIPPED_NOISE / max(nu, 1e-12), 0.5, 1.0)
    least = max(least, min(_UNCLIPPED_NOISE / max(nu, 1e-12), 2.0))
    return float(least * penalty_strength(ridge, columns))


def penalty_strength(ridge: float, columns: int) -> float:
    """From 0 to 1: how much a squared penalty of that weight matters.

    The mean eigenvalue of the second moment is one over the number of columns.
    """
    return min(math.sqrt(ridge * columns / _WEAK_RIDGE), 1.0)


def _convergence_weight(nu: float) -> float:
    """Weight from 0 to 1: whether the run converges before noise dominates."""
    return float(np.clip((0.045 - nu) / 0.01, 0.0, 1.0))


@dataclass(frozen=True)
class WhitenedGradientDescent:
    """Clipped gradient descent in the metric of a private second moment.

    The default for smooth problems.

    Parameters
    ----------
    steps : int, default=60
    moment_share : float, default=0.1
        Share of the budget (of mu squared) for the second moment.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import WhitenedGradientDescent
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = WhitenedGradientDescent().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('second moment', 1), ('gradient', 60)]
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
        spectrum = _preconditioning_spectrum(release_spectrum(problem, door, _MOMENT))
        metric = Metric(spectrum.power(-0.5))
        settings = self._settings(problem, door, spectrum)
        shrink = _Shrinkage.of(problem, metric.A, spectrum.mean_weight)
        total_weight = problem.n_units * spectrum.mean_weight
        schedule = np.array([settings.step(t, self.steps) for t in range(self.steps)])
        weights = settings.weights(self.steps)
        u = velocity = result = np.zeros(problem.shape)
        points, gradients, noise = [], [], 0.0

        for t in range(self.steps):
            ahead = u + settings.momentum * velocity
            query = ClippedGradient(problem, ahead @ metric.A, settings.clip, metric)
            g = door.release(_GRADIENT, query).reshape(problem.shape) / total_weight
            noise = (
                door.noise_multiplier(_GRADIENT)
                * query.sensitivity(problem.relation)
                / total_weight
            )
            points.append(ahead.ravel())
            gradients.append(g.ravel())
            u, before = shrink(ahead - schedule[t] * g, schedule[t]), u
            velocity = u - before
            result = result + weights[t] * u
            if t < self.steps - 1:
                yield Iterate(u @ metric.A, weight=0.0)
        trajectory = GradientTrajectory(
            np.array(points), np.array(gradients), schedule, weights, settings.momentum, noise
        )
        yield Iterate(_denoised_columns(result, trajectory, problem) @ metric.A)

    def _settings(self, problem: Problem, door: Door, spectrum: Spectrum) -> Settings:
        multiplier, dimension = door.noise_multiplier(_GRADIENT), spectrum.effective_dimension
        total_weight = problem.n_units * spectrum.mean_weight
        per_step = multiplier * relation_factor(problem) / total_weight
        nu = dimension * per_step / math.sqrt(self.steps)
        dimension_factor = max(
            1.0, math.sqrt(problem.dimension * problem.outputs / _REFERENCE_WEIGHTS)
        )
        settings = (
            Settings.for_noise(nu, dimension, self.steps, dimension_factor)
            .for_smooth(dimension_factor * nu)
            .for_columns(problem.dimension)
        )
        if isinstance(problem.loss, HuberHinge):
            settings = settings.for_hinge(dimension_factor * nu)
        if problem.penalty.ridge:
            ridge = problem.penalty.ridge
            left = spectrum.penalised_dimension(ridge) / dimension
            least = least_clip_factor(left * nu, ridge, problem.dimension)
            settings = settings.with_clip_of_at_least(least * math.sqrt(dimension))
        return settings if problem.outputs == 1 else settings.with_scaled_steps(2.0)


def _preconditioning_spectrum(spectrum: Spectrum) -> Spectrum:
    """The spectrum to precondition with: less whitening where noise dominates the estimate."""
    compressed = spectrum.compressed_to_dimension(_MAX_DIMENSION_SHARE * len(spectrum.released))
    return (
        compressed.with_scaled_top_eigenvalue(_MEAN_EIGENVALUE_FACTOR)
        if spectrum.edge > _MOSTLY_NOISE_EDGE and spectrum.has_visible_mean_direction
        else compressed
    )


def _denoised_columns(u: Vector, trajectory: GradientTrajectory, problem: Problem) -> Vector:
    """The result with denoised columns; unchanged with a penalty, which sets its own shrinkage, and
    where single columns mean nothing.
    """
    if problem.penalty.ridge != 0 or problem.rotated:
        return u
    denoised_weights = u.copy()
    columns = problem.columns(u)
    denoised_weights[..., : problem.n_features] = denoised(
        columns.ravel(), trajectory.average_noise
    ).reshape(columns.shape)
    return denoised_weights


@dataclass(frozen=True, eq=False)
class _Shrinkage:
    """Proximal step of a squared penalty on the weights, in whitened coordinates.

    There the penalty is an ellipsoid. An explicit step would diverge along directions that
    whitening stretches; the implicit one never does.
    """

    vectors: Matrix
    curvatures: Vector

    @classmethod
    def of(cls, problem: Problem, A: Matrix, mean_weight: float) -> "_Shrinkage":
        """The penalty is divided by the mean weight of a unit, as the gradients are."""
        if not problem.penalty.ridge:
            return cls(np.eye(len(A)), np.zeros(len(A)))
        ridge = problem.penalty.ridge / mean_weight
        penalised = A[:, : problem.n_features]
        curvatures, vectors = np.linalg.eigh(penalised @ penalised.T)
        return cls(vectors, ridge * np.maximum(curvatures, 0.0))

    def __call__(self, u: Vector, step: float) -> Vector:
        return (u @ self.vectors / (1 + step * self.curvatures)) @ self.vectors.T
