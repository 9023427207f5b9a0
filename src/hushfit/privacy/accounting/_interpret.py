"""Epsilon and delta of a cost, by the tightest accountant that is proved for it.

Proofs: docs/proofs/composition.md.
"""

import numpy as np

from hushfit._typing import Vector
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation
from hushfit.privacy.accounting._closed_forms import (
    exact_delta,
    exact_epsilon,
    is_exact,
    is_single_objective,
)
from hushfit.privacy.accounting._normal_form import normal_form
from hushfit.privacy.accounting._renyi import rdp_delta, rdp_epsilon, rdp_profile
from hushfit.privacy.costs import Cost


def epsilon_of(cost: Cost, delta: float, relation: Relation | str) -> float:
    """Smallest epsilon that is proved for a cost at a given delta.

    Parameters
    ----------
    cost : Cost
        What was or will be released.
    delta : float
        Strictly between 0 and 1.
    relation : Relation or str
        Which data sets are neighbours.

    Returns
    -------
    float
        Exact for Gaussian and pure releases; from privacy loss distributions where a dominating
        pair is proved; from the Renyi curve otherwise. Infinity if some release has no noise.

    Raises
    ------
    UnsupportedRelation
        If no proof covers a part of the cost under the relation.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, epsilon_of
    >>> round(epsilon_of(GaussianCost(10.0, count=5), 1e-6, "replace-one"), 3)
    0.941
    """
    delta, relation = _check.probability(delta, "delta"), Relation.parse(relation)
    form = normal_form(cost, relation)
    if is_exact(form) or form.reveals_all:
        return exact_epsilon(form, delta)
    by_rdp = rdp_epsilon(cost, delta, relation)
    if is_single_objective(form):
        return min(by_rdp, exact_epsilon(form, delta))
    if form.by_curve:
        return by_rdp
    # Both are proved; Renyi is better where delta is too small for floating-point convolutions.
    from hushfit.privacy.accounting.pld import pld_epsilon

    return min(by_rdp, pld_epsilon(form, delta, relation))


def delta_of(cost: Cost, epsilon: float, relation: Relation | str) -> float:
    """Smallest delta that is proved for a cost at a given epsilon.

    Parameters
    ----------
    cost : Cost
        What was or will be released.
    epsilon : float
        At least 0 and finite.
    relation : Relation or str
        Which data sets are neighbours.

    Returns
    -------
    float
        Between 0 and 1, by the same accountants as `epsilon_of`.

    Raises
    ------
    UnsupportedRelation
        If no proof covers a part of the cost under the relation.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, delta_of
    >>> delta_of(GaussianCost(10.0), 1.0, "replace-one") < 1e-6
    True
    """
    epsilon, relation = _check.finite(epsilon, "epsilon"), Relation.parse(relation)
    form = normal_form(cost, relation)
    if is_exact(form) or form.reveals_all:
        return exact_delta(form, epsilon)
    if not form.by_curve:
        from hushfit.privacy.accounting.pld import is_resolved, pld_delta

        by_pld = pld_delta(form, epsilon, relation)
        # The curve takes longer, and is better only where rounding matters.
        if is_resolved(form, epsilon, by_pld, relation):
            return by_pld
        return min(by_pld, rdp_delta(cost, epsilon, relation))
    by_rdp = rdp_delta(cost, epsilon, relation)
    return min(by_rdp, exact_delta(form, epsilon)) if is_single_objective(form) else by_rdp


def profile_of(cost: Cost, epsilons: Vector, relation: Relation | str) -> Vector:
    """`delta_of` for many increasing epsilons, each at least 0."""
    relation = Relation.parse(relation)
    form = normal_form(cost, relation)
    if is_exact(form) or form.reveals_all:
        return np.array([exact_delta(form, epsilon) for epsilon in epsilons.tolist()])
    by_rdp = rdp_profile(cost, epsilons, relation)
    if is_single_objective(form):
        return np.minimum(by_rdp, [exact_delta(form, epsilon) for epsilon in epsilons.tolist()])
    if form.by_curve:
        return by_rdp
    from hushfit.privacy.accounting.pld import pld_profile

    return np.minimum(by_rdp, pld_profile(form, epsilons, relation))
