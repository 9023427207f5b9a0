"""Solvers release what they declared, use only the answers, and find the minimum without noise."""

import inspect
import math
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from _support import (
    LOSSES,
    RELATIONS,
    SOURCES,
    counts,
    curator_over,
    problem_for,
    records_of,
    source_of,
    table,
    three_classes,
    two_classes,
    without_noise,
)
from hushfit import solvers
from hushfit.constraints import graph
from hushfit.errors import InvalidArgument, NotConvergedWarning, UnknownName
from hushfit.losses import (
    HuberHinge,
    Logistic,
    OneVsRest,
    Poisson,
    SaturatingSquares,
    Softmax,
    Squared,
)
from hushfit.penalties import L1, Box, ElasticNet, GroupLasso, L1Ball, L2Ball, ScaledL2, Zero
from hushfit.privacy import Budget, Relation, gaussian_mu
from hushfit.release import AdaptiveRun, FixedSizeBatch, PoissonBatch
from hushfit.release.curator import Curator
from hushfit.solvers import (
    DPBLS,
    SOLVERS,
    ClassicObjective,
    Counted,
    DoubleNoiseNewton,
    DPAdam,
    ExactMinimiser,
    Finishing,
    FrankWolfe,
    HeavyBall,
    Iterate,
    PermutedSGD,
    PrivateGraph,
    ProximalGradient,
    ProxNewton,
    PublicGraph,
    Recalibrated,
    Tempered,
    WhitenedGradientDescent,
    choose_solver,
    load_checkpoint,
    run,
    solver_from,
)

TESTS = Path(__file__).parents[1]


def shortened(solver):
    """The same with fewer steps, where steps are a setting: these tests do not wait for
    convergence.
    """
    has_steps = any(field.name == "steps" for field in fields(solver))
    return replace(solver, steps=min(solver.steps or 12, 12)) if has_steps else solver


# Every solver by its name, and the variants that their settings make. A new one goes here and
# inherits the tests.
# Their features are public, so they have no proof under the relations of these tests:
# solvers/test_one_release.py, solvers/test_two_releases.py.
LABELS_ALONE = ("one-release", "two-releases")
# Their records keep their lengths: solvers/test_least_squares.py.
OWN_RECORDS = ("least-squares", "poisson")
ELSEWHERE = (*LABELS_ALONE, *OWN_RECORDS)
MADE = {
    **{name: shortened(make()) for name, make in SOLVERS.items() if name not in ELSEWHERE},
    "accelerated": ProximalGradient(steps=12, accelerated=True),
    "averaged": ProximalGradient(steps=12, momentum=0.0, average_last=0.5),
    "poisson": ProximalGradient(steps=12, sampling=PoissonBatch(0.2)),
    "fixed size": ProximalGradient(steps=12, sampling=FixedSizeBatch(50)),
    "permuted": PermutedSGD(epochs=4, batches=7, restart=2),
    "bls, all rows": DPBLS("gd", steps=12),
    "bls, own batches, gaussian": DPBLS(steps=12, batches="fresh", gate_noise="gaussian"),
    "bls, adaptive": DPBLS("ac", steps=12),
    "newton, noisy direction": DoubleNoiseNewton(steps=3, second_noise="direction"),
    "newton, second derivatives": DoubleNoiseNewton(steps=3, curvature="hessian"),
    "recalibrated": Recalibrated(WhitenedGradientDescent(steps=12)),
    "recalibrated prox-newton": Recalibrated(ProxNewton(steps=6)),
    "heavy ball": HeavyBall(steps=12),
    "recalibrated heavy ball": Recalibrated(HeavyBall(steps=12)),
    "tempered": Tempered(WhitenedGradientDescent(steps=12)),
    "tempered heavy ball": Tempered(HeavyBall(steps=12)),
    "counted": Counted(WhitenedGradientDescent(steps=12)),
    "counted proximal-gd": Counted(ProximalGradient(steps=6)),
}
PENALTIES = [
    Zero(),
    ScaledL2(0.01),
    L1(0.01),
    ElasticNet(0.01, 0.5),
    GroupLasso(0.01, ((0, 1), (2, 3))),
    Box(-1.0, 1.0),
    L2Ball(1.0),
    L1Ball(1.0),
]
PROBLEMS = {
    "logistic": (two_classes(d=4), Logistic(), 1),
    "hinge": (two_classes(d=4), HuberHinge(), 1),
    "squared": (two_classes(d=4), Squared(), 1),
    "saturating": (two_classes(d=4), SaturatingSquares(), 1),
    "poisson": (counts(d=4), Poisson(6.0), 1),
    "softmax": (three_classes(d=4), Softmax(3), 3),
    "one-vs-rest": (three_classes(d=4), OneVsRest(HuberHinge(), 3), 3),
}
over_solvers = pytest.mark.parametrize("solver", MADE.values(), ids=MADE)
over_penalties = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
over_problems = pytest.mark.parametrize(
    ("data", "loss", "outputs"), PROBLEMS.values(), ids=PROBLEMS
)


