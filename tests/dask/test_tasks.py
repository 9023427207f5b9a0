"""What workers do, in this process: quiet failures, parts that travel as recipes."""

import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushfit.dask._pieces import Span
from hushfit.dask._tasks import (
    Encoding,
    Failure,
    ParquetFile,
    encode_files,
    guarded,
    list_files,
)
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.release import Metric


@pytest.mark.parametrize("error", [ValueError, TooFewRows, KeyError, RuntimeError])
def test_an_exception_is_told_without_its_text(error):
    def reading():
        raise error("the cell 4711 of 12 rows")

    found = guarded(reading)()
    assert isinstance(found, Failure)
    assert "4711" not in found.reason
    assert "12" not in found.reason


def test_errors_that_name_columns_are_told():
    def reading():
        raise InvalidArgument("column 'age' is of another type")

    assert guarded(reading)() == Failure("column 'age' is of another type")


def test_a_metric_arrives_once():
    """Lengths of all rows are cached by the metric: a copy for each step would measure them
    again.
    """
    metric = Metric(np.diag([1.0, 2.0]))
    one, other = (pickle.loads(pickle.dumps(metric)) for _ in range(2))
    assert one is other
    assert one.A.tolist() == metric.A.tolist()
    assert one.error == metric.error
    assert pickle.loads(pickle.dumps(Metric(np.diag([1.0, 3.0])))) is not one


def test_parts_of_a_file_are_of_one_version(tmp_path):
    """A row that moves between parts while these are read, or read again, would count twice."""
    path = tmp_path / "t.parquet"
    table = pa.table({"a": [0.1, 0.2, 0.3, 0.4, 0.5], "y": ["no", "yes", "no", "yes", "no"]})
    pq.write_table(table, path)
    schema = Schema((NumericColumn("a", 0, 1),), CategoricalColumn("y", ("no", "yes")))
    files, sizes = list_files([str(path)])
    assert sizes == [5]
    first = encode_files(files, (Span(0, range(3)),), Encoding(schema))
    assert first.rows.n_units == 3
    task, given = first.__reduce__()
    pq.write_table(table.slice(1), path)  # the fourth row is the third one now
    again = task(*given)
    assert isinstance(again, Failure)
    assert "has changed" in again.reason
    first.rows.close()


def test_rows_that_change_places_make_another_version(tmp_path):
    """The footer has sizes and statistics, which are the same then."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [0.1, 0.2, 0.3, 0.4], "y": ["no"] * 4}), path)
    first = ParquetFile.now(str(path))
    pq.write_table(pa.table({"a": [0.4, 0.2, 0.3, 0.1], "y": ["no"] * 4}), path)
    os.utime(path, ns=(0, first.written + 1))
    assert ParquetFile.now(str(path)).footer == first.footer
    with pytest.raises(InvalidArgument, match=r"has changed.*a folder that all workers share"):
        first.refuse_if_changed()
