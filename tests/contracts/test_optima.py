"""Without noise every ADMM solver reaches the optimum of every (loss, penalty, constraint) that it
accepts.

The reference is an interior-point method implemented here, with its own losses and penalties: it
has neither prox nor splitting, and shares no code with the solvers. Problems that scikit-learn can
solve are compared with scikit-learn as well. Solvers get epsilon = inf and no other setting, so
clipping norms and batches are the automatic ones for that budget.
"""

import inspect
import math
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax
from sklearn.linear_model import ElasticNet as SklearnElasticNet
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

from _support import LOSSES as ALL_LOSSES
from _support import curator_over, problem_for, records_of, source_of, without_noise
from hushfit import PrivateGraphLogisticRegression, PrivateLogisticRegression, penalties
from hushfit.constraints import chain, consensus, generalised, graph, group, identity
from hushfit.losses import HuberHinge, Logistic, Poisson, SaturatingSquares, Softmax, Squared
from hushfit.penalties import (
    L1,
    MCP,
    SCAD,
    Box,
    ElasticNet,
    FusedLasso,
    GroupLasso,
    L1Ball,
    L2Ball,
    LHalf,
    Lq,
    Nuclear,
    ScaledL2,
    Slope,
    SparseGroup,
    TotalVariation,
    WeightedL1,
    Zero,
)
from hushfit.privacy import Budget
from hushfit.release import FixedSizeBatch, FullBatch, PoissonBatch
from hushfit.solvers import (
    DPSADMM,
    DPSC,
    DPVRADMM,
    MPADMM,
    SSADMM,
    ObjectivePerturbation,
    run,
    solver_from,
)

N, D = 60, 4
TOLERANCE = 1e-6
OPEN = Budget(math.inf, 1e-6)


# Reference losses: value, slope and curvature of each margin --------------------------------------


def logistic(T, y):
    m = y * T
    return np.logaddexp(0, -m), -y * expit(-m), expit(m) * expit(-m)


def hinge(T, y, h=0.5):
    m = y * T
    line, bend = m < 1 - h, np.abs(m - 1) <= h
    value = np.where(line, 1 - m, np.where(bend, (1 + h - m) ** 2 / (4 * h), 0.0))
    return (
        value,
        -y * np.where(line, 1.0, np.where(bend, (1 + h - m) / (2 * h), 0.0)),
        bend / (2 * h),
    )


def squared(T, y, top=1.0):
    r = T - y
    near = np.abs(r) <= top
    return (
        np.where(near, r**2 / 2, top * (np.abs(r) - top / 2)),
        np.where(near, r, top * np.sign(r)),
        near * 1.0,
    )


def saturating(T, y, end=0.3):
    y = np.clip(y, -end, end)
    near, at = np.abs(T) <= end, np.sign(T) * end
    beyond = (at - y) ** 2 / 2 + (at - y) * (T - at)
    return (
        np.where(near, (T - y) ** 2 / 2, beyond),
        np.where(near, T, at) - y,
        near * 1.0,
    )


def poisson(T, y, most=6.0):
    y, top = np.minimum(y, most), np.log(most)
    rate, beyond = np.exp(np.minimum(T, top)), np.maximum(T - top, 0.0)
    rest = np.where(y > 0, y * np.log(np.maximum(y, 1)) - y, 0.0)
    return rate + most * beyond - y * T + rest, rate - y, np.where(top >= T, rate, 0.0)


def several(T, y):
    labels = np.eye(T.shape[1])[y.astype(int)]
    p = softmax(T, axis=1)
    curvature = np.einsum("ik,kl->ikl", p, np.eye(T.shape[1])) - np.einsum("ik,il->ikl", p, p)
    return logsumexp(T, axis=1) - (T * labels).sum(axis=1), p - labels, curvature


