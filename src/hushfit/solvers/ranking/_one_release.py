r"""Label-private ranking by one release: the default where documents are public.

Listwise cross-entropy of a linear scorer is

    L(theta) = sum_j w_j logsumexp(phi_j theta) - b . theta,   b = sum_j w_j phi_j' u_j,

and grades enter through ``b`` alone. It is released once; what remains is a public convex problem,
solved to its minimum without further cost. No clipping, no steps that share a budget, no step size.

Metric, weights and ridge follow from public documents and the known noise. Around zero weights,
in standardised features with within-list covariance :math:`U \operatorname{diag}(r) U^T`, the noisy
statistic is :math:`b_k = h_k \theta_k + N(0, h_k + s_k^2)`: h is the sum of the covariances of all
lists, the first variance that of grades, the second that of the noise. With a prior
:math:`\theta_k \sim N(0, \tau^2)` the posterior mean is the minimum of the objective with the
ridge :math:`(1 + s_k^2 / h_k) / \tau^2`. The metric and the scale are those with the least
predicted risk; :math:`\tau` maximises the likelihood of the released ``b``. What a list
contributes is clipped to a quarter of the size of its documents, which costs little signal and
saves much noise; its own variance shrinks with it.
docs/algorithms/one-release-ranking.md has the derivation.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import scipy

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import require_labels
from hushfit.ranking_problem import Documents, RankingProblem
from hushfit.release import Door, ListStatistic, Plan, Planned
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Watch

STATISTIC: Final = "label statistic"
# Powers of the covariance that a metric is made of, the first one where all are equally good: 1
# whitens, negative ones favour the directions in which documents differ most.
_POWERS = (0.0, 0.5, 1.0, -0.5, -1.0, -1.5, -2.0)
# Shares of the lists that keep their full weight.
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
# Directions in which documents differ less than this, relative to the largest, are left out: their
# weight is zero.
_LEAST_EIGENVALUE = 1e-6
# The variance of the scores of a list that the metric is chosen for; scores of one unit are what
# makes documents distinguishable.
_EXPECTED_SCORE_VARIANCE = 1.0
# Documents from which metric and covariance are estimated.
_SAMPLED_DOCUMENTS = 100_000
# Candidates of the variance of a weight, relative to that of a score variance of one.
_PRIOR_SCALES = np.logspace(-5, 3, 81)
_MOST_ITERATIONS = 500


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions of the within-list covariance of standardised features, from public documents.

    Parameters
    ----------
    columns : array of shape (n_features, directions)
        Maps weights of directions to weights of features.
    unit : array of shape (n_features,)
        One over the spread of each feature within lists; 0 for features without.
    lists : int array
        The lists that this was estimated from, evenly spaced.
    by_list : array of shape (len(lists), directions)
        Variance of the documents of each of them along the directions.
    n_lists : int
        Number of all lists.
    """

    columns: Matrix
    unit: Vector
    lists: IntVector
    by_list: Matrix
    n_lists: int

    @classmethod
    def of(cls, documents: Documents) -> "Directions":
        """The directions of public documents, of which some differ within a list."""
        lists = documents.evenly_spaced(_SAMPLED_DOCUMENTS)
        sample = documents.subset(lists)
        covariance = sample.within_moment(np.ones(len(lists))) / len(lists)
        scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        varies = scale > _LEAST_EIGENVALUE * scale.max(initial=0.0)
        unit = np.where(varies, 1.0 / np.where(varies, scale, 1.0), 0.0)
        values, vectors = np.linalg.eigh(unit[:, None] * covariance * unit)
        columns = unit[:, None] * vectors[:, values > _LEAST_EIGENVALUE * values[-1]]
        by_list = sample.variances_along(columns)
        return cls(columns, unit, lists, by_list, documents.n_lists)

    @cached_property
    def variances(self) -> Vector:
        """Variance of the documents of an average list along each direction."""
        return np.asarray(self.by_list.mean(axis=0))

    @property
    def prior_variance(self) -> float:
        """Variance of a weight at which scores have the expected variance."""
        return _EXPECTED_SCORE_VARIANCE / float(self.variances.sum())

    def sizes(self, documents: Documents, stretch: Vector) -> Vector:
        """Root mean square lengths of all lists in a metric; of lists that were not sampled, from
        those of standardised features.
        """
        sampled = np.asarray(np.sqrt(self.by_list @ stretch**2))
        if len(self.lists) == self.n_lists:
            return sampled
        lengths = documents.sizes(self.unit)
        known = lengths[self.lists]
        ratio = np.median(sampled[known > 0] / known[known > 0])
        return np.asarray(ratio * lengths)

    def curvature(self, weights: Vector) -> Vector:
        """Second derivatives of the objective at zero weights along the directions, from the
        weights of the sampled lists.
        """
        return np.asarray(self.n_lists / len(self.lists) * (weights @ self.by_list))


