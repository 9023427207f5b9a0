"""What a release takes from a budget, as data: one class for each kind of release.

AboveThresholdCost       One above-threshold gate over at most so many queries, each free to depend
                         on what was released before
GATE_NOISES              Kinds of noise that a gate may have
ApproximateCost          A release that is (epsilon, delta)-private
BoundedRangeCost         A choice whose privacy losses, over all outcomes, lie within an interval
                         of length ``2 / noise_multiplier``
ClassicObjectiveCost     The exact minimiser of an objective with Gaussian noise inside, for models
                         with one output, by the classic theorem
ComposedCost             Several costs together, adaptively
Cost                     Any cost: of one release, or composed
FixedSizeGaussianCost    Gaussian noise on a sum over a batch of fixed size, drawn without
                         replacement
GaussianCost             Gaussian noise on a statistic of all rows
PoissonGaussianCost      Gaussian noise on a sum over a batch that each row joins independently
PureCost                 Anything that is epsilon-private with delta 0, such as Laplace noise or an
                         above-threshold gate
RENYI_ORDERS             Orders at which Renyi curves are computed
RdpCost                  A release known by an upper bound on its Renyi divergences, in both
                         directions
compose                  The cost of several releases, each free to depend on the answers before it
cost_from_dict           Read back what `to_dict` wrote
entries_of               What was composed, as it is
parts_of                 The costs with a Renyi curve of their own that a cost is made of, or is no
                         worse than
repeat                   The cost of the same releases made several times over
GatedCost                Gaussian noise on a sum over a Poisson batch, and above-threshold gates on
                         the same batch
MixtureGaussianCost      Gaussian noise on an answer that every record moves, and a sampled record
                         moves further
mixture_refused          Why the mixture has no replace-one statement here
ObjectiveCost            The exact minimiser of an objective to which Gaussian noise was added as a
                         linear term
PermutedGaussianCost     Gaussian noise on the end of a run over batches of a fresh, secret,
                         uniform permutation
BY_NAME                  Kinds are composed in this order
Directions               The pair for removing a record and for adding it
Pair                     One dominating pair: its profile, the range of its loss, and draws of the
                         loss with their weights
ReleaseCost              ``count`` releases of one kind
ThresholdedGaussianCost  Gaussian noise on counts of which only the large ones are named
"""

from hushfit.privacy.costs._above_threshold_cost import GATE_NOISES, AboveThresholdCost
from hushfit.privacy.costs._approximate_cost import ApproximateCost
from hushfit.privacy.costs._bounded_range_cost import BoundedRangeCost
from hushfit.privacy.costs._classic_objective_cost import ClassicObjectiveCost
from hushfit.privacy.costs._cost import (
    RENYI_ORDERS,
    ComposedCost,
    FixedSizeGaussianCost,
    GaussianCost,
    PoissonGaussianCost,
    PureCost,
    RdpCost,
    compose,
    cost_from_dict,
    entries_of,
    parts_of,
    repeat,
)
from hushfit.privacy.costs._gated_cost import GatedCost
from hushfit.privacy.costs._mixture_cost import MixtureGaussianCost, mixture_refused
from hushfit.privacy.costs._objective_cost import ObjectiveCost
from hushfit.privacy.costs._permuted_cost import PermutedGaussianCost
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
    "PoissonGaussianCost",
    "PureCost",
    "RdpCost",
    "ReleaseCost",
    "ThresholdedGaussianCost",
    "compose",
    "cost_from_dict",
    "entries_of",
    "mixture_refused",
    "parts_of",
    "repeat",
]
