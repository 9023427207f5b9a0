"""Audits of the trusted boundary: what bypasses it, what is paid for it, which rows are read, and
what it must refuse.

The first idea is a sealed door: fit with every curator holding a table of null records instead of
the rows. Any output that still differs between two neighbouring tables bypassed the boundary. Each
check returns `Finding` objects.
"""

import copy
import io
import math
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from scipy.stats import binom, chi2, norm

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.audit._curators import seeded_curator
from hushfit.audit.checks._deterministic import Table, fitted_on, observed_fit
from hushfit.audit.checks._examples import source_for
from hushfit.audit.checks._noise import LEVEL, Finding
from hushfit.data import (
    DataSource,
    DenseRows,
    Persons,
    SeededCoins,
    SparseRows,
    as_source,
    scaling_of,
)
from hushfit.data.lists import RankedLists
from hushfit.errors import HushfitError, UndeclaredRelease
from hushfit.privacy import (
    ApproximateCost,
    Budget,
    Cost,
    GaussianCost,
    Ledger,
    Receipt,
    Relation,
    SeededSampler,
    compose,
    epsilon_of,
    usable,
)
from hushfit.release import (
    Choice,
    Entropy,
    Gate,
    GatedStep,
    Mechanism,
    PermutedRun,
    Plan,
    Planned,
    Quote,
    TextColumns,
    TotalScore,
)
from hushfit.release.curator import Curator
from hushfit.unit import AccountUnit

# A paid cost may differ from a recomputed one by the rounding of its accountant.
_PRICE_ROUNDING = 1e-6
_UNIT_ROUNDING = 1e-9


# Fits with a sealed door


def null_table(source: DataSource) -> DataSource:
    """A table in which every record is the null record, of as many units; persons have as many
    rows as they had, so that anything that counts rows still sees their number. Lists keep their
    documents, and none of these is relevant.
    """
    if isinstance(source, TextColumns):
        return replace(source, columns=tuple((None,) * len(one) for one in source.columns))
    if isinstance(source, RankedLists):
        # Queries ask for the documents that their bounds were computed from.
        return replace(source, y=np.zeros(len(source.y)))
    null_rows = np.full((len(source.y), source.n_features), np.nan)
    return as_source(
        null_rows,
        np.zeros(len(source.y)),
        fit_intercept=getattr(source, "fit_intercept", False),
        persons=_persons_of(source),
        scaling=scaling_of(source),
    )


def _persons_of(source: DataSource) -> Persons | None:
    """Whose rows they are, where units are persons."""
    if not source.privacy_unit.is_person:
        return None
    assert isinstance(source, DenseRows | SparseRows | TextColumns)
    return source.persons


@contextmanager
def recorded_boundary(seal: bool = False) -> Iterator["BoundaryLog"]:
    """Record every payment, curator and release; with ``seal``, give all curators null tables."""
    log = BoundaryLog()
    opened, noisy, charged = Curator.__init__, Curator._noisy, Ledger.charge

    def __init__(self: Curator, source: DataSource, *terms: Any, **more: Any) -> None:
        log.events.append(Opened(self, source))
        opened(self, null_table(source) if seal else source, *terms, **more)

    def _noisy(self: Curator, name: str, query: Any) -> Vector:
        log.events.append(DataAccess(self, name, query))
        return noisy(self, name, query)

    def charge(self: Ledger, cost: Cost, *terms: Any, **more: Any) -> Receipt:
        receipt = charged(self, cost, *terms, **more)
        log.events.append(Paid(self, receipt.cost))
        return receipt

    patched: list[tuple[Any, str, Any, Any]] = [
        (Curator, "__init__", opened, __init__),
        (Curator, "_noisy", noisy, _noisy),
        (Ledger, "charge", charged, charge),
    ]
    for owner, name, _, watching in patched:
        setattr(owner, name, watching)
    try:
        yield log
    finally:
        for owner, name, original, _ in patched:
            setattr(owner, name, original)