# Solvers that refuse some penalties, or more than two classes; see their own tests.
PARTICULAR = (
    WhitenedGradientDescent
    | Counted
    | Recalibrated
    | Tempered
    | DPAdam
    | FrankWolfe
    | ClassicObjective
    | DoubleNoiseNewton
)


def plan_or_none(solver, problem):
    """The plan, or None if the solver refuses the problem when planning."""
    try:
        return solver.plan(problem)
    except InvalidArgument:
        return None


def require_particular(solver, problem):
    """Only solvers that are known to be particular may refuse a problem."""
    assert isinstance(solver, PARTICULAR), (
        f"{type(solver).__name__} refuses {problem.penalty!r} with {problem.loss!r}. If it should, "
        "add it to PARTICULAR in tests/contracts/test_solvers.py and test the refusal in a file of "
        "its own."
    )


def noise_for(solver):
    """The exact minimiser takes no noise."""
    return 0.0 if isinstance(solver, ExactMinimiser) else 0.3


def test_every_solver_is_in_the_list():
    public = {
        name
        for name, kind in vars(solvers).items()
        if inspect.isclass(kind) and hasattr(kind, "iterates")
    }
    elsewhere = {
        "Solver",
        "Screening",
        "PublicGraph",
        "PrivateGraph",
        "OneRelease",
        "TwoReleases",
        "WhitenedLeastSquares",
        "WhitenedPoisson",
    }  # test_selection.py, test_graph.py, test_one_release.py, test_two_releases.py,
    # test_least_squares.py
    missing = public - {type(solver).__name__ for solver in MADE.values()} - elsewhere
    assert not missing, (
        f"{sorted(missing)}: name it in SOLVERS of solvers/registry.py, or add it to MADE in "
        "tests/contracts/test_solvers.py."
    )


def test_solvers_are_tried_with_every_loss():
    missing = {type(loss) for loss, _ in LOSSES} - {type(loss) for _, loss, _ in PROBLEMS.values()}
    assert not missing, (
        f"{sorted(kind.__name__ for kind in missing)}: add rows for it to PROBLEMS in "
        "tests/contracts/test_solvers.py."
    )


@over_solvers
def test_a_solver_gets_a_constraint_only_if_it_takes_one(solver):
    """If it takes one, the constraint changes the weights; if not, it is refused before anything is
    charged.
    """
    X, y = two_classes(n=120, d=4)
    free = problem_for(X, penalty=L1(0.3))
    bound = replace(free, constraint=graph(np.array([[0, 1], [1, 2], [2, 3]]), 4))
    if not solver.takes_constraint:
        with pytest.raises(InvalidArgument, match=r"would ignore the constraint.*'dp-sadmm'"):
            solver_from(solver, bound, Budget(math.inf, 1e-6))
        return
    settled = solver_from(solver, bound, Budget(math.inf, 1e-6))
    results = [without_noise(settled, problem, X, y) for problem in (free, bound)]
    assert not np.allclose(*results, atol=1e-3)


