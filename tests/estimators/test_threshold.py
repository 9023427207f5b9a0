"""Thresholds of classifiers: numbers, and privately counted frequencies of the classes."""

import numpy as np
import pytest

from hushfit import PrivateLinearSVC, PrivateLogisticRegression, load_model, save_model
from hushfit.errors import InvalidArgument
from hushfit.federated import fit_together
from hushfit.solvers import Counted, ProximalGradient, Tempered, WhitenedGradientDescent

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")


def rare(n=4000, classes=2, seed=0):
    """A class of about one in ten rows, or several of unequal size."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    offsets = 2.5 * np.arange(classes)
    return X, np.argmax(
        1.5 * X[:, :1] * np.arange(classes) - offsets + rng.gumbel(size=(n, classes)), axis=1
    )


def fitted(X, y, **settings):
    classes = list(range(int(y.max()) + 1))
    settings = {"epsilon": 3.0, "classes": classes, "random_state": 0, **settings}
    return PrivateLogisticRegression(**settings).fit(X, y)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
def test_a_number_is_the_probability_from_which_on_the_second_class_is_predicted(threshold):
    X, y = rare()
    model = fitted(X, y, threshold=threshold)
    positive = model.predict_proba(X)[:, 1]
    clear = np.abs(positive - threshold) > 1e-9
    np.testing.assert_array_equal(model.predict(X)[clear], (positive > threshold)[clear])


@pytest.mark.parametrize("classes", [2, 3])
def test_balanced_is_the_frequency_of_the_classes_and_finds_the_rare_one(classes):
    X, y = rare(classes=classes)
    plain, model = fitted(X, y), fitted(X, y, threshold="balanced")
    np.testing.assert_allclose(model.threshold_.sum(), 1.0)
    np.testing.assert_allclose(model.threshold_, np.bincount(y) / len(y), atol=0.03)
    relative = model.predict_proba(X) / model.threshold_
    np.testing.assert_array_equal(model.predict(X), relative.argmax(axis=1))

    def recall(made):
        return np.mean(made.predict(X)[y == classes - 1] == classes - 1)

    assert plain.threshold_ is None
    assert recall(model) > recall(plain) + 0.1


def test_the_counts_are_listed_and_priced():
    X, y = rare()
    model = fitted(X, y, threshold="balanced", random_state=1)
    names = [release.name for release in model.privacy_.releases]
    assert names.count("class counts") == 1
    assert model.privacy_.epsilon == 3.0
    quote = model.quote(len(X), 3)
    plain = fitted(X, y).quote(len(X), 3)
    assert quote.multipliers["gradient"] == pytest.approx(
        plain.multipliers["gradient"] / np.sqrt(0.98), rel=1e-3
    )


def test_classes_that_are_counted_anyway_are_not_counted_twice():
    problem = PrivateLogisticRegression(classes=[0, 1, 2]).problem(1000, 5, 3)
    inner = Tempered(WhitenedGradientDescent())
    assert Counted(inner).plan(problem) == inner.plan(problem)
    other = Counted(ProximalGradient(steps=3)).plan(problem)
    assert other.shares()["class counts"] == pytest.approx(0.02)
    with pytest.raises(InvalidArgument, match="share in"):
        Counted(inner, share=0.0)


def test_the_threshold_is_in_the_model_file(tmp_path):
    X, y = rare(n=500)
    for threshold in ("balanced", 0.2, None):
        model = fitted(X, y, threshold=threshold)
        save_model(model, tmp_path / "model.json")
        read = load_model(tmp_path / "model.json")
        np.testing.assert_array_equal(read.predict(X), model.predict(X))
        assert ("threshold" in (tmp_path / "model.json").read_text()) is (threshold is not None)


@pytest.mark.parametrize(
    ("settings", "classes", "message"),
    [
        ({"threshold": 1.0}, 2, "is not a threshold. Use a number between 0 and 1"),
        ({"threshold": "frequent"}, 2, "threshold='frequent' is not a threshold"),
        ({"threshold": True}, 2, "is not a threshold"),
        ({"threshold": float("nan")}, 2, "is not a threshold"),
        ({"threshold": 0.3}, 3, "is for two classes, and there are 3"),
        ({"threshold": "balanced", "adjacency": "label"}, 2, "no proof under adjacency='label'"),
    ],
    ids=str,
)
def test_what_is_no_threshold_is_refused_before_anything_is_paid(settings, classes, message):
    from hushfit import Ledger

    X, y = rare(n=200, classes=classes)
    ledger = Ledger(epsilon=10.0, delta=1e-3)
    with pytest.raises(InvalidArgument, match=message):
        fitted(X, y, ledger=ledger, **settings)
    assert not ledger.entries


def test_a_support_vector_machine_has_no_threshold():
    X, y = rare(n=200)
    with pytest.raises(InvalidArgument, match="Use PrivateLogisticRegression"):
        PrivateLinearSVC(classes=[0, 1], threshold=0.3).fit(X, y)


def test_owners_do_not_count_classes():
    X, y = rare(n=200)
    estimator = PrivateLogisticRegression(classes=[0, 1], threshold="balanced")
    with pytest.raises(InvalidArgument, match="over all owners"):
        fit_together(estimator, {"a": (X, y), "b": (X, y)})


def test_without_privacy_the_frequencies_are_exact():
    X, y = rare(n=300)
    model = fitted(X, y, threshold="balanced", epsilon=np.inf)
    np.testing.assert_allclose(model.threshold_, np.bincount(y) / len(y), rtol=1e-6)
