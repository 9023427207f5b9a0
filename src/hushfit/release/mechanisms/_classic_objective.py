"""Objective perturbation with the cost of the classic theorem. Proof: docs/proofs/kifer.md."""

import math
from dataclasses import dataclass

from hushfit._typing import IntVector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Cost, GaussianCost, Sampler, compose
from hushfit.privacy.costs import ClassicObjectiveCost
from hushfit.release.mechanisms.perturbed_minimiser import (
    PersonCurvature,
    PerturbedMinimiser,
    _check_share,
    _InsideNoise,
)

# The classic theorem uses about twice the noise that is needed; noise on the output is calibrated
# to what is needed.
_NOISE_EXCESS = 2.0


@dataclass(frozen=True)
class ClassicInside(_InsideNoise):
    """Gaussian noise in the objective, with the cost given by the theorem of Kifer, Smith and
    Thakurta, and a little on the minimiser.

    Parameters
    ----------
    kappa : float
        Largest ``PerturbedMinimiser.kappa`` of the queries; epsilon must be at least twice as
        large.
    rank : int, default=1
        The theorem is for records with Hessians of rank one.
    output_share : float, default=0.01
        Share of the budget (of the squared Gaussian mu) for the noise on the minimiser.
    person : PersonCurvature or None
        For persons with several rows; the theorem costs the same for them.
    """

    kappa: float
    rank: int = 1
    output_share: float = 0.01
    person: PersonCurvature | None = None

    def __post_init__(self) -> None:
        _check_share(self.output_share)
        if self.rank != 1:
            raise InvalidArgument(
                f"The classic theorem is for Hessians of rank one, not {self.rank}. Use "
                "GaussianInside."
            )

    @classmethod
    def of(cls, query: PerturbedMinimiser, output_share: float) -> "ClassicInside":
        """The mechanism for a query, and for all with the same curvature."""
        return cls(query.kappa, query.rank, output_share, query.person)

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return _NOISE_EXCESS * math.sqrt(count / (1 - self.output_share)) / strength

    def output_multiplier(self, noise_multiplier: float) -> float:
        return (
            noise_multiplier
            / _NOISE_EXCESS
            * math.sqrt((1 - self.output_share) / self.output_share)
        )

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        inside = ClassicObjectiveCost(noise_multiplier, self.kappa, count=count)
        return compose([inside, GaussianCost(self.output_multiplier(noise_multiplier), count)])

    def stretch(self, size: int) -> float:
        return 1.0

    def draw(self, sampler: Sampler, log2_deviation: int, size: int) -> IntVector:
        return sampler.gaussian(2 * log2_deviation, size)
