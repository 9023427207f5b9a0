"""From costs to (epsilon, delta): composition, filters, calibration.

FilteredTotal             Total of plans chosen one after the other
LOST_SHARE                Share of delta for failure probabilities
dominating_mu             Mu of a Gaussian release that dominates a cost, except with a given
                          probability
exact_sum                 Sum without rounding, so that it does not depend on the order
filtered_epsilon          Epsilon that a filter counts for plans chosen one after the other
calibrate                 Largest strength whose cost fits the budget
exact_delta               Mixture of Gaussian profiles over the losses of the other parts
is_exact                  Whether the closed form applies and is small enough
is_single_objective       Whether there are Gaussian releases and one other, with losses bounded by
                          a known variable
FILTER_ORDERS             Renyi orders that a filter tracks
Filter                    Decides before a release whether it still fits, and records what was
                          released
GaussianFilter            Filter for Gaussian and pure releases on all rows
RdpFilter                 Filter for releases with known Renyi curves
RdpOdometer               Reports at any time an epsilon that covers an adaptive run so far
filter_orders             Two integer orders near the best one for Gaussian releases
pure_epsilon_of_gaussian  Epsilon whose pure releases a Gaussian of that mu dominates
group_cost                Cost of the same releases for several units together
group_delta               Smallest delta that is proved for several units together
group_epsilon             Smallest epsilon that is proved for several units together
delta_of                  Smallest delta that is proved for a cost at a given epsilon
epsilon_of                Smallest epsilon that is proved for a cost at a given delta
normal_form               Sort the parts of a cost by what they declare
StoppingRule              Distribution of the number of trials, at least one
best_of_many              Cost of publishing the best of a random number of trials and nothing of
                          the others
dearest                   Upper bound on every cost of a list
stopping_rule             Stopping rule by name
lost_mass                 Failure probability of all releases together
rdp_curve                 Upper bound on the Renyi divergence of a cost at some orders
rdp_delta                 Delta of a cost through its Renyi curve
rdp_epsilon               Epsilon of a cost through its Renyi curve
"""

from hushfit.privacy.accounting._adaptive_total import (
    LOST_SHARE,
    FilteredTotal,
    dominating_mu,
    exact_sum,
    filtered_epsilon,
)
from hushfit.privacy.accounting._calibrate import calibrate
from hushfit.privacy.accounting._closed_forms import exact_delta, is_exact, is_single_objective
from hushfit.privacy.accounting._filter import (
    FILTER_ORDERS,
    Filter,
    GaussianFilter,
    RdpFilter,
    RdpOdometer,
    filter_orders,
    pure_epsilon_of_gaussian,
)
from hushfit.privacy.accounting._group import group_cost, group_delta, group_epsilon
from hushfit.privacy.accounting._interpret import delta_of, epsilon_of
from hushfit.privacy.accounting._normal_form import normal_form
from hushfit.privacy.accounting._random_stopping import (
    StoppingRule,
    best_of_many,
    dearest,
    stopping_rule,
)
from hushfit.privacy.accounting._renyi import lost_mass, rdp_curve, rdp_delta, rdp_epsilon

__all__ = [
    "FILTER_ORDERS",
    "LOST_SHARE",
    "Filter",
    "FilteredTotal",
    "GaussianFilter",
    "RdpFilter",
    "RdpOdometer",
    "StoppingRule",
    "best_of_many",
    "calibrate",
    "dearest",
    "delta_of",
    "dominating_mu",
    "epsilon_of",
    "exact_delta",
    "exact_sum",
    "filter_orders",
    "filtered_epsilon",
    "group_cost",
    "group_delta",
    "group_epsilon",
    "is_exact",
    "is_single_objective",
    "lost_mass",
    "normal_form",
    "pure_epsilon_of_gaussian",
    "rdp_curve",
    "rdp_delta",
    "rdp_epsilon",
    "stopping_rule",
]
