"""The trusted boundary: queries with proved sensitivities, and the curator that answers them."""

from hushfit.release._admm import AdmmRun, AdmmState, AdmmStep, admm_step, dual_step, primal_step
from hushfit.release._curator import Curator, Released
from hushfit.release._gradient import ClippedGradient, Metric
from hushfit.release._histogram import MarginHistogram
from hushfit.release._logistic import LogisticGradient, gradient_diameter
from hushfit.release._moment import SecondMoment
from hushfit.release._plan import FixedSizeBatch, FullBatch, Plan, Planned, PoissonBatch, Sampling
from hushfit.release._query import Query

__all__ = [
    "AdmmRun",
    "AdmmState",
    "AdmmStep",
    "ClippedGradient",
    "Curator",
    "FixedSizeBatch",
    "FullBatch",
    "LogisticGradient",
    "MarginHistogram",
    "Metric",
    "Plan",
    "Planned",
    "PoissonBatch",
    "Query",
    "Released",
    "Sampling",
    "SecondMoment",
    "admm_step",
    "dual_step",
    "gradient_diameter",
    "primal_step",
]
