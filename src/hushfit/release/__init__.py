"""The trusted boundary: queries with proved sensitivities, and the curator that answers them."""

from hushfit.release._adaptive import AdaptiveRun, GaussianRun, Priced, RenyiRun
from hushfit.release._admm import AdmmRun, AdmmState, AdmmStep, admm_step, dual_step, primal_step
from hushfit.release._batches import FixedSizeBatch, FullBatch, PoissonBatch, Sampling
from hushfit.release._classic import ClassicInside
from hushfit.release._curator import Curator
from hushfit.release._difference import (
    AnchoredBatch,
    GradientDifference,
    Snapshot,
    VarianceReducedGradient,
    anchored_batch,
    difference_bound,
)
from hushfit.release._exact_sum import ExactSum
from hushfit.release._gate import (
    Backtracking,
    Choice,
    FreshGate,
    Gate,
    GatedBatch,
    GatedStep,
    LossDrop,
    NoisyChoice,
)
from hushfit.release._gradient import ClippedGradient, Metric
from hushfit.release._gradient_norm import GradientNorm, NormAbove, RestartedGate
from hushfit.release._hessian import CURVATURES, HessianSum, NewtonDirection
from hushfit.release._histogram import MarginHistogram
from hushfit.release._joint import GradientWithMoment
from hushfit.release._logistic import LogisticGradient, gradient_diameter
from hushfit.release._mechanism import Entropy, Mechanism, NoiseGrid, gaussian_answer
from hushfit.release._minimiser import GaussianInside, LaplaceInside, PerturbedMinimiser
from hushfit.release._moment import SecondMoment
from hushfit.release._output import RegularisedMinimiser
from hushfit.release._permuted import Passes, PermutedRun, SecretOrder
from hushfit.release._plan import Plan, Planned, Quote
from hushfit.release._quantile import ColumnHistogram
from hushfit.release._query import Query
from hushfit.release._score import TotalScore
from hushfit.release._selection import NoisyCorner, SteepestCorner, corner
from hushfit.release._vocabulary import TextColumns, Thresholded, Vocabulary, vocabulary_of
from hushfit.release.contract import Contract, Payer, Randomness, Terms, promised_and_paid, require_payer, unpaid_curator
from hushfit.release.door import Door, Released

__all__ = [
    "CURVATURES",
    "AdaptiveRun",
    "AdmmRun",
    "AdmmState",
    "AdmmStep",
    "AnchoredBatch",
    "Backtracking",
    "Choice",
    "ClassicInside",
    "ClippedGradient",
    "ColumnHistogram",
    "Contract",
    "Curator",
    "Door",
    "Entropy",
    "ExactSum",
    "FixedSizeBatch",
    "FreshGate",
    "FullBatch",
    "Gate",
    "GatedBatch",
    "GatedStep",
    "GaussianInside",
    "GaussianRun",
    "GradientDifference",
    "GradientNorm",
    "GradientWithMoment",
    "HessianSum",
    "LaplaceInside",
    "LogisticGradient",
    "LossDrop",
    "MarginHistogram",
    "Mechanism",
    "Metric",
    "NewtonDirection",
    "NoiseGrid",
    "NoisyChoice",
    "NoisyCorner",
    "NormAbove",
    "Passes",
    "Payer",
    "PermutedRun",
    "PerturbedMinimiser",
    "Plan",
    "Planned",
    "PoissonBatch",
    "Priced",
    "Query",
    "Quote",
    "Randomness",
    "RegularisedMinimiser",
    "Released",
    "RenyiRun",
    "RestartedGate",
    "Sampling",
    "SecondMoment",
    "SecretOrder",
    "Snapshot",
    "SteepestCorner",
    "Terms",
    "TextColumns",
    "Thresholded",
    "TotalScore",
    "VarianceReducedGradient",
    "Vocabulary",
    "admm_step",
    "anchored_batch",
    "corner",
    "difference_bound",
    "dual_step",
    "gaussian_answer",
    "gradient_diameter",
    "primal_step",
    "promised_and_paid",
    "require_payer",
    "unpaid_curator",
    "vocabulary_of",
]
