"""The trusted boundary: queries with proved sensitivities, and the curator that answers them."""

from hushfit.release._admm import AdmmRun, AdmmState, AdmmStep, admm_step, dual_step, primal_step
from hushfit.release._batches import FixedSizeBatch, FullBatch, PoissonBatch, Sampling
from hushfit.release._curator import Curator, Released
from hushfit.release._difference import (
    AnchoredBatch,
    GradientDifference,
    Snapshot,
    VarianceReducedGradient,
    anchored_batch,
    difference_bound,
)
from hushfit.release._gradient import ClippedGradient, Metric
from hushfit.release._histogram import MarginHistogram
from hushfit.release._logistic import LogisticGradient, gradient_diameter
from hushfit.release._mechanism import Entropy, Mechanism, NoiseGrid, gaussian_answer
from hushfit.release._minimiser import GaussianInside, LaplaceInside, PerturbedMinimiser, hessian_rank
from hushfit.release._moment import SecondMoment
from hushfit.release._plan import Plan, Planned, Quote
from hushfit.release._query import Query

__all__ = [
    "AdmmRun",
    "AdmmState",
    "AdmmStep",
    "AnchoredBatch",
    "ClippedGradient",
    "Curator",
    "Entropy",
    "FixedSizeBatch",
    "FullBatch",
    "GaussianInside",
    "GradientDifference",
    "LaplaceInside",
    "LogisticGradient",
    "MarginHistogram",
    "Mechanism",
    "Metric",
    "NoiseGrid",
    "PerturbedMinimiser",
    "Plan",
    "Planned",
    "PoissonBatch",
    "Query",
    "Quote",
    "Released",
    "Sampling",
    "SecondMoment",
    "Snapshot",
    "VarianceReducedGradient",
    "admm_step",
    "anchored_batch",
    "difference_bound",
    "dual_step",
    "gaussian_answer",
    "gradient_diameter",
    "hessian_rank",
    "primal_step",
]
