"""Tables of odd shapes and scales: fits end with finite weights and predictions in their range."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from hushfit import (
    PrivateElasticNet,
    PrivateHuberRegressor,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivatePoissonRegressor,
    PrivateRidge,
)
from hushfit.errors import InsecureNoiseWarning, TooLittleDataWarning


def uniform(rows, columns):
    return np.random.default_rng(0).uniform(-1, 1, (rows, columns))


TABLES = {
    "two rows": (uniform(2, 3), (-1, 1)),
    "one column": (uniform(60, 1), (-1, 1)),
    "more columns than rows": (uniform(20, 90), (-1, 1)),
    "one value in all rows": (np.full((60, 4), 0.3), (-1, 1)),
    "zeros": (np.zeros((60, 4)), (-1, 1)),
    "huge": (1e12 * uniform(60, 4), (-1e12, 1e12)),
    "tiny": (1e-12 * uniform(60, 4), (-1e-12, 1e-12)),
    "beyond its ranges": (1e6 * uniform(60, 4), (-1, 1)),
    "float32": (uniform(60, 4).astype(np.float32), (-1, 1)),
    "booleans": (uniform(60, 4) > 0, (0, 1)),
    "frame of whole numbers": (pd.DataFrame(np.arange(180).reshape(60, 3) % 7), (0, 6)),
    "3,000 columns": (
        sparse.random(60, 3000, density=1e-2, format="csr", random_state=0),
        (0, 1),
    ),
}
over_tables = pytest.mark.parametrize(("X", "bounds"), TABLES.values(), ids=TABLES)
over_budgets = pytest.mark.parametrize("epsilon", [0.01, 50.0])


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooLittleDataWarning)
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        return model.fit(X, y)


@over_tables
@over_budgets
@pytest.mark.parametrize(
    "Estimator",
    [
        PrivateLinearRegression,
        PrivateRidge,
        PrivateLasso,
        PrivateElasticNet,
        PrivateHuberRegressor,
        PrivatePoissonRegressor,
    ],
)
def test_numbers_are_predicted_inside_their_range(Estimator, epsilon, X, bounds):
    counts = Estimator is PrivatePoissonRegressor
    y = np.random.default_rng(1).integers(0, 9, X.shape[0])  # some are outside the range
    target = {"max_count": 5} if counts else {"target_bounds": (1, 5)}
    model = Estimator(epsilon=epsilon, feature_bounds=bounds, random_state=0, **target)
    found = fitted(model, X, y).predict(X)
    assert np.isfinite(model.coef_).all()
    assert (0 if counts else 1) <= found.min() <= found.max() <= 5


@over_tables
@over_budgets
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("labels", ["mixed", "one class alone"])
def test_classes_have_probabilities(labels, classes, epsilon, X, bounds):
    y = np.random.default_rng(1).integers(0, classes, X.shape[0])
    if labels == "one class alone":
        y[:] = 1
    common = {"epsilon": epsilon, "classes": list(range(classes)), "random_state": 0}
    model = PrivateLogisticRegression(feature_bounds=bounds, **common)
    p = fitted(model, X, y).predict_proba(X)
    assert np.isfinite(model.coef_).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    margins = fitted(PrivateLinearSVC(feature_bounds=bounds, **common), X, y).decision_function(X)
    assert np.isfinite(margins).all()
