"""What a page tells an evaluator, and how it orders and folds coefficients."""

import json
import re
import warnings

import numpy as np
import pytest
from sklearn import metrics

from hushfit import PrivateLinearRegression, PrivateLogisticRegression
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema, encode
from hushfit.errors import InsecureNoiseWarning
from hushfit.models import Model, PaidReceipt
from hushfit.report import (
    AccountTotal,
    Evidence,
    evaluator_points,
    model_card,
    points_dict,
    report_page,
)
from hushfit.report.scores._class_scores import average_precision, class_scores
from hushfit.report.scores._number_scores import number_scores, poisson_deviance
from hushfit.report.sections._figures import round_steps

SCHEMA = Schema(
    (NumericColumn("age", 0, 100), CategoricalColumn("sex", ("f", "m"))),
    CategoricalColumn("ill", ("no", "yes")),
)
POINTS = {
    *("privacy_parameters", "unit_of_privacy", "total_budget", "trust_model", "mechanism"),
    *("noise", "side_channels", "tuning", "audit", "utility_and_bias", "retention"),
    "assumed_public",
}


def fitted(kind=PrivateLogisticRegression, **settings):
    generator = np.random.default_rng(0)
    table = {"age": generator.uniform(0, 100, 300), "sex": generator.choice(["f", "m"], 300)}
    X, _ = encode(table, SCHEMA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        model = kind(epsilon=2.0, delta=1e-4, random_state=0, **settings)
        return model.fit(X, (table["age"] > 50).astype(int))


@pytest.fixture(scope="module")
def model():
    estimator = fitted(classes=[0, 1])
    estimator.classes_ = np.array(["no", "yes"])
    estimator.coef_ = np.array([[3.0, 2.0, -1.0, 0.05]])
    errors = np.array([[2.0, 0.1, 0.2, 0.1, 9.0]])
    return Model(estimator, SCHEMA, errors, PaidReceipt("d", 1, "a" * 64))


def test_every_point_has_an_answer_in_words_and_json(model):
    points = evaluator_points(model)
    assert {point.key for point in points} == POINTS
    assert all(point.answer for point in points)
    assert json.loads(json.dumps(points_dict(points)))["retention"]["open"]
    assert "not for release" in points_dict(points)["noise"]["answer"].lower()


def test_the_total_of_the_data_set_stands_beside_that_of_the_model(model):
    unknown = points_dict(evaluator_points(model))["total_budget"]
    assert unknown["open"]
    total = Evidence(AccountTotal("d", 1.7, 1e-5, 4.0, 3), "attacked")
    known = points_dict(evaluator_points(model, total))
    assert "3 payments on 'd' compose to epsilon = 1.7" in known["total_budget"]["answer"]
    assert not known["total_budget"]["open"]
    assert known["audit"]["answer"] == "attacked"
    assert "epsilon = 1.7" in report_page(model, evidence=total)


def test_coefficients_are_ordered_by_their_ratio_to_the_error(model):
    page = report_page(model)
    names = re.findall(r'data-name="([^"]*)"', page)
    assert names == ["sex=f", "sex=m", "age", "(intercept)", "sex=&lt;other&gt;"]


def test_unlisted_labels_that_carry_nothing_are_folded_away(model):
    shown, folded = report_page(model).split('class="folded"')
    assert "sex=&lt;other&gt;" not in shown
    assert "sex=&lt;other&gt;" in folded
    clear = Model(model.estimator, SCHEMA, model.standard_error / 100)
    assert 'class="folded"' not in report_page(clear)


def test_a_card_has_a_head_and_no_markup_of_others():
    schema = Schema((NumericColumn("a*b|c", 0, 1),), NumericColumn("<b>", 0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        estimator = PrivateLinearRegression(
            2.0, 1e-4, target_bounds=(0, 1), feature_bounds=(0, 1), random_state=0
        ).fit(np.linspace(0, 1, 300)[:, None], np.linspace(0, 1, 300))
    card = model_card(Model(estimator, schema))
    assert card.startswith("---\nlibrary_name: hushfit\n")
    assert "delta: 1.000000e-04" in card
    assert r"a\*b\|c" in card
    assert "<b>" not in card.replace(r"\<b\>", "")


def test_scores_are_those_of_scikit_learn():
    generator = np.random.default_rng(1)
    y, p = generator.integers(0, 3, 200), generator.dirichlet(np.ones(3), 200).round(2)
    p /= p.sum(axis=1, keepdims=True)
    chosen = p.argmax(axis=1)
    scores = class_scores(y, chosen, p, ["a", "b", "c"])
    assert np.array_equal(scores.confusion.matrix, metrics.confusion_matrix(y, chosen))
    assert scores.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(y, chosen))
    for k, own in enumerate(scores.confusion.by_class):
        found = metrics.precision_recall_fscore_support(y, chosen, labels=[k], zero_division=0)
        assert [own.precision, own.recall] == pytest.approx([found[0][0], found[1][0]])
        area = metrics.average_precision_score(y == k, p[:, k])
        assert average_precision(p[:, k], y == k) == pytest.approx(area)
    counts = np.bincount(y) / 200
    baseline = metrics.log_loss(y, np.tile(counts, (200, 1)))
    assert scores.log_loss_baseline == pytest.approx(baseline)


def test_scores_of_numbers_are_those_of_scikit_learn():
    generator = np.random.default_rng(2)
    y, p = generator.poisson(3, 200).astype(float), generator.uniform(1, 5, 200)
    scores = number_scores(y, p, counts=True)
    assert scores.rmse == pytest.approx(metrics.root_mean_squared_error(y, p))
    assert scores.mae == pytest.approx(metrics.mean_absolute_error(y, p))
    assert scores.r2 == pytest.approx(metrics.r2_score(y, p))
    assert scores.deviance == pytest.approx(metrics.mean_poisson_deviance(y, p))
    assert poisson_deviance(y, y) == pytest.approx(0.0, abs=1e-9)
    assert number_scores(np.ones(3), np.ones(3)).r2 is None


def test_ticks_are_round():
    assert round_steps(0.04, 5) == [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
    assert round_steps(1e-4, 10) == [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]
