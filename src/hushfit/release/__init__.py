"""The trusted boundary: queries with proved sensitivities, and the curator that answers them.

mechanisms/        Privacy mechanisms: noise, batches, gates, selection, objective perturbation
queries/           Exact answers about the rows, each with a proved sensitivity
Contract           The guarantee, the receipt of its cost, and the curator that answers from now on
Payer              An account that is charged for releases
Randomness         Random sources of noise and of sampled batches
Terms              The conditions under which rows may be used
promised_and_paid  The guarantee of releases with a given cost, and the receipt for it
require_payer      Refuse an object that cannot be charged, before anything else is done
unpaid_curator     A curator without any charge
Door               Interface through which solvers release queries
Released           One noisy answer
ExactSum           The grid of a sum over records, and a bound on what rounding to it adds to one
                   contribution
Entropy            Random sources of a mechanism (noise and random bits), and the reserve that
                   covers the discreteness of noise
Mechanism          How a planned release answers its queries, and the cost of doing so
NoiseGrid          The grid on which an answer is rounded and noise is drawn
gaussian_answer    The answer over some rows with Gaussian noise of standard deviation
                   ``multiplier`` times the sensitivity
Plan               All releases of a fit
Planned            ``count`` releases of one type of query under one name, with a share of the
                   budget for all of them
Quote              A plan with its noise multipliers and its cost
PublicRows         Records without labels, for relations under which features are public
scaling_of         The scaling of a source's records, or the one that a solver needs
RecordScaling      What is known of every record: length one, or bounded entries
Query              A function of the rows with a proved sensitivity, answered by the curator
"""

from hushfit.data import PublicRows, RecordScaling, scaling_of
from hushfit.release.contract import (
    Contract,
    Payer,
    Randomness,
    Terms,
    promised_and_paid,
    require_payer,
    unpaid_curator,
)
from hushfit.release.door import Door, Released
from hushfit.release.exact_sum import ExactSum
from hushfit.release.mechanism import Entropy, Mechanism, NoiseGrid, gaussian_answer
from hushfit.release.mechanisms import (
    AdaptiveRun,
    AnchoredBatch,
    Backtracking,
    Choice,
    ClassicInside,
    FixedSizeBatch,
    FreshGate,
    FullBatch,
    Gate,
    GatedBatch,
    GatedStep,
    GaussianRun,
    GradientDifference,
    GradientNorm,
    LossDrop,
    NoisyChoice,
    NoisyCorner,
    NormAbove,
    Passes,
    PermutedRun,
    PoissonBatch,
    Priced,
    RegularisedMinimiser,
    RenyiRun,
    RestartedGate,
    Sampling,
    SecretOrder,
    Snapshot,
    SteepestCorner,
    TextColumns,
    Thresholded,
    VarianceReducedGradient,
    Vocabulary,
    anchored_batch,
    corner,
    difference_bound,
    vocabulary_of,
)
from hushfit.release.mechanisms.perturbed_minimiser import (
    GaussianInside,
    LaplaceInside,
    PersonCurvature,
    PerturbedMinimiser,
)
from hushfit.release.plan import Plan, Planned, Quote
from hushfit.release.queries import (
    COUNT_WEIGHT,
    CURVATURES,
    AdmmRun,
    AdmmState,
    AdmmStep,
    BayesRankGradient,
    ClassCounts,
    ClippedGradient,
    ColumnHistogram,
    ColumnMoments,
    ColumnWhitening,
    GradientWithMoment,
    HessianSum,
    LabelStatistic,
    LineDerivative,
    ListGradient,
    ListSecondMoment,
    ListStatistic,
    LogisticGradient,
    LogLength,
    MarginHistogram,
    MatrixWhitening,
    MeanAndSquare,
    Metric,
    NewtonDirection,
    Prediction,
    RankOneMetric,
    RecordSum,
    ResidualGradient,
    ResidualMoments,
    SecondMoment,
    ShortenedMoment,
    Target,
    TotalScore,
    Whitening,
    admm_step,
    canonical,
    dual_step,
    gradient_diameter,
    gradient_norms,
    primal_step,
    rounded_sum,
)
from hushfit.release.query import Query

__all__ = [
    "COUNT_WEIGHT",
    "CURVATURES",
    "AdaptiveRun",
    "AdmmRun",
    "AdmmState",
    "AdmmStep",
    "AnchoredBatch",
    "Backtracking",
    "BayesRankGradient",
    "Choice",
    "ClassCounts",
    "ClassicInside",
    "ClippedGradient",
    "ColumnHistogram",
    "ColumnMoments",
    "ColumnWhitening",
    "Contract",
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
    "LabelStatistic",
    "LaplaceInside",
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
    "PersonCurvature",
    "PerturbedMinimiser",
    "Plan",
    "Planned",
    "PoissonBatch",
    "Prediction",
    "Priced",
    "PublicRows",
    "Query",
    "Quote",
    "Randomness",
    "RankOneMetric",
    "RecordScaling",
    "RecordSum",
    "RegularisedMinimiser",
    "Released",
    "RenyiRun",
    "ResidualGradient",
    "ResidualMoments",
    "RestartedGate",
    "Sampling",
    "SecondMoment",
    "SecretOrder",
    "ShortenedMoment",
    "Snapshot",
    "SteepestCorner",
    "Target",
    "Terms",
    "TextColumns",
    "Thresholded",
    "TotalScore",
    "VarianceReducedGradient",
    "Vocabulary",
    "Whitening",
    "admm_step",
    "anchored_batch",
    "canonical",
    "corner",
    "difference_bound",
    "dual_step",
    "gaussian_answer",
    "gradient_diameter",
    "gradient_norms",
    "primal_step",
    "promised_and_paid",
    "require_payer",
    "rounded_sum",
    "scaling_of",
    "unpaid_curator",
    "vocabulary_of",
]
