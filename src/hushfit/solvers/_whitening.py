"""From a noisy second moment to a metric in which the data are nearly isotropic.

All of it is post-processing of one release.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.privacy import by_relation
from hushfit.problem import Problem
from hushfit.release import Door, RecordScaling, RecordSum, Released, SecondMoment

_MIN_EIGENVALUE = 1e-5
_FLOOR = 0.3  # times the noise edge: smaller eigenvalues are noise
_BULK_ROUNDS = 20
_POWERS = np.linspace(1.0, 0.3, 71)  # exponents that compress the eigenvalues
_VISIBILITY_FACTOR = 1.1  # times the noise edge: noise alone hardly ever reaches it
# Mean second derivative of the logistic loss along a fit; at most a quarter.
_TYPICAL_CURVATURE = 0.15
# Of margins whose second moment is estimated by taking hidden eigenvalues as equal, as a share.
_CORRECTION_ERROR = 0.5
# Mean square of the intercept's entry of a record, times the dimension, if all numbers are spread
# evenly over [0, 1].
_EVEN_SQUARE = 3.0
# Standard deviation of the squared distance of a record from the main direction, over its mean;
# seen on tables of numbers and of indicators.
_DISTANCE_SPREAD = 0.3
# Squared coefficient of variation of the intercept's entry.
_LEAST_VARIATION, _MOST_VARIATION = 4e-4, 0.06


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvectors of the released second moment, with released and estimated eigenvalues (rising).

    Noise spreads eigenvalues by up to ``edge``; ``residual_mean`` is the mean of those it hides.
    ``mean_weight`` is the weight of a unit's rows, on average: one, unless persons with few rows
    count less. Sums over n units are divided by n times this, and a penalty by this.
    """

    vectors: Matrix
    released: Vector
    estimated: Vector
    residual_mean: float
    edge: float
    mean_weight: float = 1.0

    @property
    def effective_dimension(self) -> float:
        """About the mean squared length of a whitened record."""
        return max(float((self.released / self.estimated).sum()), 1.0)

    def penalised_dimension(self, ridge: float) -> float:
        """The effective dimension of a fit with a squared penalty of that weight.

        The penalty suppresses noise in directions in which it outweighs the curvature of the loss.
        """
        penalised = self.estimated + ridge / (self.mean_weight * _TYPICAL_CURVATURE)
        return max(float((self.released / penalised).sum()), 1.0)

    @property
    def has_visible_mean_direction(self) -> bool:
        """Whether the largest eigenvalue, usually that of the mean record, is above the noise."""
        return bool(self.released[-1] - self.residual_mean > _VISIBILITY_FACTOR * self.edge)

    def compressed_to_dimension(self, most: float) -> "Spectrum":
        """Estimated eigenvalues compressed towards the largest one.

        Just as far as brings the effective dimension down to ``most``.
        """
        largest = self.estimated.max()

        def compressed(power: float) -> Spectrum:
            return replace(self, estimated=largest * (self.estimated / largest) ** power)

        return next(
            (
                spectrum
                for spectrum in map(compressed, _POWERS)
                if spectrum.effective_dimension <= most
            ),
            compressed(_POWERS[-1]),
        )

    def with_scaled_top_eigenvalue(self, factor: float) -> "Spectrum":
        """The same with the largest estimated eigenvalue times ``factor``."""
        estimated = self.estimated.copy()
        estimated[-1] *= factor
        return replace(self, estimated=estimated)

    def power(self, exponent: float) -> Matrix:
        """The estimated second moment raised to a power."""
        return (self.vectors * self.estimated**exponent) @ self.vectors.T


def release_spectrum(
    problem: Problem, door: Door, name: str, floor: float = _MIN_EIGENVALUE
) -> Spectrum:
    """Release the second moment once and correct its spectrum for the noise.

    Noise spreads eigenvalues by up to ``edge``: those above ``residual_mean`` are reduced by it,
    the others are taken to be equal.
    """
    query = SecondMoment(problem)
    moment = _MeanMoment.of(door.release(name, query), problem)
    noise = moment.noise(door.noise_multiplier(name))
    return spectrum_of(moment.matrix, noise, moment.weight, floor * moment.trace, moment.trace)


