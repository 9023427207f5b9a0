"""Records that are divided by one public length: none is longer than one, and every bound holds."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit

from hushfit import PrivateLogisticRegression
from hushfit.audit import source_for
from hushfit.data import RecordScaling, as_source
from hushfit.data.schema import Schema, encode
from hushfit.errors import InvalidArgument
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Ledger, Relation
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, GradientWithMoment, SecondMoment, gradient_diameter


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix], ids=["dense", "sparse"])
def test_no_record_is_longer_than_one_and_short_ones_keep_their_ratio(layout):
    X = np.array([[0.0, 0.0], [1.0, 2.0], [30.0, -40.0], [np.nan, 1.0], [1e200, 0.0]])
    made = as_source(
        layout(X), np.zeros(5), scaling=RecordScaling.PUBLIC_LENGTH, length=math.sqrt(6.0)
    )
    expected = 1 / np.array([math.sqrt(6), math.sqrt(6), math.hypot(50, 1), np.inf, np.inf])
    np.testing.assert_allclose(made.scale, expected, rtol=1e-12)
    lengths = next(made.blocks()).lengths(np.eye(3))
    assert (lengths <= 1 + 1e-12).all()


@pytest.mark.parametrize("rho", [0.5, 2.0, 8.0])
def test_no_shorter_pair_is_further_apart_than_the_diameter(rho):
    """By climbing over lengths and angles in three dimensions, and on a line by a grid."""

    def apart(parameters):
        u = parameters.reshape(2, 3)
        u = u / np.maximum(np.linalg.norm(u, axis=1), 1)[:, None]
        g = expit(rho * u[:, :1]) * u
        return -float(np.linalg.norm(g[0] - g[1]))

    rng = np.random.default_rng(0)
    found = max(-minimize(apart, rng.normal(size=6), method="Nelder-Mead").fun for _ in range(20))
    on_a_line = expit(rho * np.linspace(-1, 1, 2001)) * np.linspace(-1, 1, 2001)
    bound = gradient_diameter(rho)
    assert 0.98 * bound <= found <= bound
    assert np.ptp(on_a_line) <= bound


def test_gradients_of_shorter_records_leave_the_line_of_those_of_length_one():
    """Against the weights a shorter record can have the longer gradient."""
    assert 0.2 * expit(-8.0 * 0.2) > 1.0 * expit(-8.0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_gradient_and_moment_of_shorter_pairs_stay_within_the_bound(share):
    problem = Problem(
        *(Logistic(), Zero(), 2, 2, Relation.REPLACE_ONE, False),
        scaling=RecordScaling.PUBLIC_LENGTH,
        length=1.0,
    )
    gradient = ClippedGradient(problem, np.array([3.0, -1.0]), 0.5)
    query = GradientWithMoment(gradient, SecondMoment(problem), share)
    bound, worst = query.sensitivity(problem.relation), 0.0
    weights = np.where(query.doubled, 2.0, 1.0)
    lengths, angles = (0.0, 0.3, 0.6, 0.8, 1.0), np.linspace(0, 2 * np.pi, 17)
    fixed = np.zeros(2)
    answers = [
        query(source_for(problem, np.array([record, fixed]), np.array([y, 1.0])), None)
        for r, t, y in product(lengths, angles, (-1.0, 1.0))
        for record in [r * np.array([np.cos(t), np.sin(t)])]
    ]
    for one in answers:
        apart = np.sqrt(((np.array(answers) - one) ** 2) @ weights)
        worst = max(worst, float(apart.max()))
    assert 0.7 * bound <= worst <= bound


def test_an_adaptive_run_is_refused_before_any_charge():
    X, y = np.random.default_rng(0).uniform(size=(50, 2)), np.tile([0, 1], 25)
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    model = PrivateLogisticRegression(
        *(1.0, 1e-6),
        classes=[0, 1],
        feature_bounds=(0, 1),
        scaling="public",
        solver="dp-agd",
        ledger=ledger,
    )
    with pytest.raises(InvalidArgument, match="Use scaling='unit', or solver='auto'"):
        model.fit(X, y)
    assert not ledger.entries


def test_no_row_of_a_schema_is_longer_than_its_length():
    schema = Schema.from_dict(
        {
            "target": {"name": "ill", "kind": "categorical", "categories": ["no", "yes"]},
            "scaling": "public",
            "columns": {
                "age": {"kind": "numeric", "low": 0, "high": 100, "missing": "indicator"},
                "city": {"kind": "categorical", "categories": ["a", "b", "c"]},
                "code": {"kind": "hashed", "columns": 4},
                "day": {
                    "kind": "date",
                    "low": "2020-01-01",
                    "high": "2021-01-01",
                    "parts": ["since", "month", "weekday"],
                },
            },
        }
    )
    cells = {
        "age": ["100", "", "1e9"],
        "city": ["a", "zz", ""],
        "code": ["x", "y", ""],
        "day": ["2021-01-01", "", "2020-06-05"],
    }
    X, _ = encode({name: np.array(own, dtype=object) for name, own in cells.items()}, schema)
    lengths = np.sqrt(1 + (np.asarray(X) ** 2).sum(axis=1))
    assert (lengths <= schema.longest + 1e-9).all()
    assert lengths.max() > 0.8 * schema.longest
