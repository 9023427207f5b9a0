"""Bugs in the query of private statistics."""

import numpy as np

from hushfit.release.queries import _group_moments as moments

from ._mutant import Mutant, Shadow, swapped

_RO, _AR = "(replace-one)", "(add-remove)"


def counts_too_heavy():
    return swapped(moments, KNOWN_WEIGHT=1.2)


def numbers_not_clipped():
    return swapped(moments, np=Shadow(np, clip=lambda v, low, high: v))


def moments_not_composed():
    original = moments.GroupMoments.sensitivity

    def sensitivity(self, relation):
        return original(self, relation) / np.sqrt(len(self.columns))

    return swapped(moments.GroupMoments, sensitivity=sensitivity)


STATISTICS = (
    Mutant(
        "counts too heavy",
        "hushfit.release.queries._group_moments",
        "Counts of known numbers are weighted so heavily that they no longer ride for nothing.",
        counts_too_heavy,
        (f"sensitivity of moments by group {_RO}", f"sensitivity of moments of columns {_AR}"),
    ),
    Mutant(
        "numbers beyond their range",
        "hushfit.release.queries._group_moments",
        "Numbers are trusted to lie between -1 and 1.",
        numbers_not_clipped,
        (f"sensitivity of moments of columns {_RO}", f"sensitivity of moments of columns {_AR}"),
    ),
    Mutant(
        "moments of columns not composed",
        "hushfit.release.queries._group_moments",
        "A record is taken to have a number in one column, though it has one in each.",
        moments_not_composed,
        (f"sensitivity of moments of columns {_RO}", f"sensitivity of moments by group {_RO}"),
    ),
)
