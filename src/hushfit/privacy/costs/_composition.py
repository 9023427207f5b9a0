"""Costs of several releases together: they compose, compare and serialise.

A cost describes a mechanism, not its privacy loss: epsilon and delta come from `epsilon_of` and
`delta_of`. Proof: docs/proofs/composition.md.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hushfit.errors import InvalidArgument
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation, labels_only, no_proof_for_labels
from hushfit.privacy.costs._release_cost import Cost, ReleaseCost


@dataclass(frozen=True)
class ComposedCost(Cost, kind="composed"):
    """Adaptive composition of several costs.

    Build it with `compose`, which keeps it flat and in one order.

    Parameters
    ----------
    parts : tuple of costs
        None of them composed. The empty tuple is the cost of no release.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, PureCost, compose, epsilon_of
    >>> both = compose([GaussianCost(noise_multiplier=10.0), PureCost(0.2)])
    >>> len(both.parts), round(epsilon_of(both, 1e-6, "replace-one"), 3)
    (2, 0.583)
    """

    parts: tuple[ReleaseCost, ...]

    def __post_init__(self) -> None:
        _check.store(self, parts=tuple(self.parts))
        for part in self.parts:
            if not isinstance(part, ReleaseCost):
                raise InvalidArgument(
                    f"{type(part).__name__} cannot be a part of a cost. Combine costs with compose."
                )

    def entries(self) -> Iterator[ReleaseCost]:
        yield from self.parts

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return {"kind": self.kind, "parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ComposedCost":
        """Read what `to_dict` wrote."""
        parts = _check.fields(data, {"kind", "parts"}, "a composed cost")["parts"]
        if not isinstance(parts, list):
            raise InvalidArgument(
                "the parts of a composed cost should be a list. Use what to_dict() wrote."
            )
        # refuses composed parts
        return cls(tuple(cost_from_dict(part) for part in parts))  # type: ignore[misc]


def compose(costs: Iterable[Cost]) -> Cost:
    """Adaptive composition: the cost of several releases that may depend on earlier answers.

    Parameters
    ----------
    costs : iterable of costs
        In any order, composed or not.

    Returns
    -------
    Cost
        Flat, with equal releases counted together, in an order that does not depend on that of the
        input. Gaussian releases with different noise multipliers stay separate here, for the
        record; `epsilon_of` adds the squares of their mu.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, PureCost, compose, epsilon_of
    >>> both = compose([GaussianCost(10.0), PureCost(0.1)])
    >>> round(epsilon_of(both, 1e-6, "add-remove"), 2)
    0.48
    """
    tally: Counter[ReleaseCost] = Counter()
    for cost in costs:
        for part in entries_of(cost):
            tally[part.times(1)] += part.count
    parts = tuple(
        sorted((one.times(count) for one, count in tally.items()), key=ReleaseCost.sort_key)
    )
    return parts[0] if len(parts) == 1 else ComposedCost(parts)


def repeat(cost: Cost, times: int) -> Cost:
    """Cost of the same releases repeated several times.

    Parameters
    ----------
    cost : Cost
        Of one repetition.
    times : int
        Number of repetitions, at least 1.

    Returns
    -------
    Cost

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, repeat
    >>> repeat(GaussianCost(10.0), 3)
    GaussianCost(noise_multiplier=10.0, count=3)
    """
    times = _check.count(times, "times")
    return compose(part.times(times * part.count) for part in entries_of(cost))


def parts_of(cost: Cost) -> Iterator[ReleaseCost]:
    """Releases with their own Renyi curve that make up a cost, or bound it."""
    for entry in entries_of(cost):
        yield from entry.parts()


def entries_of(cost: Cost) -> Iterator[ReleaseCost]:
    """Releases that were composed, unchanged."""
    if not isinstance(cost, Cost):
        raise InvalidArgument(
            f"{type(cost).__name__} is not a cost. Use GaussianCost or another kind of cost."
        )
    return cost.entries()


def require_proof(cost: Cost, relation: Relation | str) -> None:
    """Refuse a cost with a part that has no proof where labels alone are private."""
    if labels_only(relation) and not all(part.for_labels for part in entries_of(cost)):
        raise no_proof_for_labels(relation)


def cost_from_dict(data: Mapping[str, Any]) -> Cost:
    """Read what `to_dict` wrote.

    Parameters
    ----------
    data : mapping
        Plain JSON values.

    Returns
    -------
    Cost

    Raises
    ------
    InvalidArgument
        If the kind is unknown, a field is missing or added, or a value is out of range.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, cost_from_dict
    >>> cost_from_dict(GaussianCost(noise_multiplier=10.0, count=3).to_dict())
    GaussianCost(noise_multiplier=10.0, count=3)
    """
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in Cost.kinds:
        raise InvalidArgument(
            f"cost kind {kind!r} is unknown. Known kinds: {', '.join(Cost.kinds)}."
        )
    return Cost.kinds[kind].from_dict(data)
