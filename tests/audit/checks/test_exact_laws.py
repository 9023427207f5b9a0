"""Exact small cases: no cost is below the exact divergence, all are as close as stated, and a cost
that is too small is detected.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from hushfit.audit import ExactLaws, attack_on, check_exact, exact_cases, exact_findings
from hushfit.audit.checks import _exact_laws as exact
from hushfit.privacy import (
    RECORD_RELATIONS,
    GaussianCost,
    PureCost,
    discretisation_loss,
    gaussian_delta,
)

CASES = {f"{case.name}, {case.relation}": case for case in exact_cases()}
# Noise parameters of costs.
NOISE = ("noise_multiplier", "threshold_multiplier", "query_multiplier")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_price_is_below_its_law_and_all_are_close(case):
    covered, close = check_exact(case)
    assert covered.passed, covered.evidence
    assert close.passed, close.evidence


def at_half_the_noise(cost):
    """The cost that would be claimed with twice the actual noise."""
    if isinstance(cost, PureCost):
        return PureCost(cost.epsilon / 2)
    return replace(cost, **{name: 2 * getattr(cost, name) for name in NOISE if hasattr(cost, name)})


SCALED = {name: case for name, case in CASES.items() if not name.startswith("best of")}


@pytest.mark.parametrize("case", SCALED.values(), ids=SCALED)
def test_a_price_for_twice_the_noise_is_noticed(case):
    covered, close = check_exact(replace(case, cost=at_half_the_noise(case.cost)))
    assert not (covered.passed and close.passed)


def test_the_best_of_several_at_the_price_of_one_is_noticed():
    case = next(case for case in CASES.values() if case.name.startswith("best of"))
    assert not check_exact(replace(case, cost=GaussianCost(1.0)))[0].passed


def test_a_statement_of_closeness_that_is_too_bold_is_noticed():
    case = next(case for case in CASES.values() if case.name == "Gaussian gate")
    assert not check_exact(replace(case, close=0.9))[1].passed


def test_randomised_response_is_known():
    """Probabilities e^e/(1+e^e) against 1/(1+e^e): delta is 0 from e on, and (e^e - 1)/(e^e + 1)
    at 0.
    """
    logs = np.array([1.2, 0.0]) - math.log1p(math.exp(1.2))
    laws = ExactLaws(logs, logs[::-1])
    assert laws.delta(0.0) == pytest.approx(math.tanh(0.6))
    assert laws.delta(1.2) == pytest.approx(0.0, abs=1e-15)
    assert laws.epsilon(1e-9) == pytest.approx(1.2, abs=1e-6)
    assert laws.swapped.delta(0.3) == pytest.approx(laws.delta(0.3))
    # Two answers at once: the loss is 2.4 with probability p^2.
    p = math.exp(1.2) / (1 + math.exp(1.2))
    assert laws.beside(laws).delta(1.2) == pytest.approx(p * p - math.exp(1.2) * (1 - p) ** 2)


def test_laws_without_overlap_give_everything_away():
    laws = ExactLaws(np.array([0.0, -math.inf]), np.array([-math.inf, 0.0]))
    assert laws.delta(5.0) == 1.0
    assert laws.epsilon(0.5) == math.inf
    assert ExactLaws(np.zeros(1), np.zeros(1)).epsilon(1e-5) == 0.0


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_probabilities_of_a_gate_are_those_of_its_definition(noise):
    """Against direct simulation: 200,000 runs, each probability within 6 standard errors."""
    rng, scores = np.random.default_rng(3), np.array([-1.0, 0.5, 0.0])
    draw = rng.laplace if noise == "laplace" else rng.normal
    size = 200_000
    over = scores + draw(scale=1.5, size=(size, 3)) >= draw(scale=0.8, size=(size, 1))
    stopped = np.where(over.any(axis=1), over.argmax(axis=1), 3)
    found = np.bincount(stopped, minlength=4) / size
    law = np.exp(exact.gate_law(noise, 0.8, 1.5, scores))
    assert law.sum() == pytest.approx(1.0, abs=1e-6)
    assert (np.abs(found - law) <= 6 * np.sqrt(law * (1 - law) / size)).all()


def test_probabilities_of_a_choice_are_those_of_its_definition():
    rng, scores, size = np.random.default_rng(4), np.array([0.0, 1.0, -0.5]), 200_000
    found = (
        np.bincount((scores + rng.laplace(scale=1.2, size=(size, 3))).argmax(axis=1), minlength=3)
        / size
    )
    law = np.exp(exact.choice_law(1.2, scores))
    assert (np.abs(found - law) <= 6 * np.sqrt(law * (1 - law) / size)).all()


def test_discrete_noise_is_covered_by_its_reserve_and_not_without_it():
    for log2_variance in (8, 16):
        assert exact.check_discrete_gaussian(log2_variance, 2 ** (log2_variance // 2)).passed
    # Coarse noise: the cost of continuous noise of its size would be too small.
    pair = exact.discrete_gaussian_laws(0, 1)
    excess = [
        exact.worst_delta([pair], epsilon) / gaussian_delta(epsilon, 1.0)
        for epsilon in (0.5, 1.0, 2.0, 3.0, 4.0)
    ]
    assert max(excess) > 1.01
    assert discretisation_loss(1, 62) < 1e-10


def test_a_permuted_run_is_no_worse_when_batches_are_hidden():
    either, alone, shown = exact.permuted_laws(1.5, (0.5, 0.5), (1.0, 0.6))
    assert shown.delta(1.0) > max(either.delta(1.0), alone.delta(1.0))


@pytest.mark.parametrize("relation", list(RECORD_RELATIONS), ids=str)
def test_the_law_of_the_corners_is_that_of_the_attack(relation):
    """Every log-likelihood ratio of a run is a value of the distribution that the family estimator
    assumes.
    """
    attack = attack_on("frank-wolfe", relation)
    laws = exact.repeated_corner(attack.quote.multipliers["corner"], 4, 3.0)
    scores = np.array([attack.white_box(seed % 2, seed) for seed in range(24)])
    assert len(np.unique(scores.round(6))) > 1
    assert np.abs(scores[:, None] - (laws.first - laws.second)).min(axis=1).max() < 1e-4


def test_all_cases_are_findings():
    assert len(exact_findings([CASES["Gaussian, replace-one"]])) == 2
    assert {case.relation for case in CASES.values()} == set(RECORD_RELATIONS)
