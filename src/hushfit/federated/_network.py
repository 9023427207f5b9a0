"""The communication network: a connected undirected graph of data owners, public."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hushfit.errors import InvalidArgument

_SHAPES = ("complete", "ring", "star")


@dataclass(frozen=True)
class Network:
    """Owners and the edges along which they send each other messages.

    Parameters
    ----------
    names : sequence of str
        Of the owners; each once.
    edges : iterable of pairs of names
        In any order; none from an owner to itself. Every owner must be reachable from every other.

    Examples
    --------
    >>> from hushfit.federated import Network
    >>> Network.ring(["north", "east", "south", "west"]).neighbours("north")
    ('east', 'west')
    """

    names: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]

    def __init__(self, names: Iterable[str], edges: Iterable[tuple[str, str]]) -> None:
        object.__setattr__(self, "names", _checked_names(names))
        object.__setattr__(self, "edges", _checked_edges(edges, self.names))
        unreached = set(self.names) - set(self._parents)
        if unreached:
            raise InvalidArgument(
                f"The network is not connected: {', '.join(sorted(unreached))} cannot be reached "
                f"from {self.root}. Add edges until it is connected."
            )

    @classmethod
    def ring(cls, names: Sequence[str]) -> "Network":
        """Edges from each owner to the next, and from the last to the first."""
        return cls(
            names, [(a, b) for a, b in zip(names, [*names[1:], names[0]], strict=True) if a != b]
        )

    @classmethod
    def star(cls, names: Sequence[str]) -> "Network":
        """Edges from the first owner to every other."""
        return cls(names, [(names[0], name) for name in names[1:]])

    @classmethod
    def complete(cls, names: Sequence[str]) -> "Network":
        """Edges between all owners."""
        return cls(names, [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]])

    @classmethod
    def random(cls, names: Sequence[str], mean_degree: float = 4.0, seed: int = 0) -> "Network":
        """A random tree, so that it is connected, plus random edges up to a mean degree. The seed
        is public.
        """
        rng = np.random.default_rng(seed)
        order = [names[i] for i in rng.permutation(len(names))]
        edges = {_sorted(order[i], order[int(rng.integers(i))]) for i in range(1, len(order))}
        most = len(names) * (len(names) - 1) // 2
        while len(edges) < min(round(mean_degree * len(names) / 2), most):
            a, b = rng.choice(len(names), 2, replace=False)
            edges.add(_sorted(names[a], names[b]))
        return cls(names, edges)

    @classmethod
    def parse(cls, shape: Any, names: Sequence[str]) -> "Network":
        """The network that a user gives: a `Network`, the name of a shape, or a list of edges."""
        if isinstance(shape, Network):
            if set(shape.names) != set(names):
                raise InvalidArgument(
                    f"The network is of {list(shape.names)}, but the owners are {list(names)}. "
                    "Make them the same."
                )
            return shape
        if isinstance(shape, str):
            if shape not in (*_SHAPES, "random"):
                raise InvalidArgument(
                    f"network={shape!r} is not known. Use 'complete', 'ring', 'star', 'random' or "
                    "a list of edges."
                )
            made: Network = getattr(cls, shape)(names)
            return made
        return cls(names, shape)

    @cached_property
    def _adjacent(self) -> dict[str, tuple[str, ...]]:
        adjacent: dict[str, set[str]] = {name: set() for name in self.names}
        for a, b in self.edges:
            adjacent[a].add(b)
            adjacent[b].add(a)
        return {name: tuple(sorted(others)) for name, others in adjacent.items()}

    def neighbours(self, name: str) -> tuple[str, ...]:
        """The owners that share an edge with this one, in alphabetical order."""
        return self._adjacent[name]

    @property
    def root(self) -> str:
        """Where sums over the network are added up."""
        return self.names[0]

    @cached_property
    def _parents(self) -> dict[str, str | None]:
        """A shortest-path tree; every owner finds the same one."""
        parents: dict[str, str | None] = {self.root: None}
        queue = deque([self.root])
        while queue:
            at = queue.popleft()
            for name in self._adjacent[at]:
                if name not in parents:
                    parents[name] = at
                    queue.append(name)
        return parents

    def parent(self, name: str) -> str | None:
        """The next owner on the way to the root."""
        return self._parents[name]

    def depth(self, name: str) -> int:
        """Edges between an owner and the root."""
        above = self._parents[name]
        return 0 if above is None else 1 + self.depth(above)

    @cached_property
    def height(self) -> int:
        """The largest depth."""
        return max(self.depth(name) for name in self.names)

    def to_dict(self) -> dict[str, Any]:
        """Describe the network in plain JSON values."""
        return {"names": list(self.names), "edges": [list(edge) for edge in self.edges]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Network":
        """Read back what `to_dict` wrote."""
        return cls(data["names"], [(a, b) for a, b in data["edges"]])


def _sorted(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _checked_names(names: Iterable[str]) -> tuple[str, ...]:
    checked = tuple(names)
    if not checked or not all(isinstance(name, str) and name for name in checked):
        raise InvalidArgument(f"names={checked!r} must be one or more names. Name each owner.")
    if len(set(checked)) < len(checked):
        raise InvalidArgument(f"names={list(checked)} has a name twice. Name each owner once.")
    return checked


def _checked_edges(
    edges: Iterable[tuple[str, str]], names: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    checked = set()
    for edge in edges:
        a, b = edge
        if a == b or a not in names or b not in names:
            raise InvalidArgument(
                f"{edge!r} is not an edge between two of the owners {list(names)}. Name two "
                "different owners."
            )
        checked.add(_sorted(a, b))
    return tuple(sorted(checked))
