"""The best adaptive adversary against each privacy filter, by backward induction over the privacy
loss.

After every answer it chooses the best next release. Losses are rounded down to a grid, and mass
beyond the grid counts as at its end, so that the value found is a lower bound: above delta it
proves a filter wrong.
"""

from contextlib import suppress
from datetime import date
from functools import lru_cache

import numpy as np
import pytest
from scipy.signal import fftconvolve

from hushfit.errors import BudgetExceeded
from hushfit.privacy import (
    FILTER_ORDERS,
    ApproximateCost,
    Budget,
    GaussianCost,
    GaussianFilter,
    Ledger,
    PureCost,
    RdpFilter,
    Receipt,
    Relation,
    Spent,
    compose,
    epsilon_of,
    filtered_epsilon,
    gaussian_mu,
)
from hushfit.privacy.accounting._filter import filter_orders
from hushfit.privacy.ledger import Entry, Team

STEP, LARGEST_LOSS = 0.01, 8.0
LOSSES = STEP * np.arange(-int(LARGEST_LOSS / STEP), int(LARGEST_LOSS / STEP) + 1)
MIDDLE = len(LOSSES) // 2
BUDGETS = [Budget(1.0, 1e-2), Budget(0.5, 0.05)]
over_budgets = pytest.mark.parametrize("budget", BUDGETS, ids=repr)


def losses_of(cost):
    """Privacy loss distribution of the worst-case release of a cost, under the first table."""
    if isinstance(cost, GaussianCost):
        mu = 1 / cost.noise_multiplier
        t = np.linspace(-8.5, 8.5, 8001)
        weights = np.exp(-0.5 * t**2)
        return mu * t + mu * mu / 2, weights / weights.sum()
    failure = getattr(cost, "delta", 0.0)
    either = np.array([cost.epsilon, -cost.epsilon])
    return np.append(either, 2 * LARGEST_LOSS), np.append(
        (1 - failure) / (1 + np.exp(-either)), failure
    )


@lru_cache(None)
def kernel_of(cost):
    """The same on the grid, centred at zero loss."""
    losses, weights = losses_of(cost)
    steps = np.clip(np.floor(losses / STEP + 1e-9).astype(int), -2 * MIDDLE, 2 * MIDDLE)
    return np.bincount(steps + 2 * MIDDLE, weights=weights, minlength=4 * MIDDLE + 1)


def best_adversary(budget, menu, fits, depth):
    """Delta of the best adversary at the budget's epsilon, in units of the budget's delta."""
    stop = np.maximum(-np.expm1(np.minimum(budget.epsilon - LOSSES, 0.0)), 0.0)

    def after(value, cost):
        # Zero to the left of the grid, the value of its end to the right.
        padded = np.concatenate([np.zeros(2 * MIDDLE), value, np.full(2 * MIDDLE, value[-1])])
        return np.maximum(fftconvolve(padded, kernel_of(cost)[::-1], mode="valid"), 0.0)

    @lru_cache(None)
    def value(plans):
        best = stop
        if len(plans) < depth:
            for cost in menu:
                if fits((*plans, cost)):
                    best = np.maximum(best, after(value((*plans, cost)), cost))
        return best

    return float(value(())[MIDDLE]) / budget.delta


def menu_of(budget, share=1.0):
    mu = share * gaussian_mu(budget.epsilon, budget.delta)
    epsilon = share * budget.epsilon
    gaussian = [GaussianCost(1 / (part * mu)) for part in (0.75, 0.5, 0.3)]
    return [*gaussian, PureCost(0.35 * epsilon), PureCost(0.8 * epsilon)]


def by_filter(make):
    """Whether a privacy filter accepts all of these, one after the other."""

    def fits(plans):
        one = make()
        try:
            for plan in plans:
                one.charge(plan)
        except BudgetExceeded:
            return False
        return True

    return lru_cache(None)(fits)


