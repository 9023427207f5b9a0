"""A scorer with one hidden layer: where it starts, and how its layers are normalised."""

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.ranking_problem import RankingProblem

_START_SEED = 0  # public: the same start for everybody


def start_of(problem: RankingProblem) -> Vector:
    """Weights to start from: zero for a linear scorer, public random ones for a network."""
    if problem.hidden == 0:
        return np.zeros(problem.n_weights)
    d, hidden = problem.n_features, problem.hidden
    normal = np.random.default_rng(_START_SEED).standard_normal(problem.n_weights)
    inner, outer = d * hidden, (d + 1) * hidden
    normal[:inner] *= np.sqrt(2 / d)
    normal[inner:outer] = 0.0
    normal[outer:] *= np.sqrt(1 / hidden)
    return normal


def spectrally_normalised(weights: Vector, problem: RankingProblem) -> Vector:
    """The weights with each layer divided by its largest singular value; a linear scorer as is.

    Post-processing: it acts on released weights alone, and bounds on gradients are computed after
    it.
    """
    if problem.hidden == 0:
        return weights
    d, hidden = problem.n_features, problem.hidden
    inner, outer = d * hidden, (d + 1) * hidden
    result = weights.copy()
    result[:inner] /= max(_largest_singular_value(result[:inner].reshape(d, hidden)), 1e-12)
    result[outer:] /= max(float(np.linalg.norm(result[outer:])), 1e-12)
    return result


def _largest_singular_value(W: Matrix) -> float:
    """From the smaller matrix of inner products: a tenth of the time of singular values."""
    products = W @ W.T if len(W) <= W.shape[1] else W.T @ W
    return float(np.sqrt(max(np.linalg.eigvalsh(products)[-1], 0.0)))
