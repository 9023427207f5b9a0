"""What workers do, in this process: quiet failures, parts that travel as recipes."""

import pickle

import numpy as np
import pytest

from hushfit.dask._tasks import Failure, guarded
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