@over_budgets
def test_a_gaussian_filter_keeps_its_mu(budget):
    fits = by_filter(lambda: GaussianFilter(gaussian_mu(budget.epsilon, budget.delta)))
    assert 0.5 < best_adversary(budget, menu_of(budget), fits, 4) <= 1


@over_budgets
@pytest.mark.parametrize("orders", [None, FILTER_ORDERS], ids=["two orders", "all orders"])
def test_a_renyi_filter_keeps_its_budget(budget, orders):
    chosen = orders or filter_orders(budget.epsilon, budget.delta)
    fits = by_filter(lambda: RdpFilter(budget.epsilon, budget.delta, Relation.REPLACE_ONE, chosen))
    assert best_adversary(budget, menu_of(budget, 0.6), fits, 4) <= 1


def lossy(budget):
    return [*menu_of(budget)[1:], ApproximateCost(0.2 * budget.epsilon, 0.5 * budget.delta)]


@over_budgets
@pytest.mark.parametrize(
    "menu", [menu_of, lossy], ids=["Gaussian and pure", "some may reveal everything"]
)
def test_a_ledger_keeps_its_budget(budget, menu):
    fits = lru_cache(None)(
        lambda plans: filtered_epsilon(plans, budget, Relation.REPLACE_ONE) <= budget.epsilon
    )
    assert 0.4 < best_adversary(budget, menu(budget), fits, 3) <= 1


def test_the_adversary_beats_composition_that_forgets_who_chose():
    """The search has power: it exceeds costs composed as if they had been fixed beforehand."""
    budget = Budget(0.5, 0.1)
    menu = [PureCost(0.5), PureCost(0.3)]
    fits = lru_cache(None)(
        lambda plans: (
            epsilon_of(compose(plans), budget.delta, Relation.REPLACE_ONE) <= budget.epsilon
        )
    )
    assert best_adversary(budget, menu, fits, 5) > 1.04


def team_of(budget):
    """Two analysts, each with a ceiling of nearly the whole budget."""
    team = Team("rows", Ledger(budget.epsilon, budget.delta).account, ("lead",))
    share = {"epsilon": 0.9 * budget.epsilon, "delta": budget.delta}
    for number, name in enumerate(("alice", "bob"), start=1):
        grant = {"kind": "grant", "grantee": name, "user": "lead", **share}
        team = team.after(Entry(number, grant, ""))
    return team


def by_team(budget, total):
    """Whether analysts can get all of these, whoever of them asks for which; the menu's scale is
    that of the ledger, which keeps a reserve.
    """
    day, spent = date(2026, 1, 1), Spent(0.0, budget.delta)

    def after(team, plan, name):
        receipt = Receipt(1, "fit", plan, Relation.REPLACE_ONE, spent)
        grant = team.admission(receipt, name, day).grant
        return team.after(Entry(9, {"kind": "charge", "grant": grant}, ""), receipt)

    @lru_cache(None)
    def teams(plans):
        if not plans:
            return (team_of(budget),)
        found = []
        for team in teams(plans[:-1]):
            for name in ("alice", "bob"):
                with suppress(BudgetExceeded):
                    found.append(after(team, plans[-1], name))
        return tuple(found)

    def fits(plans):
        within = filtered_epsilon(plans, budget, Relation.REPLACE_ONE) <= budget.epsilon
        return bool(teams(plans)) and (within or not total)

    return lru_cache(None)(fits)


@over_budgets
def test_the_total_of_a_team_holds_whatever_analysts_do(budget):
    """Analysts who see all answers and share out every next charge among them."""
    menu = menu_of(budget)[1:]
    assert 0.3 < best_adversary(budget, menu, by_team(budget, total=True), 3) <= 1


def test_ceilings_alone_would_be_beaten():
    budget = BUDGETS[0]
    menu = menu_of(budget)[1:]
    assert best_adversary(budget, menu, by_team(budget, total=False), 3) > 1.5
