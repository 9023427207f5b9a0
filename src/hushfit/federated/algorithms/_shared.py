"""Any solver of the library for several owners: each answers its queries on its own rows with its
own noise, and the sums are shared.

Every owner runs the solver itself, on the same sums, so all end with the same weights and no one
has to be trusted with more than the noisy answers. The sums travel up a tree of the network and
down again. The noise of N owners adds up to sqrt(N) times that of one owner of all rows: the cost
of not pooling. Proof: docs/proofs/federated.md.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.federated._protocol import Conversation, Seat, sum_over_owners
from hushfit.privacy import Relation
from hushfit.release import (
    ClassCounts,
    ClippedGradient,
    Door,
    FixedSizeBatch,
    GradientDifference,
    LineDerivative,
    LogisticGradient,
    MarginHistogram,
    Plan,
    Priced,
    Query,
    RecordSum,
    Released,
    SecondMoment,
)
from hushfit.solvers import Solver, run, solver_from

# Sums over records: the answer of all owners is the sum of their answers.
_ADDITIVE = (
    ClassCounts,
    ClippedGradient,
    GradientDifference,
    LineDerivative,
    LogisticGradient,
    MarginHistogram,
    RecordSum,
    SecondMoment,
)


@dataclass(frozen=True)
class SharedSolver:
    """One of the library's solvers, run by all owners on the sum of their noisy answers.

    Parameters
    ----------
    solver : str or Solver, default="auto"
        One whose queries are all sums over records: 'auto' without penalty or constraint,
        'proximal-gd', 'ss-admm', 'dp-sadmm', ...
    bound : float, default=1e6
        Longest answer that is accepted from a neighbour, per row of all owners.
    """

    solver: Any = "auto"
    bound: float = 1e6

    def plan(self, seat: Seat) -> Plan:
        plan = self._chosen(seat).plan(seat.pooled)
        for part in plan.parts:
            if part.query not in _ADDITIVE or isinstance(part.sampling, FixedSizeBatch):
                raise InvalidArgument(
                    f"{type(self._chosen(seat)).__name__} needs {part.query.__name__} on "
                    f"{part.sampling}, which is no sum over the records of all owners. Use 'auto', "
                    "or a solver on all rows or on Poisson batches."
                )
        return plan

    def rounds(self, seat: Seat) -> int:
        return 2 * seat.network.height * sum(part.count for part in self.plan(seat).parts)

    def converse(self, seat: Seat, door: Door) -> Conversation:
        sums = _SumDoor(seat, self.plan(seat))
        bound = self.bound * seat.n_total
        with _solving(self._chosen(seat), seat, sums):
            while True:
                from_solver = sums.from_solver.get()
                if isinstance(from_solver, BaseException):
                    raise from_solver
                if not isinstance(from_solver, tuple):
                    return from_solver
                name, query = from_solver
                own = door.release(name, _local(query, seat))
                sums.answers.put((yield from sum_over_owners(seat, own, bound)))

    def _chosen(self, seat: Seat) -> Solver:
        # The smallest epsilon of all budgets: all owners must choose the same solver.
        budget = min(seat.budgets.values(), key=lambda budget: budget.epsilon)
        return solver_from(self.solver, seat.pooled, budget)


_FromSolver: TypeAlias = tuple[str, Query] | Vector | BaseException


class _Closed(BaseException):
    """The conversation ended before the solver did."""


class _SumDoor:
    """The `Door` of the solver: queries go out, sums come back. It sees noisy answers only."""

    def __init__(self, seat: Seat, plan: Plan) -> None:
        self._seat, self._plan = seat, plan
        self.from_solver: SimpleQueue[_FromSolver] = SimpleQueue()
        self.answers: SimpleQueue[Vector | None] = SimpleQueue()
        self.relation: Relation = seat.problem.relation
        self.transcript: list[Released] = []
        self.public_rows: None = None  # owners do not pool features either

    @cached_property
    def _multipliers(self) -> dict[str, float]:
        """Noise multipliers of the sum: variances of independent noise add up."""
        seat = self._seat
        quotes = {
            budget: self._plan.quote(seat.problem, budget).multipliers
            for budget in set(seat.budgets.values())
        }
        each = [quotes[budget] for budget in seat.budgets.values()]
        return {
            part.name: math.sqrt(sum(multipliers[part.name] ** 2 for multipliers in each))
            for part in self._plan.parts
        }

    def noise_multiplier(self, name: str) -> float:
        return self._multipliers[name]

    def affords(self, name: str, query: Priced) -> bool:
        raise InvalidArgument("An adaptive run is no sum over the records of all owners.")

    def release(self, name: str, query: Query) -> Vector:
        self.from_solver.put((name, query))
        answer = self.answers.get()
        if answer is None:
            raise _Closed
        answer.setflags(write=False)
        self.transcript.append(Released(name, answer, query))
        return answer


@contextmanager
def _solving(solver: Solver, seat: Seat, sums: _SumDoor) -> Iterator[None]:
    """Run the solver in a separate thread, which ends when this does."""

    def work() -> None:
        try:
            sums.from_solver.put(run(solver, seat.pooled, sums).w)
        except _Closed:
            pass
        except BaseException as error:
            sums.from_solver.put(error)

    thread = Thread(target=work, name=f"solver of {seat.name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        sums.answers.put(None)
        thread.join()


def _local(query: Query, seat: Seat) -> Query:
    """The same query on this owner's rows."""
    # additive queries are dataclasses
    local: Query = replace(query, problem=seat.problem)  # type: ignore[type-var]
    return local
