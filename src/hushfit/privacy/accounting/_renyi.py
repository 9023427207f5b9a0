"""Renyi curve of a whole cost, and its conversion to epsilon and delta.

Proofs: docs/proofs/{poisson,fixed_size,objective,composition}.md.
"""

import math

import numpy as np

from hushfit._typing import Vector
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs import RENYI_ORDERS, Cost, parts_of, require_proof


def rdp_curve(cost: Cost, orders: Vector, relation: Relation | str) -> Vector:
    """Upper bound on the Renyi divergence of a cost at some orders.

    Parameters
    ----------
    cost : Cost
        Of any kind.
    orders : ndarray
        Each above 1.
    relation : Relation or str
        Which data sets are neighbours.

    Returns
    -------
    ndarray
        One bound per order; infinity where none is known.
    """
    relation, total = Relation.parse(relation), np.zeros_like(orders)
    require_proof(cost, relation)
    for part in parts_of(cost):
        total = total + part.count * part.curve(orders, relation)
    return total


def rdp_epsilon(cost: Cost, delta: float, relation: Relation | str) -> float:
    """Epsilon of a cost through its Renyi curve.

    Parameters
    ----------
    cost : Cost
        Of any kind.
    delta : float
        Strictly between 0 and 1.
    relation : Relation or str
        Which data sets are neighbours.

    Returns
    -------
    float
        ``min over orders a of r(a) + log(1 - 1/a) - log(delta a) / (a - 1)``, or 0 if that is
        negative.
    """
    left = delta - lost_mass(cost)
    if left <= 0:
        return math.inf
    orders = _orders(cost)
    curve = rdp_curve(cost, orders, relation)
    epsilon = curve + np.log1p(-1 / orders) - (math.log(left) + np.log(orders)) / (orders - 1)
    return max(0.0, float(epsilon.min()))


def rdp_delta(cost: Cost, epsilon: float, relation: Relation | str) -> float:
    """Delta of a cost through its Renyi curve: `rdp_epsilon` solved for delta.

    Parameters
    ----------
    cost : Cost
        Of any kind.
    epsilon : float
        At least 0.
    relation : Relation or str
        Which data sets are neighbours.

    Returns
    -------
    float
        At most 1.
    """
    return float(rdp_profile(cost, np.array([epsilon]), relation)[0])


def rdp_profile(cost: Cost, epsilons: Vector, relation: Relation | str) -> Vector:
    """`rdp_delta` for many epsilons."""
    orders = _orders(cost)
    curve = rdp_curve(cost, orders, relation)
    log_delta = (orders - 1) * (curve + np.log1p(-1 / orders) - epsilons[:, None]) - np.log(orders)
    profile: Vector = np.minimum(
        1.0, np.exp(np.minimum(0.0, log_delta.min(axis=1))) + lost_mass(cost)
    )
    return profile


def lost_mass(cost: Cost) -> float:
    """Failure probability of all releases together; the curve holds otherwise."""
    return math.fsum(part.count * part.lost for part in parts_of(cost))


def _orders(cost: Cost) -> Vector:
    """Orders of tabulated parts, else the common grid: between orders a table is only a chord."""
    given = {order for part in parts_of(cost) for order in part.known_orders}
    return np.array(sorted(given) or RENYI_ORDERS)
