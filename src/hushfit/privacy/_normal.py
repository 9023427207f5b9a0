"""A cost sorted by what its parts can be accounted with. Proof: docs/proofs/composition.md."""

import math
from dataclasses import dataclass
from typing import Final, TypeAlias

from hushfit.privacy._approximate_cost import ApproximateCost
from hushfit.privacy._cost import (
    Cost,
    FixedSizeGaussianCost,
    GaussianCost,
    PoissonGaussianCost,
    PureCost,
    RdpCost,
    entries_of,
)
from hushfit.privacy._mixture_cost import MixtureGaussianCost, mixture_refused
from hushfit.privacy._objective_cost import ObjectiveCost
from hushfit.privacy._paired_cost import PairedCost
from hushfit.privacy._rdp import fixed_size_refused
from hushfit.privacy._relation import Relation, replaces_one

SampledCost: TypeAlias = PoissonGaussianCost | FixedSizeGaussianCost | MixtureGaussianCost

# Outside this range sampling changes nothing that matters, and floating point gives up: below, the batch counts as all
# rows; above, as published without noise. Both err on the safe side.
_LEAST_MU: Final = 1e-7
_MOST_MU: Final = 1e3


@dataclass(frozen=True)
class NormalForm:
    """The Gaussian releases as one mu, the others as they are; parts that reveal nothing are gone.

    ``lost`` is the probability that some approximate release keeps no promise; otherwise it counts as a pure one.
    """

    mu: float
    pure: tuple[PureCost, ...]
    sampled: tuple[SampledCost, ...]
    tabulated: tuple[RdpCost, ...]
    objective: tuple[ObjectiveCost, ...] = ()
    paired: tuple[PairedCost, ...] = ()
    lost: float = 0.0

    @property
    def is_gaussian(self) -> bool:
        return not (self.pure or self.sampled or self.paired or self.by_curve or self.lost)

    @property
    def by_curve(self) -> bool:
        """Whether some part has a Renyi curve but no dominating pair."""
        return bool(self.tabulated or self.objective)

    @property
    def reveals_all(self) -> bool:
        """Whether some part has no noise to speak of."""
        without = any(part.mu > _MOST_MU for part in self.sampled) or any(part.reveals_all for part in self.paired)
        return without or math.inf in (self.mu, *(part.epsilon for part in self.pure), *(part.mu for part in self.objective))


def normal_form(cost: Cost, relation: Relation | str) -> NormalForm:
    """Sort the parts of a cost; refuse those without a proof under the relation."""
    relation = Relation.parse(relation)
    squares: list[float] = []
    pure: list[PureCost] = []
    sampled: list[SampledCost] = []
    tabulated: list[RdpCost] = []
    objective: list[ObjectiveCost] = []
    paired: list[PairedCost] = []
    log_kept: list[float] = []
    for part in entries_of(cost):
        match part:
            case FixedSizeGaussianCost() if not replaces_one(relation):
                raise fixed_size_refused()
            case MixtureGaussianCost() if replaces_one(relation):
                raise mixture_refused()
            case GaussianCost():
                squares.append(part.count * part.mu * part.mu)
            case PoissonGaussianCost() | FixedSizeGaussianCost() | MixtureGaussianCost() if part.rate == 1 or part.mu < _LEAST_MU:
                # Every row is in every batch, or might as well be.
                squares.append(part.count * part.mu * part.mu)
            case PoissonGaussianCost() | FixedSizeGaussianCost() | MixtureGaussianCost():
                sampled.append(part)
            case PureCost() if part.epsilon > 0:
                pure.append(part)
            case RdpCost():
                tabulated.append(part)
            case ObjectiveCost():
                objective.append(part)
            case ApproximateCost():
                # A loss that is infinite with probability delta, independently of all others, is better kept apart.
                log_kept.append(part.count * math.log1p(-part.delta))
                pure += [PureCost(part.epsilon, part.count)] if part.epsilon > 0 else []
            case PairedCost():
                paired.append(part)
    mu = math.sqrt(math.fsum(squares))
    lost = -math.expm1(math.fsum(log_kept))
    return NormalForm(mu, tuple(pure), tuple(sampled), tuple(tabulated), tuple(objective), tuple(paired), lost)
