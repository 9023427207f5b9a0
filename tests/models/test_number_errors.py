"""Standard errors of models of numbers, against what fits with other noise do."""

from html import escape

import numpy as np
import pytest

from hushfit import PrivateElasticNet, PrivateHuberRegressor, PrivateLinearRegression
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema, SchemaFile
from hushfit.data.tables import CodedRows, find_tables
from hushfit.models import _standard_errors, fit_rows
from hushfit.report import report_page

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
RUN = {"epsilon": 3.0, "delta": 1e-6, "target_bounds": (0, 50)}
SCHEMA = Schema(
    (
        NumericColumn("height", 100, 220),
        NumericColumn("rooms", 0, 8),
        CategoricalColumn("place", ("hill", "lake", "town")),
    ),
    NumericColumn("price", 0, 50),
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A table that is not the one on which the rule was chosen."""
    generator, count = np.random.default_rng(7), 4000
    height, rooms = generator.normal(170, 15, count), generator.integers(1, 8, count)
    place = generator.choice(["hill", "lake", "town"], count, p=[0.2, 0.3, 0.5])
    price = 5 + 2.5 * rooms + 6 * (place == "lake") + 0.1 * (height - 170)
    cells = zip(height, rooms, place, price + generator.normal(0, 4, count), strict=True)
    path = tmp_path_factory.mktemp("numbers") / "prices.csv"
    lines = "".join(f"{h:.1f},{r},{p},{y:.2f}\n" for h, r, p, y in cells)
    path.write_text("height,rooms,place,price\n" + lines)
    with CodedRows.from_tables(find_tables([str(path)], None), SCHEMA) as packed:
        yield packed


def fitted(rows, estimator):
    return fit_rows(estimator, rows, SchemaFile(SCHEMA))[0]


KINDS = [
    pytest.param(PrivateLinearRegression, id="linear"),
    pytest.param(PrivateElasticNet, id="elastic net", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("kind", KINDS)
def test_standard_errors_are_of_the_size_of_the_noise(rows, kind, monkeypatch):
    claimed = fitted(rows, kind(**RUN, random_state=0)).standard_error[0]
    monkeypatch.setattr(_standard_errors, "REPLAYS", 2)
    models = [fitted(rows, kind(**RUN, random_state=seed)).weights for seed in range(12)]
    found = np.std([np.append(coef, intercept) for coef, intercept in models], axis=0, ddof=1)
    used = found > 0  # no row has another place than the three, and a penalty may drop it
    ratios = claimed[used] / found[used]
    # Each is known to about a fourth, and the estimate to a factor of two; seeds are fixed.
    assert 0.6 < np.exp(np.mean(np.log(ratios))) < 1.7
    assert ratios.min() > 0.3
    assert ratios.max() < 4


def test_a_report_shows_them_by_their_ratio(rows):
    model = fitted(rows, PrivateLinearRegression(**RUN, random_state=0))
    page = report_page(model)
    assert "usually good to a factor of two" in page
    coef, errors = model.weights[0][0], model.standard_error[0][:-1]
    order = np.argsort(-abs(coef) / errors)
    listed = [
        escape(model.feature_names[k]) for k in order if "<other>" not in SCHEMA.feature_names[k]
    ]
    section = page[page.index('id="coefficients"') :]
    places = [section.index(name) for name in listed]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("kind", "epsilon"), [(PrivateLinearRegression, 0.3), (PrivateHuberRegressor, 3.0)]
)
def test_errors_that_could_be_several_times_too_large_are_held_back(rows, kind, epsilon):
    model = fitted(rows, kind(**{**RUN, "epsilon": epsilon}, random_state=0))
    assert model.standard_error is None
    assert "they could be several times too large" in report_page(model)


def test_without_noise_there_are_none(rows):
    exact = PrivateLinearRegression(np.inf, 1e-6, target_bounds=(0, 50))
    assert fitted(rows, exact).standard_error is None
