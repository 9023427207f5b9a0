"""Bugs in ranking, above all those of the thesis' chapter 6."""

import numpy as np

from hushfit.kernels import lists as kernels
from hushfit.privacy import replaces_one
from hushfit.privacy.accounting import pld
from hushfit.privacy.costs import _gaussian_cost as costs
from hushfit.ranking_problem import RankingProblem
from hushfit.release.queries import _bayes_rank as bayes
from hushfit.release.queries import _list_gradient as gradient
from hushfit.release.queries import _list_statistic as statistic
from hushfit.solvers.ranking._network import spectrally_normalised

from ._mutant import Mutant, swapped, together


def scaled_by_the_batch():
    """Every list is divided by the largest bound in the batch."""
    original = bayes.gradient_norms

    def gradient_norms(problem, weights, lists):
        norms = original(problem, weights, lists)
        return np.full(len(norms), norms.max())

    return swapped(bayes, gradient_norms=gradient_norms)


def wrong_sign():
    original = bayes.BayesRankGradient.__call__
    return swapped(
        bayes.BayesRankGradient,
        __call__=lambda self, source, units: -original(self, source, units),
    )


def replacement_as_removal():
    def exchanges(relation):
        return relation == "replace-one" and replaces_one(relation)

    return together(
        swapped(pld, exchanges=exchanges),
        swapped(costs, exchanges=exchanges),
        swapped(bayes.BayesRankGradient, sensitivity=lambda self, relation: self.radius()),
    )


def layers_taken_as_normalised():
    """The bound is computed as if spectral normalisation had been applied."""
    original = bayes.scores_and_gram

    def scores_and_gram(F, weights, hidden):
        problem = RankingProblem(None, 1, F.shape[1], "label", hidden)
        scores, _ = original(F, weights, hidden)
        return scores, original(F, spectrally_normalised(weights, problem), hidden)[1]

    return swapped(bayes, scores_and_gram=scores_and_gram)


def sums_that_cancel_taken_as_exact():
    """The norm of a gradient from inner products of which nearly all digits cancel."""

    def norm_of(problem, weights, documents, j):
        F = documents.features_of(j, centred=problem.hidden == 0)
        scores, gram = bayes.scores_and_gram(F, weights, problem.hidden)
        Q = np.empty((len(F), len(F)))
        kernels.utility_slopes(scores, problem.loss.depth, Q)
        squares = np.diag(Q @ gram @ Q.T)
        error = bayes.ABSOLUTE_ERROR * len(F) * np.sqrt(np.diag(gram).max())
        return np.sqrt(max(squares.max(), 0.0)) + error

    return swapped(bayes, _norm_of=norm_of)


def units_summed_in_another_order():
    """Which hidden units are active is found by another product than gradients are made of."""

    def scores_and_gram(F, weights, hidden):
        d = F.shape[1]
        if hidden == 0:
            return F @ weights, F @ F.T
        inner, outer = weights[: d * hidden].reshape(d, hidden), weights[(d + 1) * hidden :]
        units = F @ inner + weights[d * hidden : (d + 1) * hidden]
        values, slopes = np.maximum(units, 0.0), (units > 0) * outer
        return values @ outer, (F @ F.T + 1.0) * (slopes @ slopes.T) + values @ values.T

    return swapped(bayes, scores_and_gram=scores_and_gram)


def radii_for_diameters():
    def scales(self):
        F = self.problem.documents._centred(0, self.problem.documents.n_lists) @ self.B
        radii = np.maximum.reduceat(np.linalg.norm(F, axis=1), self.problem.documents.starts[:-1])
        return self.scale / np.maximum(radii, self.scale)

    return swapped(statistic.ListStatistic, scales=property(scales))


def clipped_on_one_side():
    return swapped(statistic.ListStatistic, sensitivity=lambda self, relation: self.radius())


def lists_of_persons_in_full():
    original = statistic.ListStatistic.__call__

    def __call__(self, source, units):
        object.__setattr__(source.persons, "shares", np.ones(len(source.persons.codes)))
        return original(self, source, units)

    return swapped(statistic.ListStatistic, __call__=__call__)


def documents_clipped_one_by_one():
    """The metric is applied to the sum of clipped gradients, not to each of them."""
    original = gradient.ListGradient.__call__

    def __call__(self, source, units):
        if self.metric is None:
            return original(self, source, units)
        plain = gradient.ListGradient(self.problem, self.weights, self.clip)
        return original(plain, source, units) @ self.metric.A

    return swapped(gradient.ListGradient, __call__=__call__)


RANKING = (
    Mutant(
        "noise by the batch",
        "hushfit.release.queries._bayes_rank",
        "Gradients are scaled by the largest bound in the current batch, so that a list changes "
        "what all others contribute.",
        scaled_by_the_batch,
        ("batches of BayesRank, simplex, top 1",),
        "thesis ch. 6, Alg. 6.1",
    ),
    Mutant(
        "descent on NDCG",
        "hushfit.release.queries._bayes_rank",
        "The step descends on the expected NDCG.",
        wrong_sign,
        ("direction of BayesRank",),
        "thesis ch. 6, Alg. 6.1, line 21",
    ),
    Mutant(
        "replaced grades as removed ones",
        "hushfit.privacy.accounting.pld",
        "Noise and price of sampled releases are those of add-remove, with grades replaced.",
        replacement_as_removal,
        ("price of sampled grades", "sensitivity of BayesRank, all, top 1"),
        "thesis ch. 6",
    ),
    Mutant(
        "normalisation left out",
        "hushfit.release.queries._bayes_rank",
        "The bound takes layers as spectrally normalised which are not.",
        layers_taken_as_normalised,
        ("sensitivity of BayesRank, network of large weights",),
        "thesis ch. 6",
    ),
    Mutant(
        "cancelled sums as exact",
        "hushfit.release.queries._bayes_rank",
        "The bound on a gradient comes from inner products whose rounding errors are left out.",
        sums_that_cancel_taken_as_exact,
        ("sensitivity of BayesRank, one document far away",),
    ),
    Mutant(
        "units in another order",
        "hushfit.release.queries._bayes_rank",
        "The bound counts as inactive hidden units that the gradient has as active.",
        units_summed_in_another_order,
        ("sensitivity of BayesRank, hidden unit at zero",),
    ),
    Mutant(
        "radii for diameters",
        "hushfit.release.queries._list_statistic",
        "Lists are scaled by their radii, and the sensitivity is taken to be a radius.",
        radii_for_diameters,
        ("sensitivity of grade statistic",),
    ),
    Mutant(
        "clipped grades on one side",
        "hushfit.release.queries._list_statistic",
        "Replacing clipped contributions is taken to move the sum by one clipping norm.",
        clipped_on_one_side,
        ("sensitivity of grade statistic, clipped", "attack on grade statistic"),
    ),
    Mutant(
        "lists of persons in full",
        "hushfit.release.queries._list_statistic",
        "Every list of a person has full weight.",
        lists_of_persons_in_full,
        ("sensitivity of grade statistic of persons",),
    ),
    Mutant(
        "metric after clipping of lists",
        "hushfit.release.queries._list_gradient",
        "Gradients of lists are clipped before they are multiplied by the metric.",
        documents_clipped_one_by_one,
        ("sensitivity of list gradient in a metric (replace-one)",),
    ),
)
