r"""Exact answers about the rows, each with a proved sensitivity.

AdmmRun             Primal variable and previous dual after ``inner`` noiseless steps from a public
                    state, in the metric of the iteration
AdmmState           The three variables of ADMM with the constraint x = z
AdmmStep            All three variables after one step from a public state
admm_step           One step from a mean gradient at ``state.x``
dual_step           The next dual
primal_step         Step size of x
ColumnHistogram     Histograms of the values of all columns at once
ARITHMETIC_SLACK    Covers the rounding of a record's own arithmetic
ClippedGradient     Sum over the records of :math:`A g_i`, each clipped to norm ``clip``
Metric              A public symmetric matrix (preconditioner)
with_intercept      The weights with an entry for the intercept, which kernels expect
CURVATURES          Kinds of curvature of a Hessian query
HessianSum          Upper triangle of :math:`\sum_i c_i x_i x_i^T`, with :math:`c_i` the curvature
                    of the loss at the margin of record i
NewtonDirection     The solution d of :math:`(H + \lambda I) d = g`, with H the mean of the records'
                    curvatures and g public
GradientWithMoment  The sum of clipped gradients and a second moment or Hessian of the same records,
                    concatenated
BayesRankGradient   Sum over the lists of the gradients of minus the expected NDCG of their top
                    documents
gradient_norms      Bounds on the norms of the gradients of lists, over all grades
ListGradient        Sum over the lists of the gradients of their losses, each clipped
ListSecondMoment    Upper triangle of the sum over lists of the covariance of their documents
ListStatistic       Sum over lists of their documents, weighted by gains
LabelStatistic      Sum over the rows of public features times the statistic of the label
canonical           The loss of a problem, refused if labels do not enter it linearly
rounded_sum         Sum of records times weights, every product rounded to a grid
LogisticGradient    Sum of unclipped logistic gradients at public weights
gradient_diameter   Bound, tight to about half a per cent, on the distance between two logistic
                    gradients at weights of this norm
MarginHistogram     Histogram of the signed margin ``y * (w . x)``, for two classes
TotalScore          Sum of the scores of all records, which the source carries as its labels
SecondMoment        Upper triangle of :math:`\sum_i x_i x_i^T`, records of length one
"""

from hushfit.release.queries._admm import (
    AdmmRun,
    AdmmState,
    AdmmStep,
    admm_step,
    dual_step,
    primal_step,
)
from hushfit.release.queries._bayes_rank import BayesRankGradient, gradient_norms
from hushfit.release.queries._column_histogram import ColumnHistogram
from hushfit.release.queries._gradient import (
    ARITHMETIC_SLACK,
    ClippedGradient,
    Metric,
    with_intercept,
)
from hushfit.release.queries._hessian import CURVATURES, HessianSum, NewtonDirection
from hushfit.release.queries._joint import GradientWithMoment
from hushfit.release.queries._label_statistic import LabelStatistic, canonical, rounded_sum
from hushfit.release.queries._list_gradient import ListGradient, ListSecondMoment
from hushfit.release.queries._list_statistic import ListStatistic
from hushfit.release.queries._logistic_gradient import LogisticGradient, gradient_diameter
from hushfit.release.queries._margin_histogram import MarginHistogram
from hushfit.release.queries._score import TotalScore
from hushfit.release.queries._second_moment import SecondMoment

__all__ = [
    "ARITHMETIC_SLACK",
    "CURVATURES",
    "AdmmRun",
    "AdmmState",
    "AdmmStep",
    "BayesRankGradient",
    "ClippedGradient",
    "ColumnHistogram",
    "GradientWithMoment",
    "HessianSum",
    "LabelStatistic",
    "ListGradient",
    "ListSecondMoment",
    "ListStatistic",
    "LogisticGradient",
    "MarginHistogram",
    "Metric",
    "NewtonDirection",
    "SecondMoment",
    "TotalScore",
    "admm_step",
    "canonical",
    "dual_step",
    "gradient_diameter",
    "gradient_norms",
    "primal_step",
    "rounded_sum",
    "with_intercept",
]
