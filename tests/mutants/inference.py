"""Bugs in the query of statistical inference."""

from hushfit.release.queries import _score_families as families
from hushfit.release.queries import _score_moments as moments

from ._mutant import Mutant, swapped

_RO, _AR = "(replace-one)", "(add-remove)"


def curvature_rides_for_free_when_removed():
    """The scores alone, as if what rides along cost nothing under add-remove either."""
    return swapped(families.LogisticScores, radius=1.0)


def curvature_too_heavy():
    """A larger factor for the curvature, and the bound of the smaller one."""
    return swapped(
        families.LogisticScores, factors=(9.0, 0.7), diameter=2.0000002, largest_curvature=0.25
    )


def weights_of_raw_records():
    """Weights by the squared length of the image, once too few: 1/|t| in place of 1/|t|^2."""
    original = moments.ScoreMoments.__call__

    def __call__(self, source, units):
        wider = moments.ScoreMoments(self.problem, self.w, self.A * 0.5, self.family)
        return 2.0 * original(wider, source, units)

    return swapped(moments.ScoreMoments, __call__=__call__)


def shares_of_persons_forgotten():
    """The scores of a person's rows are added up as if each had the whole weight of its person,
    shown here by doubling them.
    """
    original = moments.PersonScores.add

    def add(self, place, scores):
        original(self, place, 2.0 * scores)

    return swapped(moments.PersonScores, add=add)


INFERENCE = (
    Mutant(
        "curvature for free",
        "hushfit.release.queries._score_families",
        "Curvature and covariance of the scores are left out of the sensitivity under add-remove.",
        curvature_rides_for_free_when_removed,
        (f"sensitivity of scores, logistic {_AR}",),
    ),
    Mutant(
        "curvature too heavy",
        "hushfit.release.queries._score_families",
        "The curvature is multiplied by twice the factor that its bound was certified for.",
        curvature_too_heavy,
        (f"sensitivity of scores, logistic {_RO}",),
    ),
    Mutant(
        "long records weigh too much",
        "hushfit.release.queries._score_moments",
        "Records are given less weight from twice the length on that the bound assumes.",
        weights_of_raw_records,
        (f"sensitivity of scores, linear {_RO}", f"sensitivity of scores, linear {_AR}"),
    ),
    Mutant(
        "scores of persons too heavy",
        "hushfit.release.queries._score_moments",
        "The rows of a person have more than one share in the covariance of the scores.",
        shares_of_persons_forgotten,
        (
            f"persons: sensitivity of scores, logistic {_RO}",
            f"persons: sensitivity of scores, logistic {_AR}",
        ),
    ),
)
