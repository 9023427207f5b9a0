"""Checks of any ledger."""

import copy
import math
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm

from hushfit.audit.checks._noise import Finding
from hushfit.audit.checks.boundary._threads import run_concurrently
from hushfit.errors import HushfitError
from hushfit.privacy import ApproximateCost, Budget, Cost, GaussianCost, Ledger, Relation, usable
from hushfit.unit import AccountUnit

_BUDGET, _RELATION, _MULTIPLIER = Budget(1.0, 1e-6), Relation.REPLACE_ONE, 16.0
_COST = GaussianCost(_MULTIPLIER)


def check_ledger(make: Callable[[Budget, Relation], Ledger] | None = None) -> list[Finding]:
    """Check composition, refusals, copies, threads and adaptive charges of a ledger.

    Parameters
    ----------
    make : callable, optional
        Maps budget and relation to an empty ledger; in memory unless given.

    Returns
    -------
    list of Finding
    """
    empty = partial(make or _in_memory, _BUDGET, _RELATION)
    findings = [
        _charges_compose(empty()),
        _copies_are_one_account(empty()),
        _threads_cannot_overspend(empty()),
        Finding(
            "ledger: another relation is refused",
            not _accepts(empty(), _COST, Relation.ADD_REMOVE),
        ),
        Finding("ledger: no noise is refused", not _accepts(empty(), GaussianCost(0.0))),
    ]
    if make is None:
        findings += [*_units_of_accounts(), _reserve_for_discrete_noise()]
    if empty().adaptive:
        findings.append(_choosing_does_not_pay(empty))
    return findings


def _in_memory(budget: Budget, relation: Relation) -> Ledger:
    return Ledger(budget.epsilon, budget.delta, str(relation))


def _charges_compose(ledger: Ledger) -> Finding:
    accepted = sum(_accepts(ledger, _COST) for _ in range(60))
    allowed = _gaussian_charges(_MULTIPLIER)
    return Finding(
        "ledger: charges compose, and the one too many is refused",
        allowed // 2 <= accepted <= allowed,
        f"{accepted} charges, {allowed} fit",
    )


def _copies_are_one_account(ledger: Ledger) -> Finding:
    ledger.charge(_COST, "first", _RELATION)
    copies = {
        "copy": copy.copy(ledger),
        "deepcopy": copy.deepcopy(ledger),
        "pickle": pickle.loads(pickle.dumps(ledger)),
    }
    forked = []
    for way, other in copies.items():
        before = len(ledger.entries)
        _accepts(other, _COST)
        if len(ledger.entries) != before + 1:
            forked.append(way)
    return Finding("ledger: copies are one account", not forked, ", ".join(forked))


def _threads_cannot_overspend(ledger: Ledger) -> Finding:
    accepted: list[bool] = []
    run_concurrently(lambda: accepted.extend(_accepts(ledger, _COST) for _ in range(8)))
    allowed = _gaussian_charges(_MULTIPLIER)
    return Finding(
        "ledger: threads cannot overspend",
        sum(accepted) <= allowed,
        f"{sum(accepted)} charges, {allowed} fit",
    )


def _reserve_for_discrete_noise() -> Finding:
    """Fits that lose to discrete noise all that they may, by the theorem of docs/proofs/noise.md:
    epsilon and delta of a ledger must cover hundreds of them, at every epsilon.
    """
    short = []
    for epsilon in (0.1, 1.0, 10.0, 1e4):
        budget = Budget(epsilon, 1e-6)
        rest, loss = usable(budget)
        lost = 999 * loss
        spent = rest.epsilon * (1 + loss / 800 + 1e-9) + lost
        if spent > epsilon or math.exp(lost / 4) * rest.delta > budget.delta:
            short.append(f"{epsilon:g}")
    title = "ledger: its reserve covers the discrete noise of many fits"
    return Finding(title, not short, f"not at epsilon {', '.join(short)}" if short else "")


def _units_of_accounts() -> list[Finding]:
    """An account of persons takes charges for rows only as charges for all rows of a person."""
    rows = 3

    def accepted(unit: str | AccountUnit) -> int:
        ledger = Ledger(_BUDGET.epsilon, _BUDGET.delta, str(_RELATION), unit=unit)
        return sum(_accepts(ledger, _COST) for _ in range(60))

    alone, at_once = accepted("person"), accepted(AccountUnit("person", rows_per_person=rows))
    # A shift by a person is so many times as large, and variances add up.
    most = _gaussian_charges(_MULTIPLIER / rows)
    return [
        Finding(
            "ledger: an account of persons refuses charges for rows", alone == 0, f"{alone} charges"
        ),
        Finding(
            "ledger: a charge for rows counts for all rows of a person",
            0 < at_once <= most,
            f"{at_once} charges, {most} fit",
        ),
    ]


def _choosing_does_not_pay(fresh: Callable[[], Ledger]) -> Finding:
    """An adversary chooses, by the answer of a Gaussian release, a second one or a release that
    reveals everything with some probability, each as large as the ledger accepts.
    """
    budget, first = _BUDGET, 1 / 6.0
    mu = _largest(fresh, first, lambda s: GaussianCost(1 / s))
    failure = (
        _largest(fresh, first, lambda s: ApproximateCost(0.0, s * budget.delta)) * budget.delta
    )
    z = np.linspace(-9, 9, 4001)
    left = budget.epsilon - first * z - first * first / 2
    gaussian = _gaussian_delta(mu, left)
    truth = failure + (1 - failure) * np.maximum(-np.expm1(left), 0.0)
    delta = float(norm.pdf(z) @ np.maximum(gaussian, truth) * (z[1] - z[0]))
    return Finding(
        "ledger: adaptive charges stay within delta",
        delta <= budget.delta,
        f"true delta {delta:.3g} of {budget.delta:g}",
    )


def _largest(fresh: Callable[[], Ledger], first: float, priced: Callable[[float], Cost]) -> float:
    """Largest strength at which a ledger accepts a cost after a Gaussian release."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle, ledger = (low + high) / 2, fresh()
        low, high = (
            (middle, high)
            if _accepts(ledger, GaussianCost(1 / first)) and _accepts(ledger, priced(middle))
            else (low, middle)
        )
    return low


def _accepts(ledger: Ledger, cost: Cost, relation: Relation = _RELATION) -> bool:
    try:
        ledger.charge(cost, "charge", relation)
    except HushfitError:
        return False
    return True


def _gaussian_charges(multiplier: float) -> int:
    """Number of Gaussian releases that fit the budget, by the normal distribution alone."""
    count = 0
    while _gaussian_delta(np.sqrt(count + 1) / multiplier, _BUDGET.epsilon) <= _BUDGET.delta:
        count += 1
    return count


def _gaussian_delta(mu: float, epsilon: Any) -> Any:
    """Delta of a Gaussian release at each epsilon, independent of the library's formula, which is
    under audit.
    """
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
