"""Constraints do what their formula says, dense or sparse."""

import numpy as np
import pytest
from scipy import sparse

from hushfit.constraints import Constraint, chain, identity
from hushfit.errors import InvalidArgument


def test_identity_compares_x_with_z():
    x, z = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 5.0])
    np.testing.assert_array_equal(identity(3).residual(x, z), x - z)


@pytest.mark.parametrize("d", [2, 3, 10])
def test_chain_compares_differences_with_z(d):
    rng = np.random.default_rng(d)
    x, z = rng.normal(size=d), rng.normal(size=d - 1)
    np.testing.assert_allclose(chain(d).residual(x, z), np.diff(x) - z, atol=1e-14)
    np.testing.assert_allclose(chain(d).residual(x, np.diff(x)), 0.0, atol=1e-14)


@pytest.mark.parametrize("make", [identity, chain])
def test_named_constraints_are_sparse_and_have_transposes(make):
    constraint = make(1000)
    assert sparse.issparse(constraint.A)
    assert constraint.A.nnz <= 2 * 1000
    assert (constraint.A.T @ constraint.c).shape == (1000,)
    assert constraint.residual(np.ones(1000), np.zeros(constraint.B.shape[1])).shape == constraint.c.shape


def test_dense_and_sparse_agree():
    rng = np.random.default_rng(0)
    A, B, c = rng.normal(size=(4, 3)), rng.normal(size=(4, 2)), rng.normal(size=4)
    x, z = rng.normal(size=3), rng.normal(size=2)
    dense = Constraint(A, B, c).residual(x, z)
    np.testing.assert_allclose(dense, A @ x + B @ z - c)
    np.testing.assert_allclose(Constraint(sparse.csr_array(A), sparse.csc_array(B), c).residual(x, z), dense)


def test_residual_is_a_plain_array_for_sparse_maps():
    assert type(chain(3).residual(np.zeros(3), np.zeros(2))) is np.ndarray


def test_rows_must_match():
    with pytest.raises(InvalidArgument, match="3, 2 and 3 rows"):
        Constraint(np.eye(3), np.eye(2), np.zeros(3))


@pytest.mark.parametrize(("make", "d"), [(identity, 0), (chain, 1)])
def test_sizes_without_equations_are_refused(make, d):
    with pytest.raises(InvalidArgument, match=f"d={d}"):
        make(d)