@pytest.mark.parametrize("member", ["takes_constraint", "plan", "iterates"])
def test_what_does_not_declare_a_member_is_no_solver(member):
    members = {
        name: getattr(ProximalGradient, name) for name in ("takes_constraint", "plan", "iterates")
    }
    del members[member]
    with pytest.raises(InvalidArgument, match=f"does not declare {member}"):
        solver_from(
            type("Partial", (), members)(), problem_for(np.empty((10, 2))), Budget(1.0, 1e-6)
        )


@pytest.mark.parametrize("wrapper", [PublicGraph, PrivateGraph])
def test_a_graph_is_not_given_to_a_solver_that_would_ignore_it(wrapper):
    arguments = (np.array([[0, 1]]),) if wrapper is PublicGraph else ()
    with pytest.raises(InvalidArgument, match="takes no constraint"):
        wrapper(ProximalGradient(), *arguments)


def test_a_result_is_the_average_unless_the_solver_finishes_it():
    finishing = {type(solver).__name__ for solver in MADE.values() if isinstance(solver, Finishing)}
    assert finishing == {"Counted", "DPSADMM", "DPVRADMM", "Recalibrated", "Tempered"}


@over_solvers
@over_penalties
@over_problems
def test_solver_releases_exactly_what_it_declared(solver, penalty, data, loss, outputs):
    X, y = data
    problem = problem_for(X, loss, outputs, penalty=penalty)
    plan = plan_or_none(solver, problem)
    if plan is None:
        require_particular(solver, problem)
        return
    curator = curator_over(source_of(X, y), plan, noise_for(solver))
    result = run(solver, problem, curator)
    made = Counter(released.name for released in curator.transcript)
    declared = Counter({part.name: part.count for part in plan.parts})
    if isinstance(solver, ExactMinimiser) or any(
        isinstance(part.sampling, AdaptiveRun) for part in plan.parts
    ):
        assert made <= declared  # it stops at convergence, or when its filter refuses
    else:
        assert made == declared
    assert result.w.shape == problem.shape
    assert np.isfinite(result.w).all()


@pytest.mark.parametrize("name", [name for name in SOLVERS if name not in ELSEWHERE])
def test_every_named_solver_takes_some_penalty_for_two_and_for_more_classes(name):
    kinds = ("logistic",) if name == "objective-kifer" else ("logistic", "softmax")
    for data, loss, outputs in (PROBLEMS[kind] for kind in kinds):
        problem = problem_for(data[0], loss, outputs, penalty=ScaledL2(0.1))
        assert plan_or_none(SOLVERS[name](), problem) is not None, (
            f"{name} refuses a ridge with {loss!r}: a named solver should take one, so that "
            "estimators can offer it."
        )


def classes_for(solver):
    """Loss, number of outputs and a function that draws rows: a temperature is for several
    classes.
    """
    several = isinstance(solver, Tempered)
    return (Softmax(3), 3, three_classes) if several else (Logistic(), 1, two_classes)


