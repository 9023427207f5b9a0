"""Bugs in tables in parts: a record counts more often, or in a small part more, than once."""

from hushfit.audit.checks import _parts as checks
from hushfit.data.rows import _parts as parts

from ._mutant import Mutant, swapped, together


def in_every_place():
    def every_place(places):
        having = {place for kept in places for place in kept}
        lost = [(None, [number]) for number, kept in enumerate(places) if not kept]
        return lost + [
            (place, [number for number, kept in enumerate(places) if place in kept])
            for place in sorted(having)
        ]

    return together(
        swapped(parts, one_place_each=every_place), swapped(checks, one_place_each=every_place)
    )


def every_part_weighs_the_same():
    """The mean of the parts' means, as if all parts had the same number of rows."""

    def mean_of_means(query, some):
        sums = [query.exact_sums(part, None) * (part.n_units / len(part.y)) for part in some]
        return sum(sums[1:], start=sums[0]) / len(some)

    return together(
        swapped(parts, sum_of_parts=mean_of_means), swapped(checks, sum_of_parts=mean_of_means)
    )


_CAUGHT_BY = (
    "gradient, logistic in parts",
    "second moment in parts",
    "margin histogram in parts",
    "targets in parts",
)

PARTS = (
    Mutant(
        "part added up in two places",
        "hushfit.data.rows._parts",
        "After a worker was thought lost two have a copy of a part, and both add it up.",
        in_every_place,
        _CAUGHT_BY,
    ),
    Mutant(
        "mean of the means of parts",
        "hushfit.data.rows._parts",
        "Means of parts are averaged, so a record in a short part counts more than its share.",
        every_part_weighs_the_same,
        _CAUGHT_BY,
    ),
)
