"""Constraints agree with their formula, dense or sparse."""

import numpy as np
import pytest
from scipy import sparse

from hushfit.constraints import (
    Constraint,
    _spectrum,
    chain,
    consensus,
    copied_groups,
    generalised,
    graph,
    group,
    identity,
)
from hushfit.errors import InvalidArgument
from hushfit.penalties import L1, GroupLasso

RNG = np.random.default_rng(0)
GRID = [(5 * i + j, 5 * i + j + 1) for i in range(6) for j in range(4)] + [
    (5 * i + j, 5 * i + j + 5) for i in range(5) for j in range(5)
]
# All kinds, with and without independent rows. A new constraint goes here and inherits the tests.
CONSTRAINTS = {
    "identity": identity(7),
    "chain": chain(60),
    "cycle": graph([(i, (i + 1) % 40) for i in range(40)], 40),
    "cycle and loose ends": graph([(i, (i + 1) % 40) for i in range(40)], 50),
    "odd cycle": graph([(i, (i + 1) % 41) for i in range(41)], 50),
    "opposite cycle": graph([(i, (i + 1) % 40) for i in range(40)], 50, signs=[-1] + [1] * 39),
    "grid": graph(GRID, 30),
    "grid and identity": graph(GRID, 30, with_identity=True),
    "tree": graph([(int(RNG.integers(i)), i) for i in range(1, 50)], 50),
    "dense, tall": generalised(RNG.normal(size=(9, 4))),
    "dense, wide": generalised(RNG.normal(size=(4, 9))),
    "dense, low rank": generalised(RNG.normal(size=(4, 2)) @ RNG.normal(size=(2, 9))),
    "signs at random": generalised(
        sparse.csr_array(RNG.normal(size=(30, 40)) * (RNG.random((30, 40)) < 0.1))
    ),
    "a row of zeros": generalised(sparse.vstack([chain(40).A, sparse.csr_array((1, 40))])),
    "a row of stored zeros": generalised(
        sparse.csr_array((np.r_[np.ones(40), 0.0], (np.arange(41), np.arange(41))))
    ),
    "a row twice": generalised(sparse.vstack([chain(40).A[:30], 3 * chain(40).A[[7]]])),
    "columns of zeros": generalised(sparse.hstack([chain(20).A, sparse.csr_array((19, 5))])),
    "two scales": generalised(sparse.block_diag([1e-6 * chain(20).A, chain(20).A])),
    "nothing": generalised(sparse.csr_array((3, 4))),
    "groups": group([(0, 1, 2), (2, 3), (3,)], 6),
    "consensus": consensus(3, 4),
}
over_constraints = pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    """Treat the matrices by their true size, or as if they were too large to be made dense."""
    if request.param == "large":
        monkeypatch.setattr(_spectrum, "_FEW", 0)
        monkeypatch.setattr(_spectrum, "_SMALL", 0)
    return request.param


@over_constraints
def test_gram_bound_is_an_upper_bound_and_not_far_away(constraint, size):
    A = dense(constraint.A)
    bound, largest = _spectrum.gram_bound(constraint.A), np.linalg.norm(A, 2) ** 2
    assert bound >= largest
    exact = size == "small" or not sparse.issparse(constraint.A)
    reached = largest * (1 + 1e-9) if exact else np.linalg.norm(np.abs(A), 2) ** 2 * (1 + 1e-2)
    assert bound <= reached + 1e-12


@over_constraints
def test_rank_is_that_of_the_dense_matrix(constraint, size):
    A = dense(constraint.A)
    assert _spectrum.has_full_row_rank(constraint.A) is bool(np.linalg.matrix_rank(A) == len(A))


@over_constraints
def test_constraints_know_their_spectrum(constraint):
    assert constraint.gram_bound == _spectrum.gram_bound(constraint.A)
    assert constraint.has_full_row_rank == _spectrum.has_full_row_rank(constraint.A)


@over_constraints
def test_z_step_by_prox_minimises_the_augmented_term(constraint):
    """The augmented objective is rho b strongly convex in z, which bounds the difference to any
    other point.
    """
    rng, penalty, rho = np.random.default_rng(1), L1(0.3), 0.7
    b, B = constraint.z_weight, constraint.B
    r = rng.normal(size=len(constraint.c))  # A x - c + u
    z = penalty.prox(-(B.T @ r) / b, 1 / (rho * b))

    def objective(z):
        return penalty.value(z) + 0.5 * rho * np.sum((r + B @ z) ** 2)

    for other in (
        np.zeros_like(z),
        z + rng.normal(size=len(z)),
        z + 0.01 * rng.normal(size=len(z)),
    ):
        assert objective(other) - objective(z) >= 0.5 * rho * b * np.sum((other - z) ** 2) - 1e-9


@pytest.mark.parametrize(
    "B", [np.array([[1.0, 1.0], [0.0, 1.0]]), np.diag([1.0, 2.0]), np.zeros((2, 2))], ids=repr
)
def test_z_steps_that_are_no_prox_are_refused(B):
    with pytest.raises(InvalidArgument, match=r"shape \(2, 2\).*generalised"):
        Constraint(np.eye(2), B, np.zeros(2)).z_weight  # noqa: B018


def test_graph_compares_coefficients_along_edges():
    edges, signs = [(0, 3), (4, 1), (2, 3)], [1, -1, 1]
    x = np.random.default_rng(0).normal(size=5)
    expected = [x[3] - x[0], x[1] + x[4], x[3] - x[2]]
    np.testing.assert_allclose(graph(edges, 5, signs).A @ x, expected)
    np.testing.assert_allclose(
        graph(np.array(edges), 5, signs, with_identity=True).A @ x, [*expected, *x]
    )


