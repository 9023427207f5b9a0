"""Targets in lists and arrays of objects: each cell is read alone, and no error tells of one."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from hushfit import Ledger, PrivateLinearRegression, PrivatePoissonRegressor

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

X = np.random.default_rng(0).uniform(size=(2000, 2))
Y = np.round(3 * X[:, 0])
ODD = 7
PLACE = {"epsilon": 3.0, "delta": 1e-4, "feature_bounds": (0, 1), "random_state": 0}
NO_NUMBERS = ["x", "", None, {}, [1, 2], 3j, pd.NA, Decimal("NaN"), np.datetime64("2020-01-01")]


def linear(**settings):
    return PrivateLinearRegression(target_bounds=(0, 3), **PLACE, **settings)


def poisson(**settings):
    return PrivatePoissonRegressor(max_count=3, **PLACE, **settings)


def replaced(cell, kind=list):
    cells = np.array(Y.tolist(), object)
    cells[ODD] = cell
    return cells.tolist() if kind is list else kind(cells)


def missing():
    return np.where(np.arange(len(Y)) == ODD, np.nan, Y)


@pytest.mark.parametrize("cell", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("model", [linear, poisson])
def test_a_cell_that_is_no_number_is_a_missing_target(model, cell):
    expected = model().fit(X, missing())
    for kind in (list, np.asarray, pd.Series):
        ledger = Ledger(10.0, 1e-2)
        found = model(ledger=ledger).fit(X, replaced(cell, kind))
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        assert found.privacy_ == expected.privacy_
        assert len(ledger.entries) == 1


@pytest.mark.parametrize("cell", ["2", Decimal("2"), True, 10**400])
def test_other_notations_of_numbers_are_read(cell):
    value = min(float(cell), 3.0) if cell != 10**400 else np.inf
    expected = linear().fit(X, np.where(np.arange(len(Y)) == ODD, value, Y))
    found = linear().fit(X, replaced(cell))
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_one_text_does_not_change_how_others_are_rounded():
    y = Y + 1 / 3
    cells = [*y.tolist()]
    cells[ODD] = "x"
    gap = np.where(np.arange(len(Y)) == ODD, np.nan, y)
    np.testing.assert_array_equal(linear().fit(X, cells).coef_, linear().fit(X, gap).coef_)
