"""Attacks on fits of networks come close to the claimed epsilon, and notice half the noise.

False alarms: each audit has a confidence of 0.999, with fixed seeds.
"""

import math

import numpy as np
import pytest
from torch import nn

from hushfit.audit import Claim, Verdict, audit, claim_of, lower_bound, one_run
from hushfit.audit._bounds import verdict_of
from hushfit.data import SeededCoins
from hushfit.privacy import Budget, Relation, SeededSampler
from hushfit.release import Randomness, unpaid_curator
from hushfit.torch import ArrayRecords, Network, NetworkRows, RecordShape
from hushfit.torch._fit import quote_of
from hushfit.torch.solvers import NetworkSGD, run_network


def linear_loss(outputs, y):
    """Its gradient is the record itself times the target: canaries attain the clipping norm."""
    return outputs[:, 0] * y


def linear_network(width, n_units, relation, rows):
    record = RecordShape((width,))
    return Network.of(
        nn.Linear(width, 1, bias=False), linear_loss, record, n_units, relation, physical_batch=rows
    )


def released(net, solver, quote, X, y, seed):
    """All answers of one run."""
    rows = NetworkRows(ArrayRecords(X, y), net.record)
    randomness = Randomness(SeededSampler(seed), SeededCoins(seed + 1))
    door = unpaid_curator(rows, quote, net.relation, randomness)
    run_network(solver, net, door)
    return np.array([one.answer for one in door.transcript])


def attacked(rate, steps, trials, epsilon):
    """An audit of a fit with one canary, by the exact likelihood ratio of its answers."""
    net = linear_network(2, 4, "add-remove", 32)
    solver, budget = NetworkSGD(steps, rate, learning_rate=1e-3), Budget(epsilon, 1e-3)
    quote = quote_of(solver, net, budget)
    y, mu = np.ones(4, dtype=np.float32), 1 / quote.multipliers["gradient"]

    def mechanism(world, seed):
        X = np.zeros((4, 2), dtype=np.float32)
        X[0, 0] = 0.0 if world else 1e3  # the canary, or the null record
        x = mu * released(net, solver, quote, X, y, seed)[:, 0]
        return float(np.log1p(rate * np.expm1(mu * x - mu**2 / 2)).sum())

    claim = claim_of(quote, budget, Relation.ADD_REMOVE, 4)
    return audit(mechanism, claim, trials=trials, name="network")


def test_an_attack_with_a_canary_measures_half_of_the_claim():
    found = attacked(1.0, steps=1, trials=400, epsilon=4.0)
    assert found.verdict is Verdict.CONSISTENT
    assert found.ratio >= 0.5
    # The same scores against a claim of half the epsilon, which would need twice the noise.
    claim = Claim.gaussian(1.5, 1e-3, Relation.ADD_REMOVE)
    assert verdict_of(lower_bound(found.first, found.second, claim), claim) is Verdict.VIOLATED


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_an_attack_on_several_steps_measures_half_of_the_claim(rate):
    found = attacked(rate, steps=3, trials=1200, epsilon=2.0)
    assert found.verdict is Verdict.CONSISTENT
    assert found.ratio >= 0.5


def test_one_run_with_many_canaries_measures_a_share_of_the_claim():
    canaries = 512
    net = linear_network(canaries, canaries, "replace-one", 256)
    solver, budget = NetworkSGD(2, 1.0, learning_rate=1e-9), Budget(8.0, 1e-5)
    quote = quote_of(solver, net, budget)
    X = 1e3 * np.eye(canaries, dtype=np.float32)

    def mechanism(included, seed):
        y = np.where(included, 1.0, -1.0).astype(np.float32)
        return released(net, solver, quote, X, y, seed).sum(axis=0) / math.sqrt(solver.steps)

    found = one_run(mechanism, Claim(8.0, 1e-5), canaries)
    assert found.p_value > 1e-3
    assert found.epsilon >= 0.1 * 8.0  # what one run can show, with so few canaries
