"""Cells of rows among objects and texts: each is read alone, and no error tells of one."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hushfit import (
    BoundedScaler,
    Ledger,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateRanker,
)
from hushfit.errors import InvalidArgument
from hushfit.estimators import as_cells, places_of

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
Y = (X[:, 0] > 0).astype(int)
ROW, NAMES = 7, ["a", "b", "c"]
TERMS = {"epsilon": 2.0, "delta": 1e-3, "random_state": 0, "feature_bounds": (-1, 1)}


class Unreadable:
    """An object that no library can look at."""

    def __float__(self):
        raise RuntimeError("not a float")

    def __array__(self, *args, **kwargs):
        raise RuntimeError("not an array")

    def __hash__(self):
        raise RuntimeError("no label")


NO_NUMBERS = {
    "a text": "x",
    "no text": "",
    "bytes": b"x",
    "a dictionary": {"a": 1},
    "two numbers": [1.0, 2.0],
    "lists of two lengths": [[1.0], [1.0, 2.0]],
    "an array": np.array([1.0, 2.0]),
    "a complex number": 1 + 2j,
    "a complex number of numpy": np.complex128(2j),
    "a signalling number": Decimal("sNaN"),
    "a date": datetime.date(2020, 1, 1),
    "nothing that can be read": Unreadable(),
}
OBJECTS = {
    "list": lambda rows: rows,
    "array": lambda rows: with_cell(np.array(X.tolist(), object), rows[ROW][1]),
    "frame": lambda rows: pd.DataFrame(
        {name: pd.Series([row[j] for row in rows], dtype=object) for j, name in enumerate(NAMES)}
    ),
}
TEXTS = {
    "array": lambda rows: np.array([[str(cell) for cell in row] for row in rows]),
    "pandas": lambda rows: pd.DataFrame(rows, columns=NAMES).astype({"b": "str"}),
    "categories": lambda rows: pd.DataFrame(rows, columns=NAMES).astype({"b": "category"}),
    "polars": lambda rows: pl.DataFrame(columns_of(rows)),
    "arrow": lambda rows: pa.table(columns_of(rows)),
}
MODELS = {
    "classifier": (PrivateLogisticRegression(classes=[0, 1], **TERMS), {}),
    "regressor": (PrivateLinearRegression(target_bounds=(0, 1), **TERMS), {}),
    "ranker": (PrivateRanker(unit="list", **TERMS), {"qid": np.arange(60) // 6}),
}


def with_cell(cells, cell):
    cells[ROW, 1] = cell
    return cells


def rows_with(cell):
    rows = X.tolist()
    rows[ROW][1] = cell
    return rows


def columns_of(rows):
    """Columns, of which the second has texts."""
    texts = [str(row[1]) for row in rows]
    return {"a": [row[0] for row in rows], "b": texts, "c": [row[2] for row in rows]}


def holed():
    return with_cell(X.copy(), np.nan)


@pytest.mark.parametrize("cell", NO_NUMBERS.values(), ids=NO_NUMBERS)
@pytest.mark.parametrize("layout", OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize(("model", "more"), MODELS.values(), ids=MODELS)
def test_a_cell_that_is_no_number_is_a_missing_one(model, more, layout, cell):
    expected = model.fit(holed(), Y, **more).coef_.copy()
    ledger = Ledger(10.0, 1e-2)
    found = model.set_params(ledger=ledger).fit(layout(rows_with(cell)), Y, **more)
    model.set_params(ledger=None)
    np.testing.assert_array_equal(found.coef_, expected)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("cell", ["x", "", "1e400", "nan"])
@pytest.mark.parametrize("layout", TEXTS.values(), ids=TEXTS)
def test_numbers_in_texts_are_read_one_by_one(layout, cell):
    model, _ = MODELS["classifier"]
    value = np.inf if cell == "1e400" else np.nan
    expected = model.fit(with_cell(X.copy(), value), Y).coef_.copy()
    rows = [[row[0], str(row[1]), row[2]] for row in X.tolist()]
    rows[ROW][1] = cell
    np.testing.assert_array_equal(model.fit(layout(rows), Y).coef_, expected)


@pytest.mark.parametrize("layout", OBJECTS.values(), ids=OBJECTS)
def test_a_scaler_reads_them_too(layout):
    scaler = BoundedScaler(bounds=(-1, 1)).fit(X)
    odd = layout(rows_with("x"))
    if isinstance(odd, pd.DataFrame):
        scaler = BoundedScaler(bounds=(-1, 1)).fit(pd.DataFrame(X, columns=NAMES))
        np.testing.assert_array_equal(
            scaler.transform(odd), scaler.transform(pd.DataFrame(holed(), columns=NAMES))
        )
    else:
        np.testing.assert_array_equal(scaler.transform(odd), scaler.transform(holed()))


@pytest.mark.parametrize("layout", TEXTS.values(), ids=TEXTS)
def test_a_column_without_any_number_is_refused_before_payment(layout):
    rows = [[row[0], "ab"[k % 2], row[2]] for k, row in enumerate(X.tolist())]
    ledger = Ledger(10.0, 1e-2)
    model = PrivateLogisticRegression(classes=[0, 1], ledger=ledger, **TERMS)
    with pytest.raises(InvalidArgument, match="not a number"):
        model.fit(layout(rows), Y)
    assert ledger.entries == ()


def test_who_asks_for_errors_gets_them():
    with pytest.raises(InvalidArgument, match="not a number"):
        PrivateLogisticRegression(classes=[0, 1], nonfinite="raise", **TERMS).fit(rows_with("x"), Y)


LARGE = {  # beyond 2**53, where a column of floats cannot hold the second one
    "pandas": lambda labels: pd.Series(labels, dtype="Int64"),
    "polars": lambda labels: pl.Series(labels),
    "arrow": lambda labels: pa.chunked_array([labels]),
    "floats of pandas": lambda labels: pd.Series(labels),
}


@pytest.mark.parametrize("column", LARGE.values(), ids=LARGE)
def test_a_missing_label_leaves_large_labels_as_they_are(column):
    classes = [2**53 - 1, 2**60 + 1]
    labels = np.array(classes)[Y].tolist()
    labels[ROW] = None
    model, _ = MODELS["classifier"]
    expected = model.fit(X, np.where(np.arange(60) == ROW, np.nan, Y)).coef_
    found = PrivateLogisticRegression(classes=classes, **TERMS).fit(X, column(labels))
    np.testing.assert_array_equal(found.coef_, expected)
    assert found.classes_.tolist() == classes


def test_whole_numbers_are_compared_as_floats_in_every_column():
    """With a gap in a column they are floats already."""
    classes, label = np.array([2**53 - 1, 2**53 + 1]), 2**53
    columns = [
        np.array([label, 5]),
        np.array([label, np.nan]),
        np.array([label, None], object),
        pl.Series([label, None]),
        pa.array([label, None]),
        [label, "x"],
    ]
    assert [places_of(as_cells(column), classes).tolist() for column in columns] == [[1, -1]] * 6


def test_classes_with_one_nearest_float_are_refused():
    """A column with a gap could not tell them apart."""
    with pytest.raises(InvalidArgument, match="nearest float"):
        PrivateLogisticRegression(classes=[2**53, 2**53 + 1], **TERMS).fit(X, Y)


GRADES = {-1: 0, 9: 4, np.nan: 0, "x": 0, None: 0, 10**400: 4, -np.inf: 0, np.inf: 4}


@pytest.mark.parametrize(("odd", "read_as"), GRADES.items(), ids=map(str, GRADES))
@pytest.mark.parametrize("unit", ["labels", "list"])
def test_grades_outside_their_range_count_as_the_nearest_one(unit, odd, read_as):
    qid, weights = np.arange(60) // 6, []
    for grade in (odd, read_as):
        grades = Y.tolist()
        grades[ROW] = grade
        weights.append(PrivateRanker(unit=unit, **TERMS).fit(X, grades, qid).coef_)
    np.testing.assert_array_equal(*weights)


@pytest.mark.parametrize("large", [2**53 + 1, 2**60 + 1])
def test_ids_of_a_column_with_a_gap_are_those_of_the_column(large):
    """Whose list each is, by a column of a frame: numpy would make floats of such ids, and one
    missing id would have the fit refused.
    """
    ids = [large + k // 6 for k in range(60)]
    frame = pl.DataFrame({**columns_of(X.tolist()), "b": X[:, 1], "id": ids, "q": qids()})
    gap = frame.with_columns(pl.Series("id", [*ids[:54], *[None] * 6]))
    for table in (frame, gap):
        ranker = PrivateRanker(unit="person", **TERMS)
        assert ranker.fit(table, Y, "q", persons="id").privacy_.unit.is_person


def qids():
    return np.arange(60) // 6
