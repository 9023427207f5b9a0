"""IPUMS-BR: read from a local file in the form of its authors, or refused."""

import numpy as np
import pytest

from hushfit.datasets import load_ipums_br
from hushfit.errors import InvalidArgument


def written(path, rows=38_000, columns=52, label="1"):
    line = " ".join([*map(str, range(columns)), label])
    path.write_text("\n".join([line] * rows) + "\n")
    return path


def test_a_file_of_that_form_is_read(tmp_path):
    X, y = load_ipums_br(written(tmp_path / "IPUMS-BR.dat"))
    assert X.shape == (38_000, 52)
    np.testing.assert_array_equal(X[7], np.arange(52))
    assert y.dtype == np.int64
    assert (y == 1).all()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"rows": 10}, "10 rows of 53 numbers"),
        ({"columns": 4, "rows": 5}, "5 rows of 5 numbers"),
        ({"label": "2"}, "labels other than 0 and 1"),
        ({"label": "nan"}, "labels other than 0 and 1"),
        ({"label": "yes", "rows": 2}, "cannot be read"),
    ],
    ids=str,
)
def test_other_files_are_refused(tmp_path, wrong, told):
    path = written(tmp_path / "other.dat", **wrong)
    with pytest.raises(InvalidArgument, match=told):
        load_ipums_br(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="cannot be read"):
        load_ipums_br(tmp_path / "none.dat")