def data(outputs=1, regression=False, seed=3, counts=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    T = 0.5 * X @ rng.normal(size=(D, outputs))
    if counts:
        return X, rng.poisson(np.exp(T[:, 0])).astype(float)
    if outputs > 1:
        return X, (T + rng.gumbel(size=T.shape)).argmax(axis=1).astype(float)
    return X, (
        0.5 * T[:, 0] + 0.3 * rng.normal(size=N)
        if regression
        else np.where(T[:, 0] + rng.logistic(size=N) > 0, 1.0, -1.0)
    )


@dataclass(frozen=True)
class Fit:
    """A loss of the library, its reference implementation, and rows for it."""

    loss: object
    written: object
    outputs: int
    rows: tuple = field(repr=False)

    @property
    def Z(self):
        return records_of(self.rows[0])

    def smooth(self, W):
        """Mean loss, gradient and Hessian in the flat weights."""
        Z, y = self.Z, self.rows[1]
        T = Z @ W.T
        value, slope, curvature = self.written(T if self.outputs > 1 else T[:, 0], y)
        slope, curvature = (
            slope.reshape(len(Z), -1),
            curvature.reshape(len(Z), self.outputs, self.outputs),
        )
        hessian = np.einsum("ikl,ia,ib->kalb", curvature, Z, Z) / len(Z)
        return value.mean(), (slope.T @ Z / len(Z)).ravel(), hessian.reshape(W.size, W.size)


LOSSES = {
    "logistic": Fit(Logistic(), logistic, 1, data()),
    "hinge": Fit(HuberHinge(), hinge, 1, data()),
    "squared": Fit(Squared(), squared, 1, data(regression=True)),
    "saturating": Fit(SaturatingSquares(0.3), saturating, 1, data(regression=True)),
    "poisson": Fit(Poisson(6.0), poisson, 1, data(counts=True)),
    "softmax": Fit(Softmax(3), several, 3, data(outputs=3)),
}


def test_every_loss_is_written_out():
    """One-vs-rest is a sum of the others."""
    written = {type(fit.loss).__name__ for fit in LOSSES.values()} | {"OneVsRest"}
    missing = {type(loss).__name__ for loss, _ in ALL_LOSSES} - written
    assert not missing, (
        f"{sorted(missing)}: write value, slope and curvature out in plain numpy and add them to "
        "LOSSES in tests/contracts/test_optima.py."
    )


# Reference penalties: norms of linear maps, sums of largest entries, sets -------------------------


@dataclass(frozen=True)
class Shape:
    """A penalty as weights times Euclidean norms of ``M z``, a square, sums of the k largest
    absolute values, and sets.
    """

    norms: tuple = ()  # (weight, M)
    square: float | np.ndarray = 0.0  # a weight for all entries, or one for each
    largest: tuple = ()  # (weight, k)
    box: float | None = None
    ball: float | None = None
    diamond: float | None = None

    def value(self, z):
        total = (
            sum(weight * np.linalg.norm(M @ z) for weight, M in self.norms)
            + np.sum(self.square * z**2) / 2
        )
        total += sum(weight * np.sort(np.abs(z))[-k:].sum() for weight, k in self.largest)
        outside = [0.0]
        outside += [] if self.box is None else [np.abs(z).max() - self.box]
        outside += [] if self.ball is None else [np.linalg.norm(z) - self.ball]
        outside += [] if self.diamond is None else [np.abs(z).sum() - self.diamond]
        return total if max(outside) <= TOLERANCE else math.inf


def entries(weights):
    return tuple(
        (weight, row[None])
        for weight, row in zip(weights, np.eye(len(weights)), strict=True)
        if weight > 0
    )


def steps_along(m, weight):
    return tuple((weight, row[None]) for row in np.diff(np.eye(m), axis=0))


def two_groups(m):
    return (0,), tuple(range(1, m))


def of_groups(m, weight, groups=None):
    return tuple((weight * math.sqrt(len(G)), np.eye(m)[list(G)]) for G in groups or two_groups(m))


A = 0.03  # weight: large enough to give zeros, small enough to leave nonzero weights
PENALTIES = {
    "none": lambda m: (Zero(), Shape()),
    "l1": lambda m: (L1(A), Shape(entries([A] * m))),
    "weighted l1": lambda m: (
        WeightedL1(np.linspace(0, A, m)),
        Shape(entries(np.linspace(0, A, m))),
    ),
    "l2": lambda m: (ScaledL2(A), Shape(square=A)),
    "elastic net": lambda m: (ElasticNet(A, 0.4), Shape(entries([0.4 * A] * m), square=0.6 * A)),
    "group": lambda m: (GroupLasso(A, two_groups(m)), Shape(of_groups(m, A))),
    "sparse group": lambda m: (
        SparseGroup(A, two_groups(m), 0.4),
        Shape(entries([0.4 * A] * m) + of_groups(m, 0.6 * A)),
    ),
    "nuclear": lambda m: (Nuclear(A), Shape(((A, np.eye(m)),))),
    "total variation": lambda m: (TotalVariation(A), Shape(steps_along(m, A))),
    "fused lasso": lambda m: (
        FusedLasso(A, 0.3),
        Shape(entries([0.3 * A] * m) + steps_along(m, 0.7 * A)),
    ),
    # Weights A for the two largest and A/2 for the others: A/2 for all, and A/2 more for two.
    "slope": lambda m: (
        Slope(np.where(np.arange(m) < 2, A, A / 2)),
        Shape(entries([A / 2] * m), largest=((A / 2, 2),)),
    ),
    "box": lambda m: (Box(-0.4, 0.4), Shape(box=0.4)),
    "ball": lambda m: (L2Ball(0.8), Shape(ball=0.8)),
    "diamond": lambda m: (L1Ball(1.2), Shape(diamond=1.2)),
}


def test_every_convex_penalty_is_written_out():
    written = {type(make(D)[0]).__name__ for make in PENALTIES.values()}
    classes = {name: kind for name, kind in vars(penalties).items() if inspect.isclass(kind)}
    missing = {name for name, kind in classes.items() if kind.convex is True} - written
    assert not missing, (
        f"{sorted(missing)}: add it with its Shape to PENALTIES in tests/contracts/test_optima.py."
    )


# Constraints, written out: the penalised z = K q, where q are the free weights and the columns'
# weights are E q ---------

EDGES = [(0, 1), (1, 2), (0, 3)]
SIGNS = [1, 1, -1]
OVERLAPPING = [(0, 1), (1, 2, 3)]
DENSE = np.random.default_rng(5).normal(size=(3, D)) / 2


@dataclass(frozen=True)
class Tie:
    """A constraint of the library (None: the weights themselves) and its matrices."""

    constraint: object
    K: np.ndarray
    E: np.ndarray = field(default_factory=lambda: np.eye(D))


TIES = {
    "no constraint": Tie(None, np.eye(D)),
    "identity": Tie(identity(D), np.eye(D)),
    "chain": Tie(chain(D), np.diff(np.eye(D), axis=0)),
    "graph": Tie(
        graph(EDGES, D, signs=SIGNS, with_identity=True),
        np.vstack(
            [np.eye(D)[j] - s * np.eye(D)[i] for (i, j), s in zip(EDGES, SIGNS, strict=True)]
            + [np.eye(D)]
        ),
    ),
    "generalised": Tie(generalised(DENSE), DENSE),
    "overlapping groups": Tie(
        group(OVERLAPPING, D), np.eye(D)[[i for G in OVERLAPPING for i in G]]
    ),
    "consensus": Tie(consensus(2, D // 2), np.eye(D // 2), np.vstack([np.eye(D // 2)] * 2)),
}


# The reference solver -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ConeProgram:
    """Minimise a smooth f(q) + cost . e over v = (q, e) subject to G v <= h and norms: |M v| <
    row . v + r.
    """

    cost: np.ndarray
    G: np.ndarray
    h: np.ndarray
    cones: list  # (M, row, r)
    start: np.ndarray

    def barrier(self, v):
        """Value, gradient and Hessian of the log barrier; infinite outside."""
        room = self.h - self.G @ v
        if (room <= 0).any():
            return math.inf, None, None
        scaled = self.G / room[:, None]
        value, gradient, hessian = -np.log(room).sum(), scaled.sum(axis=0), scaled.T @ scaled
        for M, row, r in self.cones:
            u, t = M @ v, row @ v + r
            room = t**2 - u @ u
            if t <= 0 or room <= 0:
                return math.inf, None, None
            slope = 2 * (M.T @ u - t * row)
            value -= math.log(room)
            gradient = gradient + slope / room
            hessian = (
                hessian
                + np.outer(slope, slope) / room**2
                + 2 * (M.T @ M - np.outer(row, row)) / room
            )
        return value, gradient, hessian

    def solve(self, smooth, size, gap=1e-8):
        """Follow the central path until the objective is within ``gap`` of the minimum."""
        v, sharpness = self.start, 1.0
        last = max(len(self.h) + 2 * len(self.cones), 1) / gap
        while True:
            v = self._centre(smooth, v, size, sharpness)
            if sharpness >= last:
                return v
            sharpness = min(30 * sharpness, last)

    def _centre(self, smooth, v, size, sharpness):
        def objective(v):
            inside, *rest = self.barrier(v)
            if math.isinf(inside):
                return math.inf, None, None
            f, g, H = smooth(v[:size])
            gradient, hessian = sharpness * self.cost + rest[0], rest[1].copy()
            gradient[:size] += sharpness * g
            hessian[:size, :size] += sharpness * H
            return sharpness * (f + self.cost @ v) + inside, gradient, hessian

        value, gradient, hessian = objective(v)
        for _ in range(60):
            # Some directions have no curvature: a shift of all softmax outputs, a hinge outside its
            # quadratic part.
            step = -np.linalg.solve(hessian + 1e-7 * sharpness * np.eye(len(v)), gradient)
            decrement = -gradient @ step
            if decrement < 1e-9 * max(1.0, abs(value)) ** 0.5:
                break
            length = 1.0
            while True:
                there = objective(v + length * step)
                if there[0] <= value - 0.1 * length * decrement + 1e-12 * abs(value):
                    break
                length /= 2
                if length < 1e-12:
                    return v
            v, (value, gradient, hessian) = v + length * step, there
        return v


def cone_program(shape, K, size):
    """The penalty of every output's ``K q`` as cost, inequalities and cones; ``K`` is a list,
    one map for each output.
    """
    cost, inequalities, cones, start = [0.0] * size, [], [], [0.0] * size

    def new(weight, at):
        cost.append(weight)
        start.append(at)
        return len(cost) - 1

    for k in K:
        for weight, M in shape.norms:
            t, image = new(weight, 1.0), M @ k
            if len(image) == 1:
                inequalities += [({t: -1.0}, sign * image[0], 0.0) for sign in (1, -1)]
            else:
                cones.append((image, t, 0.0))
        for weight, count in shape.largest:
            # The sum of the largest absolute values is the minimum over s of count s + sum of
            # (value - s)+.
            s = new(weight * count, 0.0)
            for row in k:
                u = new(weight, 1.0)
                inequalities += [({u: -1.0, s: -1.0}, sign * row, 0.0) for sign in (1, -1)] + [
                    ({u: -1.0}, 0 * row, 0.0)
                ]
        if shape.box is not None:
            inequalities += [({}, sign * row, shape.box) for row in k for sign in (1, -1)]
        if shape.ball is not None:
            cones.append((k, None, shape.ball))
        if shape.diamond is not None:
            sizes = [new(0.0, 0.9 * shape.diamond / len(k)) for _ in k]
            inequalities += [
                ({t: -1.0}, sign * row, 0.0)
                for t, row in zip(sizes, k, strict=True)
                for sign in (1, -1)
            ]
            inequalities.append((dict.fromkeys(sizes, 1.0), np.zeros(size), shape.diamond))

    total = len(cost)
    G, h = np.zeros((len(inequalities), total)), np.zeros(len(inequalities))
    for i, (extra, row, bound) in enumerate(inequalities):
        G[i, :size], h[i] = row, bound
        for place, entry in extra.items():
            G[i, place] = entry
    padded = [
        (
            np.pad(M, ((0, 0), (0, total - size))),
            np.zeros(total) if t is None else np.eye(total)[t],
            r,
        )
        for M, t, r in cones
    ]
    return ConeProgram(np.array(cost), G, h, padded, np.array(start))


def lifted(tie, outputs):
    """Map from the free weights, including intercepts, to the weights, one block per output."""
    one = block_diag(tie.E, 1.0)
    return block_diag(*[one] * outputs)


@cache
def optimum(loss, penalty, tie, mu=0.0):
    """Minimal objective and its minimiser. ``mu`` is the weight of half the squared norm of all
    weights.
    """
    fit, tie = LOSSES[loss], TIES[tie]
    free = tie.E.shape[1] + 1
    size = free * fit.outputs
    lift = lifted(tie, fit.outputs)

    def smooth(q):
        W = (lift @ q).reshape(fit.outputs, D + 1)
        f, g, H = fit.smooth(W)
        return (
            f + mu / 2 * W.ravel() @ W.ravel(),
            lift.T @ (g + mu * W.ravel()),
            lift.T @ (H + mu * np.eye(len(H))) @ lift,
        )

    shape = PENALTIES[penalty](len(tie.K))[1]
    # One map from all free weights to each output's z; the intercept is in none.
    K = [
        np.pad(tie.K, ((0, 0), (k * free, size - tie.K.shape[1] - k * free)))
        for k in range(fit.outputs)
    ]
    if penalty == "nuclear" and fit.outputs > 1:
        q = least_nuclear(smooth, K, size)
    else:
        squares = sum(k.T @ (np.full(len(k), shape.square)[:, None] * k) for k in K)

        def with_squares(q):
            f, g, H = smooth(q)
            return f + q @ squares @ q / 2, g + squares @ q, H + squares

        q = cone_program(shape, K, size).solve(with_squares, size)[:size]
    W = (lift @ q).reshape(fit.outputs, D + 1)
    return objective(loss, penalty, tie, W, mu), W


def least_nuclear(smooth, K, size):
    """Nuclear norm of several outputs, smoothed: sigma becomes sqrt(sigma^2 + width^2), an error of
    at most 3 A width.
    """
    q = np.zeros(size)

    def value(q, width):
        Z = np.stack([k @ q for k in K])
        eigenvalues, U = np.linalg.eigh(Z @ Z.T + width**2 * np.eye(len(Z)))
        f, g, _ = smooth(q)
        slope = (U / np.sqrt(eigenvalues)) @ U.T @ Z
        return f + A * np.sqrt(eigenvalues).sum(), g + A * sum(
            k.T @ row for k, row in zip(K, slope, strict=True)
        )

    for width in 10.0 ** np.arange(-1, -7, -1):
        q = minimize(
            value, q, (width,), method="BFGS", jac=True, options={"gtol": 1e-9, "maxiter": 2000}
        ).x
    return q


def objective(loss, penalty, tie, W, mu=0.0):
    """Reference objective: mean loss, penalty and half the square; infinite if a constraint is
    violated.
    """
    fit, tie = LOSSES[loss], tie if isinstance(tie, Tie) else TIES[tie]
    shape = PENALTIES[penalty](len(tie.K))[1]
    q = np.linalg.lstsq(tie.E, W[:, :D].T, rcond=None)[0].T
    if np.abs(q @ tie.E.T - W[:, :D]).max() > TOLERANCE:
        return math.inf
    z = q @ tie.K.T
    nuclear = penalty == "nuclear"
    penalised = (
        A * np.linalg.svd(z, compute_uv=False).sum()
        if nuclear
        else sum(shape.value(row) for row in z)
    )
    return fit.smooth(W)[0] + penalised + mu / 2 * (W**2).sum()


def problem_of(loss, penalty, tie):
    fit, tie = LOSSES[loss], TIES[tie]
    made = PENALTIES[penalty](len(tie.K))[0]
    plain = problem_for(fit.rows[0], fit.loss, fit.outputs)
    return replace(plain, penalty=made, constraint=tie.constraint)


def found_by(solver, loss, penalty, tie="no constraint"):
    """Weights that a solver returns at epsilon = inf; one row for each output."""
    fit, problem = LOSSES[loss], problem_of(loss, penalty, tie)
    chosen = solver_from(solver, problem, OPEN)
    return np.atleast_2d(without_noise(chosen, problem, *fit.rows))


def gap_within(budgets, make, loss, penalty, tie="no constraint"):
    """Excess of a solver's objective over the optimum, with increasing numbers of steps until it
    converges.
    """
    best = optimum(loss, penalty, tie)[0]
    for steps in budgets:
        gap = objective(loss, penalty, tie, found_by(make(steps), loss, penalty, tie)) - best
        if abs(gap) <= TOLERANCE:
            break
    return gap


# Every ADMM solver for a number of steps. Each must converge within the last number.
FREE = {
    "ss-admm": (lambda steps: SSADMM(steps=steps), (150, 1000)),
    "mp-admm": (lambda steps: MPADMM(steps=steps), (150, 1000)),
    "mp-admm, published": (lambda steps: MPADMM(steps=steps, form="published"), (150, 1000)),
    "mp-admm, multi-step": (
        lambda steps: MPADMM(steps=steps // 5, form="multi-step", inner=5),
        (150, 1000),
    ),
    "dpsc": (lambda rounds: DPSC(steps=rounds), (30, 200)),
}
TIED = {
    "dp-sadmm": (lambda steps: DPSADMM(steps=steps, average_last=0.0), (150, 600, 4000)),
    "dp-vradmm": (
        lambda steps: DPVRADMM(epochs=steps // 25, inner_steps=25, average_last=0.0),
        (150, 600, 8000),
    ),
}
over_losses = pytest.mark.parametrize("loss", LOSSES)
over_penalties = pytest.mark.parametrize("penalty", PENALTIES)


@pytest.mark.parametrize(("make", "budgets"), FREE.values(), ids=FREE)
@over_penalties
@over_losses
def test_the_optimum_of_penalised_weights_is_reached(make, budgets, loss, penalty):
    assert abs(gap_within(budgets, make, loss, penalty)) <= TOLERANCE


def _tied():
    """Every loss with every penalty and constraint; daily each pair of loss and penalty has one
    constraint, in turn.
    """
    for i, loss in enumerate(LOSSES):
        for j, penalty in enumerate(PENALTIES):
            for k, tie in enumerate(TIES):
                daily = (i + j) % len(TIES) == k
                marks = () if daily else pytest.mark.slow
                yield pytest.param(loss, penalty, tie, id=f"{loss}-{penalty}-{tie}", marks=marks)


@pytest.mark.parametrize(("make", "budgets"), TIED.values(), ids=TIED)
@pytest.mark.parametrize(("loss", "penalty", "tie"), list(_tied()))
def test_the_optimum_under_every_constraint_is_reached(make, budgets, loss, penalty, tie):
    assert abs(gap_within(budgets, make, loss, penalty, tie)) <= TOLERANCE


@over_penalties
@over_losses
def test_objective_perturbation_minimises_its_own_objective(loss, penalty):
    """It has the additional term mu / 2 times the squared norm, intercepts included."""
    mu = 0.01
    best, at = optimum(loss, penalty, "no constraint", mu)
    found = found_by(ObjectivePerturbation(mu=mu), loss, penalty)
    assert objective(loss, penalty, "no constraint", found, mu) == pytest.approx(
        best, abs=TOLERANCE
    )
    np.testing.assert_allclose(found, at, atol=1e-3)  # strongly convex: the minimiser is unique


@pytest.mark.parametrize("tie", ["no constraint", "identity"])
@over_losses
@pytest.mark.parametrize(
    "make",
    [
        lambda ridge: DPSADMM(steps=2000, ridge=ridge, average_last=0.0),
        lambda ridge: DPSADMM(steps=2000, ridge=ridge, schedule="strongly-convex", hold_first=0.7),
        lambda ridge: DPVRADMM(epochs=60, inner_steps=25, ridge=ridge, strongly_convex=True),
        lambda ridge: DPVRADMM(
            epochs=60, inner_steps=25, ridge=ridge, average_last=0.0, sampling=PoissonBatch(0.3)
        ),
    ],
    ids=[
        "dp-sadmm",
        "dp-sadmm, strongly convex",
        "dp-vradmm, strongly convex",
        "dp-vradmm, batches",
    ],
)
def test_a_ridge_and_a_lasso_are_an_elastic_net(make, loss, tie):
    """L1 of weight 0.4 A in the penalty and a ridge of 0.6 A in the solver are ElasticNet(A,
    0.4).
    """
    fit = LOSSES[loss]
    problem = replace(problem_of(loss, "l1", tie), penalty=L1(0.4 * A))
    solver = solver_from(make(0.6 * A), problem, OPEN)
    w = np.atleast_2d(without_noise(solver, problem, *fit.rows))
    best, at = optimum(loss, "elastic net", "no constraint")
    assert objective(loss, "elastic net", "no constraint", w) == pytest.approx(best, abs=TOLERANCE)
    if fit.outputs == 1:
        np.testing.assert_allclose(w, at, atol=1e-3)


@pytest.mark.parametrize(
    "solver",
    [
        SSADMM(steps=250, clip=0.2),
        DPSADMM(steps=250, sampling=PoissonBatch(0.3)),
        DPVRADMM(epochs=10, clip=0.2),
    ],
    ids=["clipped", "batches", "variance reduced, clipped"],
)
def test_a_clip_or_a_batch_that_was_asked_for_is_kept_and_misses_the_optimum(solver):
    """It also shows that the reference detects a difference."""
    assert (
        objective("logistic", "l1", "no constraint", found_by(solver, "logistic", "l1"))
        > TOLERANCE + optimum("logistic", "l1", "no constraint")[0]
    )


# scikit-learn, on records without an intercept ----------------------------------------------------

SKLEARN = {
    "lasso": ("squared", L1(A), Lasso(A, fit_intercept=False, tol=1e-12)),
    "ridge": ("squared", ScaledL2(A), Ridge(N * A, fit_intercept=False, tol=1e-12)),
    "elastic net": (
        "squared",
        ElasticNet(A, 0.4),
        SklearnElasticNet(A, l1_ratio=0.4, fit_intercept=False, tol=1e-12),
    ),
    "logistic, l1": (
        "logistic",
        L1(A),
        LogisticRegression(
            C=1 / (N * A),
            l1_ratio=1.0,
            solver="saga",
            fit_intercept=False,
            tol=1e-11,
            max_iter=100_000,
        ),
    ),
    "logistic, l2": (
        "logistic",
        ScaledL2(A),
        LogisticRegression(C=1 / (N * A), solver="newton-cholesky", fit_intercept=False, tol=1e-12),
    ),
    "logistic, elastic net": (
        "logistic",
        ElasticNet(A, 0.4),
        LogisticRegression(
            C=1 / (N * A),
            l1_ratio=0.4,
            solver="saga",
            fit_intercept=False,
            tol=1e-11,
            max_iter=100_000,
        ),
    ),
    "softmax, l2": (
        "softmax",
        ScaledL2(A),
        LogisticRegression(C=1 / (N * A), solver="newton-cholesky", fit_intercept=False, tol=1e-12),
    ),
}
ADMM = [
    SSADMM(steps=1500),
    MPADMM(steps=1500),
    MPADMM(steps=300, form="multi-step"),
    DPSADMM(steps=1500, average_last=0.0),
    DPVRADMM(epochs=80, inner_steps=40, average_last=0.0),
    DPSC(steps=300),
]


@pytest.mark.parametrize(
    "solver", ADMM, ids=lambda solver: f"{type(solver).__name__} {getattr(solver, 'form', '')}"
)
@pytest.mark.parametrize(("loss", "penalty", "theirs"), SKLEARN.values(), ids=SKLEARN)
def test_weights_are_those_of_scikit_learn(loss, penalty, theirs, solver):
    fit = LOSSES[loss]
    X, y = fit.rows
    # Squared loss without clipped slopes, as in scikit-learn.
    ours = Squared(100.0) if loss == "squared" else fit.loss
    problem = problem_for(X, ours, fit.outputs, fit_intercept=False, penalty=penalty)
    chosen = solver_from(solver, problem, OPEN)
    w = without_noise(chosen, problem, X, y)
    np.testing.assert_allclose(
        np.atleast_2d(w), np.atleast_2d(theirs.fit(records_of(X, False), y).coef_), atol=TOLERANCE
    )


# Penalties that are not convex: stationary points -------------------------------------------------

FOLDED = [SCAD(0.05), MCP(0.05), LHalf(0.03), Lq(0.03, 0.7)]


def stationarity_residual(loss, penalty, W):
    """Length of a proximal step from ``W`` with the reference gradient: 0 if stationary."""
    fit = LOSSES[loss]
    step = 1 / fit.loss.smoothness
    moved = W - step * fit.smooth(W)[1].reshape(W.shape)
    moved[:, :D] = penalty.prox(moved[:, :D], step)
    return np.abs(moved - W).max()


@pytest.mark.parametrize(
    "solver",
    [SSADMM(steps=1500), MPADMM(steps=1500), DPSC(steps=500, c=0.3)],
    ids=lambda solver: type(solver).__name__,
)
@pytest.mark.parametrize("penalty", FOLDED, ids=repr)
@over_losses
def test_without_convexity_solvers_come_to_rest_where_the_objective_does(solver, penalty, loss):
    fit = LOSSES[loss]
    problem = replace(problem_of(loss, "none", "no constraint"), penalty=penalty)
    chosen = solver_from(solver, problem, OPEN)
    W = np.atleast_2d(without_noise(chosen, problem, *fit.rows))
    assert stationarity_residual(loss, penalty, W) <= TOLERANCE
    assert stationarity_residual(loss, penalty, W + 0.1) > 1e-3


@pytest.mark.parametrize("penalty", FOLDED[:2], ids=repr)
@over_losses
def test_stages_of_objective_perturbation_end_where_the_objective_rests(penalty, loss):
    """Slopes of SCAD and MCP are finite, so each stage is tangent to the penalty itself and their
    limit is stationary.
    """
    fit = LOSSES[loss]
    problem = replace(problem_of(loss, "none", "no constraint"), penalty=penalty)
    mu = 0.01
    chosen = ObjectivePerturbation(mu=mu, stages=25)
    W = np.atleast_2d(without_noise(chosen, problem, *fit.rows))
    step = 1 / (fit.loss.smoothness + mu)
    moved = W - step * (fit.smooth(W)[1].reshape(W.shape) + mu * W)
    moved[:, :D] = penalty.prox(moved[:, :D], step)
    np.testing.assert_allclose(moved, W, atol=TOLERANCE)


# Fits without privacy -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made", [SSADMM(), MPADMM(), DPSADMM(), DPVRADMM()], ids=lambda solver: type(solver).__name__
)
def test_without_privacy_nothing_is_clipped_and_every_row_counts(made):
    for loss in LOSSES:
        problem = problem_of(loss, "l1", "no constraint")
        chosen = solver_from(made, problem, OPEN)
        assert chosen.clip == LOSSES[loss].loss.slope_bound
        assert all(part.sampling == FullBatch() for part in chosen.plan(problem).parts)
        # With privacy, or with explicit settings, nothing changes.
        assert solver_from(made, problem, Budget(1.0, 1e-6)) == made
        assert solver_from(replace(made, clip=0.2), problem, OPEN).clip == 0.2
    if hasattr(made, "sampling"):
        batches = replace(made, sampling=FixedSizeBatch(7))
        assert solver_from(batches, problem, OPEN).sampling == FixedSizeBatch(7)


def test_automatic_settings_are_the_usual_ones():
    problem = problem_of("logistic", "l1", "no constraint")
    for made in (SSADMM(), MPADMM(), DPSADMM(), DPVRADMM()):
        given = (
            {"clip": 0.5}
            if isinstance(made, MPADMM)
            else {"clip": 0.5, "sampling": made.plan(problem).parts[-1].sampling}
        )
        source = source_of(*LOSSES["logistic"].rows)
        plain, explicit = (
            run(s, problem, curator_over(source, s.plan(problem), 1.0)).w
            for s in (made, replace(made, **given))
        )
        np.testing.assert_array_equal(plain, explicit)
    assert (
        DPSADMM().plan(problem).parts[0].sampling
        == DPVRADMM().plan(problem).parts[1].sampling
        == PoissonBatch(0.1)
    )


@pytest.mark.parametrize("solver", ["ss-admm", "mp-admm", "dp-sadmm", "dp-vradmm", "objective"])
def test_estimators_without_privacy_come_close_by_name_alone(solver):
    """The default number of steps is for private fits; it ends close to the optimum, and more steps
    converge to it.
    """
    X, y = LOSSES["logistic"].rows
    model = PrivateLogisticRegression(
        epsilon=math.inf, penalty="l1", alpha=A, solver=solver, classes=[-1, 1]
    ).fit(X, y)
    W = np.column_stack([model.coef_, model.intercept_])
    best = optimum("logistic", "l1", "no constraint")[0]
    assert objective("logistic", "l1", "no constraint", W) <= best + (
        TOLERANCE if solver == "objective" else 1e-5
    )


@pytest.mark.parametrize("admm", ["dp-sadmm", "dp-vradmm"])
def test_the_graph_estimator_without_privacy_comes_close_by_name_alone(admm):
    X, y = LOSSES["logistic"].rows
    model = PrivateGraphLogisticRegression(
        graph=EDGES, epsilon=math.inf, alpha=A, admm=admm, classes=[-1, 1]
    ).fit(X, y)
    plain = Tie(None, np.vstack([np.eye(D)[j] - np.eye(D)[i] for i, j in EDGES] + [np.eye(D)]))
    W = np.column_stack([model.coef_, model.intercept_])
    wide = PrivateGraphLogisticRegression(
        graph=EDGES,
        epsilon=math.inf,
        alpha=A,
        admm=DPSADMM(steps=3000, average_last=0.0),
        classes=[-1, 1],
    ).fit(X, y)
    best = objective("logistic", "l1", plain, np.column_stack([wide.coef_, wide.intercept_]))
    assert objective("logistic", "l1", plain, W) <= best + 1e-4
