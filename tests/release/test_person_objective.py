"""Objective perturbation for persons: exact densities never exceed the price, and exceed that of a
row.

The example has two rows along different axes, of weight one half each, against nobody: densities
of the minimiser are products of two densities on a line.
"""

import math

import numpy as np
import pytest

from _support import curator_over, problem_for, source_of
from hushfit.errors import InvalidArgument, UndeclaredRelease
from hushfit.losses import Logistic, OneVsRest, Softmax, Squared
from hushfit.privacy import (
    ObjectiveCost,
    PersonObjectiveCost,
    Relation,
    cost_from_dict,
    delta_of,
    rdp_curve,
)
from hushfit.privacy.costs import ClassicObjectiveCost, log_determinant
from hushfit.privacy.costs._objective_cost import objective_curve
from hushfit.release import (
    ClassicInside,
    GaussianInside,
    LaplaceInside,
    PerturbedMinimiser,
    Plan,
    Planned,
)
from hushfit.unit import PrivacyUnit

KAPPA = 1.0
REMOVED = Relation.ADD_REMOVE


def renyi(order, shift_over_scale, weight, label):
    """Renyi divergence of minimisers on a line, from having a row to not having it, near the row:
    squared loss with slopes up to one, mu = 1, n = 1, noise of scale 1 / ``shift_over_scale``.
    """
    scale = 1 / shift_over_scale
    fine = np.linspace(label - 1 - 9 * scale, label + 1 + 9 * scale, 2_000_001)
    miss = np.clip(fine - label, -1.0, 1.0)
    p = -0.5 * ((fine + weight * miss) / scale) ** 2 + np.log1p(weight * (np.abs(fine - label) < 1))
    q = -0.5 * (fine / scale) ** 2
    terms = order * p + (1 - order) * q
    top = terms.max()
    total = np.exp(terms - top).sum() * (fine[1] - fine[0])
    return (top + math.log(total) - math.log(scale * math.sqrt(2 * math.pi))) / (order - 1)


def test_the_renyi_curve_covers_a_person_and_that_of_a_row_does_not():
    """At a high order, where the row's curvature counts most."""
    found = 2 * max(renyi(1000.0, 0.01, 0.5, label) for label in (0.0, 1.0, 3.0, 10.0, 30.0))
    orders = np.array([1000.0])
    of_row = rdp_curve(ObjectiveCost(100.0, KAPPA), orders, REMOVED)[0]
    of_person = rdp_curve(PersonObjectiveCost(100.0, KAPPA, KAPPA, 1, 2), orders, REMOVED)[0]
    assert of_row < 0.75 < 0.8 < found <= of_person < 0.87


def test_the_pure_price_covers_a_person_and_that_of_a_row_does_not():
    """Laplace noise of a hundred times the shift, two coordinates."""
    shift, scale = 1.0, 100.0
    w = np.linspace(-3.0, 3.0, 601)
    miss = np.clip(w - 0.5, -1.0, 1.0)
    on_line = np.log1p(0.5 * (np.abs(w - 0.5) < 1)) - (np.abs(w + 0.5 * miss) - np.abs(w)) / scale
    found = 2 * float(on_line.max())
    multiplier = scale / (math.sqrt(2) * shift)
    tiny = 1e-9  # nearly nothing on the minimiser itself

    def price(person):
        noise = LaplaceInside(KAPPA, 1, tiny, person)
        return noise.cost(multiplier, 1, 1).pure_epsilon()

    query = minimiser(rows_per_person=2, n_units=1, mu=1.0)
    assert query.kappa == pytest.approx(KAPPA)
    assert price(None) < 0.708 < 0.8 < found <= price(query.person) < 0.83