def refuse_equal_documents(documents: Documents) -> None:
    """Refuse lists of equal documents, from which no order can be learnt."""
    lists = documents.evenly_spaced(_SAMPLED_DOCUMENTS)
    if not any(documents.differ_in(int(j)) for j in lists):
        raise InvalidArgument(
            "The documents of every list are equal in all columns, so no order can be learnt. "
            "Give features that differ within a list, or check qid. Nothing was charged."
        )


@dataclass(frozen=True, eq=False)
class Design:
    """Metric and scale of the release: ``stretch`` is the factor of each direction in the
    metric.
    """

    directions: Directions
    stretch: Vector
    scale: float

    @property
    def B(self) -> Matrix:
        """The metric, as the query takes it."""
        return self.directions.columns * self.stretch

    def query(self, problem: RankingProblem, clip: float | None) -> ListStatistic:
        """The statistic in this metric."""
        if clip is None:
            return ListStatistic(problem, self.B, self.scale)
        sizes = self.directions.sizes(problem.public_documents, self.stretch)
        return ListStatistic(problem, self.B, self.scale, clip * self.scale, sizes)

    @classmethod
    def of(cls, problem: RankingProblem, noise_multiplier: float, clip: float | None) -> "Design":
        """The metric and scale with the least predicted risk; from public documents alone."""
        documents = problem.public_documents
        directions = Directions.of(documents)
        shares = 1.0 if problem.shares is None else problem.shares[directions.lists]
        best = math.inf, np.empty(0), 0.0
        for stretch in _stretches(directions):
            sizes = (
                documents.subset(directions.lists).diameters(directions.columns * stretch)
                if clip is None
                else np.sqrt(directions.by_list @ stretch**2)
            )
            for scale in np.quantile(sizes[sizes > 0], _QUANTILES):
                weights = shares * (scale / np.maximum(sizes, scale))
                noise = noise_multiplier * scale * (1.0 if clip is None else 2 * clip) / stretch
                curvature = directions.curvature(weights)
                spread = curvature * _spread(clip) + noise**2
                risk = _predicted_risk(directions, curvature, spread)
                if risk < best[0]:
                    best = risk, stretch, float(scale)
        return cls(directions, *best[1:])


def _spread(clip: float | None) -> float:
    """Variance of what the grades of a list contribute along a direction, over the variance of its
    documents: one for one relevant document chosen by the scores, less where it is clipped.
    """
    return 1.0 if clip is None else min(1.0, clip) ** 2


def _stretches(directions: Directions) -> list[Vector]:
    relative = directions.variances / directions.variances.max()
    return [np.asarray(relative ** (-power / 2)) for power in _POWERS]


def _predicted_risk(directions: Directions, curvature: Vector, spread: Vector) -> float:
    """Expected variance of the error of a score, as a share of the expected variance of scores.

    ``spread`` is the variance of the statistic around its mean along each direction.
    """
    signal = curvature**2 * directions.prior_variance
    lost = directions.variances * spread / (signal + spread)
    return float(lost.sum() / directions.variances.sum())


