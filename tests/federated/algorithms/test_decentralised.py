"""The decentralised algorithms: without noise they find the minimum of all rows, with noise they
send nothing that was not paid for. Tests 5 and 11 of the errata of the source text; each fault is
put back and must be detected.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from _talks import NAMES, RING, curators_for, held, model, seats, tables
from scipy.special import expit

from _support import records_of
from hushfit import PrivateLogisticRegression
from hushfit.errors import InvalidArgument
from hushfit.federated import (
    ALGORITHMS,
    DPADMM,
    DVP,
    IPPADMM,
    MADMM,
    PPADMM,
    RADMM,
    Owner,
    Run,
    Seat,
    SharedSolver,
    fit_together,
    simulate,
)
from hushfit.federated.algorithms import _r_admm as r_admm
from hushfit.penalties import L1
from hushfit.privacy import Budget
from hushfit.release import ClippedGradient

pytestmark = pytest.mark.filterwarnings(
    "ignore::hushfit.errors.InsecureNoiseWarning", "ignore::hushfit.errors.WeakGuaranteeWarning"
)

# Without noise


def pooled_optimum(ridge, alpha=0.0):
    """By proximal gradient steps on unit records; the ridge covers the intercept, the lasso does
    not.
    """
    Z = records_of(np.concatenate([X for X, _ in tables().values()]))
    y = 2.0 * np.concatenate([y for _, y in tables().values()]) - 1
    w = np.zeros(Z.shape[1])
    for _ in range(4000):
        w = w - 2.0 * (-(y * expit(-y * (Z @ w))) @ Z / len(y) + ridge * w)
        w[:-1] = np.sign(w[:-1]) * np.maximum(np.abs(w[:-1]) - 2.0 * alpha, 0)
    return w


TWINS = {
    "pp-admm": PPADMM(steps=160, eta=0.02, ridge=0.05, average_last=0.0),
    "ipp-admm": IPPADMM(
        steps=160, broadcasts=160, threshold=0.0, eta=0.02, ridge=0.05, average_last=0.0
    ),
    "ipp-admm, laplace": IPPADMM(
        steps=160,
        broadcasts=160,
        gate="laplace",
        threshold=0.0,
        eta=0.02,
        ridge=0.05,
        average_last=0.0,
    ),
    "dvp": DVP(steps=160, eta=0.02, ridge=0.05, average_last=0.0),
    "m-admm": MADMM(steps=160, eta=0.02, growth=1.002, ridge=0.05, average_last=0.0),
    "r-admm": RADMM(steps=300, eta=0.02, ridge=0.05, average_last=0.0),
    "dp-admm": DPADMM(steps=800, rho=0.05, step_size=40.0, ridge=0.05, average_last=0.0),
}


@pytest.mark.parametrize("algorithm", TWINS.values(), ids=TWINS)
def test_without_noise_the_minimum_of_all_rows_is_found(algorithm):
    together = fit_together(model(np.inf), tables(), "ring", algorithm)
    for fitted in together.models.values():
        np.testing.assert_allclose(
            np.append(fitted.coef_[0], fitted.intercept_), pooled_optimum(0.05), atol=5e-4
        )


@pytest.mark.parametrize("name", ["pp-admm", "dp-admm"])
def test_without_noise_a_lasso_is_solved_too(name):
    together = fit_together(model(np.inf, penalty=L1(0.02)), tables(), "ring", TWINS[name])
    for fitted in together.models.values():
        np.testing.assert_allclose(
            np.append(fitted.coef_[0], fitted.intercept_), pooled_optimum(0.05, 0.02), atol=5e-4
        )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_several_classes_are_taken_and_what_was_declared_is_made(name):
    rng = np.random.default_rng(0)
    parts = {who: (rng.normal(size=(50, 3)), rng.integers(0, 3, 50)) for who in NAMES}
    estimator = PrivateLogisticRegression(epsilon=8.0, classes=[0, 1, 2])
    prepared = {who: estimator.prepare(X, y) for who, (X, y) in parts.items()}
    sizes, budgets = dict.fromkeys(NAMES, 50), dict.fromkeys(NAMES, Budget(8.0, 1e-5))
    owners = [
        Owner(
            ready.source,
            Seat(who, RING, ready.problem, sizes, budgets),
            Run("a", ALGORITHMS[name]()),
            random_state=1,
        )
        for who, ready in prepared.items()
    ]
    talk = simulate(owners)
    assert all(w.shape == prepared[who].problem.shape for who, w in talk.weights.items())
    assert talk.rounds == ALGORITHMS[name]().rounds(owners[0].seat)
    if name not in ("shared", "dp-admm"):
        most = ALGORITHMS[name]().most if name == "ipp-admm" else talk.rounds
        assert talk.broadcasts <= 4 * most
    if name not in ("shared", "ipp-admm"):
        for owner in owners:
            assert len(owner._contract.curator.transcript) == sum(
                part.count for part in owner._quote.plan.parts
            )


def test_settings_out_of_range_are_refused():
    for kind in (PPADMM, DVP, MADMM, RADMM):
        for wrong in (
            {"steps": 0},
            {"eta": 0.0},
            {"ridge": -1.0},
            {"average_last": 2.0},
            {"bound": 0.0},
        ):
            with pytest.raises(InvalidArgument, match=next(iter(wrong))):
                kind(**wrong)
    for wrong in ({"broadcasts": 31}, {"gate_share": 1.0}, {"threshold": math.nan}, {"steps": 0}):
        with pytest.raises(InvalidArgument, match=next(iter(wrong))):
            IPPADMM(**wrong)
    with pytest.raises(InvalidArgument, match="'gaussian' or 'laplace'"):
        IPPADMM(gate="svt")
    for kind in (DVP, MADMM, RADMM):
        with pytest.raises(InvalidArgument, match="'laplace' or 'gaussian'"):
            kind(noise="gamma")
    with pytest.raises(InvalidArgument, match="growth"):
        MADMM(growth=0.9)
    with pytest.raises(InvalidArgument, match="gamma"):
        RADMM(gamma=-1.0)
    for wrong in ({"rho": 0.0}, {"step_size": 0.0}, {"clip": 0.0}):
        with pytest.raises(InvalidArgument, match=next(iter(wrong))):
            DPADMM(**wrong)


def test_defaults_are_public_and_the_same_for_all_owners():
    from hushfit.federated.algorithms._subproblem import default_eta

    etas = {who: default_eta(seat, 10) for who, (seat, _) in seats().items()}
    assert len(set(etas.values())) == 1
    seat = seats()["north"][0]
    larger = replace(seat, sizes={who: 100 * n for who, n in seat.sizes.items()})
    assert default_eta(larger, 10) < default_eta(seat, 10) < default_eta(seat, 20)
    assert default_eta(
        replace(seat, budgets=dict.fromkeys(NAMES, Budget(0.1, 1e-5))), 10
    ) > default_eta(seat, 10)


# Test 5: every message is a function of the releases


def bytes_of(messages):
    return [
        None if message is None else message.tobytes()
        for sent in messages
        for message in sent.values()
    ]


def replayed_alike(algorithm):
    """Run, then replay the releases over OTHER rows: is every message the same, bit for bit?"""
    places = seats(epsilon=4.0)
    first = curators_for(algorithm, places)
    messages, results = held(algorithm, places, first)
    others = {who: source for who, (_, source) in seats(epsilon=4.0, parts=_other_rows()).items()}
    replays = {who: list(curator.transcript) for who, curator in first.items()}
    again, same = held(algorithm, places, curators_for(algorithm, places, replays, others))
    return bytes_of(messages) == bytes_of(again) and all(
        np.array_equal(results[who], same[who]) for who in results
    )


def _other_rows():
    return {who: (-X, 1 - y) for who, (X, y) in tables().items()}


SMALL = {
    "shared": SharedSolver("proximal-gd"),
    "pp-admm": PPADMM(steps=4),
    "ipp-admm": IPPADMM(steps=6),
    "ipp-admm, laplace": IPPADMM(steps=6, gate="laplace"),
    "dvp": DVP(steps=4),
    "m-admm": MADMM(steps=4),
    "r-admm": RADMM(steps=5),
    "dp-admm": DPADMM(steps=4),
}


@pytest.mark.parametrize("algorithm", SMALL.values(), ids=SMALL)
def test_everything_said_is_a_function_of_what_was_released(algorithm):
    assert replayed_alike(algorithm)


@dataclass(frozen=True)
class TrueGradient(RADMM):
    """R-ADMM with the fault: the gradient of an even round is computed on the rows, not from the
    released minimiser.
    """

    def converse(self, seat, curator):
        released = r_admm.recycled

        def peeked(subproblem, linear, own):
            query = ClippedGradient(seat.problem, own, seat.problem.loss.slope_bound)
            exact = query(curator._Curator__source, None).reshape(own.shape) / seat.problem.n_units
            return seat.weight * exact + subproblem.ridge * own

        talk = super().converse(seat, curator)
        inbox = None
        while True:
            r_admm.recycled = peeked
            try:
                message = talk.send(inbox)
            except StopIteration as end:
                return end.value
            finally:
                r_admm.recycled = released
            inbox = yield message


def test_a_true_gradient_in_the_place_of_a_recycled_one_is_caught():
    assert not replayed_alike(TrueGradient(steps=5))


@pytest.mark.parametrize("algorithm", [PPADMM(steps=4), RADMM(steps=5)], ids=["pp-admm", "r-admm"])
def test_duals_and_recycled_steps_can_be_computed_by_anyone_who_listens(algorithm):
    """An eavesdropper with the messages only can compute the linear terms of each query, and
    R-ADMM's even messages.
    """
    places = seats(epsilon=4.0)
    curators, queries = curators_for(algorithm, places), {who: [] for who in NAMES}
    for who, curator in curators.items():
        release = curator.release
        curator.release = lambda name, query, who=who, release=release: (
            queries[who].append(query),
            release(name, query),
        )[1]
    messages, _ = held(algorithm, places, curators)
    for who, (seat, _) in places.items():
        subproblem = (
            algorithm.subproblem(seat, algorithm.steps)
            if isinstance(algorithm, PPADMM)
            else algorithm.noisy_subproblem(seat, algorithm.releases)
        )
        own = dual = gradient = np.zeros(seat.problem.shape)
        theirs = dict.fromkeys(seat.neighbours, own)
        linears = iter(query.linear for query in queries[who])
        for t, sent in enumerate(messages):
            if isinstance(algorithm, PPADMM) or t % 2 == 0:
                linear = subproblem.linear(own, theirs, dual)
                np.testing.assert_array_equal(next(linears), linear / seat.weight)
                gradient = r_admm.recycled(subproblem, linear, sent[who])
            else:
                differences = sum(
                    (own - other for other in theirs.values()), start=np.zeros_like(own)
                )
                step = gradient + 2 * dual + subproblem.eta * differences
                expected = own - step / (
                    subproblem.coupling + seat.weight * seat.problem.loss.smoothness
                )
                np.testing.assert_array_equal(sent[who], expected)
            own, theirs = sent[who], {name: sent[name] for name in seat.neighbours}
            dual = dual + subproblem.eta / 2 * sum(
                (own - other for other in theirs.values()), start=np.zeros_like(own)
            )


# Test 11: isolation


@pytest.mark.parametrize("algorithm", SMALL.values(), ids=SMALL)
def test_an_owners_rows_do_not_touch_what_others_say_before_they_hear_of_it(algorithm):
    places = seats()
    other = seats(parts={**tables(), "south": _other_rows()["south"]})
    first, second = curators_for(algorithm, places), curators_for(algorithm, other)
    for who in ("north", "east", "west"):
        first_messages = [
            next(algorithm.converse(given[who][0], made[who]))
            for given, made in ((places, first), (other, second))
        ]
        assert bytes_of([{who: message} for message in first_messages[:1]]) == bytes_of(
            [{who: message} for message in first_messages[1:]]
        )