def test_the_delta_of_the_library_covers_a_person_and_that_of_a_row_does_not():
    """The hockey-stick divergence of the product, by quadrature over both coordinates."""
    epsilon, worst = 0.74, 0.0
    for label in (0.0, 3.0, 10.0):
        w = np.linspace(label - 1.2, label + 1.2, 1201)  # both curvatures are inside
        miss, scale = np.clip(w - label, -1.0, 1.0), 100.0
        p = -0.5 * ((w + 0.5 * miss) / scale) ** 2 + np.log1p(0.5 * (np.abs(w - label) < 1))
        q = -0.5 * (w / scale) ** 2
        area = (w[1] - w[0]) ** 2 / (2 * math.pi * scale**2)
        excess = np.exp(np.add.outer(p, p)) - math.exp(epsilon) * np.exp(np.add.outer(q, q))
        worst = max(worst, float(np.maximum(excess, 0).sum()) * area)
    of_row = delta_of(ObjectiveCost(100.0, KAPPA), epsilon, REMOVED)
    of_person = delta_of(PersonObjectiveCost(100.0, KAPPA, KAPPA, 1, 2), epsilon, REMOVED)
    assert of_row < 1e-8 < 5e-6 < worst <= of_person


def random_unit(rng, rank, trace, kappa, size):
    """A positive semidefinite matrix with bounded trace, rank and eigenvalues."""
    basis, _ = np.linalg.qr(rng.normal(size=(size, size)))
    eigenvalues = rng.dirichlet(np.full(rank, rng.choice([0.1, 1.0, 10.0]))) * trace
    eigenvalues = np.minimum(eigenvalues, kappa)
    return (basis[:, :rank] * eigenvalues) @ basis[:, :rank].T


def determinants(order, E, other):
    """log of det(H_D)^a det(H_D')^(1-a) / det(a H_D - (a-1) H_D'), over a - 1, H_0 = I."""
    H, K = np.eye(len(E)) + E, np.eye(len(E)) + other
    log = [np.linalg.slogdet(M)[1] for M in (H, K, order * H - (order - 1) * K)]
    return (order * log[0] + (1 - order) * log[1] - log[2]) / (order - 1)


@pytest.mark.parametrize("kappa", [0.1, 0.9, 3.0, 10.0])
def test_theorem_a_covers_every_spread_of_a_persons_curvature(kappa):
    rng, size, rank = np.random.default_rng(0), 6, 4
    worst = 0.0
    for trace in (kappa, 4 / 3 * kappa):
        for order in 1 + np.array([0.02, 0.5, 0.95]) / kappa:
            cost = PersonObjectiveCost(math.inf, kappa, trace, 2, rank)
            bound = objective_curve(np.array([order]), cost)[0]
            for _ in range(60):
                pair = [random_unit(rng, rank, trace, kappa, size) for _ in range(2)]
                pair[1] = pair[1] if rng.random() < 0.7 else np.zeros((size, size))
                worst = max(worst, determinants(order, *pair) / bound)
    assert 0.2 < worst <= 1 + 1e-9


def test_beyond_kappa_one_several_small_eigenvalues_exceed_the_formula_of_a_row():
    """Orthogonal rows of equal weight on one table, one row on the other, across them."""
    order, kappa, spread = 1.05, 10.0, 5
    E, other = np.zeros((6, 6)), np.zeros((6, 6))
    E[:spread, :spread] = np.eye(spread) * kappa / spread
    other[5, 5] = kappa
    found = determinants(order, E, other)
    of_row = objective_curve(np.array([order]), ObjectiveCost(math.inf, kappa, 2))[0] / 2
    of_person = objective_curve(
        np.array([order]), PersonObjectiveCost(math.inf, kappa, kappa, 2, 60)
    )[0]
    assert of_row < found <= of_person
    assert (order - 1) * of_row == pytest.approx(0.649, abs=1e-3)
    assert (order - 1) * of_person == pytest.approx(0.684, abs=1e-3)


