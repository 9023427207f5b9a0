"""Regression on records that keep their lengths, in the metric of a private second moment.

MAX_MATRIX_COLUMNS    Columns up to which a matrix of second moments is released
WhitenedLeastSquares  Least squares from clipped residual gradients, with empirical Bayes in every
                      round
WhitenedPoisson       Regression of counts by the same rounds
units_needed          Number of units below which a fit may be worse than one number for all
"""

from hushfit.solvers.regression._least_squares import (
    MAX_MATRIX_COLUMNS,
    WhitenedLeastSquares,
    units_needed,
)
from hushfit.solvers.regression._poisson import WhitenedPoisson

__all__ = ["MAX_MATRIX_COLUMNS", "WhitenedLeastSquares", "WhitenedPoisson", "units_needed"]
