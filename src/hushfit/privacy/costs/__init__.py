"""Privacy costs of releases, as data: one class for each kind of release.

AboveThresholdCost       One above-threshold gate with a bounded number of adaptively chosen queries
GATE_NOISES              Kinds of noise that a gate may have
ApproximateCost          An (epsilon, delta)-private release
BoundedRangeCost         A selection whose privacy losses lie within an interval of length
                         ``2 / noise_multiplier``
ClassicObjectiveCost     The exact minimiser of a perturbed objective, one output, by the classic
                         theorem
ComposedCost             Adaptive composition of several costs
Cost                     Cost of one or several releases
FixedSizeGaussianCost    Gaussian noise on a sum over a fixed-size batch without replacement
GaussianCost             Gaussian noise on a statistic of all rows
PoissonGaussianCost      Gaussian noise on a sum over a Poisson batch
PureCost                 Any epsilon-private release (delta 0), such as Laplace noise or an
                         above-threshold gate
RENYI_ORDERS             Orders at which Renyi curves are tabulated
RdpCost                  A release described by upper bounds on its Renyi divergences
compose                  Adaptive composition: the cost of several releases
cost_from_dict           Read what `to_dict` wrote
entries_of               Releases that were composed, unchanged
parts_of                 Releases with their own Renyi curve that make up a cost, or bound it
require_proof            Refuse a cost without a proof where labels alone are private
repeat                   Cost of the same releases repeated several times
GatedCost                Gaussian noise on a sum over a Poisson batch, and above-threshold gates on
                         the same batch
MixtureGaussianCost      Gaussian noise on an answer that a sampled record changes further
mixture_refused          Error for the mixture under replace-one, with the reason
ObjectiveCost            The exact minimiser of an objective to which Gaussian noise was added as a
                         linear term
PersonObjectiveCost      As `ObjectiveCost` where a unit is a person with several rows
log_determinant          Bound on log det(I + E) for a matrix of given trace and rank
PermutedGaussianCost     Gaussian noise on the last iterate of a run over permuted batches
BY_NAME                  Position of kinds that are composed in order of their names
Directions               Dominating pairs for removing and for adding a record
Pair                     A dominating pair: its profile, the range of its loss, and weighted samples
                         of the loss
ReleaseCost              ``count`` releases of one kind
ThresholdedGaussianCost  Gaussian noise on counts; only items with a large noisy count are named
"""

from hushfit.privacy.costs._above_threshold_cost import GATE_NOISES, AboveThresholdCost
from hushfit.privacy.costs._approximate_cost import ApproximateCost
from hushfit.privacy.costs._bounded_range_cost import BoundedRangeCost
from hushfit.privacy.costs._classic_objective_cost import ClassicObjectiveCost
from hushfit.privacy.costs._composition import (
    ComposedCost,
    compose,
    cost_from_dict,
    entries_of,
    parts_of,
    repeat,
    require_proof,
)
from hushfit.privacy.costs._gated_cost import GatedCost
from hushfit.privacy.costs._gaussian_cost import (
    FixedSizeGaussianCost,
    GaussianCost,
    PoissonGaussianCost,
)
from hushfit.privacy.costs._mixture_cost import MixtureGaussianCost, mixture_refused
from hushfit.privacy.costs._objective_cost import (
    ObjectiveCost,
    PersonObjectiveCost,
    log_determinant,
)
from hushfit.privacy.costs._permuted_cost import PermutedGaussianCost
from hushfit.privacy.costs._pure_cost import PureCost
from hushfit.privacy.costs._rdp_cost import RENYI_ORDERS, RdpCost
from hushfit.privacy.costs._release_cost import BY_NAME, Cost, Directions, Pair, ReleaseCost
from hushfit.privacy.costs._threshold_cost import ThresholdedGaussianCost

__all__ = [
    "BY_NAME",
    "GATE_NOISES",
    "RENYI_ORDERS",
    "AboveThresholdCost",
    "ApproximateCost",
    "BoundedRangeCost",
    "ClassicObjectiveCost",
    "ComposedCost",
    "Cost",
    "Directions",
    "FixedSizeGaussianCost",
    "GatedCost",
    "GaussianCost",
    "MixtureGaussianCost",
    "ObjectiveCost",
    "Pair",
    "PermutedGaussianCost",
    "PersonObjectiveCost",
    "PoissonGaussianCost",
    "PureCost",
    "RdpCost",
    "ReleaseCost",
    "ThresholdedGaussianCost",
    "compose",
    "cost_from_dict",
    "entries_of",
    "log_determinant",
    "mixture_refused",
    "parts_of",
    "repeat",
    "require_proof",
]
