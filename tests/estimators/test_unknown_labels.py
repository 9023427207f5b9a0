"""Labels that are missing or not among the declared classes: no error tells of one, and its record
counts as the zero record, or as halfway between the classes where features are public.
"""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from hushfit import Ledger, PrivateLinearSVC, PrivateLogisticRegression
from hushfit.errors import InvalidArgument
from hushfit.estimators import with_unknown_labels
from hushfit.release import LabelStatistic

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

X = np.random.default_rng(0).normal(size=(200, 3))
Y = (X[:, 0] > 0).astype(int)
ODD = 7


def replaced(label):
    """A list of labels of which one is another object."""
    return [label if i == ODD else one for i, one in enumerate(Y.tolist())]


def nullable():
    labels = pd.Series(Y).astype("Int64")
    labels[ODD] = pd.NA
    return labels


UNLABELLED = {
    "nan": np.where(np.arange(200) == ODD, np.nan, Y),
    "another number": np.where(np.arange(200) == ODD, 9, Y),
    "a text among numbers": replaced("1"),
    "none": replaced(None),
    "nothing that compares": replaced({}),
    "a half": replaced(Decimal("0.5")),
    "missing in pandas": nullable(),
    "infinite": np.where(np.arange(200) == ODD, np.inf, Y),
}


def model(kind=PrivateLogisticRegression, **settings):
    return kind(**{"classes": [0, 1], "random_state": 0, "epsilon": 2.0, "delta": 1e-3, **settings})


@pytest.mark.parametrize("labels", UNLABELLED.values(), ids=UNLABELLED)
@pytest.mark.parametrize("layout", [np.asarray, csr_array])
def test_a_record_without_a_known_label_counts_as_the_zero_record(labels, layout):
    silent = X.copy()
    silent[ODD] = np.nan
    expected = model(nonfinite="zero").fit(layout(silent), Y)
    found = model().fit(layout(X), labels)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert not np.array_equal(found.coef_, model().fit(layout(X), Y).coef_)


@pytest.mark.parametrize("labels", UNLABELLED.values(), ids=UNLABELLED)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove", "label"])
def test_a_guarantee_says_so_whether_there_is_one_or_not(labels, relation):
    found, without = (model(adjacency=relation).fit(X, y).privacy_ for y in (labels, Y))
    assert found == without
    counts = "halfway between the classes" if relation == "label" else "the zero record"
    assert f"one whose label is not among the classes counts as {counts}" in " ".join(found.notes)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
@pytest.mark.parametrize("layout", [np.asarray, csr_array])
def test_where_features_are_public_it_is_halfway_between_the_classes(classes, layout):
    """What known labels change, compared with the unknown one, adds up to zero over the classes."""
    estimator = model(adjacency="label", classes=classes)

    def answer(label):
        prepared = estimator.prepare(layout(X), replaced(label))
        rows = prepared.source.public_rows()
        return LabelStatistic(prepared.problem, rows)(prepared.source, None)

    moved = np.array([answer(label) - answer("unknown") for label in classes])
    assert np.abs(moved).max() > 0.01
    np.testing.assert_allclose(moved.sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("labels", [*UNLABELLED.values()][:3], ids=[*UNLABELLED][:3])
def test_a_caller_who_asks_for_an_error_gets_one_before_payment(labels):
    ledger = Ledger(5.0, 1e-3)
    with pytest.raises(ValueError, match=r"NaN|not in classes|array of texts|mix of label|convert"):
        model(nonfinite="raise", ledger=ledger).fit(X, labels)
    assert ledger.entries == ()


@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateLinearSVC])
def test_an_array_of_another_type_than_the_classes_is_refused(kind):
    ledger = Ledger(5.0, 1e-3)
    for labels, classes in ((Y.astype(str), [0, 1]), (Y, ["0", "1"])):
        with pytest.raises(InvalidArgument, match="both as numbers, or both as texts"):
            model(kind, classes=classes, ledger=ledger).fit(X, labels)
    assert ledger.entries == ()


@pytest.mark.parametrize("part", ["rows", "labels"])
def test_no_error_quotes_complex_numbers(part):
    rows, labels = (X + 1j, Y) if part == "rows" else (X, Y + 1j)
    with pytest.raises(InvalidArgument, match="Complex data not supported") as caught:
        model().fit(rows, labels)
    assert "1.j" not in str(caught.value)


def test_labels_are_read_one_by_one():
    texts = np.array(["a", "b", "c"])

    def check(y):
        return None, np.asarray(y, dtype=np.float64)

    for y, expected in (
        (["c", 1, None, "a", ["b", "a"]], [2, np.nan, np.nan, 0, np.nan]),
        (["c", ["b"], "x", "a"], [2, 1, np.nan, 0]),
        ([["c"], ["b"], ["x"], ["a"]], [2, 1, np.nan, 0]),
        (np.array(["b", "d", "a"]), [1, np.nan, 0]),
        (np.array(["b", np.nan, "a"], object), [1, np.nan, 0]),
    ):
        np.testing.assert_array_equal(with_unknown_labels(y, texts, check)[1], expected)
    two = np.array([False, True])
    np.testing.assert_array_equal(
        with_unknown_labels([1, 0.0, 2, True, np.int8(1)], two, check)[1], [1, -1, np.nan, 1, 1]
    )