@over_solvers
@pytest.mark.parametrize("layout", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_same_weights(solver, layout):
    """Same noise, same random bits; only the order of additions within a margin may differ."""
    loss, outputs, drawn = classes_for(solver)
    X, y = table(300, 4), drawn(300, 4)[1]
    problem = problem_for(X, loss, outputs, penalty=ScaledL2(0.01))
    plan = solver.plan(problem)
    plain, other = (
        run(solver, problem, curator_over(source_of(rows, y), plan, noise_for(solver), seed=3)).w
        for rows in (X, layout(X))
    )
    # Curvatures are functions of the margins, and so is their rounding to the grid of the sums.
    tolerance = 1e-5 if isinstance(solver, DoubleNoiseNewton) else 1e-9
    np.testing.assert_allclose(other, plain, rtol=tolerance, atol=tolerance)


class _UnreadableSource:
    """A data source that raises on every access."""

    def __getattr__(self, name):
        raise AssertionError(f"the solver read the rows: {name}")


@over_solvers
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_weights_are_a_function_of_the_transcript(solver, relation):
    """A run without any rows, with the recorded answers, ends at the same weights bit for bit."""
    loss, outputs, drawn = classes_for(solver)
    X, y = drawn(d=4)
    problem = problem_for(X, loss, outputs, penalty=ScaledL2(0.01), relation=relation)
    plan = plan_or_none(solver, problem)
    if plan is None:
        assert solver == MADE["permuted"]  # several batches, proved for replace-one only
        assert relation is Relation.ADD_REMOVE
        return
    first = curator_over(source_of(X, y), plan, noise_for(solver), relation)
    w = run(solver, problem, first).w
    again = curator_over(
        _UnreadableSource(), plan, noise_for(solver), relation, seed=99, replay=first.transcript
    )
    np.testing.assert_array_equal(run(solver, problem, again).w, w)


class _Crash(Exception):
    """A simulated crash."""


@pytest.mark.parametrize("name", ["whitened-gd", "proximal-gd", "recalibrated"])
def test_an_interrupted_run_goes_on_where_it_stopped(name, tmp_path):
    """Answers released before the interruption are replayed, bit for bit; only the rest is
    computed.
    """
    X, y = two_classes(d=4)
    solver, problem = MADE[name], problem_for(X)
    plan, file = solver.plan(problem), tmp_path / "run"

    def stop_at_five(done):
        if done == 5:
            raise _Crash

    first = curator_over(source_of(X, y), plan, 0.3)
    with pytest.raises(_Crash):
        run(solver, problem, first, stop_at_five, checkpoint=file)
    second = curator_over(source_of(X, y), plan, 0.3, seed=1, replay=load_checkpoint(file))
    result = run(solver, problem, second, checkpoint=file)
    for before, after in zip(first.transcript, second.transcript, strict=False):
        np.testing.assert_array_equal(before.answer, after.answer)
    assert Counter(r.name for r in second.transcript) == Counter(
        {part.name: part.count for part in plan.parts}
    )
    assert np.isfinite(result.w).all()


# Zero noise finds the minimum


def objective(problem, Z, y):
    """Mean loss plus penalty, as a function of flat weights."""

    def value(flat):
        w = flat.reshape(problem.shape)
        penalty = sum(problem.penalty.value(output) for output in np.atleast_2d(problem.columns(w)))
        return float(problem.loss.value(Z @ w.T, y).mean()) + penalty

    return value


def gradient(problem, Z, y, w):
    slopes = problem.loss.slope(Z @ w.T, y)
    return slopes.T @ Z / len(Z)


@over_penalties
@over_problems
def test_exact_minimiser_stands_where_a_proximal_step_leads_nowhere(penalty, data, loss, outputs):
    """The minimiser is the fixed point of a proximal gradient step; the gradient is plain numpy,
    unclipped.
    """
    X, y = data
    problem = problem_for(X, loss, outputs, penalty=penalty)
    w = without_noise(ExactMinimiser(), problem, X, y)
    step = 1 / loss.smoothness
    moved = problem.prox(w - step * gradient(problem, records_of(X), y, w), step)
    # Without a penalty weights are large and the loss is flat; the tolerance is relative to their
    # size.
    assert np.abs(moved - w).max() <= 2e-6 * (1 + np.abs(w).max())


@pytest.mark.parametrize("penalty", [Zero(), ScaledL2(0.01)], ids=repr)
@over_problems
def test_exact_minimiser_agrees_with_scipy(penalty, data, loss, outputs):
    X, y = data
    problem, Z = problem_for(X, loss, outputs, penalty=penalty), records_of(X)
    w = without_noise(ExactMinimiser(), problem, X, y)
    value = objective(problem, Z, y)
    found = minimize(
        value, np.zeros(w.size), method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15}
    )
    assert value(w) <= found.fun + 1e-7