def prior_variance(directions: Directions, b: Vector, curvature: Vector, spread: Vector) -> float:
    """The variance of weights that makes the released statistic most likely."""
    candidates = directions.prior_variance * _PRIOR_SCALES
    variances = curvature**2 * candidates[:, None] + spread
    log_likelihoods = -0.5 * (np.log(variances) + b**2 / variances).sum(axis=1)
    return float(candidates[np.argmax(log_likelihoods)])


@dataclass(frozen=True)
class OneReleaseRanking:
    """One noisy sum over the grades, then a public convex problem; for a linear scorer.

    Parameters
    ----------
    clip : float or None
        Clipping norm of what a list contributes, in units of the root mean square length of its
        documents; None for no clipping, and weights by the diameters of the lists. There is none
        when epsilon is infinite.
    ridge : float or None
        Weight of a ridge on all directions, in units of their curvature. None sets one for each
        direction from the noise and the released sum itself.
    """

    clip: float | None = 0.25
    ridge: float | None = None

    def __post_init__(self) -> None:
        check_settings(self, clip=self.clip)
        if self.ridge is not None and not 0 < self.ridge < math.inf:
            raise InvalidArgument(
                f"ridge={self.ridge!r} is not a positive number. Without a penalty the noisy "
                "objective may have no minimum; leave None."
            )

    def plan(self, problem: RankingProblem) -> Plan:
        if problem.loss.name != "listnet" or problem.hidden:
            raise InvalidArgument(
                "One release suffices for loss='listnet' and scores linear in public features. Use "
                "solver='privbr' with loss='bayesrank', or unit='list'."
            )
        require_labels(problem.relation, problem.privacy_unit)
        if problem.documents is not None:
            refuse_equal_documents(problem.documents)  # before any charge
        return Plan((Planned(STATISTIC, ListStatistic, 1),))

    def solve(self, problem: RankingProblem, door: Door, watch: Watch | None = None) -> Vector:
        multiplier = door.noise_multiplier(STATISTIC)
        clip = self.clip if multiplier > 0 else None
        design = Design.of(problem, multiplier, clip)
        query = design.query(problem, clip)
        b = door.release(STATISTIC, query) / design.stretch
        noise = multiplier * query.sensitivity(problem.relation) / design.stretch
        if watch is not None:
            watch(1)
        curvature = design.directions.curvature(query.weights[design.directions.lists])
        spread = curvature * _spread(clip) + noise**2
        penalty = (
            spread / curvature / prior_variance(design.directions, b, curvature, spread)
            if self.ridge is None
            else self.ridge * curvature
        )
        t = _minimum(problem, design.directions, query.weights, b, curvature, penalty)
        return np.asarray(design.directions.columns @ t)


def _minimum(
    problem: RankingProblem,
    directions: Directions,
    weights: Vector,
    b: Vector,
    curvature: Vector,
    penalty: Vector,
) -> Vector:
    """Weights of the directions that minimise the noisy objective with a ridge; public."""
    documents, total = problem.public_documents, float(weights.sum())
    scale = 1 / np.sqrt(curvature + penalty)  # coordinates in which curvatures are about one

    def objective(x: Vector) -> tuple[float, Vector]:
        t = scale * x
        value, gradient = documents.log_partition(directions.columns @ t, weights)
        value += 0.5 * float(penalty @ t**2) - float(b @ t)
        slope = scale * (directions.columns.T @ gradient + penalty * t - b)
        return value / total, slope / total

    options = {"maxiter": _MOST_ITERATIONS, "ftol": 1e-12, "gtol": 1e-7}
    found = scipy.optimize.minimize(
        objective, np.zeros(len(b)), jac=True, method="L-BFGS-B", options=options
    )
    return np.asarray(scale * found.x)
