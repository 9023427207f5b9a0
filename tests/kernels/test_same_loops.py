"""Which loops are called, with which types, must not depend on rows: machine code is compiled at
the first call, and kept on disk.
"""

from functools import partial

import numpy as np
import pytest
from numba import typeof
from scipy.sparse import csr_array

from hushfit.data import as_source
from hushfit.kernels import rows


def _noted(name, loop, found, *given):
    found.add((name, *map(typeof, given)))
    return loop(*given)


@pytest.fixture
def called(monkeypatch):
    """Loops that were called, with the types of what they were given."""
    found = set()
    for name in (
        *("_lengths_one_by_one", "_lengths_side_by_side"),
        *("second_moment_csr", "rounded_records_csr"),
    ):
        loop = partial(_noted, name, getattr(rows, name), found)
        monkeypatch.setattr(rows, name, loop)
    return found


@pytest.mark.parametrize("width", [4, 80])
def test_lengths_call_the_same_loops_with_many_zeros_and_few(called, width):
    A, seen = np.tril(np.ones((width, width))), []
    X = np.random.default_rng(0).normal(size=(64, width - 1))
    for zeros in (32, 33):  # up to half of the entries, and more
        few = X.copy()
        few[:zeros] = 0.0
        lengths = np.full(64, np.nan)
        rows.lengths_dense(few, np.ones(64), 1.0, A, lengths)
        np.testing.assert_allclose(lengths, np.linalg.norm(np.c_[few, np.ones(64)] @ A, axis=1))
        seen.append(set(called))
        called.clear()
    assert seen[0] == seen[1]
    assert len(seen[0]) == (2 if width > 64 else 1)


def test_moments_of_sparse_rows_call_the_same_loops_with_few_entries_and_many(called):
    seen = []
    for stored in (79, 80):  # five times their mean is below 5, the width, and not
        X = np.zeros((80, 4))
        X.ravel()[: 4 * stored : 4] = 1.0
        (block,) = as_source(csr_array(X), np.ones(80)).blocks()
        records = np.c_[X, np.ones(80)] / np.sqrt(1 + X.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(
            block.second_moment(2.0**20) / 2.0**40, records.T @ records, atol=1e-3
        )
        seen.append(set(called))
        called.clear()
    assert seen[0] == seen[1]
    assert {name for name, *_ in seen[0]} == {"second_moment_csr", "rounded_records_csr"}
