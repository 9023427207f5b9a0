"""Fit one model on the rows of several owners, in one call."""

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone

from hushfit.errors import InvalidArgument, LedgerError, UnknownName
from hushfit.estimators import LINEAR, additive_settings, needs_class_counts
from hushfit.federated._network import Network
from hushfit.federated._owner import Owner, Run
from hushfit.federated._protocol import Algorithm, Seat
from hushfit.federated._simulation import Talk, simulate
from hushfit.federated.algorithms import ALGORITHMS
from hushfit.privacy import Budget, Guarantee, Ledger
from hushfit.solvers import Result
from hushfit.unit import PrivacyUnit


@dataclass(frozen=True, eq=False)
class Together:
    """A model that several owners fitted.

    Parameters
    ----------
    models : mapping from name to estimator
        Each owner's result, fitted and ready to predict.
    guarantees : mapping from name to Guarantee
        Guarantee for the rows of each owner.
    talk : Talk
        Every message, and how many there were.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.federated import fit_together
    >>> table = np.array([[0.2], [0.8]] * 100), np.array([0, 1] * 100)
    >>> model = PrivateLogisticRegression(delta=1e-4, classes=[0, 1])
    >>> together = fit_together(model, {"north": table, "south": table}, random_state=0)
    >>> together.epsilon()
    1.0
    """

    models: Mapping[str, Any]
    guarantees: Mapping[str, Guarantee]
    talk: Talk = field(repr=False)

    @property
    def model(self) -> Any:
        """The result of the first owner."""
        return next(iter(self.models.values()))

    def epsilon(self, person_in_one_table: bool = True) -> float:
        """Epsilon of a person in one owner's table, the largest; or of one who may be in all of
        them, the sum.
        """
        epsilons = [guarantee.epsilon for guarantee in self.guarantees.values()]
        return max(epsilons) if person_in_one_table else sum(epsilons)


