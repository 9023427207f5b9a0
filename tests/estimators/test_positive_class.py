"""The positive class of two: what thresholds, intervals and reports speak of, and nothing else."""

import numpy as np
import pytest

from hushfit import Ledger, PrivateLinearSVC, PrivateLogisticRegression, load_model, save_model
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.errors import InvalidArgument
from hushfit.models import Model
from hushfit.report import report_page

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

X = np.random.default_rng(0).uniform(size=(3000, 2))
NOISE = np.random.default_rng(1).logistic(scale=0.3, size=3000)
Y = np.where(X[:, 0] - X[:, 1] > NOISE, "ja", "nein")
SETTINGS = {"epsilon": 3.0, "delta": 1e-5, "feature_bounds": (0, 1), "random_state": 0}


def fitted(kind=PrivateLogisticRegression, classes=("ja", "nein"), **settings):
    return kind(classes=list(classes), **SETTINGS, **settings).fit(X, Y)


def test_nothing_but_the_threshold_of_a_prediction_depends_on_it():
    usual, named = fitted(), fitted(pos_label="ja")
    assert (usual.positive_, named.positive_) == ("nein", "ja")
    assert named.classes_.tolist() == ["ja", "nein"]
    for each in ("coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(named, each), getattr(usual, each))
    np.testing.assert_array_equal(named.predict_proba(X), usual.predict_proba(X))
    np.testing.assert_array_equal(named.predict(X), usual.predict(X))
    eager = fitted(pos_label="ja", threshold=0.2).predict(X)
    np.testing.assert_array_equal(eager == "ja", usual.predict_proba(X)[:, 0] >= 0.2)
    assert (eager == "ja").mean() > (usual.predict(X) == "ja").mean()


def test_intervals_and_effects_are_those_of_the_other_class_turned_round(tmp_path):
    usual, named = fitted(inference=True), fitted(inference=True, pos_label="ja")
    np.testing.assert_array_equal(named.coef_, usual.coef_)
    np.testing.assert_allclose(named.conf_int(), -usual.conf_int()[:, ::-1])
    np.testing.assert_allclose(named.bse_, usual.bse_)
    turned = -usual.marginal_effects().effects[:, [0, 2, 3]]
    np.testing.assert_allclose(named.marginal_effects().effects[:, [0, 3, 2]], turned)
    assert named.summary().startswith("PrivateLogisticRegression of ja, ")
    save_model(named, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").estimator.summary() == named.summary()


@pytest.mark.parametrize("inference", [True, False])
def test_a_report_says_what_weights_speak_for(inference):
    named = Model(fitted(pos_label="ja", inference=inference))
    page, other = report_page(named), report_page(Model(fitted(inference=inference)))
    assert "Towards ja" in page
    assert "Towards nein" not in page
    assert "Towards nein" in other
    np.testing.assert_array_equal(named.shown_weights[0], -named.weights[0])


@pytest.mark.parametrize(
    ("classes", "label", "why"),
    [
        (("ja", "nein"), "JA", "not among the classes"),
        (("ja", "nein", "weiss nicht"), "ja", "for two classes, and there are 3"),
    ],
)
@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateLinearSVC])
def test_what_is_no_class_is_refused_before_payment(kind, classes, label, why):
    ledger = Ledger(10.0, 1e-3)
    with pytest.raises(InvalidArgument, match=why):
        fitted(kind, classes, pos_label=label, ledger=ledger)
    assert ledger.entries == ()


def schema(**target):
    return Schema((NumericColumn("a", 0, 1),), CategoricalColumn("y", ("nein", "ja"), **target))


def test_a_schema_names_it():
    named = schema(positive=" ja")
    assert named.target.positive == "ja"
    assert Schema.from_dict(named.to_dict()) == named
    assert "the positive class is ja" in named.target.stated
    assert "positive" not in schema().to_dict()["target"]
    assert (named.target.positive_place, schema().target.positive_place) == (1, 0)
    ones = CategoricalColumn("y", ("0", "1"), positive=1)
    assert ones.positive == "1"


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: schema(positive="yes"), r"not among its categories \['nein', 'ja'\]"),
        (lambda: CategoricalColumn("y", ("a", "b", "c"), positive="a"), "and it has 3. Delete"),
        (
            lambda: Schema((CategoricalColumn("x", ("a", "b"), positive="a"),)),
            "is for the target. Delete it",
        ),
    ],
)
def test_a_schema_with_another_name_is_refused(made, why):
    with pytest.raises(InvalidArgument, match=why):
        made()