def spectrum_of(
    mean: Matrix,
    noise: float,
    mean_weight: float = 1.0,
    floor: float = _MIN_EIGENVALUE,
    trace: float = 1.0,
) -> Spectrum:
    """The spectrum of a released mean of that trace, corrected for noise of that standard deviation
    on its diagonal.
    """
    released, vectors = np.linalg.eigh(mean)
    edge = noise * math.sqrt(2 * len(mean))
    residual_mean = _bulk_mean(released, edge, trace)
    estimated = np.maximum(released - residual_mean - edge, 0) + max(_FLOOR * edge, residual_mean)
    estimated = np.maximum(estimated, floor)
    return Spectrum(vectors, released, estimated, residual_mean, edge, mean_weight)


def margin_spread(w: Vector, problem: Problem, door: Door, name: str) -> tuple[float, float]:
    """Root mean square of the margins of public weights, and the mean weight of a unit, from a
    released second moment.

    The release is on the curator's transcript. Where noise makes the square negative or small, it
    is taken to be as large as the noise in it, but no larger than for weights of a random
    direction: eigenvalues are the trace over the dimension on average.
    """
    answer = next(released.answer for released in door.transcript if released.name == name)
    moment = _MeanMoment.of(answer, problem)
    square, noise = float(w @ moment.matrix @ w), moment.noise(door.noise_multiplier(name))
    least = float(w @ w) * min(moment.trace / problem.dimension, noise)
    return math.sqrt(max(square, least)), moment.weight


@dataclass(frozen=True, eq=False)
class MarginMoments:
    """Mean and second moment of the margins of several outputs over the records, as far as earlier
    releases show them; and ``level``, weights whose margin is about one for every record, zero
    without an intercept.
    """

    mean: Vector
    second: Matrix
    level: Vector

    @property
    def spread(self) -> float:
        """Root of the mean squared length of the margins."""
        return math.sqrt(max(float(np.trace(self.second)), 1e-24))

    @property
    def root(self) -> Matrix:
        """A root of their covariance."""
        values, vectors = np.linalg.eigh(self.second - np.outer(self.mean, self.mean))
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def margin_moments(w: Matrix, problem: Problem, door: Door) -> MarginMoments:
    """Moments of the margins of public weights, one row of them per output. Without a release that
    shows the intercept's entry, as without an intercept, it is taken to be 0.
    """
    for released in door.transcript:
        if isinstance(released.query, SecondMoment):
            return _from_second_moment(w, problem, door, released)
        if isinstance(released.query, RecordSum):
            return _from_mean_record(w, problem, released.answer / problem.n_units)
    nothing = np.zeros(problem.dimension)
    return replace(_from_mean_record(w, problem, nothing), level=nothing)


def _from_second_moment(
    w: Matrix, problem: Problem, door: Door, released: Released
) -> MarginMoments:
    """Eigenvalues that noise hides are taken to be equal; where noise is small, margins have the
    second moment that was released.
    """
    moment = _MeanMoment.of(released.answer, problem)
    mean, noise = moment.matrix, moment.noise(door.noise_multiplier(released.name))
    spectrum = spectrum_of(mean, noise, moment.weight, trace=moment.trace)
    hidden = spectrum.released <= spectrum.residual_mean + spectrum.edge
    values = np.where(hidden, spectrum.residual_mean, np.minimum(spectrum.released, 1.0))
    corrected = (spectrum.vectors * values) @ spectrum.vectors.T
    level = _level(problem, spectrum.vectors, values, bool(hidden[-1]))
    by_correction, as_released = w @ corrected @ w.T, w @ mean @ w.T
    error = _CORRECTION_ERROR * float(np.trace(by_correction))
    trust = error**2 / max(error**2 + (noise * float(np.linalg.norm(w @ w.T))) ** 2, 1e-300)
    # A record times its margin of about one is about the record.
    mean_margins = w @ corrected @ level
    return MarginMoments(mean_margins, by_correction + trust * (as_released - by_correction), level)