def fit_together(
    estimator: Any,
    tables: Mapping[str, tuple[Any, ...]],
    network: Any = "complete",
    algorithm: Any = "shared",
    *,
    epsilons: Mapping[str, float] | None = None,
    deltas: Mapping[str, float] | None = None,
    ledgers: Mapping[str, Ledger] | None = None,
    folders: Mapping[str, str | os.PathLike[str]] | None = None,
    name: str | None = None,
    random_state: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> Together:
    """Fit one model on the rows of several owners, all in this process; they exchange noisy
    messages only.

    Parameters
    ----------
    estimator : PrivateLogisticRegression or PrivateLinearSVC
        Not fitted: the model, its public classes and ranges, and the budget of owners without a
        separate one.
    tables : mapping from name to (X, y) or (X, y, groups)
        Each owner's rows. ``groups`` says whose row each is, as in ``fit``: either all owners give
        it, or none. The number of persons of each owner is then public in place of that of rows.
    network : {"complete", "ring", "star", "random"}, Network, or list of edges, default="complete"
    algorithm : str or Algorithm, default="shared"
        A name of `ALGORITHMS`, or an object with its own settings.
    epsilons, deltas : mapping from name to float, optional
        Budgets of owners that differ from the estimator's.
    ledgers : mapping from name to Ledger, optional
        Each charged once for the run.
    folders : mapping from name to path, optional
        Where each owner stores its journal, so that a run can resume after a crash.
    name : str, optional
        Name of the run; give the same name again to resume it.
    random_state : int, optional
        None is secure; an int is for tests and simulations.
    watch : callable, optional
        Called after each round with the number of rounds done.

    Returns
    -------
    Together

    Examples
    --------
    >>> from hushfit.federated import fit_together
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.datasets import load_adult
    >>> adult = load_adult()
    >>> parts = {
    ...     "north": (adult.X[:9000], adult.y[:9000]),
    ...     "south": (adult.X[9000:18000], adult.y[9000:18000]),
    ... }
    >>> together = fit_together(PrivateLogisticRegression(classes=[0, 1]), parts)
    >>> together.epsilon()
    1.0
    """
    if not tables:
        raise InvalidArgument("tables is empty. Give at least one owner's rows, as {name: (X, y)}.")
    epsilons, deltas = epsilons or {}, deltas or {}
    _refuse_unknown_owners(
        tables, epsilons=epsilons, deltas=deltas, ledgers=ledgers or {}, folders=folders or {}
    )
    _refuse_own_knots(estimator)
    _refuse_own_counts(estimator)
    run = Run(name or secrets.token_hex(8), algorithm_from(algorithm))
    graph = Network.parse(network, list(tables))
    prepared = {
        owner: estimator.prepare(*_checked_table(owner, table)) for owner, table in tables.items()
    }
    unit = _common_unit({owner: ready.source.privacy_unit for owner, ready in prepared.items()})
    _refuse_accounts(ledgers or {}, unit)
    sizes = {owner: ready.problem.n_units for owner, ready in prepared.items()}
    budgets = {
        owner: Budget(epsilons.get(owner, estimator.epsilon), deltas.get(owner, estimator.delta))
        for owner in tables
    }
    seats = {
        owner: Seat(owner, graph, ready.problem, sizes, budgets)
        for owner, ready in prepared.items()
    }
    owners = [
        Owner(
            prepared[owner].source,
            seats[owner],
            run,
            (ledgers or {}).get(owner),
            (folders or {}).get(owner),
            None if random_state is None else random_state + place,
        )
        for place, owner in enumerate(tables)
    ]
    try:
        talk = simulate(owners, watch)
    finally:
        for owner in owners:
            owner.close()
    guarantees = {owner.name: owner.guarantee for owner in owners}
    models = {
        owner: clone(estimator).accept(Result(w, talk.rounds), guarantees[owner], prepared[owner])
        for owner, w in talk.weights.items()
    }
    return Together(models, guarantees, talk)


def _refuse_own_knots(estimator: Any) -> None:
    """Refuse a feature map that every owner would make for their own number of rows."""
    if additive_settings(estimator.get_params().get("features", LINEAR)) is not None:
        raise InvalidArgument(
            "features='additive' takes its knots from the number of rows, and owners have "
            "different numbers. Nothing was released. Give all the same map: features="
            "hushfit.features.AdditiveMap(intervals), with one number of intervals per column."
        )


def _refuse_own_counts(estimator: Any) -> None:
    """Refuse a threshold that needs counts of classes, which no algorithm of owners releases."""
    if needs_class_counts(estimator.get_params().get("threshold")):
        raise InvalidArgument(
            "threshold='balanced' needs the counts of the classes over all owners, which they do "
            "not release. Nothing was released. Give a number, or None."
        )


def _checked_table(owner: str, table: Any) -> tuple[Any, ...]:
    if not isinstance(table, tuple | list) or len(table) not in (2, 3):
        raise InvalidArgument(
            f"tables[{owner!r}] should be (X, y), or (X, y, groups) with the ids of persons."
        )
    return tuple(table)


def _common_unit(units: Mapping[str, PrivacyUnit]) -> PrivacyUnit:
    """The unit of all owners; refused if they differ, since their sums would mean different
    things.
    """
    (first, unit), *others = units.items()
    for name, other in others:
        if other != unit:
            raise InvalidArgument(
                f"The owners do not agree on the unit: {first} protects {unit}, {name} protects "
                f"{other}. Nothing was spent. Give groups= to all of them, by the same column and "
                "rule, or to none."
            )
    return unit


def _refuse_accounts(ledgers: Mapping[str, Ledger], unit: PrivacyUnit) -> None:
    """Refuse ledgers that do not take charges for the unit, before any owner pays."""
    for name, ledger in ledgers.items():
        problem = ledger.account.tally().unit_problem(unit)
        if problem is not None:
            raise LedgerError(f"the run of {name} {problem}. No owner has paid anything.")


def algorithm_from(algorithm: Any) -> Algorithm:
    """The algorithm that a user gives: a name, or an object with settings."""
    if isinstance(algorithm, str):
        if algorithm not in ALGORITHMS:
            raise UnknownName(
                f"algorithm={algorithm!r} is not known. Use one of "
                f"{', '.join(map(repr, ALGORITHMS))}, or an object."
            )
        return ALGORITHMS[algorithm]()
    if not hasattr(algorithm, "converse"):
        raise InvalidArgument(
            f"algorithm={algorithm!r} is neither a name nor an algorithm of hushfit.federated."
        )
    chosen: Algorithm = algorithm
    return chosen


def _refuse_unknown_owners(tables: Mapping[str, Any], **given: Mapping[str, Any]) -> None:
    for argument, values in given.items():
        unknown = sorted(set(values) - set(tables))
        if unknown:
            raise InvalidArgument(
                f"{argument} names {unknown}, but the owners are {list(tables)}. Name owners only."
            )
