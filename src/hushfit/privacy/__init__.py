"""Relations, costs, accounting, guarantees and ledgers."""

from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._calibrate import calibrate
from hushfit.privacy._cost import (
    RENYI_ORDERS,
    ComposedCost,
    Cost,
    FixedSizeGaussianCost,
    GaussianCost,
    PoissonGaussianCost,
    PureCost,
    RdpCost,
    compose,
    cost_from_dict,
    repeat,
)
from hushfit.privacy._gaussian import gaussian_delta, gaussian_mu
from hushfit.privacy._guarantee import Guarantee, ReleaseRecord
from hushfit.privacy._interpret import delta_of, epsilon_of
from hushfit.privacy._ledger import Account, Ledger, Receipt
from hushfit.privacy._objective_cost import ObjectiveCost
from hushfit.privacy._rdp import rdp_curve, rdp_delta, rdp_epsilon
from hushfit.privacy._relation import Relation
from hushfit.privacy._reserve import usable
from hushfit.privacy._sampler import (
    OpenDPSampler,
    Sampler,
    SecureSampler,
    SeededSampler,
    discretisation_loss,
    sampler_for,
)

__all__ = [
    "RENYI_ORDERS",
    "Account",
    "Budget",
    "ComposedCost",
    "Cost",
    "FixedSizeGaussianCost",
    "GaussianCost",
    "Guarantee",
    "Ledger",
    "ObjectiveCost",
    "OpenDPSampler",
    "PoissonGaussianCost",
    "PureCost",
    "RdpCost",
    "Receipt",
    "Relation",
    "ReleaseRecord",
    "Sampler",
    "SecureSampler",
    "SeededSampler",
    "Spent",
    "calibrate",
    "compose",
    "cost_from_dict",
    "delta_of",
    "discretisation_loss",
    "epsilon_of",
    "gaussian_delta",
    "gaussian_mu",
    "rdp_curve",
    "rdp_delta",
    "rdp_epsilon",
    "repeat",
    "sampler_for",
    "usable",
]
