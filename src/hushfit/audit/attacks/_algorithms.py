"""Attacks on every algorithm and on owners, each with its own canary."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.audit.attacks._auditor import (
    Attack,
    Audit,
    Neighbours,
    OwnerAttack,
    audit,
    require_known,
)
from hushfit.audit.attacks._canaries import ROWS, AnyCanary, BoundedCanary, Canary, TextCanary
from hushfit.audit.attacks._list_canaries import ListCanary
from hushfit.audit.attacks._preparation import VocabularyQuery
from hushfit.audit.attacks._search import SEARCHES, search_attacks
from hushfit.audit.attacks._targets import ROW_LEVEL_TARGETS, TARGETS
from hushfit.data import RecordScaling, as_source
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.federated import PPADMM, Algorithm, Network, Seat, SharedSolver
from hushfit.losses import LeastSquares, Loss, SaturatingSquares, Squared
from hushfit.penalties import ScaledL2, Zero
from hushfit.privacy import RECORD_RELATIONS, Budget, Relation, labels_only
from hushfit.privacy.accounting import normal_form
from hushfit.problem import Problem
from hushfit.solvers import SSADMM, solver_from
from hushfit.unit import ROW

USUAL_BUDGET = Budget(8.0, 1e-5)
WHITE, BLACK = "white-box", "black-box"
RELATIONS = RECORD_RELATIONS


def attack_on(
    name: str,
    relation: Relation | str = Relation.REPLACE_ONE,
    budget: Budget = USUAL_BUDGET,
    secure: bool = False,
) -> Attack:
    """The strongest known attack on an algorithm.

    Parameters
    ----------
    name : str
        A key of `TARGETS`.
    relation : Relation or str, default="replace-one"
    budget : Budget
    secure : bool, default=False
        Noise from the operating system instead of reproducible noise.

    Returns
    -------
    Attack

    Raises
    ------
    UnsupportedRelation
        If the algorithm has no proof under the relation.
    """
    require_known(name, {**TARGETS, **SEARCHES}, "algorithm")
    relation, target = Relation.parse(relation), TARGETS[name]
    if relation not in target.relations:
        raise UnsupportedRelation(
            f"{name} is not attacked under {str(relation)!r}: it has no proof there. Use "
            f"{' or '.join(map(str, target.relations))}."
        )
    canary = target.canary_under(relation)
    if isinstance(canary, TextCanary) and isinstance(target.solver, VocabularyQuery):
        canary = canary.at_threshold(target.solver, budget, relation)
    neighbours = canary.neighbours(relation)
    problem: Any = (
        canary.problem(relation, neighbours)
        if isinstance(canary, ListCanary)
        else _table_problem(canary, relation, target.ridge, target.loss)
    )
    solver = solver_from(target.solver, problem, budget)
    made = Attack(solver, problem, neighbours, budget, secure, target.gaussian, target.law)
    return _at_worst_row(made, canary) if target.worst_row else made


def _table_problem(
    canary: AnyCanary, relation: Relation, ridge: float, loss: Loss | None = None
) -> Problem:
    bounded = isinstance(canary, BoundedCanary)
    usual: Loss = LeastSquares() if labels_only(relation) else Squared(1.0)
    if bounded:
        usual = SaturatingSquares()
    chosen = loss or usual
    return Problem(
        chosen,
        ScaledL2(ridge) if ridge else Zero(),
        canary.rows,
        canary.columns,
        relation,
        fit_intercept=isinstance(canary, BoundedCanary) and canary.intercept,
        outputs=chosen.outputs,
        privacy_unit=canary.unit,
        scaling=RecordScaling.BOUNDED if bounded else RecordScaling.UNIT_LENGTH,
    )


def row_level_attack(
    name: str,
    relation: Relation | str = Relation.REPLACE_ONE,
    budget: Budget = USUAL_BUDGET,
) -> Attack:
    """The attack on a person, against a fit of the same table that protects single rows.

    The claim is what the row-level fit states, read as if it held for the person. It does not: all
    rows of a person together reveal more than one row does.

    Parameters
    ----------
    name : str
        One of `ROW_LEVEL_TARGETS`.
    relation : Relation or str, default="replace-one"
    budget : Budget

    Returns
    -------
    Attack
    """
    require_known(name, dict.fromkeys(ROW_LEVEL_TARGETS), "attack on a person")
    attack = attack_on(name, relation, budget)
    row = attack.neighbours.row
    first, second = (
        as_source(source.X, source.y, fit_intercept=False)  # type: ignore[attr-defined]
        for source in attack.neighbours.tables
    )
    problem = replace(attack.problem, n_units=first.n_units, privacy_unit=ROW)
    words = f"{attack.neighbours.words}; the fit takes each row for a unit"
    solver = solver_from(TARGETS[name].solver, problem, budget)
    return Attack(solver, problem, Neighbours(first, second, row, words), budget)


def _at_worst_row(attack: Attack, canary: AnyCanary) -> Attack:
    """The same with the canary in the row where the exact answers differ most."""
    query: Any = attack.solver.query(attack.problem)  # type: ignore[attr-defined]

    def apart(row: int) -> float:
        tables = canary.neighbours(attack.problem.relation, row).tables
        return float(np.linalg.norm(query(tables[0], None) - query(tables[1], None)))

    return replace(
        attack, neighbours=canary.neighbours(attack.problem.relation, max(range(ROWS), key=apart))
    )


def owner_attacks(
    relation: Relation | str = Relation.REPLACE_ONE, budget: Budget = USUAL_BUDGET
) -> dict[str, OwnerAttack]:
    """Attacks on one owner of a federated run, by all the others."""
    relation = Relation.parse(relation)
    canary = Canary()
    problem = Problem(Squared(1.0), Zero(), ROWS, canary.columns, relation, fit_intercept=False)
    names = ("victim", "other")
    seat = Seat(
        "victim",
        Network.complete(names),
        problem,
        dict.fromkeys(names, ROWS),
        dict.fromkeys(names, budget),
    )
    algorithms: dict[str, Algorithm] = {
        "pp-admm": PPADMM(steps=3, eta=5.0),
        "shared": SharedSolver(SSADMM(steps=4)),
    }

    def alternating(k: int) -> Vector:
        return np.full(canary.columns, 0.1 * (-1) ** k)

    return {
        f"owner, {name}": OwnerAttack(
            algorithm, seat, canary.neighbours(relation), alternating, gaussian=True
        )
        for name, algorithm in algorithms.items()
    }


@cache
def proved(name: str, relation: Relation | str) -> bool:
    """Whether an algorithm has a guarantee under the adjacency relation."""
    try:
        attack = attack_on(name, relation)
        plan, n = attack.solver.plan(attack.problem), attack.problem.n_units
        # Any noise does: a relation without a proof is refused when the cost is evaluated.
        form = normal_form(plan.cost(plan.multipliers(1.0, n), n), Relation.parse(relation))
        for part in form.paired:
            part.directions(Relation.parse(relation))
    except UnsupportedRelation:
        return False
    return True


def first_proved(name: str) -> Relation:
    """The first relation under which an algorithm is attacked and has a guarantee."""
    return next(relation for relation in TARGETS[name].relations if proved(name, relation))


def audit_solver(
    name: str,
    relation: Relation | str = Relation.REPLACE_ONE,
    budget: Budget = USUAL_BUDGET,
    view: str = WHITE,
    trials: int = 4000,
    confidence: float = 0.999,
    *,
    seed: int = 0,
    secure: bool = False,
    alarm: float | None = None,
    watch: Callable[[int], None] | None = None,
) -> Audit:
    """Audit an algorithm of the library with its own canary.

    Parameters
    ----------
    name : str
        A key of `TARGETS`: the name of a solver, or one of its variants; or ``"search"``, private
        model selection.
    relation : Relation or str, default="replace-one"
    budget : Budget, default=Budget(8, 1e-5)
        What the algorithm is calibrated to, and so what it claims.
    view : {"white-box", "black-box"}, default="white-box"
        Whether the attacker sees every release, or the final weights alone.
    trials, confidence, seed, alarm, watch
        As for `audit`.
    secure : bool, default=False
        Noise from the operating system instead of reproducible noise.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from hushfit.audit import audit_solver
    >>> str(audit_solver("output", trials=400).verdict) != "violated"
    True
    """
    if view not in (WHITE, BLACK):
        raise InvalidArgument(f"view={view!r} is not known. Use {WHITE!r} or {BLACK!r}.")
    run_audit = partial(
        audit,
        trials=trials,
        confidence=confidence,
        name=name,
        seed=seed,
        view=view,
        alarm=alarm,
        watch=watch,
    )
    if name in (searches := search_attacks(relation, budget)):
        search = searches[name]
        # Every attacker sees only the model of a search.
        return run_audit(search.published, search.claim, canary=search.words, view=BLACK)
    attack = attack_on(name, relation, budget, secure)
    return run_audit(
        attack.white_box if view == WHITE else attack.black_box,
        attack.claim,
        canary=attack.neighbours.words,
    )
