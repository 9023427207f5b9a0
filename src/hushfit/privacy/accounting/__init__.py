"""From costs to (epsilon, delta): composition, filters, calibration. Only ``pld`` talks to
dp_accounting.

LOST_SHARE                Share of delta for what Gaussian releases do not dominate
delta_left                Delta for all plans after the first, which was fixed before any answer
dominating_mu             The mu of a Gaussian release that dominates a cost, except with a given
                          probability
filtered_epsilon          The epsilon that a filter counts for plans chosen one after the other
lost_later                Probability with which plans after the first keep no promise
room_for_lost             How much of the delta that the first plan left is for `lost_later`
calibrate                 Largest strength whose cost fits the budget
exact_delta               Mixture of Gaussian profiles over the losses of the other parts
is_exact                  Whether the closed form applies and is small enough
is_single_objective       Whether there are Gaussian releases and one other, whose loss is bounded
                          by that of a known variable
FILTER_ORDERS             Renyi orders that a filter watches
Filter                    Says before a release whether it still fits, and remembers what was made
GaussianFilter            Keeps an adaptive run of Gaussian and pure releases on all rows as
                          private as one Gaussian release
RdpFilter                 Keeps an adaptive run of releases with known Renyi curves (epsilon, delta
                          + lost)-private
RdpOdometer               Tells at any moment of an adaptive run an epsilon that covers all of it
                          so far, at one delta for all readings
filter_orders             Two whole orders near the one that serves Gaussian releases best
pure_epsilon_of_gaussian  The epsilon whose pure releases a Gaussian one of that mu dominates
delta_of                  Smallest delta that is proved for a cost at a given epsilon
epsilon_of                Smallest epsilon that is proved for a cost at a given delta
normal_form               Sort the parts of a cost by what they declare
StoppingRule              Law of the number of trials, at least one
best_of_many              Cost of publishing the best of a random number of trials and nothing of
                          the others
dearest                   A cost that no other of the list exceeds
stopping_rule             The rule of a name
lost_mass                 Probability that some release keeps no promise
rdp_curve                 Upper bound on the Renyi divergence of a cost at some orders
rdp_delta                 Delta of a cost through its Renyi curve
rdp_epsilon               Epsilon of a cost through its Renyi curve
"""

from hushfit.privacy.accounting._adaptive_total import (
    LOST_SHARE,
    delta_left,
    dominating_mu,
    filtered_epsilon,
    lost_later,
    room_for_lost,
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
    "GaussianFilter",
    "RdpFilter",
    "RdpOdometer",
    "StoppingRule",
    "best_of_many",
    "calibrate",
    "dearest",
    "delta_left",
    "delta_of",
    "dominating_mu",
    "epsilon_of",
    "exact_delta",
    "filter_orders",
    "filtered_epsilon",
    "is_exact",
    "is_single_objective",
    "lost_later",
    "lost_mass",
    "normal_form",
    "pure_epsilon_of_gaussian",
    "rdp_curve",
    "rdp_delta",
    "rdp_epsilon",
    "room_for_lost",
    "stopping_rule",
]
