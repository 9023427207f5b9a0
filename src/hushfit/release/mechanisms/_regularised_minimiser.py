"""Output perturbation: the minimiser of an objective without noise, to be released with noise.
Proof: docs/proofs/permuted.md.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import AT_MOST_ONE, DataSource, RecordScaling
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release.mechanisms.perturbed_minimiser import PerturbedMinimiser
from hushfit.release.query import three_weight_arrays


@dataclass(frozen=True, eq=False)
class RegularisedMinimiser:
    r"""The weights that minimise mean loss + penalty + :math:`\frac\mu2 \|w\|^2`, minus those that
    minimise it without the loss.

    They are found to a certified accuracy, which is part of the sensitivity.

    Parameters
    ----------
    problem : Problem
        With a convex penalty and without a constraint.
    mu : float
        Above 0; on the intercept too, which a record could change without bound otherwise.
    tolerance : float, default=1e-8
        Largest norm of the gradient at the computed minimiser. If floating point cannot certify it,
        the smallest norm that can be.
    """

    problem: Problem
    mu: float
    tolerance: float = 1e-8

    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return three_weight_arrays(problem)

    def __post_init__(self) -> None:
        # refuse invalid settings here, before anything is charged
        self._certified  # noqa: B018

    @cached_property
    def _certified(self) -> PerturbedMinimiser:
        """The same minimiser, as the query that certifies it."""
        return PerturbedMinimiser(self.problem, self.mu, tolerance=self.tolerance)

    @property
    def size(self) -> int:
        return self._certified.size

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return self._certified(source, units) - self.origin().ravel()

    def weights(self, answer: Vector) -> Vector:
        """The weights of a released answer."""
        return self.origin() + answer.reshape(self.problem.shape)

    def origin(self) -> Vector:
        """The minimiser if every loss were constant; public."""
        return self.problem.prox(np.zeros(self.problem.shape), 1 / self.mu)

    def radius(self) -> float:
        return self._certified.radius()

    def sensitivity(self, relation: Relation) -> float:
        # Strong convexity: if gradients differ by D, minimisers differ by at most D / mu. Certified
        # ones add a ball on either side.
        return self._certified.sensitivity(relation)
