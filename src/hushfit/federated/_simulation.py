"""Simulation with all owners in one process: for research, tests, and choosing settings before a
real run.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat

from hushfit._typing import Vector
from hushfit.federated._owner import Owner


@dataclass(frozen=True, eq=False)
class Talk:
    """Weights and messages of a run.

    Parameters
    ----------
    weights : mapping from name to array
        Result of each owner; equal if the algorithm ends in consensus.
    said : list of mappings from name to array
        Every message of every round, as an eavesdropper has them.
    """

    weights: Mapping[str, Vector]
    said: list[dict[str, Vector]] = field(repr=False)
    edges_of: Mapping[str, int] = field(repr=False)

    @property
    def rounds(self) -> int:
        return len(self.said)

    @property
    def broadcasts(self) -> int:
        """Number of broadcasts of all owners."""
        return sum(len(sent) for sent in self.said)

    @property
    def messages(self) -> int:
        """Number of messages: one per broadcast and neighbour."""
        return sum(self.edges_of[name] for sent in self.said for name in sent)

    @property
    def bytes(self) -> int:
        """Size of the vectors, each counted for every edge on which it is sent."""
        return sum(
            self.edges_of[name] * vector.nbytes
            for sent in self.said
            for name, vector in sent.items()
        )


def simulate(
    owners: Sequence[Owner], watch: Callable[[int], None] | None = None, workers: int = 2
) -> Talk:
    """Run owners in this process; messages follow the edges of their network only.

    Parameters
    ----------
    owners : sequence of Owner
        Of one run, each with its own rows, ledger and journal. Turns that were taken already are
        replayed.
    watch : callable, optional
        Called after each round with the number of rounds done.
    workers : int, default=2
        Owners that compute at the same time.

    Returns
    -------
    Talk
    """
    rounds: list[dict[str, Vector]] = []
    mail: dict[str, dict[str, Vector]] = {owner.name: {} for owner in owners}
    with ThreadPoolExecutor(workers) as pool:
        while any(owner.weights is None for owner in owners):
            number = len(rounds)
            messages = list(
                pool.map(_take_turn, owners, repeat(number), [mail[owner.name] for owner in owners])
            )
            sent = {
                owner.name: message
                for owner, message in zip(owners, messages, strict=True)
                if message is not None
            }
            mail = {
                owner.name: {n: sent[n] for n in owner.seat.neighbours if n in sent}
                for owner in owners
            }
            rounds.append(sent)
            if watch is not None:
                watch(len(rounds))
    rounds.pop()  # nothing is sent in the turn after the last round
    weights = {owner.name: owner.weights for owner in owners if owner.weights is not None}
    return Talk(weights, rounds, {owner.name: len(owner.seat.neighbours) for owner in owners})


def _take_turn(owner: Owner, number: int, received: Mapping[str, Vector]) -> Vector | None:
    return owner.turn(number, received)
