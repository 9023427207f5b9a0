"""The trusted boundary: queries with proved sensitivities, and the curator that answers them.

mechanisms/        How answers are released
queries/           Exact answers about the rows, each with a proved bound on how far one record can
                   move it
Contract           What was promised, the proof of payment, and the curator that answers from now
                   on
Payer              Whoever pays for releases
Randomness         Where noise and sampled batches come from
Terms              On what terms rows may be used
promised_and_paid  The guarantee of releases at a price, and the receipt for it
require_payer      Refuse what keeps no account, before anything else is done
unpaid_curator     A curator that nobody has paid for
Door               What solvers take
Released           One noisy answer: public from the moment it exists
ExactSum           The grid of a sum over records, and what rounding to it adds to the contribution
                   of one of them
Entropy            What a mechanism draws from
Mechanism          What one planned release does with a query, and what that costs
NoiseGrid          Where an answer is rounded and noise drawn
gaussian_answer    The answer over some rows with Gaussian noise of ``multiplier`` sensitivities
Plan               All releases of a fit
Planned            ``count`` releases of one kind of query under one name, with a share of the
                   budget between them
Quote              A plan with its noise and its price
Query              What the curator answers
"""

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
    PerturbedMinimiser,
)
from hushfit.release.plan import Plan, Planned, Quote
from hushfit.release.queries import (
    CURVATURES,
    AdmmRun,
    AdmmState,
    AdmmStep,
    ClippedGradient,
    ColumnHistogram,
    GradientWithMoment,
    HessianSum,
    LogisticGradient,
    MarginHistogram,
    Metric,
    NewtonDirection,
    SecondMoment,
    TotalScore,
    admm_step,
    dual_step,
    gradient_diameter,
    primal_step,
)
from hushfit.release.query import Query

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
