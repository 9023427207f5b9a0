"""Every named solver with persons as privacy units: it minimises the weighted objective, and
nothing in it counts rows.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from _support import curator_over, records_of
from hushfit import Ledger, PrivateLogisticRegression
from hushfit.data import Persons, as_source
from hushfit.errors import InvalidArgument
from hushfit.losses import Logistic
from hushfit.penalties import L1, ScaledL2, Zero
from hushfit.privacy import Budget, Relation
from hushfit.problem import Problem
from hushfit.solvers import (
    SOLVERS,
    PermutedSGD,
    PrivGene,
    ProximalGradient,
    ProxNewton,
    Recalibrated,
    Screening,
    WhitenedGradientDescent,
    run,
    solver_from,
)
from hushfit.solvers._whitening import release_spectrum
from hushfit.unit import ROW, PrivacyUnit

ALPHA = 0.02
MEAN, CAP = PrivacyUnit.person(), PrivacyUnit.person("cap", 4)
# They need public features, or records that keep their lengths, and have their own tests.
OTHER_RECORDS = ("one-release", "two-releases", "least-squares", "poisson")
over_names = pytest.mark.parametrize(
    "name", [name for name in SOLVERS if name not in OTHER_RECORDS]
)
over_rules = pytest.mark.parametrize("unit", [MEAN, CAP], ids=["mean", "cap"])


@dataclass(frozen=True, eq=False)
class Visits:
    """Persons with 1 to 6 rows, in any order. Those with few rows differ from the others, so that
    every weighting has its own minimiser.
    """

    n_persons: int = 120
    seed: int = 0

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        counts = rng.choice([1, 2, 6], self.n_persons)
        ids = rng.permutation(np.repeat(np.arange(self.n_persons), counts))
        X = rng.normal(size=(len(ids), 2))
        margin = 3 * np.where(counts[ids] > 2, X[:, 0], X[:, 1])
        y = np.where(rng.random(len(ids)) < expit(margin), 1.0, -1.0)
        for field, value in (("X", X), ("y", y), ("ids", ids), ("rows", counts[ids])):
            object.__setattr__(self, field, value)

    def weights(self, unit):
        """Weight of each row, by definition."""
        return 1 / np.maximum(self.rows, unit.full_weight)

    def objective(self, weights, total, penalty):
        """Weighted sum of the losses over ``total``, plus the penalty."""
        Z = records_of(self.X)

        def value(w):
            losses = np.logaddexp(0, -self.y * (Z @ w))
            return float(weights @ losses) / total + penalty.value(w[:2])

        return value

    def source(self, unit):
        persons = Persons(self.ids, self.n_persons, unit)
        return as_source(self.X, self.y, persons=persons)

    def problem(self, unit, penalty):
        return Problem(
            Logistic(), penalty, self.n_persons, 2, Relation.REPLACE_ONE, privacy_unit=unit
        )


def minimiser(value):
    return minimize(value, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 0}).x


def wrong_objectives(visits, unit, penalty):
    """What a solver would minimise that counts rows, or forgets that weights need not add up to
    one.
    """
    own = visits.weights(unit)
    other = visits.weights(CAP if unit is MEAN else MEAN)
    yield visits.objective(np.ones(len(own)), len(own), penalty)
    yield visits.objective(other, visits.n_persons, penalty)
    yield visits.objective(own, len(own), penalty)
    if unit is CAP:
        yield visits.objective(own, own.sum(), penalty)


def assert_minimises(w, visits, unit, penalty):
    """Far closer to the minimum of the weighted objective than any wrong objective's minimiser."""
    value = visits.objective(visits.weights(unit), visits.n_persons, penalty)
    least = value(minimiser(value))
    nearest = min(
        value(minimiser(wrong)) - least for wrong in wrong_objectives(visits, unit, penalty)
    )
    assert value(w) - least <= 0.2 * nearest


# Clipping moves the minimum, and a few steps do not reach it.
THOROUGH = {
    "proximal-gd": ProximalGradient(steps=300, clip=1.0, accelerated=True),
    "priv-gene": PrivGene(generations=300, mutation=2.0, last_mutation=0.002),
}


@over_names
@over_rules
def test_without_noise_a_solver_minimises_the_weighted_objective(name, unit):
    visits, penalty = Visits(), ScaledL2(ALPHA)
    problem = visits.problem(unit, penalty)
    solver = solver_from(THOROUGH.get(name, name), problem, Budget(math.inf, 1e-6))
    curator = curator_over(visits.source(unit), solver.plan(problem), 0.0)
    assert_minimises(run(solver, problem, curator).w, visits, unit, penalty)


@over_rules
def test_a_proximal_step_weighs_penalty_and_persons_alike(unit):
    visits, penalty, solver = Visits(), L1(ALPHA), ProxNewton(steps=200, clip=2.0)
    problem = visits.problem(unit, penalty)
    curator = curator_over(visits.source(unit), solver.plan(problem), 0.0)
    assert_minimises(run(solver, problem, curator).w, visits, unit, penalty)


