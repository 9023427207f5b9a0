"""Checks of what is paid for accesses to rows."""

import io
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.audit.checks._deterministic import Table, fitted_on
from hushfit.audit.checks._noise import Finding
from hushfit.audit.checks.boundary._recorded import (
    BoundaryLog,
    DataAccess,
    Opened,
    Paid,
    recorded_boundary,
)
from hushfit.privacy import Budget, Cost, Ledger, Relation, compose, epsilon_of
from hushfit.release import Mechanism, TotalScore

# A paid cost may differ from a recomputed one by the rounding of its accountant.
_PRICE_ROUNDING = 1e-6
_UNIT_ROUNDING = 1e-9


def check_paid(
    make: Callable[[Ledger], Any],
    X: Any,
    y: Any,
    budget: Budget,
    relation: Relation,
    name: str = "fit",
    groups: Any = None,
) -> list[Finding]:
    """Check that every access to the rows was paid before, at its full cost, within the guarantee.

    Parameters
    ----------
    make : callable
        Maps a ledger to an estimator with the budget and relation below.
    X, y : arrays
    budget : Budget
    relation : Relation
    name : str, default="fit"
    groups : array, optional
        Ids of persons, where they are the units.

    Returns
    -------
    list of Finding
    """
    # An account of persons refuses a charge for rows.
    account = "row" if groups is None else "person"
    ledger = Ledger(1e6, budget.delta, str(relation), unit=account)
    table: Table = (X, y) if groups is None else (X, y, groups)
    n_units = len(X) if groups is None else len(np.unique(groups))
    with recorded_boundary() as log:
        fitted = _without_warnings(lambda: fitted_on(make(ledger), table))
    paid = [
        event.cost
        for event in log.events
        if isinstance(event, Paid) and event.ledger.account is ledger.account
    ]
    guarantee = fitted.privacy_
    spent = epsilon_of(compose(paid), budget.delta, relation) if paid else 0.0
    unpaid, twice = _unpaid_accesses(log), _units_of_one_trial(log) - n_units
    whole = _epsilon_of_accesses(log, budget.delta, relation)
    return [
        Finding(f"{name}: paid before every access", not unpaid, f"{len(unpaid)} unpaid accesses"),
        Finding(
            f"{name}: no unit is fitted on and scored on", twice <= 0, f"{max(twice, 0)} units"
        ),
        Finding(
            f"{name}: paid once for each fit",
            0 < len(paid) <= len(log.sources),
            f"{len(paid)} payments, {len(log.sources)} fits",
        ),
        Finding(
            f"{name}: releases cost no more than was paid",
            whole <= spent * (1 + _PRICE_ROUNDING),
            f"epsilon {whole:.4g} of {spent:.4g}",
        ),
        Finding(
            f"{name}: paid no more than the budget",
            spent <= budget.epsilon,
            f"epsilon {spent:.6g} of {budget.epsilon:g}",
        ),
        Finding(
            f"{name}: the guarantee is what was asked and paid for",
            (guarantee.epsilon, guarantee.delta, guarantee.relation)
            == (budget.epsilon, budget.delta, relation)
            and guarantee.cost == compose(paid),
            f"{guarantee.epsilon:g}, {guarantee.delta:g}, {guarantee.relation}",
        ),
    ]


def _without_warnings(act: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        return act()


def check_scores(make: Callable[[], Any], tables: Sequence[Table], name: str = "search") -> Finding:
    """Check that replacing one row moves the sum of the scores of each trial by at most one.

    All trials are fitted on null records, so that their models are the same for all tables.

    Parameters
    ----------
    make : callable
        Returns a fresh search, with a seed.
    tables : sequence of (X, y)
        The first one, and neighbours of it.
    name : str, default="search"

    Returns
    -------
    Finding
    """
    first, *others = (_totals_of(make, table) for table in tables)
    moved = float(np.max([np.abs(totals - first).max() for totals in others]))
    return Finding(
        f"{name}: one row moves a sum of scores by at most one",
        moved <= 1 + _UNIT_ROUNDING,
        f"by {moved:.4g} in {len(first)} trials",
    )


def _totals_of(make: Callable[[], Any], table: Table) -> Vector:
    """The exact sum of scores of each trial of a search; NaN if it fails."""
    with recorded_boundary(seal=True) as log:
        try:
            _without_warnings(lambda: fitted_on(make(), table))
        except Exception:
            return np.array([np.nan])
    scored = _scored(log)
    return np.array(
        [
            event.source.y.sum()
            for event in log.events
            if isinstance(event, Opened) and id(event.curator) in scored
        ]
    )


def _scored(log: BoundaryLog) -> set[int]:
    """The curators that released scores."""
    return {
        id(event.curator)
        for event in log.events
        if isinstance(event, DataAccess) and isinstance(event.query, TotalScore)
    }


def _is_search(log: BoundaryLog) -> bool:
    """Whether the cost is that of the best of many trials, not the composition of the releases."""
    return bool(_scored(log))


def _units_of_one_trial(log: BoundaryLog) -> int:
    """Units of a fit and its score together. A cost that is the larger of the two assumes that no
    unit is in both.
    """
    scored = _scored(log)
    sizes: dict[bool, list[int]] = {True: [0], False: [0]}
    for event in log.events:
        if isinstance(event, Opened):
            sizes[id(event.curator) in scored].append(event.source.n_units)
    return max(sizes[True]) + max(sizes[False]) if scored else 0


def _unpaid_accesses(log: BoundaryLog) -> list[str]:
    """Accesses that no payment precedes. Every fit needs its own payment; scores belong to their
    search.
    """
    credit, found = 0, []
    paid_for: set[int] = set()
    for event in log.events:
        if isinstance(event, Paid):
            credit += 1
        elif isinstance(event, DataAccess) and id(event.curator) not in paid_for:
            if isinstance(event.query, TotalScore) and (credit or paid_for):
                continue
            if credit < 1:
                found.append(event.name)
                continue
            credit -= 1
            paid_for.add(id(event.curator))
    return found


def _epsilon_of_accesses(log: BoundaryLog, delta: float, relation: Relation) -> float:
    """Epsilon of all releases together; of a search, which releases one candidate only, that of the
    most expensive one.
    """
    together = _costs_of_accesses(log, together=True)
    if together and not _is_search(log):
        return epsilon_of(compose(together), delta, relation)
    alone = _costs_of_accesses(log, together=False)
    return max((epsilon_of(cost, delta, relation) for cost in alone), default=0.0)


def _costs_of_accesses(log: BoundaryLog, together: bool) -> list[Cost]:
    """Cost of all releases of each curator together, or of each kind of release once."""
    counts: dict[tuple[int, str], tuple[DataAccess, int]] = {}
    sizes = {
        id(event.curator): event.source.n_units for event in log.events if isinstance(event, Opened)
    }
    for event in log.events:
        if isinstance(event, DataAccess):
            key = id(event.curator), event.name
            counts[key] = event, counts.get(key, (event, 0))[1] + 1
    found = []
    for (curator, name), (event, count) in counts.items():
        mechanism: Mechanism = event.curator._parts[name].sampling
        found.append(
            mechanism.cost(
                event.curator.noise_multiplier(name), count if together else 1, sizes[curator]
            )
        )
    return found
