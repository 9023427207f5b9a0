"""Bugs in the queries of private regression."""

import numpy as np

from hushfit.release.queries import _mean_and_square as numbers
from hushfit.release.queries import _residual_gradient as residual
from hushfit.release.queries import _shortened_moment as shortened

from ._mutant import Mutant, swapped

_RO, _AR = "(replace-one)", "(add-remove)"


def count_for_free():
    return swapped(
        residual.ResidualGradient,
        _moved=lambda self, gradients: self.clip * gradients * (1 + 1e-9),
    )


def clip_raw_records():
    """Lengths of the records themselves, as if the metric were the identity."""
    return swapped(
        residual.MatrixWhitening,
        lengths=lambda self, block: block.lengths(np.eye(len(self._full))),
    )


def columns_without_the_constant():
    original = residual.ColumnWhitening.lengths

    def lengths(self, block):
        return np.sqrt(np.maximum(original(self, block) ** 2 - self.fit_intercept, 0.0))

    return swapped(residual.ColumnWhitening, lengths=lengths)


def never_shortened():
    def factors(block, square, constant_square):
        return np.where(np.isnan(block.squares()), 0.0, 1.0)

    return swapped(shortened, shortening=factors)


def square_for_free_when_removed():
    original = numbers.MeanAndSquare.sensitivity
    return swapped(
        numbers.MeanAndSquare, sensitivity=lambda self, relation: original(self, relation) / 3**0.5
    )


def columns_one_sided():
    return swapped(shortened.ColumnMoments, sensitivity=lambda self, relation: self.radius())


def residuals_not_clipped():
    original = numbers.ResidualMoments.__call__

    def __call__(self, source, units):
        wide = numbers.ResidualMoments(self.problem, self.w, self.mean, self.spread, 2.0)
        return original(wide, source, units)

    return swapped(numbers.ResidualMoments, __call__=__call__)


REGRESSION = (
    Mutant(
        "number of clipped records for free",
        "hushfit.release.queries._residual_gradient",
        "The number of clipped records is left out of the sensitivity of a residual gradient.",
        count_for_free,
        (f"sensitivity of residual gradient {_AR}",),
    ),
    Mutant(
        "residuals clipped before the metric",
        "hushfit.release.queries._residual_gradient",
        "Residual gradients are clipped by the length of the record, not of its image.",
        clip_raw_records,
        (f"sensitivity of residual gradient {_RO}", f"sensitivity of residual gradient {_AR}"),
    ),
    Mutant(
        "constant left out of columns",
        "hushfit.release.queries._residual_gradient",
        "The length of a record by columns is taken without the intercept's entry, as with a map "
        "that was made for a model without one.",
        columns_without_the_constant,
        (f"sensitivity of residual gradient, by columns {_AR}",),
    ),
    Mutant(
        "records not shortened",
        "hushfit.release.queries._shortened_moment",
        "Records keep their lengths in the second moment that is calibrated to shorter ones.",
        never_shortened,
        (f"sensitivity of shortened moment {_RO}", f"sensitivity of column moments {_AR}"),
    ),
    Mutant(
        "square for free",
        "hushfit.release.queries._mean_and_square",
        "The sum of squares is left out of the sensitivity of mean and square.",
        square_for_free_when_removed,
        (f"sensitivity of targets {_AR}", f"sensitivity of targets {_RO}"),
    ),
    Mutant(
        "column moments, one-sided",
        "hushfit.release.queries._shortened_moment",
        "Replacing a record is taken to change the moments of columns as removing one does.",
        columns_one_sided,
        (f"sensitivity of column moments {_RO}",),
    ),
    Mutant(
        "residuals beyond their bound",
        "hushfit.release.queries._mean_and_square",
        "Residuals are added up without being clipped to the bound of the sensitivity.",
        residuals_not_clipped,
        (f"sensitivity of residuals {_RO}", f"sensitivity of residuals {_AR}"),
    ),
)
