"""All owners in one process: for research, for tests, and for trying settings before a real run."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat

from hushfit._typing import Vector
from hushfit.federated._owner import Owner


@dataclass(frozen=True, eq=False)
class Talk:
    """What came of a run.

    Parameters
    ----------
    weights : mapping from name to array
        Each owner's own result; equal where the algorithm ends in agreement.
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
        """How often an owner spoke."""
        return sum(len(words) for words in self.said)

    @property
    def messages(self) -> int:
        """One for each neighbour that hears it."""
        return sum(self.edges_of[name] for words in self.said for name in words)

    @property
    def bytes(self) -> int:
        """Of the vectors, each counted along every edge that it travels."""
        return sum(
            self.edges_of[name] * vector.nbytes
            for words in self.said
            for name, vector in words.items()
        )


def simulate(
    owners: Sequence[Owner], watch: Callable[[int], None] | None = None, workers: int = 2
) -> Talk:
    """Hold a run among owners in this process, along the edges of their network only.

    Parameters
    ----------
    owners : sequence of Owner
        Of one run, each with its own rows, ledger and journal. Some may have taken turns already:
        they repeat themselves.
    watch : callable, optional
        Called after each round with the number of rounds done.
    workers : int, default=2
        Owners that think at the same time.

    Returns
    -------
    Talk
    """
    said: list[dict[str, Vector]] = []
    mail: dict[str, dict[str, Vector]] = {owner.name: {} for owner in owners}
    with ThreadPoolExecutor(workers) as pool:
        while any(owner.weights is None for owner in owners):
            number = len(said)
            words = list(
                pool.map(_take_turn, owners, repeat(number), [mail[owner.name] for owner in owners])
            )
            spoken = {
                owner.name: word
                for owner, word in zip(owners, words, strict=True)
                if word is not None
            }
            mail = {
                owner.name: {n: spoken[n] for n in owner.seat.neighbours if n in spoken}
                for owner in owners
            }
            said.append(spoken)
            if watch is not None:
                watch(len(said))
    said.pop()  # the turn after the last round is silent
    weights = {owner.name: owner.weights for owner in owners if owner.weights is not None}
    return Talk(weights, said, {owner.name: len(owner.seat.neighbours) for owner in owners})


def _take_turn(owner: Owner, number: int, heard: Mapping[str, Vector]) -> Vector | None:
    return owner.turn(number, heard)