def exact_run(problem, X, y, **settings):
    solver = ExactMinimiser(**settings)
    return run(solver, problem, curator_over(source_of(X, y), solver.plan(problem), 0.0))


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(), Squared()], ids=repr)
def test_exact_minimiser_is_soon_there_where_it_is_hard(loss):
    """One-hot columns of which each block adds up to the intercept, and a rare value that occurs in
    one class only: the minimum is flat along some directions and at infinity along another. A
    warning would be an error.
    """
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            np.eye(6)[rng.integers(6, size=600)],
            np.eye(5)[rng.integers(5, size=600)],
            np.arange(600) < 4,
        ]
    )
    y = np.where(X @ rng.normal(size=12) + rng.logistic(size=600) > 0, 1.0, -1.0)
    y[:4] = 1.0
    problem, Z = problem_for(X, loss), records_of(X)
    found = exact_run(problem, X, y)
    assert found.steps <= 400
    assert np.abs(gradient(problem, Z, y, found.w)).max() <= 1e-7


@pytest.mark.parametrize("penalty", [Zero(), ScaledL2(1e-6), L1(1e-3)], ids=repr)
def test_exact_minimiser_says_when_it_has_not_arrived(penalty):
    X, y = two_classes()
    problem = problem_for(X, penalty=penalty)
    for most_steps in (1, 3):
        with pytest.warns(NotConvergedWarning, match=f"most_steps={most_steps}"):
            found = exact_run(problem, X, y, most_steps=most_steps)
        assert np.isfinite(found.w).all()


# Allowed excess over the minimal objective of each noisy solver with vanishing noise. Clipping
# norms are large, so that the target is the unclipped objective; the tolerances are a few times the
# measured values.
SURE = {
    "whitened-gd": (WhitenedGradientDescent(), 5e-3),
    "prox-newton": (ProxNewton(steps=200, clip=2.0), 2e-4),
    "proximal-gd": (ProximalGradient(steps=1500, clip=2.0, momentum=0.0, step_size=1.0), 2e-3),
    "accelerated": (ProximalGradient(steps=300, clip=2.0, accelerated=True), 2e-4),
    "averaged": (ProximalGradient(steps=300, clip=2.0, accelerated=True, average_last=0.2), 1e-3),
    "heavy ball": (HeavyBall(steps=600, clip=4.0), 2e-3),
}
# Where else it is shown that a solver finds the minimum without noise.
SURE_ELSEWHERE = {
    "exact": "contracts/test_solvers.py",
    "ss-admm": "contracts/test_optima.py",
    "mp-admm": "contracts/test_optima.py",
    "dpsc": "contracts/test_optima.py",
    "dp-sadmm": "contracts/test_optima.py",
    "dp-vradmm": "contracts/test_optima.py",
    "objective": "contracts/test_optima.py",
    "dp-sgd": "solvers/test_dp_sgd.py",
    "dp-adam": "solvers/test_dp_sgd.py",
    "dp-svrg": "solvers/test_dp_sgd.py",
    "newton": "solvers/test_newton.py",
    "least-squares": "solvers/test_least_squares.py",
    "poisson": "solvers/test_least_squares.py",
    "frank-wolfe": "solvers/test_frank_wolfe.py",
    "objective-kifer": "solvers/test_classic_objective.py",
    "ssp": "solvers/test_sufficient_statistics.py",
    "one-release": "solvers/test_one_release.py",
    "two-releases": "solvers/test_two_releases.py",
    "rsgd-ar": "solvers/test_permuted_sgd.py",
    "nsgd": "solvers/test_permuted_sgd.py",
    "outpert-gd": "solvers/test_permuted_sgd.py",
    "output": "solvers/test_output_perturbation.py",
    "bls": "solvers/test_line_search.py",
    "dp-agd": "solvers/test_dp_agd.py",
    "priv-gene": "solvers/test_priv_gene.py",
}