def test_a_path_is_a_chain():
    np.testing.assert_array_equal(
        graph([(0, 1), (1, 2), (2, 3)], 4).A.toarray(), chain(4).A.toarray()
    )


def test_groups_that_overlap_get_copies():
    """The group lasso of the copies is the overlapping group lasso."""
    groups = [(0, 1, 2), (2, 3), (4, 2)]
    x = np.random.default_rng(0).normal(size=6)
    z = group(groups, 6).A @ x
    np.testing.assert_array_equal(z, np.concatenate([x[list(members)] for members in groups]))
    penalty = GroupLasso(0.3, copied_groups(groups))
    expected = 0.3 * sum(
        np.sqrt(len(members)) * np.linalg.norm(x[list(members)]) for members in groups
    )
    assert penalty.value(z) == pytest.approx(expected)


def test_consensus_compares_every_owner_with_the_common_one():
    x, z = np.random.default_rng(0).normal(size=(3, 4)), np.arange(4.0)
    np.testing.assert_allclose(consensus(3, 4).residual(x.ravel(), z), (x - z).ravel())
    assert consensus(3, 4).z_weight == 3.0


def test_ten_thousand_edges_stay_sparse():
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.integers(5000, size=(12_000, 2)), axis=1), axis=0)
    pairs = rng.permutation(pairs[pairs[:, 0] != pairs[:, 1]])[:10_000]
    constraint = graph(pairs, 5000, with_identity=True)
    assert sparse.issparse(constraint.A)
    assert sparse.issparse(constraint.B)
    assert constraint.A.nnz == 2 * 10_000 + 5000
    assert constraint.B.nnz == 15_000
    # Every eigenvalue lies between 1 (the identity) and 1 + twice the largest degree.
    degree = np.bincount(pairs.ravel()).max()
    assert 1 + degree < constraint.gram_bound <= 1 + 2 * degree + 1e-6
    assert not constraint.has_full_row_rank


@pytest.mark.parametrize(
    "layout",
    [sparse.csr_array, sparse.csc_matrix, sparse.coo_array],
    ids=lambda layout: layout.__name__,
)
def test_any_sparse_matrix_becomes_a_csr_array(layout):
    constraint = generalised(layout(np.array([[1, 0], [2, 3]])))
    assert isinstance(constraint.A, sparse.csr_array)
    np.testing.assert_array_equal(constraint.A @ np.array([1.0, 1.0]), [1.0, 5.0])


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
    assert (
        constraint.residual(np.ones(1000), np.zeros(constraint.B.shape[1])).shape
        == constraint.c.shape
    )


def test_dense_and_sparse_agree():
    rng = np.random.default_rng(0)
    A, B, c = rng.normal(size=(4, 3)), rng.normal(size=(4, 2)), rng.normal(size=4)
    x, z = rng.normal(size=3), rng.normal(size=2)
    dense = Constraint(A, B, c).residual(x, z)
    np.testing.assert_allclose(dense, A @ x + B @ z - c)
    np.testing.assert_allclose(
        Constraint(sparse.csr_array(A), sparse.csc_array(B), c).residual(x, z), dense
    )


def test_residual_is_a_plain_array_for_sparse_maps():
    assert type(chain(3).residual(np.zeros(3), np.zeros(2))) is np.ndarray


def test_rows_must_match():
    with pytest.raises(InvalidArgument, match="3, 2 and 3 rows"):
        Constraint(np.eye(3), np.eye(2), np.zeros(3))


@pytest.mark.parametrize(("make", "d"), [(identity, 0), (chain, 1)])
def test_sizes_without_equations_are_refused(make, d):
    with pytest.raises(InvalidArgument, match=f"d={d}"):
        make(d)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constraint(np.zeros(3), np.eye(3), np.zeros(3)), r"A has shape \(3,\)"),
        (lambda: Constraint(np.eye(3), -np.eye(3), np.zeros((3, 1))), r"c has shape \(3, 1\)"),
        (
            lambda: Constraint(np.diag([1.0, np.nan]), -np.eye(2), np.zeros(2)),
            "A has entries that are NaN",
        ),
        (
            lambda: Constraint(np.eye(2), sparse.csr_array(np.diag([1.0, np.inf])), np.zeros(2)),
            "B has entries",
        ),
        (lambda: generalised(np.zeros((0, 3))), r"D has shape \(0, 3\)"),
        (lambda: graph([(0, 3)], 3), "name coefficient 3, but with d=3 they are 0 to 2"),
        (lambda: graph([(-1, 0)], 3), "name coefficient -1"),
        (lambda: graph([(0, 1), (2, 2)], 3), r"\(2, 2\) ties a coefficient to itself"),
        (lambda: graph([(0, 1), (1, 0)], 3), r"\(0, 1\) is listed 2 times"),
        (lambda: graph([], 3), "at least one pair"),
        (lambda: graph([(0.0, 1.0)], 3), "type float64"),
        (lambda: graph([(0, 1)], 3, signs=[0.5]), "1 numbers"),
        (lambda: graph([(0, 1)], 3, signs=[1, 1]), "one for each edge"),
        (lambda: group([], 3), "non-empty"),
        (lambda: group([(0,), ()], 3), "non-empty"),
        (lambda: group([(0, 0)], 3), "once in a group"),
        (lambda: group([(0, 3)], 3), "name coefficient 3"),
        (lambda: consensus(0, 3), "n_blocks=0"),
        (lambda: consensus(3, 0), "d=0"),
    ],
)
def test_constraints_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()
