"""Which labels of a term are coded against a reference, so that no column follows from others.

A label in a term stands for the constant and for differences to the reference. A term adds what
earlier terms have not got: subsets of its labels. Two subsets that differ by one label are put
together as all of its levels. This is the rule of patsy and R.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations

Coding = frozenset[tuple[str, bool]]
"""Labels of a block of columns, and whether all of their levels have one."""


def codings(terms: Iterable[tuple[Hashable, Sequence[str]]]) -> list[list[Coding]]:
    """For each term, given by its numbers and its labels, the blocks of columns that it adds.

    The intercept counts as the first term.
    """
    used: set[tuple[Hashable, frozenset[str]]] = {(frozenset(), frozenset())}
    found = []
    for numbers, labels in terms:
        subsets = [
            frozenset(chosen)
            for size in range(len(labels) + 1)
            for chosen in combinations(labels, size)
        ]
        new = [subset for subset in subsets if (numbers, subset) not in used]
        used |= {(numbers, subset) for subset in new}
        found.append(_merged([frozenset((label, False) for label in subset) for subset in new]))
    return found


def _merged(blocks: list[Coding]) -> list[Coding]:
    """Blocks put together until none is contained in another that has one label more."""
    for short in blocks:
        for long in blocks:
            if short < long and len(long - short) == 1:
                ((extra, _),) = long - short
                rest = [block for block in blocks if block not in (short, long)]
                return _merged([*rest, short | {(extra, True)}])
    return blocks