def test_every_named_solver_is_shown_to_find_the_minimum_without_noise():
    missing = set(SOLVERS) - set(SURE) - set(SURE_ELSEWHERE)
    assert not missing, (
        f"{sorted(missing)}: add the solver with loose clipping and a tolerance to SURE in "
        "tests/contracts/test_solvers.py, or the test file that shows it to SURE_ELSEWHERE."
    )
    assert all((TESTS / file).is_file() for file in SURE_ELSEWHERE.values())


def test_every_named_solver_has_a_page():
    pages = (TESTS.parent / "docs" / "algorithms").glob("*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    missing = {name for name in SOLVERS if f'"{name}"' not in text}
    assert not missing, (
        f'{sorted(missing)}: write docs/algorithms/mine.md with solver="mine" in its title, and '
        "list it in docs/algorithms/index.md."
    )


@pytest.mark.parametrize(("solver", "tolerance"), SURE.values(), ids=SURE)
@pytest.mark.parametrize(
    "penalty", [Zero(), ScaledL2(0.01), L1(0.01), GroupLasso(0.01, ((0, 1), (2, 3)))], ids=repr
)
@pytest.mark.parametrize(
    ("kind", "noise"), [("logistic", 0.0), ("logistic", 1e-7), ("softmax", 0.0)]
)
def test_vanishing_noise_finds_the_minimum(solver, tolerance, penalty, kind, noise):
    data, loss, outputs = PROBLEMS[kind]
    X, y = data
    problem = problem_for(X, loss, outputs, penalty=penalty)
    plan = plan_or_none(solver, problem)
    if plan is None:
        require_particular(solver, problem)
        return
    value = objective(problem, records_of(X), y)
    w = run(solver, problem, curator_over(source_of(X, y), plan, noise)).w
    least = value(without_noise(ExactMinimiser(), problem, X, y))
    assert least - 1e-7 <= value(w) <= least + tolerance


def test_recalibration_rescales_without_turning():
    """Predictions do not change; the log-loss of weights with a wrong norm is improved."""
    X, y = two_classes(n=4000)
    problem, Z = problem_for(X), records_of(X)

    class Shortened:
        """Whitened gradient descent that returns its weights divided by eight."""

        inner = WhitenedGradientDescent()

        def plan(self, problem):
            return self.inner.plan(problem)

        def iterates(self, problem, curator):
            return self.inner.iterates(problem, curator)

        def finish(self, problem, curator, average):
            return average / 8

    short, repaired = (
        run(solver, problem, curator_over(source_of(X, y), solver.plan(problem), 0.5)).w
        for solver in (Shortened(), Recalibrated(Shortened()))
    )
    factors = repaired / short
    np.testing.assert_allclose(factors, factors[0], rtol=1e-12)
    assert factors[0] > 0
    value = objective(problem, Z, y)
    least = minimize(lambda log_factor: value(np.exp(log_factor[0]) * short), [0.0]).fun
    assert value(repaired) - least < 0.2 * (value(short) - least)


def test_recalibration_says_beforehand_what_it_needs():
    problem = problem_for(np.empty((50, 4)), Softmax(3), 3)
    with pytest.raises(InvalidArgument, match="Recalibrated needs two classes"):
        Recalibrated(WhitenedGradientDescent()).plan(problem)


# An independent implementation of whitened gradient descent


class _KnownNoise:
    """Normal draws known to the test, rounded to the sampler's grid."""

    secure = False

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.drawn = []

    def gaussian(self, log2_variance, size):
        normals = self.rng.standard_normal(size)
        self.drawn.append(normals)
        return np.rint(normals * 2.0 ** (log2_variance / 2)).astype(np.int64)


def whitened_reference(Z, y, mu, a, noise, f=0.1, T=60):
    """The rule of docs/algorithms/auto.md for unit rows ``Z``, written as formulas, with given
    standard normal draws.
    """
    n, d = Z.shape
    off, on, *steps = noise
    s = (math.sqrt(2) if a == 2 else 1.0) / (mu * math.sqrt(f) * n)
    N = np.zeros((d, d))
    N[np.triu_indices(d, 1)] = off * s / math.sqrt(2)
    M = Z.T @ Z / n + N + N.T + np.diag(on) * s
    M = M - (np.trace(M) - 1) / d * np.eye(d)
    ev, U = np.linalg.eigh(M)
    edge, r = s * math.sqrt(2 * d), 0.0
    for _ in range(20):
        spikes = ev > r + edge
        r = max(1 - ev[spikes].sum(), 0) / max((~spikes).sum(), 1)
    e = np.maximum(np.maximum(ev - r - edge, 0) + max(0.3 * edge, r), 1e-5)
    for p in np.linspace(1, 0.3, 71):
        rounder = e.max() * (e / e.max()) ** p
        if (ev / rounder).sum() <= 0.9 * d:
            break
    e = rounder
    if edge > 0.25 and ev[-1] - r > 1.1 * edge:
        e[-1] /= 0.49
    A = U @ np.diag(e**-0.5) @ U.T
    D = max((ev / e).sum(), 1.0)
    nu = a * D / (mu * math.sqrt(1 - f) * n)
    beta = np.clip(0.25 * (0.02 / nu) ** 0.75, 0.25, 4)
    B, m = beta * math.sqrt(D), np.clip(0.7 * (0.02 / nu - 1), 0, 0.7)
    b, arriving = np.clip((0.06 - nu) / 0.02, 0, 1), np.clip((0.045 - nu) / 0.01, 0, 1)
    cap = B / np.linalg.norm(Z @ A, axis=1)
    sd = a * B * math.sqrt(T) / (mu * math.sqrt(1 - f) * n)
    u, V, total = np.zeros(d), np.zeros(d), np.zeros(d)
    for t in range(T):
        slope = -y * np.minimum(expit(-y * (Z @ (A @ (u + m * V)))), cap)
        g = A @ (Z.T @ slope) / n + sd * steps[t]
        first = (0.7 + 0.3 * b + 0.5 * arriving) * 0.015 / (math.sqrt(T) * nu**2) / beta
        V = m * V - min(first, min(4 / beta, 16 * (1 - m)) * (1 - t / T)) * g
        u = u + V
        total += (t + 1) * u
    return A @ (b * total / (T * (T + 1) / 2) + (1 - b) * u)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.3, 1.0, 8.0])
