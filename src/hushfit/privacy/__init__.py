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
LABEL_RELATIONS    Relations under which labels are private and features are public
RECORD_RELATIONS   Relations under which whole records are private
by_relation        Select the value for a relation between records from one value for each
exchanges          Whether neighbours differ by an exchange, of a record or of its labels
labels_only        Whether labels alone are private, and features public
no_proof_for_labels  Error for something whose proof is about whole records
refuse_other_unit  Refuse ``"label"`` with persons as units, and ``"person-label"`` with rows
replaces_one       Whether neighbours differ by exchanging one record for another
require_labels     Refuse a relation under which records are private
require_records    Refuse a relation under which only labels are private
"""

from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._gaussian import gaussian_delta, gaussian_mu
from hushfit.privacy._guarantee import GroupGuarantee, Guarantee, ReleaseRecord
from hushfit.privacy._relation import (
    LABEL_RELATIONS,
    RECORD_RELATIONS,
    Relation,
    by_relation,
    exchanges,
    labels_only,
    no_proof_for_labels,
    refuse_other_unit,
    replaces_one,
    require_labels,
    require_records,
)
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
    "LABEL_RELATIONS",
    "RECORD_RELATIONS",
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
    "exchanges",
    "filtered_epsilon",
    "gaussian_delta",
    "gaussian_mu",
    "labels_only",
    "no_proof_for_labels",
    "rdp_curve",
    "rdp_delta",
    "rdp_epsilon",
    "refuse_other_unit",
    "repeat",
    "replaces_one",
    "require_labels",
    "require_records",
    "sampler_for",
    "usable",
]