@dataclass(frozen=True, eq=False)
class Opened:
    """A curator was given rows."""

    curator: Curator
    source: DataSource


@dataclass(frozen=True, eq=False)
class DataAccess:
    """A query was evaluated on the rows."""

    curator: Curator
    name: str
    query: Any


@dataclass(frozen=True, eq=False)
class Paid:
    """A ledger was charged."""

    ledger: Ledger
    cost: Cost


@dataclass(eq=False)
class BoundaryLog:
    """Events at the trusted boundary, in order."""

    events: list[Opened | DataAccess | Paid] = field(default_factory=list)

    @property
    def sources(self) -> list[DataSource]:
        return [event.source for event in self.events if isinstance(event, Opened)]


def check_sealed(
    make: Callable[[], Any], tables: Sequence[Table], name: str = "fit"
) -> list[Finding]:
    """Check that a fit reads rows only through its curators, record by record.

    Parameters
    ----------
    make : callable
        Returns a fresh estimator with a seed, so that two fits draw the same noise.
    tables : sequence of (X, y) or (X, y, groups)
        Tables that differ in one row, or in all rows of one person, also in their number.
    name : str, default="fit"

    Returns
    -------
    list of Finding
        With sealed curators, no output of the fit depends on the table, to the last bit of its
        attributes. Of the rows that curators hold, no record is longer than one, and replacing a
        row, or the rows of a person, changes no other.
    """
    seen, behind = [], []
    for table in tables:
        made: list[Any] = []

        def fresh(made: list[Any] = made) -> Any:
            made.append(make())
            return made[0]

        with recorded_boundary(seal=True) as log:
            observed = observed_fit(fresh, table)
        observed["values of attributes"] = _frozen(
            {key: value for key, value in vars(made[0]).items() if key.endswith("_")}
        )
        observed["number of accesses"] = [type(event).__name__ for event in log.events]
        seen.append(observed)
        behind.append([_units(source) for source in log.sources])
    findings = [
        Finding(
            f"{name}: a sealed fit succeeds",
            not all(one["errors"] for one in seen),
            seen[0]["errors"][:300],
        )
    ]
    for channel in seen[0]:
        values = [one[channel] for one in seen]
        other = next((value for value in values if value != values[0]), values[0])
        findings.append(
            Finding(
                f"{name}: {channel} depend on rows only through curators",
                other is values[0],
                _first_difference(values[0], other),
            )
        )
    return [*findings, *_record_findings(name, behind)]


def _record_findings(name: str, behind: Sequence[Sequence[list[Any]]]) -> list[Finding]:
    """Check that tables have equally many units, records of length at most one, and all units
    equal but one.
    """
    shapes = [[(len(units), units[0].shape[1:]) for units in of_table] for of_table in behind]
    other = next((shape for shape in shapes if shape != shapes[0]), None)
    counted = Finding(
        f"{name}: all tables have equally many units",
        other is None,
        "" if other is None else f"{shapes[0]} against {other}",
    )
    if other is not None:
        return [counted]
    longest, moved = 0.0, 0
    for first, *others in zip(*behind, strict=True):
        for units in (first, *others):
            if units[0].dtype != object:
                records = np.concatenate(units)[:, :-2]
                longest = max(longest, float(np.linalg.norm(records, axis=1).max(initial=0.0)))
            # One of them is the replaced unit, at any position a split has put it.
            differ = sum(not np.array_equal(a, b) for a, b in zip(units, first, strict=True))
            moved = max(moved, differ - 1)
    return [
        counted,
        Finding(
            f"{name}: no record is longer than one",
            longest <= 1 + _UNIT_ROUNDING,
            f"longest {longest:.6f}",
        ),
        Finding(
            f"{name}: replacing a unit changes no other",
            moved <= 0,
            f"{max(moved, 0)} other units changed",
        ),
    ]


