"""From a noisy second moment to a metric in which the data look round. All of it is
post-processing of one release.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.privacy import by_relation
from hushfit.problem import Problem
from hushfit.release import Door, SecondMoment

_SMALLEST_EIGENVALUE = 1e-5
_FLOOR = 0.3  # of the noise edge: below it an eigenvalue says nothing
_BULK_ROUNDS = 20
_POWERS = np.linspace(1.0, 0.3, 71)  # of eigenvalues, to draw them together by
_CLEARLY = 1.1  # of the noise edge: what noise alone hardly ever reaches


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvectors of the released second moment, its eigenvalues (rising) as released and as
    believed.

    Noise spreads eigenvalues by up to ``edge``; ``bulk`` is what the ones it hides have on average.
    """

    vectors: Matrix
    released: Vector
    believed: Vector
    bulk: float
    edge: float

    @property
    def effective_dimension(self) -> float:
        """About the mean squared length of a whitened record."""
        return max(float((self.released / self.believed).sum()), 1.0)

    @property
    def shows_its_first(self) -> bool:
        """Whether the largest eigenvalue, as a rule that of the mean record, stands out from
        what noise makes.
        """
        return bool(self.released[-1] - self.bulk > _CLEARLY * self.edge)

    def drawn_together(self, most: float) -> "Spectrum":
        """Believed eigenvalues nearer to the largest one, just as far as brings the effective
        dimension down to ``most``.
        """
        largest = self.believed.max()

        def rounder(power: float) -> Spectrum:
            return replace(self, believed=largest * (self.believed / largest) ** power)

        return next(
            (
                spectrum
                for spectrum in map(rounder, _POWERS)
                if spectrum.effective_dimension <= most
            ),
            rounder(_POWERS[-1]),
        )

    def with_first(self, factor: float) -> "Spectrum":
        """The largest eigenvalue believed to be ``factor`` times as large."""
        believed = self.believed.copy()
        believed[-1] *= factor
        return replace(self, believed=believed)

    def power(self, exponent: float) -> Matrix:
        """The believed second moment raised to a power."""
        return (self.vectors * self.believed**exponent) @ self.vectors.T


def release_spectrum(
    problem: Problem, door: Door, name: str, floor: float = _SMALLEST_EIGENVALUE
) -> Spectrum:
    """Ask for the second moment once, and undo what the noise did to its spectrum as far as that
    can be known.

    Records are unit vectors, so the trace is known to be one. Noise spreads eigenvalues by up to
    ``edge``; those that stand out from the bulk are pulled back by it, the others are taken to be
    equal.
    """
    query = SecondMoment(problem)
    released, vectors = np.linalg.eigh(_with_trace_one(door.release(name, query), problem))
    noise = door.noise_multiplier(name) * query.sensitivity(problem.relation) / problem.n_rows
    edge = noise * math.sqrt(2 * problem.dimension)
    bulk = _bulk_mean(released, edge)
    believed = np.maximum(released - bulk - edge, 0) + max(_FLOOR * edge, bulk)
    return Spectrum(vectors, released, np.maximum(believed, floor), bulk, edge)


def margin_spread(w: Vector, problem: Problem, door: Door, name: str) -> float:
    """Root mean square of the margins of public weights, by the second moment on the curator's
    transcript.

    Where noise makes that negative, as if the weights pointed anywhere: eigenvalues are one over
    the dimension on average.
    """
    answer = next(released.answer for released in door.transcript if released.name == name)
    square = float(w @ _with_trace_one(answer, problem) @ w)
    return math.sqrt(max(square, float(w @ w) / problem.dimension))


def _with_trace_one(answer: Vector, problem: Problem) -> Matrix:
    d = problem.dimension
    M = SecondMoment(problem).matrix(answer) / problem.n_rows
    corrected: Matrix = M - (np.trace(M) - 1) / d * np.eye(d)
    return corrected


def _bulk_mean(eigenvalues: Vector, edge: float) -> float:
    """Mean of the eigenvalues that noise hides: what the spikes leave of the trace."""
    bulk = 0.0
    for _ in range(_BULK_ROUNDS):
        spikes = eigenvalues > bulk + edge
        bulk = max(1 - float(eigenvalues[spikes].sum()), 0.0) / max(int((~spikes).sum()), 1)
    return bulk


def relation_factor(problem: Problem) -> float:
    """Sensitivity of a sum of vectors of length one."""
    return by_relation(problem.relation, replace_one=2.0, add_remove=1.0)
