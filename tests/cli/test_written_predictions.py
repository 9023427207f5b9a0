"""The CSV that ``hushfit predict`` writes."""

import csv
import io

import numpy as np
import pyarrow as pa
import pytest

from hushfit.cli.verbs.predict import _as_csv, _numbers, _texts, rounded, without_formula


@pytest.mark.parametrize("digits", [6, 8])
def test_numbers_have_no_more_digits_than_asked_for(digits):
    rng = np.random.default_rng(0)
    values = rng.normal(size=2000) * 10.0 ** rng.integers(-12, 12, 2000)
    values = np.concatenate([values, [0.0, 1.0, -1.0, 999999.5, 0.1, 1e-13, 12345678.9]])
    wanted = [float(f"{value:.{digits}g}") for value in values]
    np.testing.assert_allclose(rounded(values, digits), wanted, rtol=0.51 * 10.0 ** (1 - digits))
    longest = max(len(repr(v).split("e")[0].strip("-0.").replace(".", "")) for v in wanted)
    ours = rounded(values, digits).tolist()
    assert max(len(repr(v).split("e")[0].strip("-0.").replace(".", "")) for v in ours) == longest


def test_numbers_out_of_reach_stay_as_they_are():
    values = np.array([1.23456789e-200, 1.23456789e200, np.inf, 0.0])
    np.testing.assert_array_equal(rounded(values, 6), values)


def test_a_reader_of_csv_gets_the_cells_back():
    labels = ['a "b"', "c, d", "e\nf", "g\rh", "plain", "", None]
    columns = [_texts(pa.array(labels), str), _numbers(np.arange(7.0))]
    rows = list(csv.reader(io.StringIO(_as_csv(columns), newline="")))
    assert [row[0] for row in rows] == [label or "" for label in labels]
    assert [float(row[1]) for row in rows] == list(range(7))


def test_no_quotation_marks_where_none_are_needed():
    columns = [_texts(["yes", "no", "yes"], str), _numbers(np.array([0.25, 0.5, 1e-10]))]
    assert _as_csv(columns) == "yes,0.25\nno,0.5\nyes,1e-10\n"
    assert _as_csv([_texts(["a,b", "c"], str), columns[1][:2]]) == '"a,b",0.25\nc,0.5\n'


def test_every_different_label_is_made_safe():
    cells = pa.array(["=1+1", "-5", "x"] * 3).dictionary_encode()
    assert _texts(cells, without_formula).to_pylist() == ["'=1+1", "-5", "x"] * 3
