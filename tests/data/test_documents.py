"""Documents in lists: sums over public lists, by their definitions."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import logsumexp

from hushfit.data.lists import Documents


def make(dtype=np.float64):
    rng = np.random.default_rng(5)
    X = (7.0 + rng.standard_normal((11, 4))).astype(dtype)
    return Documents(X, np.array([0, 3, 4, 9, 11]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_log_partition_is_that_of_centred_scores_and_has_its_gradient(dtype):
    documents, weights = make(dtype), np.array([1.0, 0.3, 0.0, 2.0])
    theta = np.array([0.4, -1.2, 0.3, 2.0])

    def written_out(theta):
        centred = [documents.features_of(j, centred=True) for j in range(documents.n_lists)]
        return float(weights @ [logsumexp(own @ theta) for own in centred])

    value, gradient = documents.log_partition(theta, weights)
    assert value == pytest.approx(written_out(theta), rel=1e-6)
    assert gradient == pytest.approx(approx_fprime(theta, written_out, 1e-6), abs=1e-4)


def test_a_list_differs_if_one_value_does():
    X = np.ones((5, 3))
    X[3, 2] = 1.5
    documents = Documents(X, np.array([0, 2, 4, 5]))
    assert [documents.differ_in(j) for j in range(3)] == [False, True, False]
