"""Marks of missing values among objects: no error tells of one, and it counts as NaN does."""

import numpy as np
import pandas as pd
import pytest

from hushfit import (
    BoundedScaler,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateRanker,
)

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
Y = (X[:, 0] > 0).astype(int)
TERMS = {"epsilon": 2.0, "delta": 1e-3, "random_state": 0, "feature_bounds": (-1, 1)}
LAYOUTS = {
    "list": lambda rows: rows,
    "array": lambda rows: np.array(rows, object),
    "frame": lambda rows: pd.DataFrame(rows, columns=["a", "b", "c"]),
    "frame of objects": lambda rows: pd.DataFrame(rows, columns=["a", "b", "c"], dtype=object),
}
MODELS = {
    "classifier": (PrivateLogisticRegression(classes=[0, 1], **TERMS), {}),
    "regressor": (PrivateLinearRegression(target_bounds=(0, 1), **TERMS), {}),
    "ranker": (PrivateRanker(unit="list", **TERMS), {"qid": np.arange(60) // 6}),
}


def rows_with(cell):
    rows = X.tolist()
    rows[7][1] = cell
    return rows


@pytest.mark.parametrize("mark", [pd.NA, pd.NaT, None], ids=repr)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("model", "more"), MODELS.values(), ids=MODELS)
def test_a_mark_of_a_missing_value_counts_as_nan(model, more, layout, mark):
    holed, marked = layout(rows_with(np.nan)), layout(rows_with(mark))
    expected = model.fit(holed, Y, **more).coef_.copy()
    np.testing.assert_array_equal(model.predict(marked), model.predict(holed))
    np.testing.assert_array_equal(model.fit(marked, Y, **more).coef_, expected)


@pytest.mark.parametrize("mark", [pd.NA, pd.NaT, None], ids=repr)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_scaler_fills_it(layout, mark):
    holed, marked = layout(rows_with(np.nan)), layout(rows_with(mark))
    scaler = BoundedScaler(bounds=(-1, 1)).fit(holed)
    np.testing.assert_array_equal(scaler.transform(marked), scaler.transform(holed))
