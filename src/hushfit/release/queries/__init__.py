r"""Exact answers about the rows, each with a proved sensitivity.

AdmmRun             Primal variable and previous dual after ``inner`` noiseless steps from a public
                    state, in the metric of the iteration
AdmmState           The three variables of ADMM with the constraint x = z
AdmmStep            All three variables after one step from a public state
admm_step           One step from a mean gradient at ``state.x``
dual_step           The next dual
primal_step         Step size of x
ClassCounts         Number of records of each class
ColumnHistogram     Histograms of the values of all columns at once
GroupMoments        Sums of the numbers, squares and counts of columns, by group
KNOWN_WEIGHT        Factor of the counts among them
MOST_GROUPS         Largest number of groups
SQUARE_WEIGHT       Factor of the squares among them
Totals              The parts of a released answer of them, and their noise
ARITHMETIC_SLACK    Covers the rounding of a record's own arithmetic
ClippedGradient     Sum over the records of :math:`A g_i`, each clipped to norm ``clip``
Metric              A public symmetric matrix (preconditioner)
RankOneMetric       A metric that shortens one direction; never a matrix in memory
UNIT_ROUNDOFF       Relative rounding error of one operation in float64
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
LineDerivative      Derivative of the loss along a line of weights, clipped
LogisticGradient    Sum of unclipped logistic gradients at public weights
gradient_diameter   Bound, tight to about half a per cent, on the distance between two logistic
                    gradients at weights of this norm
LossDrop            Sums over the records of :math:`\ell_i(w) - \ell_i(w_k)` for public candidates,
                    each clipped to its ``bounds`` entry
Gate                Index of the first candidate whose decrease is at least the required one, or the
                    number of candidates if there is none
Choice              Index of the candidate whose decrease most exceeds the required one
MOST_QUERIES        Upper bound on the noise values that a gate draws
clipped_requirements Required decreases, clipped to what decides a comparison by itself
first_passed        Index of the first candidate that passed, as an answer
Backtracking        Candidates of a backtracking line search from an already released gradient
GatedStep           Sum of clipped gradients, then the index of the first acceptable step size along
                    it, over the same records
choice_between      The choice among public points by the objective
MAX_BINS            Largest number of bins of one histogram
MarginHistogram     Histogram of the signed margin ``y * (w . x)``, for two classes
LogLength           Logarithm of the squared length of the features, mapped to [-1, 1]
MeanAndSquare       Sums of a bounded number of each record and of its square
Prediction          What public weights predict, as a number of each record
ResidualMoments     Sums of residuals, and of residuals times predictions
Target              The target of each record
COUNT_WEIGHT        Share of the clipping norm that a clipped record counts
ColumnWhitening     Columns are centred and scaled, one by one
MatrixWhitening     Records are multiplied by a matrix
ResidualGradient    Sum of residual gradients, clipped in a public metric, and the number of those
                    that were clipped
Whitening           A public linear map of records, in which gradients are clipped
ColumnMoments       Sums of the squares and of the entries of every column, of shortened records
ShortenedMoment     Upper triangle of the sum of outer products of shortened records
Moments             Scores, curvature and covariance of the scores, with their noise
ScoreMoments        Sums of scores, curvatures and outer products of scores, in a public metric
Means               Means of responses as functions of the margin
ScoreFamily         Residual, curvature and bounds of a generalised linear model
score_family        The family of a loss
RecordSum           Sum of the records, each of length one
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
from hushfit.release.queries._backtracking import Backtracking, GatedStep, choice_between
from hushfit.release.queries._bayes_rank import BayesRankGradient, gradient_norms
from hushfit.release.queries._class_counts import ClassCounts
from hushfit.release.queries._column_histogram import ColumnHistogram
from hushfit.release.queries._gradient import (
    ARITHMETIC_SLACK,
    UNIT_ROUNDOFF,
    ClippedGradient,
    Metric,
    RankOneMetric,
    with_intercept,
)
from hushfit.release.queries._group_moments import (
    KNOWN_WEIGHT,
    MOST_GROUPS,
    SQUARE_WEIGHT,
    GroupMoments,
    Totals,
)
from hushfit.release.queries._hessian import CURVATURES, HessianSum, NewtonDirection
from hushfit.release.queries._joint import GradientWithMoment
from hushfit.release.queries._label_statistic import LabelStatistic, canonical, rounded_sum
from hushfit.release.queries._line_derivative import LineDerivative
from hushfit.release.queries._list_gradient import ListGradient, ListSecondMoment
from hushfit.release.queries._list_statistic import ListStatistic
from hushfit.release.queries._logistic_gradient import LogisticGradient, gradient_diameter
from hushfit.release.queries._loss_drop import (
    MOST_QUERIES,
    Choice,
    Gate,
    LossDrop,
    clipped_requirements,
    first_passed,
)
from hushfit.release.queries._margin_histogram import MAX_BINS, MarginHistogram
from hushfit.release.queries._mean_and_square import (
    LogLength,
    MeanAndSquare,
    Prediction,
    ResidualMoments,
    Target,
)
from hushfit.release.queries._record_sum import RecordSum
from hushfit.release.queries._residual_gradient import (
    COUNT_WEIGHT,
    ColumnWhitening,
    MatrixWhitening,
    ResidualGradient,
    Whitening,
)
from hushfit.release.queries._score import TotalScore
from hushfit.release.queries._score_families import Means, ScoreFamily, score_family
from hushfit.release.queries._score_moments import Moments, ScoreMoments
from hushfit.release.queries._second_moment import SecondMoment
from hushfit.release.queries._shortened_moment import ColumnMoments, ShortenedMoment

__all__ = [
    "ARITHMETIC_SLACK",
    "COUNT_WEIGHT",
    "CURVATURES",
    "KNOWN_WEIGHT",
    "MAX_BINS",
    "MOST_GROUPS",
    "MOST_QUERIES",
    "SQUARE_WEIGHT",
    "UNIT_ROUNDOFF",
    "AdmmRun",
    "AdmmState",
    "AdmmStep",
    "Backtracking",
    "BayesRankGradient",
    "Choice",
    "ClassCounts",
    "ClippedGradient",
    "ColumnHistogram",
    "ColumnMoments",
    "ColumnWhitening",
    "Gate",
    "GatedStep",
    "GradientWithMoment",
    "GroupMoments",
    "HessianSum",
    "LabelStatistic",
    "LineDerivative",
    "ListGradient",
    "ListSecondMoment",
    "ListStatistic",
    "LogLength",
    "LogisticGradient",
    "LossDrop",
    "MarginHistogram",
    "MatrixWhitening",
    "MeanAndSquare",
    "Means",
    "Metric",
    "Moments",
    "NewtonDirection",
    "Prediction",
    "RankOneMetric",
    "RecordSum",
    "ResidualGradient",
    "ResidualMoments",
    "ScoreFamily",
    "ScoreMoments",
    "SecondMoment",
    "ShortenedMoment",
    "Target",
    "TotalScore",
    "Totals",
    "Whitening",
    "admm_step",
    "canonical",
    "choice_between",
    "clipped_requirements",
    "dual_step",
    "first_passed",
    "gradient_diameter",
    "gradient_norms",
    "primal_step",
    "rounded_sum",
    "score_family",
    "with_intercept",
]
