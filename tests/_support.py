"""Builders shared by test files: small tables, their memory layouts, and reference answers in
plain numpy.
"""

import numpy as np
from scipy import sparse

from hushfit.data import SeededCoins, as_source
from hushfit.losses import (
    HuberHinge,
    Logistic,
    OneVsRest,
    Poisson,
    SaturatingSquares,
    Softmax,
    Squared,
)
from hushfit.penalties import Zero
from hushfit.privacy import RECORD_RELATIONS, Relation, SeededSampler
from hushfit.problem import Problem
from hushfit.release.curator import Curator
from hushfit.solvers import run

RELATIONS = list(RECORD_RELATIONS)
# Every loss, by the labels it takes: -1 and +1, real numbers, counts, or class indices. A new loss
# is listed here and inherits the tests of losses and of compiled code.
BINARY = [Logistic(), HuberHinge(), HuberHinge(bend=0.1)]
REAL = [Squared(), Squared(slope_bound=0.7), Squared(slope_bound=2.5), SaturatingSquares(0.8)]
COUNTS = [Poisson(3.0), Poisson(20.0)]
SEVERAL = [Softmax(2), Softmax(3), Softmax(5), OneVsRest(Logistic(), 3), OneVsRest(HuberHinge(), 4)]
LOSSES = [(loss, loss.outputs) for loss in BINARY + REAL + COUNTS + SEVERAL]

# A check of scikit-learn whose demand contradicts privacy, for its lists of expected failures.
ERROR_FOR_A_CELL = {
    "check_dtype_object": "an error about one cell that is no number would tell of its row"
}


def _csr_with(index):
    def layout(X):
        made = sparse.csr_array(X)
        made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
        return made

    return layout


# Memory layouts of the same rows. A new kind of source is listed here and inherits the tests.
SOURCES = {
    "C float64": np.ascontiguousarray,
    "F float64": np.asfortranarray,
    "C float32": lambda X: np.ascontiguousarray(X, dtype=np.float32),
    "F float32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "CSR int32": _csr_with(np.int32),
    "CSR int64": _csr_with(np.int64),
    "CSR float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "CSR matrix": sparse.csr_matrix,
}


def table(n=60, d=5, seed=0):
    """Rows with half of the entries zero, exact in float32, so that every layout holds the same
    rows.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    return X.astype(np.float32).astype(np.float64)


def labels_for(loss, outputs, n, seed=0):
    """Labels of the type that a loss takes."""
    rng = np.random.default_rng(seed + 1)
    if outputs > 1:
        return rng.integers(outputs, size=n).astype(float)
    if isinstance(loss, tuple(map(type, COUNTS))):
        return rng.poisson(2.0, size=n).astype(float)
    return (
        rng.normal(size=n)
        if isinstance(loss, tuple(map(type, REAL)))
        else rng.choice([-1.0, 1.0], size=n)
    )


def two_classes(n=400, d=5, seed=0, sharpness=4.0):
    """Rows and labels +-1 that a linear model explains in part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    probability = 1 / (1 + np.exp(-sharpness * X @ rng.normal(size=d) / np.sqrt(d)))
    return X, np.where(rng.random(n) < probability, 1.0, -1.0)


def counts(n=400, d=5, seed=0):
    """Rows and counts whose log-rate is linear in the unit records."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, rng.poisson(np.exp(records_of(X) @ rng.normal(size=d + 1))).astype(float)


def three_classes(n=300, d=4, seed=0):
    """Rows and labels 0, 1, 2 that a linear model explains in part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (2 * X @ rng.normal(size=(d, 3)) + rng.gumbel(size=(n, 3))).argmax(axis=1).astype(
        float
    )


def problem_for(
    X, loss=None, outputs=1, relation=Relation.REPLACE_ONE, fit_intercept=True, penalty=None
):
    """The public half of a fit to ``X``."""
    return Problem(
        loss or Logistic(), penalty or Zero(), *X.shape, relation, fit_intercept, outputs
    )


def records_of(X, fit_intercept=True):
    """Unit records in plain numpy; rows that are empty or not finite become zero."""
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else np.array(X, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(Z, axis=1)
    good = np.isfinite(length) & (length > 0)
    Z[~good] = 0.0
    return Z / np.where(good, length, 1.0)[:, None]


def clipped_gradient_sum(loss, Z, y, w, clip, A=None):
    """Sum of A times slope times record, each clipped to the norm ``clip``."""
    slopes = loss.slope(Z @ w.T, y)
    slopes = slopes[:, None] if slopes.ndim == 1 else slopes
    images = Z if A is None else Z @ A
    length = np.linalg.norm(slopes, axis=1) * np.linalg.norm(images, axis=1)
    factor = np.minimum(1.0, clip / np.maximum(length, 1e-300))
    return np.squeeze((factor[:, None] * slopes).T @ images)


def curator_over(source, plan, multiplier, relation=Relation.REPLACE_ONE, seed=0, **settings):
    """A curator with reproducible noise and one noise multiplier for all releases."""
    sampler = settings.pop("sampler", None) or SeededSampler(seed)
    coins = settings.pop("coins", None) or SeededCoins(seed)
    multipliers = {part.name: multiplier for part in plan.parts}
    return Curator(source, plan, multipliers, relation, sampler, coins, **settings)


def source_of(X, y, fit_intercept=True, bounds=None):
    """Shorthand for `as_source`."""
    return as_source(X, y, fit_intercept=fit_intercept, bounds=bounds)


def without_noise(solver, problem, X, y):
    """Weights of a run without noise."""
    source = source_of(X, y, problem.fit_intercept)
    curator = curator_over(source, solver.plan(problem), 0.0, problem.relation)
    return run(solver, problem, curator).w
