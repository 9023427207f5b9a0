"""Relations, costs, accounting, guarantees and ledgers."""

from hushfit.privacy._above_threshold import AboveThresholdCost
from hushfit.privacy._adaptive_total import dominating_mu, filtered_epsilon
from hushfit.privacy._approximate_cost import ApproximateCost
from hushfit.privacy._bounded_range_cost import BoundedRangeCost
from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._calibrate import calibrate
from hushfit.privacy._classic_objective_cost import ClassicObjectiveCost
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
from hushfit.privacy._filter import FILTER_ORDERS, Filter, GaussianFilter, RdpFilter, RdpOdometer
from hushfit.privacy._gated_cost import GatedCost
from hushfit.privacy._gaussian import gaussian_delta, gaussian_mu
from hushfit.privacy._guarantee import Guarantee, ReleaseRecord
from hushfit.privacy._interpret import delta_of, epsilon_of
from hushfit.privacy._ledger import Account, Ledger, Receipt
from hushfit.privacy._mixture_cost import MixtureGaussianCost
from hushfit.privacy._objective_cost import ObjectiveCost
from hushfit.privacy._permuted_cost import PermutedGaussianCost
from hushfit.privacy._rdp import rdp_curve, rdp_delta, rdp_epsilon
from hushfit.privacy._relation import Relation, by_relation, replaces_one
from hushfit.privacy._reserve import usable
from hushfit.privacy._sampler import (
    OpenDPSampler,
    Sampler,
    SecureSampler,
    SeededSampler,
    discretisation_loss,
    sampler_for,
)
from hushfit.privacy._threshold_cost import ThresholdedGaussianCost

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
    "Guarantee",
    "Ledger",
    "MixtureGaussianCost",
    "ObjectiveCost",
    "OpenDPSampler",
    "PermutedGaussianCost",
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