def run_by_name(name, unit, persons):
    """Weights with seeded noise on 150 rows, which are persons of one row each or just rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.where(rng.random(150) < expit(2 * X[:, 0]), 1.0, -1.0)
    problem = Problem(
        Logistic(), ScaledL2(ALPHA), *X.shape, Relation.REPLACE_ONE, privacy_unit=unit
    )
    budget = Budget(math.inf if name == "exact" else 1.0, 1e-6)
    solver = solver_from(name, problem, budget)
    source = as_source(X, y, persons=persons)
    noise = 0.0 if name == "exact" else 3.0
    return run(solver, problem, curator_over(source, solver.plan(problem), noise, seed=5)).w


@over_names
def test_persons_of_one_row_each_are_fitted_like_rows(name):
    """Bit for bit, if one row of a person is used. If more may be, noise covers the rounding of
    more rows, which changes its last digits: that every id is different is nobody's to see.
    """
    unit = PrivacyUnit.person(rows_per_person=1)
    persons = Persons(np.arange(150), 150, unit)
    np.testing.assert_array_equal(run_by_name(name, unit, persons), run_by_name(name, ROW, None))


@pytest.mark.parametrize("name", ["whitened-gd", "prox-newton", "dp-sgd", "dp-sadmm", "bls"])
def test_the_bound_on_rows_per_person_changes_the_last_digits_only(name):
    persons = Persons(np.arange(150), 150, MEAN)
    np.testing.assert_allclose(
        run_by_name(name, MEAN, persons), run_by_name(name, ROW, None), rtol=1e-5, atol=1e-5
    )


class _Unreadable:
    """Persons whose rows nobody may count: only public numbers can be asked for."""

    def __init__(self, source):
        self.n_units, self.privacy_unit = source.n_units, source.privacy_unit

    def __getattr__(self, name):
        raise AssertionError(f"the solver read the rows: {name}")


@over_names
def test_nothing_but_the_answers_depends_on_the_rows(name):
    """A table with other persons' rows replaced, and more of them, gives the same weights if the
    answers are the same.
    """
    visits = Visits()
    problem = visits.problem(CAP, ScaledL2(ALPHA))
    solver = solver_from(name, problem, Budget(math.inf if name == "exact" else 1.0, 1e-6))
    plan, noise = solver.plan(problem), 0.0 if name == "exact" else 3.0
    first = curator_over(visits.source(CAP), plan, noise)
    w = run(solver, problem, first).w
    again = curator_over(
        _Unreadable(visits.source(CAP)), plan, noise, seed=9, replay=first.transcript
    )
    np.testing.assert_array_equal(run(solver, problem, again).w, w)


@pytest.mark.parametrize("multiplier", [0.0, 2.0])
def test_the_mean_weight_of_a_person_is_read_off_the_released_trace(multiplier):
    """Without noise it is exact; with noise it stays in the range that is public."""
    visits = Visits()
    for unit in (MEAN, CAP):
        problem = visits.problem(unit, Zero())
        plan = WhitenedGradientDescent().plan(problem)
        door = curator_over(visits.source(unit), plan, multiplier)
        spectrum = release_spectrum(problem, door, "second moment")
        np.testing.assert_allclose(spectrum.released.sum(), 1.0)
        if unit is MEAN:
            assert spectrum.mean_weight == 1.0
        elif multiplier == 0:
            true = visits.weights(unit).sum() / visits.n_persons
            np.testing.assert_allclose(spectrum.mean_weight, true, rtol=1e-6)
        else:
            assert 1 / unit.full_weight <= spectrum.mean_weight <= 1.0


@pytest.mark.parametrize(
    "solver", [Recalibrated(WhitenedGradientDescent()), Recalibrated(ProxNewton()), Screening()]
)
def test_a_common_weight_of_all_persons_changes_nothing(solver):
    """One row each, at weight 1/4 and without noise: the same minimiser as at weight one, since
    what is released tells the weight.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(rng.random(400) < expit(2 * X[:, 0]), 1.0, -1.0)
    found = []
    for unit in (MEAN, CAP):
        problem = Problem(Logistic(), Zero(), 400, 3, Relation.REPLACE_ONE, privacy_unit=unit)
        settled = solver_from(solver, problem, Budget(1.0, 1e-6))
        source = as_source(X, y, persons=Persons(np.arange(400), 400, unit))
        found.append(run(settled, problem, curator_over(source, settled.plan(problem), 0.0)).w)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


def test_batches_of_persons_in_a_known_order_are_refused_before_payment():
    rng, ledger = np.random.default_rng(0), Ledger(1.0, 1e-6)
    model = PrivateLogisticRegression(
        epsilon=1.0,
        delta=1e-6,
        solver=PermutedSGD(schedule="constant", restart=None, order=0, batches=7),
        classes=(0, 1),
        ledger=ledger,
        random_state=0,
    )
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    with pytest.raises(InvalidArgument, match=r"known order have no proof.*order='secret'"):
        model.fit(X, y, groups=np.arange(60) // 2)
    assert len(ledger.entries) == 0
