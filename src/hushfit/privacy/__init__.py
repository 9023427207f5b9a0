"""Relations, costs, accounting, guarantees and ledgers.

accounting/     From costs to (epsilon, delta)
costs/          Privacy costs of releases, as data
ledger/         The account of a data set, in memory and on disk
noise/          Exact integer noise, from the operating system's generator or, for tests, from a
                seed
Budget          An (epsilon, delta) target
Spent           Privacy loss that a ledger has recorded so far
gaussian_delta  Smallest delta of a Gaussian mechanism at a given epsilon
gaussian_mu     Largest mu that a Gaussian mechanism may have and still be (epsilon, delta)-private
GroupGuarantee  What a guarantee means for several rows, or several persons, together
Guarantee       The privacy guarantee of a released model
ReleaseRecord   One kind of release that a fit made
Relation        Adjacency relation: which two data sets the guarantee makes hard to distinguish
by_relation     Select the value for a relation from one value for each
replaces_one    Whether neighbours differ by exchanging one record for another
"""

from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._gaussian import gaussian_delta, gaussian_mu
from hushfit.privacy._guarantee import GroupGuarantee, Guarantee, ReleaseRecord
from hushfit.privacy._relation import Relation, by_relation, replaces_one
from hushfit.privacy.accounting import (
    FILTER_ORDERS,
    Filter,
    GaussianFilter,
    RdpFilter,
    RdpOdometer,
    calibrate,
    delta_of,
    dominating_mu,
    epsilon_of,
    filtered_epsilon,
    rdp_curve,
    rdp_delta,
    rdp_epsilon,
)
from hushfit.privacy.costs import (
    RENYI_ORDERS,
    AboveThresholdCost,
    ApproximateCost,
    BoundedRangeCost,
    ClassicObjectiveCost,
    ComposedCost,
    Cost,
    FixedSizeGaussianCost,
    GatedCost,
    GaussianCost,
    MixtureGaussianCost,
    ObjectiveCost,
    PermutedGaussianCost,
    PersonObjectiveCost,
    PoissonGaussianCost,
    PureCost,
    RdpCost,
    ThresholdedGaussianCost,
    compose,
    cost_from_dict,
    repeat,
)
from hushfit.privacy.ledger import Account, Ledger, Receipt, usable
from hushfit.privacy.noise import (
    OpenDPSampler,
    Sampler,
    SecureSampler,
    SeededSampler,
    discretisation_loss,
    sampler_for,
)

__all__ = [
    "FILTER_ORDERS",
    "RENYI_ORDERS",
    "AboveThresholdCost",
    "Account",
    "ApproximateCost",
    "BoundedRangeCost",
    "Budget",
    "ClassicObjectiveCost",
    "ComposedCost",
    "Cost",
    "Filter",
    "FixedSizeGaussianCost",
    "GatedCost",
    "GaussianCost",
    "GaussianFilter",
    "GroupGuarantee",
    "Guarantee",
    "Ledger",
    "MixtureGaussianCost",
    "ObjectiveCost",
    "OpenDPSampler",
    "PermutedGaussianCost",
    "PersonObjectiveCost",
    "PoissonGaussianCost",
    "PureCost",
    "RdpCost",
    "RdpFilter",
    "RdpOdometer",
    "Receipt",
    "Relation",
    "ReleaseRecord",
    "Sampler",
    "SecureSampler",
    "SeededSampler",
    "Spent",
    "ThresholdedGaussianCost",
    "by_relation",
    "calibrate",
    "compose",
    "cost_from_dict",
    "delta_of",
    "discretisation_loss",
    "dominating_mu",
    "epsilon_of",
    "filtered_epsilon",
    "gaussian_delta",
    "gaussian_mu",
    "rdp_curve",
    "rdp_delta",
    "rdp_epsilon",
    "repeat",
    "replaces_one",
    "sampler_for",
    "usable",
]
