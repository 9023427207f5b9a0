"""Ranges that are given by name are those of the columns by position, or refused before payment."""

import numpy as np
import pandas as pd
import pytest

from hushfit import (
    Ledger,
    PrivateFeatureSelector,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePoissonRegressor,
    PrivateRanker,
    load_model,
    save_model,
)
from hushfit.errors import InvalidArgument
from hushfit.preprocessing import BoundedScaler

GENERATOR = np.random.default_rng(0)
RANGES = {"bmi": (10, 60), "age": (0, 110), "crp": (0, 300)}  # not in the order of the columns
NAMES = ["age", "bmi", "crp"]
BY_PLACE = [RANGES[name] for name in NAMES]
ROWS = pd.DataFrame({name: GENERATOR.uniform(*RANGES[name], 600) for name in NAMES})
NUMBERS = ROWS["age"].to_numpy() + GENERATOR.normal(0, 5, 600)
LABELS = (NUMBERS > 55).astype(int)
COUNTS = GENERATOR.poisson(np.exp(ROWS["age"] / 60))
QUERIES = np.arange(600) // 10
RUN = {"epsilon": 5.0, "delta": 1e-5, "random_state": 0}
CLASSES = {"classes": [0, 1], **RUN}
TARGETS = {"target_bounds": (0.0, 110.0), **RUN}

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

CASES = {
    "classes": (lambda b: PrivateLogisticRegression(feature_bounds=b, **CLASSES), LABELS, {}),
    "shapes": (
        lambda b: PrivateLogisticRegression(feature_bounds=b, features="additive", **CLASSES),
        LABELS,
        {},
    ),
    "classes, with intervals": (
        lambda b: PrivateLogisticRegression(feature_bounds=b, inference=True, **CLASSES),
        LABELS,
        {},
    ),
    "numbers": (lambda b: PrivateLinearRegression(feature_bounds=b, **TARGETS), NUMBERS, {}),
    "numbers, with intervals": (
        lambda b: PrivateLinearRegression(feature_bounds=b, inference=True, **TARGETS),
        NUMBERS,
        {},
    ),
    "unit rows": (
        lambda b: PrivateLinearRegression(feature_bounds=b, solver="dp-sgd", **TARGETS),
        NUMBERS,
        {},
    ),
    "counts": (lambda b: PrivatePoissonRegressor(12, feature_bounds=b, **RUN), COUNTS, {}),
    "grades": (lambda b: PrivateRanker(feature_bounds=b, **RUN), LABELS, {"qid": QUERIES}),
}


@pytest.mark.parametrize("case", CASES)
def test_names_and_places_give_one_model_which_is_read_back(case, tmp_path):
    make, y, more = CASES[case]
    named = make(RANGES).fit(ROWS, y, **more)
    placed = make(BY_PLACE).fit(ROWS, y, **more)
    assert np.array_equal(named.predict(ROWS), placed.predict(ROWS))
    assert named.privacy_ == placed.privacy_

    save_model(named, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json").estimator
    rows = ROWS if hasattr(again, "feature_names_in_") else ROWS.to_numpy()
    assert np.allclose(again.predict(rows), placed.predict(ROWS))


def test_a_selector_and_a_scaler_take_names():
    named, placed = (
        PrivateFeatureSelector(2, feature_bounds=ranges, **CLASSES).fit(ROWS, LABELS)
        for ranges in (RANGES, BY_PLACE)
    )
    assert np.array_equal(named.scores_, placed.scores_)
    scaled = BoundedScaler(RANGES).fit_transform(ROWS)
    assert np.array_equal(scaled, BoundedScaler(BY_PLACE).fit_transform(ROWS))


REFUSED = {
    "unknown": ({**RANGES, "weight": (0, 1)}, ROWS, ["'weight'", "no such", "'age', 'bmi', 'crp'"]),
    "missing": ({"age": (0, 110)}, ROWS, ["no range of 'bmi', 'crp'", "(low, high)"]),
    "no names": (RANGES, ROWS.to_numpy(), ["have no names", "data frame", "list"]),
    "no pair": ({**RANGES, "age": 110}, ROWS, ["feature_bounds['age']=110", "(low, high)"]),
    "reversed": ({**RANGES, "age": (110, 0)}, ROWS, ["['age']=(110, 0)", "low < high"]),
    "no end": ({**RANGES, "age": (0, np.inf)}, ROWS, ["['age']=(0, inf)", "finite"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_names_and_ranges_are_refused_before_payment(case):
    ranges, rows, words = REFUSED[case]
    ledger = Ledger(3.0, 1e-4)
    model = PrivateLogisticRegression(
        delta=1e-5, classes=[0, 1], feature_bounds=ranges, ledger=ledger
    )
    with pytest.raises(InvalidArgument) as refusal:
        model.fit(rows, LABELS)
    for word in words:
        assert word in str(refusal.value)
    assert ledger.spent().epsilon == 0


def test_a_quote_counts_the_names():
    model = PrivateLinearRegression(feature_bounds=RANGES, target_bounds=(0, 1))
    by_place = PrivateLinearRegression(feature_bounds=BY_PLACE, target_bounds=(0, 1))
    assert model.quote(600, 3).cost == by_place.quote(600, 3).cost
    with pytest.raises(InvalidArgument, match="names 3 columns, and n_features=4"):
        model.quote(600, 4)
