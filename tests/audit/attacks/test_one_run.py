"""One run, many canaries: the bound is binomial, accounts for delta, and detects too little
noise.
"""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from hushfit.audit import (
    Claim,
    Verdict,
    gradient_canaries,
    one_run,
    one_run_epsilon,
    one_run_p_value,
)
from hushfit.errors import InvalidArgument
from hushfit.privacy import RECORD_RELATIONS, Budget, SeededSampler
from hushfit.solvers import ProximalGradient


def test_without_delta_the_bound_is_binomial():
    assert one_run_p_value(100, 40, 30, 0.5, 0.0) == pytest.approx(binom.sf(29, 40, expit(0.5)))


def test_delta_adds_what_it_could_lift():
    """By direct computation: the largest mass just below the count, divided by its width."""
    m, r, v, epsilon, delta = 50, 10, 8, 1.0, 1e-3
    pmf = binom.pmf(np.arange(r + 1), r, expit(epsilon))
    lifted = max(pmf[v - i : v].sum() / i for i in range(1, v + 1))
    assert one_run_p_value(m, r, v, epsilon, delta) == pytest.approx(
        pmf[v:].sum() + 2 * m * delta * lifted
    )


def test_the_bound_is_where_the_test_turns():
    epsilon = one_run_epsilon(1000, 200, 180, 1e-6, 0.01)
    assert (
        one_run_p_value(1000, 200, 180, epsilon, 1e-6)
        <= 0.01
        < one_run_p_value(1000, 200, 180, epsilon + 0.01, 1e-6)
    )
    assert one_run_epsilon(1000, 200, 100, 1e-6, 0.01) == 0.0


def randomised_response(epsilon):
    def mechanism(included, seed):
        flips = np.random.default_rng([seed, 9]).random(len(included)) > expit(epsilon)
        return np.where(included ^ flips, 1.0, -1.0)

    return mechanism


def test_randomised_response_is_attained_and_never_exceeded():
    """It attains the bound, so the epsilon found is just below the true one. Seeds are fixed."""
    for seed in range(5):
        found = one_run(randomised_response(2.0), Claim(2.0, 0.0), 4000, seed=seed)
        assert 1.5 < found.epsilon <= 2.0
        assert found.verdict is Verdict.CONSISTENT
    assert one_run(randomised_response(2.0), Claim(1.0, 0.0), 4000).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("relation", list(RECORD_RELATIONS), ids=str)
def test_one_private_fit_keeps_its_claim_and_one_with_an_eighth_of_the_noise_does_not(
    relation, monkeypatch
):
    budget = Budget(2.0, 1e-6)
    mechanism = gradient_canaries(ProximalGradient(steps=3), relation, budget)
    claim = Claim(2.0, 1e-6, relation)
    found = one_run(mechanism, claim, 1000)
    assert found.verdict is not Verdict.VIOLATED
    original = SeededSampler.gaussian
    monkeypatch.setattr(
        SeededSampler,
        "gaussian",
        lambda self, log2_variance, size: original(self, log2_variance, size) // 8,
    )
    assert one_run(mechanism, claim, 1000).verdict is Verdict.VIOLATED


def test_counts_and_scores_that_cannot_be_are_refused():
    with pytest.raises(InvalidArgument, match="impossible"):
        one_run_p_value(10, 5, 6, 1.0, 0.0)
    with pytest.raises(InvalidArgument, match="one score for each"):
        one_run(lambda included, seed: np.zeros(3), Claim(1.0, 1e-6), 10)
    with pytest.raises(InvalidArgument, match="no gradients"):
        one_run(
            gradient_canaries("objective", "replace-one", Budget(1.0, 1e-6)), Claim(1.0, 1e-6), 10
        )
