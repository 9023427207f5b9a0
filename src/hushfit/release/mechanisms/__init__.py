r"""How answers are released: noise, batches, gates, choices, and minimisers with noise inside.

AdaptiveRun              What a whole run costs, and the filter that keeps it so
GaussianRun              Gaussian and pure releases over all rows, together no worse than one
                         Gaussian release
Priced                   A query of an adaptive run, with the mechanism and the noise that it is to
                         be answered with
RenyiRun                 Releases with any Renyi curve, sampled ones too, under a filter that keeps
                         them (epsilon, delta)-private
FixedSizeBatch           ``size`` different records, uniformly chosen, afresh for each release
FullBatch                Every record, every time
PoissonBatch             Each record on its own with probability ``rate``
Sampling                 Which records take part in one release, and what that does to the price of
                         its Gaussian noise
ClassicInside            Gaussian noise in the objective, priced by the theorem of Kifer, Smith and
                         Thakurta, and a little on the minimiser
NoisyCorner              Chooses corners with probabilities in proportion to exp(utility / scale)
SteepestCorner           For each output, the column (and the sign) along which the loss falls
                         fastest
corner                   The corner that an answer names
AnchoredBatch            Every record through the full gradient, and on its own with probability
                         ``rate`` through a batch as well
GradientDifference       Sum over the records of their clipped gradient at ``w`` less that at
                         ``snapshot``, the difference clipped once more
Snapshot                 A public point whose full clipped gradient the boundary keeps, so that it
                         is computed once
VarianceReducedGradient  The published gradient of DP-VRADMM
anchored_batch           The batch of a `VarianceReducedGradient`, with the ratio that its proof
                         has for the loss
difference_bound         How far apart one record's clipped gradients at two public points can be
Backtracking             Candidates for one step, from a gradient that is public by then
Choice                   Number of the candidate whose drop most exceeds what was asked
FreshGate                A gate on records of its own
Gate                     Number of the first candidate whose drop is at least what was asked, or of
                         none
GatedBatch               One Poisson batch for a noisy gradient and the gate on the step along it
GatedStep                Sum of clipped gradients, then the number of the first acceptable step
                         along it, over the same records
LossDrop                 Sums over the records of :math:`\ell_i(w) - \ell_i(w_k)` for public
                         candidates, each clipped to its ``bounds`` entry
NoisyChoice              The largest of Laplace-noised scores over all records
gate_multipliers         Multipliers for threshold and queries that make a gate about as revealing
                         as an ``epsilon``-private one
GradientNorm             Norm of the gradient of a `PerturbedMinimiser`'s objective, without noise,
                         at a public point
NormAbove                Whether a gradient norm is at least a public threshold
RestartedGate            Laplace noise on every norm and on the threshold
Passes                   What a run does and when
PermutedRun              Where mini-batch proximal gradient descent from zero ends, less where it
                         would end if every gradient were zero
SecretOrder              Gaussian noise on the end of a run whose batches are dealt in a secret
                         order, drawn afresh for each release
RegularisedMinimiser     The weights that minimise mean loss + penalty + :math:`\frac\mu2 \|w\|^2`,
                         less those that minimise it without the loss
TextColumns              Columns of texts as a source
Thresholded              Gaussian noise on the count of every text that occurs, of which only those
                         above a high threshold are named
Vocabulary               The texts of each column that are common
counts_of                How often each text occurs in each column
vocabulary_of            The lists of texts that a released answer stands for
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
    Backtracking,
    Choice,
    FreshGate,
    Gate,
    GatedBatch,
    GatedStep,
    LossDrop,
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
    "Backtracking",
    "Choice",
    "ClassicInside",
    "FixedSizeBatch",
    "FreshGate",
    "FullBatch",
    "Gate",
    "GatedBatch",
    "GatedStep",
    "GaussianRun",
    "GradientDifference",
    "GradientNorm",
    "LossDrop",
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