def test_whitened_descent_is_the_published_rule(relation, epsilon):
    """Same noise in both; they differ by rounding to grids, below 1e-5. A penalty of weight zero
    switches denoising off.
    """
    X, y = two_classes(n=3000, d=6)
    problem = problem_for(X, relation=relation, penalty=ScaledL2(1e-12))
    solver, noise = WhitenedGradientDescent(), _KnownNoise(7)
    mu = gaussian_mu(epsilon, 1e-6)
    plan = solver.plan(problem)
    multipliers = plan.multipliers(mu, problem.n_units)
    w = run(solver, problem, Curator(source_of(X, y), plan, multipliers, relation, noise, None)).w
    expected = whitened_reference(
        records_of(X), y, mu, 2 if relation is Relation.REPLACE_ONE else 1, noise.drawn
    )
    np.testing.assert_allclose(w, expected, rtol=1e-5, atol=1e-5)


# Choosing and refusing


def test_run_averages_by_weight_and_reports_every_step():
    class Counting:
        def plan(self, problem):
            raise NotImplementedError

        def iterates(self, problem, curator):
            for value, weight in ((1.0, 1.0), (5.0, 0.0), (3.0, 3.0)):
                yield Iterate(np.array([value]), weight)

    seen = []
    problem = problem_for(np.empty((10, 1)), fit_intercept=False)
    result = run(Counting(), problem, None, seen.append)
    assert result.w.tolist() == [2.5]
    assert result.steps == 3
    assert seen == [1, 2, 3]