def _level(problem: Problem, vectors: Matrix, values: Vector, hidden: bool) -> Vector:
    """Weights whose margin is about one for every record, from the spectrum of a second moment;
    zero without an intercept.

    The intercept's entry of a record of length one depends on how long its row was. The entry along
    the main direction, near which the mean record is, depends on how far the record is from it. The
    two are mixed, the one that varies less having the larger part.
    """
    level = np.zeros(problem.dimension)
    if not problem.fit_intercept:
        return level
    if problem.scaling is RecordScaling.PUBLIC_LENGTH:  # the same entry in all but long records
        level[-1] = problem.length
        return level
    main, largest = vectors[:, -1] * np.sign(vectors[-1, -1]), float(values[-1])
    square = float(values @ vectors[-1] ** 2)  # mean square of the intercept's entry
    level[-1] = 1 / math.sqrt(max(square, (_EVEN_SQUARE if hidden else 1) / len(main)))
    if hidden:
        return level
    # Squared coefficients of variation: of both entries, along the main direction, and of the
    # intercept's. What is too much for the latter tells that the mean record is not near there.
    both = square / max(largest * float(main[-1]) ** 2, 1e-12) - 1
    along = (_DISTANCE_SPREAD * (1 - largest) / (2 * largest)) ** 2
    own = min(max(both - along, _LEAST_VARIATION), _MOST_VARIATION)
    along = max(along, both - own)
    part = own / (own + along)
    return np.asarray((1 - part) * level + part * main / math.sqrt(largest))


def _from_mean_record(w: Matrix, problem: Problem, mean: Vector) -> MarginMoments:
    """Records are supposed to differ from their mean by as much in every direction."""
    length = min(float(mean @ mean), 1.0)
    margins, least = w @ mean, 1 / math.sqrt(problem.dimension)
    apart = (1 - length) / problem.dimension * (w @ w.T)
    level = np.zeros(problem.dimension)
    level[-1] = problem.fit_intercept / min(max(float(mean[-1]), least), 1.0)
    return MarginMoments(margins, np.outer(margins, margins) + apart, level)


@dataclass(frozen=True, eq=False)
class _MeanMoment:
    """The mean outer product of the records as it was released, with the trace that it should have,
    and the mean weight of a unit.
    """

    problem: Problem
    matrix: Matrix
    weight: float = 1.0
    trace: float = 1.0

    @classmethod
    def of(cls, answer: Vector, problem: Problem) -> "_MeanMoment":
        """From a released sum.

        Records of length one have a mean of trace one. Where the weights of a person's rows need
        not add up to one, their sum is not public; the trace of the released sum estimates it.
        Every person has a row, so it is not below one over the number of rows at which a person
        counts as one. Where records may be shorter, their mean squared length is not public
        either, and the trace estimates it; weights then count as one, for lack of a second number.
        """
        total, unit = SecondMoment(problem).matrix(answer), problem.privacy_unit
        released = float(np.trace(total)) / problem.n_units
        weight = trace = 1.0
        if problem.scaling is RecordScaling.PUBLIC_LENGTH:
            trace = min(max(released, problem.length**-2), 1.0)  # no shorter than the intercept
        elif not unit.total_weight_is_public:
            weight = min(max(released, 1 / unit.full_weight), 1.0)
        M = total / (problem.n_units * weight)
        corrected: Matrix = M - (np.trace(M) - trace) / len(M) * np.eye(len(M))
        return cls(problem, corrected, weight, trace)

    def noise(self, multiplier: float) -> float:
        """Standard deviation of the noise on a diagonal entry."""
        deviation = multiplier * SecondMoment(self.problem).sensitivity(self.problem.relation)
        return deviation / (self.problem.n_units * self.weight)


def _bulk_mean(eigenvalues: Vector, edge: float, trace: float) -> float:
    """Mean of the eigenvalues that noise hides: the trace minus the spikes, over their number."""
    residual_mean = 0.0
    for _ in range(_BULK_ROUNDS):
        spikes = eigenvalues > residual_mean + edge
        residual_mean = max(trace - float(eigenvalues[spikes].sum()), 0.0) / max(
            int((~spikes).sum()), 1
        )
    return residual_mean


def relation_factor(problem: Problem) -> float:
    """Sensitivity of a sum of vectors of length one."""
    return by_relation(problem.relation, replace_one=2.0, add_remove=1.0)
