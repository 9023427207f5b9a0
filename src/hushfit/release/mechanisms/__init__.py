r"""Privacy mechanisms: Gaussian noise over all rows or batches, above-threshold gates, private
selection, objective perturbation.

AdaptiveRun              Cost of a whole adaptive run, and the privacy filter that enforces it
GaussianRun              Gaussian and pure releases over all rows whose composition has at most the
                         privacy loss of one Gaussian release
Priced                   A query of an adaptive run, with its mechanism and noise multiplier
RenyiRun                 Releases with any Rényi curve, also sampled ones, under a filter that keeps
                         them (epsilon, delta)-private
FixedSizeBatch           Sampling without replacement
FullBatch                Every record, every time
PoissonBatch             Poisson sampling
Sampling                 Which records are in one release, and the cost of its Gaussian noise
ClassicInside            Gaussian noise in the objective, with the cost given by the theorem of
                         Kifer, Smith and Thakurta, and a little on the minimiser
NoisyCorner              The exponential mechanism, exactly
SteepestCorner           For each output, the column (and the sign) along which the loss decreases
                         fastest
corner                   The vertex of a released answer
AnchoredBatch            Every record in the full gradient, and each independently with probability
                         ``rate`` in a batch as well
GradientDifference       Sum over the records of their clipped gradient at ``w`` minus that at
                         ``snapshot``, the difference clipped once more
Snapshot                 A public point whose full clipped gradient is cached inside the boundary,
                         so that it is computed once
VarianceReducedGradient  The published gradient of DP-VRADMM
anchored_batch           The batch of a `VarianceReducedGradient`, with the ratio from its proof for
                         the loss
difference_bound         Bound on the distance between one record's clipped gradients at two public
                         points
FreshGate                A gate on its own records
GatedBatch               One Poisson batch for a noisy gradient and the gate on the step along it
NoisyChoice              Report noisy max
gate_multipliers         Noise multipliers of threshold and queries for a gate with about the
                         privacy loss of an ``epsilon``-private one
GradientNorm             Norm of the gradient of a `PerturbedMinimiser`'s objective, without noise,
                         at a public point
NormAbove                Whether a gradient norm is at least a public threshold
RestartedGate            Laplace noise on every norm and on the threshold
Passes                   Schedule of a run
PermutedRun              Last iterate of mini-batch proximal gradient descent from zero, minus the
                         last iterate if every gradient were zero
SecretOrder              Gaussian noise on the last iterate of a run whose batches follow a secret
                         random order, freshly drawn for each release
RegularisedMinimiser     The weights that minimise mean loss + penalty + :math:`\frac\mu2 \|w\|^2`,
                         minus those that minimise it without the loss
TextColumns              Columns of texts as a data source
Thresholded              Gaussian noise on the count of every text that occurs, of which only those
                         above a high threshold are released
Vocabulary               The frequent texts of each column
counts_of                How often each text occurs in each column
vocabulary_of            The lists of texts of a released answer
"""

from hushfit.release.mechanisms._adaptive import AdaptiveRun, GaussianRun, Priced, RenyiRun
from hushfit.release.mechanisms._batches import FixedSizeBatch, FullBatch, PoissonBatch, Sampling
from hushfit.release.mechanisms._classic_objective import ClassicInside
from hushfit.release.mechanisms._corner import NoisyCorner, SteepestCorner, corner
from hushfit.release.mechanisms._difference import (
    AnchoredBatch,
    GradientDifference,
    Snapshot,
    VarianceReducedGradient,
    anchored_batch,
    difference_bound,
)
from hushfit.release.mechanisms._gate import (
    FreshGate,
    GatedBatch,
    NoisyChoice,
    gate_multipliers,
)
from hushfit.release.mechanisms._gradient_norm import GradientNorm, NormAbove, RestartedGate
from hushfit.release.mechanisms._permuted import Passes, PermutedRun, SecretOrder
from hushfit.release.mechanisms._regularised_minimiser import RegularisedMinimiser
from hushfit.release.mechanisms._vocabulary import (
    TextColumns,
    Thresholded,
    Vocabulary,
    counts_of,
    vocabulary_of,
)

__all__ = [
    "AdaptiveRun",
    "AnchoredBatch",
    "ClassicInside",
    "FixedSizeBatch",
    "FreshGate",
    "FullBatch",
    "GatedBatch",
    "GaussianRun",
    "GradientDifference",
    "GradientNorm",
    "NoisyChoice",
    "NoisyCorner",
    "NormAbove",
    "Passes",
    "PermutedRun",
    "PoissonBatch",
    "Priced",
    "RegularisedMinimiser",
    "RenyiRun",
    "RestartedGate",
    "Sampling",
    "SecretOrder",
    "Snapshot",
    "SteepestCorner",
    "TextColumns",
    "Thresholded",
    "VarianceReducedGradient",
    "Vocabulary",
    "anchored_batch",
    "corner",
    "counts_of",
    "difference_bound",
    "gate_multipliers",
    "vocabulary_of",
]
