"""A scorer with one hidden layer: where it starts, and how its layers are normalised."""

import numpy as np

from hushfit._typing import Vector
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
    result[:inner] /= max(float(np.linalg.norm(result[:inner].reshape(d, hidden), 2)), 1e-12)
    result[outer:] /= max(float(np.linalg.norm(result[outer:])), 1e-12)
    return result