def _units(source: DataSource) -> list[Any]:
    """What a query can read of each unit: of each of its rows the record with the intercept's
    entry, the label and the weight.
    """
    rows = _records(source)
    persons = _persons_of(source)
    if persons is None:
        return list(rows[:, None])
    return [rows[persons.codes == code] for code in range(persons.n_persons)]


def _records(source: DataSource) -> Any:
    if isinstance(source, TextColumns):
        return np.array(source.columns, dtype=object).T
    width, n = source.n_features + 1, len(source.y)
    found = np.zeros((n, width + 2))
    for block in source.blocks():
        for j, unit in enumerate(np.eye(width)):
            found[block.place, j] = np.nan_to_num(block.margins(unit), nan=0.0)
    found[:, -2] = np.nan_to_num(source.y, nan=0.0)
    found[:, -1] = source.shares
    return found


def _frozen(value: Any, depth: int = 0) -> Any:
    """A value in a form that can be compared bit by bit."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, np.generic | float | int | str | bytes | bool | Enum) or value is None:
        return repr(value)
    if depth > 8 or isinstance(value, Ledger):
        return type(value).__name__
    if isinstance(value, Mapping):
        return {str(key): _frozen(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_frozen(item, depth + 1) for item in value]
    parts = (
        {f.name: getattr(value, f.name) for f in fields(value)}
        if is_dataclass(value)
        else getattr(value, "__dict__", {})
    )
    return (type(value).__name__, {key: _frozen(item, depth + 1) for key, item in parts.items()})


def _first_difference(a: Any, b: Any) -> str:
    if a is b:
        return ""
    if isinstance(a, dict) and isinstance(b, dict):
        different = [key for key in {**a, **b} if a.get(key) != b.get(key)]
        return f"{', '.join(different)} differ" if different else ""
    if isinstance(a, list) and isinstance(b, list):
        only = [item for item in a if item not in b], [item for item in b if item not in a]
        a, b = only if any(only) else (len(a), len(b))
    return f"{a!r} against {b!r}"[:300]


# Payment


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


def _is_search(log: BoundaryLog) -> bool:
    """Whether the cost is that of the best of many trials, not the composition of the releases."""
    return any(
        isinstance(event, DataAccess) and isinstance(event.query, TotalScore)
        for event in log.events
    )


def _units_of_one_trial(log: BoundaryLog) -> int:
    """Units of a fit and its score together. A cost that is the larger of the two assumes that no
    unit is in both.
    """
    scored = {
        id(event.curator)
        for event in log.events
        if isinstance(event, DataAccess) and isinstance(event.query, TotalScore)
    }
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


# Ledgers


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
    budget, relation = Budget(1.0, 1e-6), Relation.REPLACE_ONE
    fresh = make or (lambda budget, relation: Ledger(budget.epsilon, budget.delta, str(relation)))
    ledger, cost = fresh(budget, relation), GaussianCost(16.0)
    accepted = sum(_accepts(ledger, cost) for _ in range(60))
    allowed = _gaussian_charges(budget, 16.0)
    shared = fresh(budget, relation)
    shared.charge(cost, "first", relation)
    copies = {
        "copy": copy.copy(shared),
        "deepcopy": copy.deepcopy(shared),
        "pickle": pickle.loads(pickle.dumps(shared)),
    }
    forked = []
    for way, other in copies.items():
        before = len(shared.entries)
        _accepts(other, cost)
        if len(shared.entries) != before + 1:
            forked.append(way)
    raced = fresh(budget, relation)
    taken: list[bool] = []
    _run_concurrently(lambda: taken.extend(_accepts(raced, cost) for _ in range(8)))
    return [
        Finding(
            "ledger: charges compose, and the one too many is refused",
            allowed // 2 <= accepted <= allowed,
            f"{accepted} charges, {allowed} fit",
        ),
        Finding("ledger: copies are one account", not forked, ", ".join(forked)),
        Finding(
            "ledger: threads cannot overspend",
            sum(taken) <= allowed,
            f"{sum(taken)} charges, {allowed} fit",
        ),
        Finding(
            "ledger: another relation is refused",
            not _accepts(fresh(budget, relation), cost, Relation.ADD_REMOVE),
        ),
        Finding(
            "ledger: no noise is refused", not _accepts(fresh(budget, relation), GaussianCost(0.0))
        ),
        *([] if make is not None else _units_of_accounts(budget, relation)),
        *([] if make is not None else [_reserve_for_discrete_noise()]),
        *([_choosing_does_not_pay(lambda: fresh(budget, relation))] if ledger.adaptive else []),
    ]


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


def _units_of_accounts(budget: Budget, relation: Relation) -> list[Finding]:
    """An account of persons takes charges for rows only as charges for all rows of a person."""
    cost, rows = GaussianCost(16.0), 3

    def accepted(unit: str | AccountUnit) -> int:
        ledger = Ledger(budget.epsilon, budget.delta, str(relation), unit=unit)
        return sum(_accepts(ledger, cost) for _ in range(60))

    alone, at_once = accepted("person"), accepted(AccountUnit("person", rows_per_person=rows))
    # A shift by a person is so many times as large, and variances add up.
    most = _gaussian_charges(budget, 16.0 / rows)
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
    budget, first = fresh().budget, 1 / 6.0
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


def _accepts(ledger: Ledger, cost: Cost, relation: Relation = Relation.REPLACE_ONE) -> bool:
    try:
        ledger.charge(cost, "charge", relation)
    except HushfitError:
        return False
    return True


def _gaussian_charges(budget: Budget, multiplier: float) -> int:
    """Number of Gaussian releases that fit a budget, by the normal distribution alone."""
    count, epsilon = 0, budget.epsilon
    while True:
        if _gaussian_delta(np.sqrt(count + 1) / multiplier, epsilon) > budget.delta:
            return count
        count += 1


def _gaussian_delta(mu: float, epsilon: Any) -> Any:
    """Delta of a Gaussian release at each epsilon, independent of the library's formula, which is
    under audit.
    """
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def _run_concurrently(act: Callable[[], object]) -> None:
    """Run a function in four threads at once."""
    threads = [threading.Thread(target=act) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# The curator's refusals


def check_refusals(source: DataSource, query: Any, other: Any, relation: Relation) -> list[Finding]:
    """Check that a curator answers only what its plan declares.

    Parameters
    ----------
    source : DataSource
    query : Query
        Declared for two releases.
    other : Query
        A query of another type.
    relation : Relation

    Returns
    -------
    list of Finding
    """
    plan = Plan((Planned("declared", type(query), 2),))

    def curator() -> Curator:
        quote = Quote.at(plan, {"declared": 1.0}, source.n_units)
        return seeded_curator(source, quote, relation, 0)

    def refuses(*requests: tuple[str, Any]) -> bool:
        door = curator()
        try:
            for name, what in requests:
                door.release(name, what)
        except (UndeclaredRelease, KeyError):
            return True
        return False

    raced = curator()
    answers: list[Vector] = []

    def ask() -> None:
        with suppress(UndeclaredRelease):
            answers.extend(raced.release("declared", query) for _ in range(4))

    _run_concurrently(ask)
    twice = ("declared", query)
    return [
        Finding("curator: a third release of two is refused", refuses(twice, twice, twice)),
        Finding("curator: an undeclared name is refused", refuses(("other", query))),
        Finding("curator: another kind of query is refused", refuses(("declared", other))),
        Finding("curator: what is declared is answered", not refuses(twice, twice)),
        Finding(
            "curator: threads cannot get more releases",
            len(answers) == 2,
            f"{len(answers)} answers",
        ),
    ]


# Batches


class WatchedRows:
    """A source that records which of its units, and which of their rows, are read."""

    def __init__(self, source: DataSource) -> None:
        self._source = source
        self.asked: list[IntVector | None] = []
        self.read: list[IntVector] = []

    def blocks(self, units: IntVector | None = None) -> Any:
        self.asked.append(units)
        found: list[Any] = list(self._source.blocks(units))
        places = np.arange(len(self._source.y))
        rows = [block.rows if len(block.rows) else places[block.place] for block in found]
        self.read.append(np.concatenate(rows) if rows else places[:0])
        return iter(found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def check_batches(
    mechanism: Mechanism,
    query: Any,
    source: DataSource,
    relation: Relation,
    draws: int = 400,
    seed: int = 0,
    level: float = LEVEL,
) -> list[Finding]:
    """Check that the rows a mechanism reads are the secret batch of its cost: of units, with all
    their rows.

    Parameters
    ----------
    mechanism : Mechanism
        One that draws batches.
    query : Query
        A query that it answers.
    source : DataSource
    relation : Relation
    draws : int, default=400
    seed : int, default=0
    level : float, default=1e-6
        False-alarm rate of each of two tests.

    Returns
    -------
    list of Finding
    """
    kind, n = type(mechanism).__name__, source.n_units
    entropy = Entropy(relation, SeededSampler(seed), SeededCoins(seed + 1))
    persons, accesses, read = _persons_of(source), [], []
    for _ in range(draws):
        watched: Any = WatchedRows(source)
        mechanism.answer(query, watched, 1.0, entropy)
        accesses.append(watched.asked)
        read.append(watched.read)
    used = np.flatnonzero(np.broadcast_to(source.shares > 0, len(source.y)))
    of_row = np.arange(n) if persons is None else persons.codes
    together = Finding(
        f"{kind}: the rows of a unit are read together",
        all(_whole_units(rows, used, of_row) for one in read for rows in one),
    )
    if isinstance(query, PermutedRun):
        return [*_order_findings(kind, accesses, query, n, level), together]
    counts = np.array([[_reads(rows, of_row, n) for rows in one] for one in read])
    rate = float(getattr(mechanism.cost(1.0, 1, n), "rate", 1.0))
    inside = counts.max(axis=1) > 0
    per_row = inside.sum(axis=0)
    # The batch is secret and the same for every access of one answer.
    one_batch = bool((counts == counts[:, :1]).all()) if counts.ndim == 3 else True
    found = [
        together,
        Finding(
            f"{kind}: no row is read twice",
            int(counts.max()) <= 1,
            f"at most {int(counts.max())} times",
        ),
        Finding(f"{kind}: one answer reads one batch", one_batch),
    ]
    p = min(
        1.0,
        n * min(2 * min(binom.cdf(k, draws, rate), binom.sf(k - 1, draws, rate)) for k in per_row),
    )
    found.append(
        Finding(
            f"{kind}: rows are read at the accounted rate",
            p > level,
            f"rate {inside.mean():.4f} of {rate:.4f}, p = {p:.3g}",
        )
    )
    if 0 < rate < 1:
        found.append(_fresh_batches(kind, inside, level))
    return found


def _whole_units(rows: IntVector, used: IntVector, of_row: IntVector) -> bool:
    """Whether all used rows of every unit were read, or none."""
    expected = used[np.isin(of_row[used], of_row[rows])]
    return np.array_equal(np.unique(np.intersect1d(rows, used)), expected)


def _reads(rows: IntVector, of_row: IntVector, n_units: int) -> IntVector:
    """How often each unit was read: the largest number of reads of one of its rows."""
    of_unit = np.zeros(n_units, dtype=np.int64)
    np.maximum.at(of_unit, of_row, np.bincount(rows, minlength=len(of_row)))
    return of_unit


def _fresh_batches(kind: str, inside: Matrix, level: float) -> Finding:
    """Check that batches of consecutive answers agree as often as independent ones."""
    a, b = inside[:-1].astype(np.float64).ravel(), inside[1:].astype(np.float64).ravel()
    spread = a.std() * b.std()
    z = (
        float(((a - a.mean()) * (b - b.mean())).mean() / spread * np.sqrt(len(a)))
        if spread > 0
        else np.inf
    )
    # Rows of a batch of fixed size are slightly dependent; the factor 1.5 allows for that.
    p = 2 * float(norm.sf(abs(z) / 1.5))
    return Finding(f"{kind}: batches are independent", p > level, f"p = {p:.3g}")


def _order_findings(
    kind: str,
    accesses: Sequence[Sequence[IntVector | None]],
    run: PermutedRun,
    n: int,
    level: float,
) -> list[Finding]:
    """Check that each row is in each batch with probability proportional to its size, and that
    orders of consecutive answers are independent.
    """
    batches = len(run.passes.sizes)
    places = np.full((len(accesses), n), -1)
    for k, read in enumerate(accesses):
        for batch, rows in enumerate(read[:batches]):
            places[k, rows if rows is not None else slice(None)] = batch
    shares = np.array(run.passes.sizes) / n
    counts = np.array([np.bincount(column[column >= 0], minlength=batches) for column in places.T])
    expected = len(accesses) * shares
    p = min(
        1.0,
        n
        * min(
            float(chi2.sf(((row - expected) ** 2 / expected).sum(), batches - 1)) for row in counts
        ),
    )
    same = int((places[1:] == places[:-1]).all(axis=1).sum())
    agree = float((places[1:] == places[:-1]).mean())
    by_chance = float((shares**2).sum())
    z = (agree - by_chance) / np.sqrt(by_chance * (1 - by_chance) / (places.size - n)) / 1.5
    fresh = 2 * float(norm.sf(abs(z)))
    return [
        Finding(
            f"{kind}: every row is in each batch with the right probability",
            p > level,
            f"p = {p:.3g}",
        ),
        Finding(
            f"{kind}: orders are independent", fresh > level, f"{same} repeats, p = {fresh:.3g}"
        ),
        Finding(
            f"{kind}: no row is left out or read twice",
            bool((places >= 0).all() and (counts.sum(axis=1) == len(accesses)).all()),
        ),
    ]


def check_batch_sensitivity(
    name: str,
    query: Any,
    rows: Matrix,
    labels: Vector,
    draw_label: Callable[[np.random.Generator], float],
    pairs: int = 40,
    seed: int = 0,
) -> Finding:
    """Check the sensitivity of a sum in random batches: one more record changes it by at most its
    radius, a replaced one by at most the replace-one sensitivity.

    Parameters
    ----------
    name : str
    query : Query
        A query that may be evaluated on a batch.
    rows, labels : arrays
    draw_label : callable
        Maps a generator to a random admissible label.
    pairs : int, default=40
        Number of batches, each with two random records.
    seed : int, default=0

    Returns
    -------
    Finding
    """
    rng, n, worst = np.random.default_rng(seed), len(rows), 0.0
    inner = query.gradient if isinstance(query, GatedStep) else query
    answer = inner.scores if isinstance(inner, Gate | Choice) else inner
    weights = np.ones(inner.size) if inner.doubled is None else np.where(inner.doubled, 2.0, 1.0)

    def apart(a: Vector, b: Vector) -> float:
        return (
            float(np.abs(a - b).max())
            if isinstance(inner, Gate | Choice)
            else float(np.sqrt(weights @ (a - b) ** 2))
        )

    for k in range(pairs):
        others = np.flatnonzero(rng.random(n) < (0.0, 0.1, 0.5, 1.0)[k % 4])
        others, with_row = others[others != 0], np.unique(np.append(others, 0))
        answers = []
        for _ in range(2):
            X, y = rows.copy(), labels.copy()
            X[0], y[0] = 10 ** rng.uniform(-2, 2) * rng.normal(size=rows.shape[1]), draw_label(rng)
            source = source_for(inner.problem, X, y)
            answers.append(answer(source, with_row))
            worst = max(worst, apart(answers[-1], answer(source, others)) / inner.radius())
        worst = max(worst, apart(*answers) / inner.sensitivity(Relation.REPLACE_ONE))
    return Finding(
        f"{name}: in every batch",
        worst <= 1 + _UNIT_ROUNDING,
        f"worst batch at {worst:.4f} of the bound",
    )