PRIVATE, OPEN = Budget(1.0, 1e-6), Budget(math.inf, 1e-6)
CHOICES = [
    (Logistic(), 1, ScaledL2(0.1), 10, PRIVATE, WhitenedGradientDescent),
    (Logistic(), 1, Zero(), 10, PRIVATE, Recalibrated),
    (Logistic(), 1, L1(0.1), 10, PRIVATE, ProxNewton),
    (HuberHinge(), 1, ScaledL2(0.1), 10, PRIVATE, WhitenedGradientDescent),
    (Softmax(3), 3, Zero(), 10, PRIVATE, Tempered),
    (Logistic(), 1, Zero(), 3000, PRIVATE, Recalibrated),
    (Logistic(), 1, L1(0.1), 3000, PRIVATE, HeavyBall),
    (Logistic(), 1, L1(0.1), 10, OPEN, ExactMinimiser),
]


@pytest.mark.parametrize(
    ("loss", "outputs", "penalty", "d", "budget", "kind"),
    CHOICES,
    ids=lambda value: str(value)[:30],
)
def test_auto_chooses_from_public_numbers(loss, outputs, penalty, d, budget, kind):
    problem = problem_for(np.empty((100, d)), loss, outputs, penalty=penalty)
    assert isinstance(choose_solver(problem, budget), kind)
    assert solver_from("auto", problem, budget) == choose_solver(problem, budget)


@pytest.mark.parametrize(
    ("solver", "error", "words"),
    [
        ("gauss", UnknownName, "'gauss' is not known.*'auto'"),
        (17, InvalidArgument, "17 is neither"),
        ("exact", InvalidArgument, "needs epsilon=inf, not 1"),
        (ExactMinimiser(), InvalidArgument, "needs epsilon=inf, not 1"),
    ],
    ids=str,
)
def test_a_solver_that_cannot_serve_is_refused_at_once(solver, error, words):
    with pytest.raises(error, match=words):
        solver_from(solver, problem_for(np.empty((100, 4))), PRIVATE)


def test_exact_minimiser_refuses_noise():
    X, y = two_classes()
    problem = problem_for(X)
    curator = curator_over(source_of(X, y), ExactMinimiser().plan(problem), 1.0)
    with pytest.raises(InvalidArgument, match="epsilon=inf"):
        run(ExactMinimiser(), problem, curator)
    assert curator.transcript == []


def test_a_penalty_for_other_columns_is_refused_before_anything_is_asked():
    with pytest.raises(InvalidArgument, match="does not suit 2"):
        problem_for(np.empty((10, 2)), penalty=GroupLasso(0.1, ((0, 5),)))


def test_the_intercept_is_never_penalised():
    problem = problem_for(np.empty((10, 2)), Softmax(3), 3, penalty=L1(100.0))
    w = np.arange(9.0).reshape(3, 3) + 1
    moved = problem.prox(w, 1.0)
    np.testing.assert_array_equal(moved[:, 2], w[:, 2])
    np.testing.assert_array_equal(moved[:, :2], 0.0)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_each_output_is_penalised_by_itself(penalty):
    several = problem_for(np.empty((10, 4)), Softmax(3), 3, penalty=penalty)
    one = problem_for(np.empty((10, 4)), penalty=penalty)
    w = np.random.default_rng(0).normal(size=several.shape)
    np.testing.assert_array_equal(several.prox(w, 0.7), [one.prox(row, 0.7) for row in w])


@pytest.mark.parametrize(
    "settings", [{"steps": 0}, {"clip": 0.0}, {"momentum": 1.0}, {"average_last": 1.5}], ids=str
)
def test_senseless_settings_are_refused(settings):
    with pytest.raises(InvalidArgument, match="steps >= 1"):
        ProximalGradient(**settings)
