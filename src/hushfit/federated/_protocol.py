"""What an algorithm for several owners is: a conversation that each of them holds with its
neighbours.

A conversation is a generator. It yields what its owner says to all its neighbours in this round, or
None to be silent, and is sent what they said. Whatever it says must be a function of the curator's
answers and of what it was sent, so it needs no privacy proof of its own; and from the journal of
both it can be held again, word for word, after a crash. Proof: docs/proofs/federated.md.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from hushfit._typing import Vector
from hushfit.federated._network import Network
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import Door, Plan

Inbox: TypeAlias = Mapping[str, Vector]
"""What the neighbours said in a round; who was silent is missing."""

Conversation: TypeAlias = Generator[Vector | None, Inbox, Vector]
"""Yields messages, is sent inboxes, and returns the weights at its end."""


@dataclass(frozen=True)
class Seat:
    """An owner's place at the table: all that it may know before the first word, and all of it
    public.

    Parameters
    ----------
    name : str
    network : Network
    problem : Problem
        With the number of this owner's own rows.
    sizes : mapping from name to int
        Rows of every owner.
    budgets : mapping from name to Budget
        What every owner will spend on its own rows.
    """

    name: str
    network: Network
    problem: Problem
    sizes: Mapping[str, int]
    budgets: Mapping[str, Budget]

    @property
    def neighbours(self) -> tuple[str, ...]:
        return self.network.neighbours(self.name)

    @property
    def budget(self) -> Budget:
        return self.budgets[self.name]

    @property
    def n_total(self) -> int:
        """Rows of all owners together."""
        return sum(self.sizes.values())

    @property
    def pooled(self) -> Problem:
        """The problem that they solve together."""
        return replace(self.problem, n_rows=self.n_total)

    @property
    def weight(self) -> float:
        """How much this owner's mean loss counts, so that every row counts the same; 1 on
        average.
        """
        return len(self.sizes) * self.problem.n_rows / self.n_total


class Algorithm(Protocol):
    """One way for owners to fit a model together; a frozen dataclass of settings that all owners
    share.
    """

    def plan(self, seat: Seat) -> Plan:
        """All releases that an owner will make, whatever it hears."""

    def rounds(self, seat: Seat) -> int:
        """How many rounds of messages there are."""

    def converse(self, seat: Seat, door: Door) -> Conversation:
        """An owner's side of the talk."""


def received(inbox: Inbox, name: str, default: Vector, bound: float) -> Vector:
    """What a neighbour said, made harmless: the default if it was silent or not finite, and no
    longer than a bound.

    Privacy does not depend on it: whatever a neighbour sends is public. The bound keeps the owner's
    own arithmetic sound.
    """
    said = inbox.get(name)
    if said is None or said.shape != (default.size,) or not np.all(np.isfinite(said)):
        return default
    said = np.clip(said, -bound, bound)  # so that the square of its length is finite
    length = float(np.linalg.norm(said))
    return (said if length <= bound else said * (bound / length)).reshape(default.shape)


def sum_over_owners(
    seat: Seat, own: Vector, bound: float
) -> Generator[Vector | None, Inbox, Vector]:
    """Sum of one vector per owner, up a tree to the root and down again; every owner gets the
    same sum.
    """
    network, name = seat.network, seat.name
    depth, total = network.depth(name), own
    children = [other for other in seat.neighbours if network.parent(other) == name]
    zero = np.zeros_like(own)
    for level in range(network.height, 0, -1):
        inbox = yield total if level == depth else None
        if level == depth + 1:
            total = total + sum(
                (received(inbox, child, zero, bound) for child in children), start=zero
            )
    for level in range(network.height):
        inbox = yield total if level == depth else None
        above = network.parent(name)
        if level == depth - 1 and above is not None:
            total = received(inbox, above, zero, bound)
    return total
