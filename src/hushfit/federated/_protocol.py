"""Interface of a federated algorithm: what each owner sends to its neighbours, round by round.

A conversation is a generator. It yields the message of its owner to all neighbours in this round,
or None to send nothing, and is sent their messages. Every message must be a function of the
curator's answers and of the received messages: it is post-processing and needs no separate privacy
proof, and after a crash the journal of both reproduces it exactly. Proof: docs/proofs/federated.md.
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
"""Messages of the neighbours in a round; an owner that sent nothing is missing."""

Conversation: TypeAlias = Generator[Vector | None, Inbox, Vector]
"""Yields messages, is sent inboxes, and returns the weights."""


@dataclass(frozen=True)
class Seat:
    """What an owner knows before the first message; all of it is public.

    Parameters
    ----------
    name : str
    network : Network
    problem : Problem
        With the number of this owner's own rows or persons, and the unit, which is the same for all
        owners.
    sizes : mapping from name to int
        Number of rows, or of persons, of every owner.
    budgets : mapping from name to Budget
        Privacy budget of every owner, for its own rows.
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
        """Total number of rows, or of persons, of all owners."""
        return sum(self.sizes.values())

    @property
    def pooled(self) -> Problem:
        """The problem on the rows of all owners."""
        return replace(self.problem, n_units=self.n_total)

    @property
    def weight(self) -> float:
        """Weight of this owner's mean loss, such that every unit counts the same; 1 on average."""
        return len(self.sizes) * self.problem.n_units / self.n_total


class Algorithm(Protocol):
    """A federated algorithm: a frozen dataclass of settings, the same for all owners."""

    def plan(self, seat: Seat) -> Plan:
        """All releases that an owner will make, whatever it receives."""

    def rounds(self, seat: Seat) -> int:
        """Number of rounds of messages."""

    def converse(self, seat: Seat, door: Door) -> Conversation:
        """The owner's part of the run, as a generator of messages."""


def received(inbox: Inbox, name: str, default: Vector, bound: float) -> Vector:
    """The message of a neighbour, sanitised: the default if it is missing or not finite, and
    clipped to a norm of ``bound``.

    Privacy does not depend on it: messages are public. The bound prevents overflow in the owner's
    own arithmetic.
    """
    message = inbox.get(name)
    if message is None or message.shape != (default.size,) or not np.all(np.isfinite(message)):
        return default
    message = np.clip(message, -bound, bound)  # so that the square of its length is finite
    length = float(np.linalg.norm(message))
    return (message if length <= bound else message * (bound / length)).reshape(default.shape)


def sum_over_owners(
    seat: Seat, own: Vector, bound: float
) -> Generator[Vector | None, Inbox, Vector]:
    """Sum of one vector per owner: added up along a tree to the root, then sent down; every owner
    gets the same sum.
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
