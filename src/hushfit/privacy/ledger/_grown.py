"""Sequences that only ever grow, in time that does not depend on their length."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

_Item = TypeVar("_Item", covariant=True)


class Grown(Sequence[_Item]):
    """A sequence that does not change. One that continues it shares its items, so that it costs
    only what is new.

    Parameters
    ----------
    items : iterable

    Examples
    --------
    >>> one = Grown("ab")
    >>> two, other = one.after("c"), one.after("d")
    >>> "".join(one), "".join(two), "".join(other)
    ('ab', 'abc', 'abd')
    """

    # The list may be longer: then another sequence has continued this one in it.
    def __init__(self, items: Iterable[_Item] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def after(self, items: Iterable[_Item]) -> "Grown[_Item]":
        """The sequence with more items at its end."""
        longest = 0 < self._length == len(self._items)
        grown = Grown[_Item]()
        grown._items = self._items if longest else self._items[: self._length]
        grown._items.extend(items)
        grown._length = len(grown._items)
        return grown

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[_Item]:
        return islice(self._items, self._length)

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_Item, ...]: ...
    def __getitem__(self, index: int | slice) -> _Item | tuple[_Item, ...]:
        if isinstance(index, int):
            return self._items[range(self._length)[index]]
        return tuple(self._items[k] for k in range(self._length)[index])

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Grown) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