def test_equal_eigenvalues_have_the_largest_determinant():
    rng = np.random.default_rng(1)
    for _ in range(200):
        rank, trace = int(rng.integers(1, 8)), float(rng.uniform(0, 5))
        E = random_unit(rng, rank, trace, math.inf, 8)
        found = np.linalg.slogdet(np.eye(8) + E)[1]
        assert found <= log_determinant(trace, rank) + 1e-12 <= trace + 2e-12
    assert log_determinant(1.0, 2) == pytest.approx(2 * math.log(1.5))


def test_a_person_of_one_row_costs_what_a_row_costs():
    orders = np.array([1.1, 1.5, 2.0, 8.0, 60.0])
    for kappa in (0.01, 0.4, 3.0):
        for rank in (1, 3):
            row = objective_curve(orders, ObjectiveCost(4.0, kappa, rank))
            person = PersonObjectiveCost(4.0, kappa, rank * kappa, rank, rank)
            np.testing.assert_allclose(objective_curve(orders, person), row, rtol=1e-12)


def test_the_profile_of_one_release_is_not_used_for_persons():
    """Its loss has one direction; the mean of half-normals exceeds it."""
    cost = PersonObjectiveCost(4.0, 0.01, 0.01, 1, 5)
    assert cost.bounded_losses() is None
    assert ObjectiveCost(4.0, 0.01).bounded_losses() is not None
    assert delta_of(cost, 1.0, REMOVED) > delta_of(ObjectiveCost(4.0, 0.01), 1.0, REMOVED)


def test_the_cost_of_persons_serialises():
    cost = PersonObjectiveCost(4.0, 0.01, 0.02, 2, 9, 3)
    assert cost_from_dict(cost.to_dict()) == cost


def minimiser(loss=None, outputs=1, rows_per_person=20, n_units=50, mu=0.1):
    problem = problem_for(np.empty((n_units, 3)), loss or Squared(1.0), outputs)
    unit = PrivacyUnit.person("mean", rows_per_person)
    return PerturbedMinimiser(type(problem)(**{**vars(problem), "privacy_unit": unit}), mu)


def test_trace_and_rank_of_a_person():
    assert minimiser(rows_per_person=1).person is None
    one = minimiser(Logistic())
    assert one.person.trace == one.kappa
    assert one.person.rank == 4  # not more than there are weights
    assert minimiser(Logistic(), rows_per_person=3).person.rank == 3
    several = minimiser(Softmax(3), 3)
    assert several.person.trace == pytest.approx(4 / 3 * several.kappa)
    rest = minimiser(OneVsRest(Logistic(), 3), 3, rows_per_person=2)
    assert (rest.person.trace, rest.person.rank) == (pytest.approx(3 * rest.kappa), 6)


@pytest.mark.parametrize("kind", [GaussianInside, LaplaceInside, ClassicInside])
def test_a_minimiser_over_persons_needs_the_price_of_persons(kind):
    query = minimiser()
    row_price = kind(query.kappa, query.rank, 0.01)
    assert "persons" in row_price.objection(query, REMOVED)
    assert kind.of(query, 0.01).objection(query, REMOVED) is None
    assert kind.of(query, 0.01).objection(minimiser(rows_per_person=2), REMOVED) is None
    source = source_of(np.zeros((50, 3)), np.zeros(50))
    plan = Plan((Planned("minimiser", PerturbedMinimiser, 1, sampling=row_price),))
    with pytest.raises(UndeclaredRelease, match="persons"):
        curator_over(source, plan, 1.0).release("minimiser", query)


def test_the_classic_theorem_costs_the_same():
    """Its first term is kappa, which no determinant of a person's curvature exceeds."""
    query = minimiser()
    inside = ClassicInside.of(query, 0.01).cost(5.0, 1, 50)
    assert ClassicObjectiveCost(5.0, query.kappa) in list(inside.entries())
    assert log_determinant(query.person.trace, query.person.rank) <= query.kappa
    with pytest.raises(InvalidArgument, match="rank one"):
        ClassicInside.of(minimiser(Softmax(3), 3), 0.01)
