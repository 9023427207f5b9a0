"""The papers' own experiments with private ADMM, compared at equal budget with proximal gradient
descent and with ``auto``.

python -m benchmarks.papers [--only adult simulated ...] [--full] [--draws 5] [--docs]

Every table has one adjacency relation, replace-one, and one delta, the paper's. Settings are the
defaults, chosen without any of these rows. The claim of a paper is quoted above its table; the
comparison is below it. Finished draws are kept in ``benchmarks/results/papers.jsonl``, so that a
run can be stopped and continued; tables and figures are made from them. After a change of a solver
delete the lines that it concerns.
"""

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from benchmarks import sets
from benchmarks._kept import counted, keep, kept
from benchmarks._report import OUT, ROOT, markdown, publish, write_between
from benchmarks.accuracy import ADJACENCY, progress, unit_rows
from hushfit import PrivateLinearSVC, PrivateLogisticRegression
from hushfit.constraints import graph
from hushfit.datasets import make_sparse_classification
from hushfit.errors import InsecureNoiseWarning, WeakGuaranteeWarning
from hushfit.losses import HuberHinge, Logistic
from hushfit.penalties import L1, LHalf
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, FullBatch, Plan, PoissonBatch, primal_step
from hushfit.release.curator import Curator
from hushfit.solvers import (
    DPSADMM,
    DPSC,
    DPVRADMM,
    MPADMM,
    SSADMM,
    ExactMinimiser,
    Iterate,
    ObjectivePerturbation,
    PrivateGraph,
    ProximalGradient,
    PublicGraph,
)
from hushfit.solvers.admm._admm_steps import AdmmSteps
from hushfit.solvers.wrappers._private_graph import graph_of_moment
from hushfit.support_recovery import coverage, ranked, zeroed_counts

PROX, AUTO = "proximal gradient", "auto"


@dataclass(frozen=True)
class ProxTwin:
    """Plain proximal gradient with the number of steps and the step size of ssADMM: the remaining
    difference is ADMM itself.
    """

    steps: int = 500
    clip: float = 0.5

    def _prox(self, problem: Problem, curator: Curator) -> ProximalGradient:
        query = ClippedGradient(problem, np.zeros(problem.shape), self.clip)
        noise = (
            curator.noise_multiplier("gradient")
            * query.sensitivity(problem.relation)
            / problem.n_units
        )
        chosen = AdmmSteps.for_noise(noise, self.steps, problem)
        return ProximalGradient(self.steps, self.clip, 0.0, primal_step(chosen.eta, chosen.rho))

    takes_constraint = False

    def plan(self, problem: Problem) -> Plan:
        return ProximalGradient(self.steps, self.clip, 0.0).plan(problem)

    def iterates(self, problem: Problem, curator: Curator) -> Iterator[Iterate]:
        return self._prox(problem, curator).iterates(problem, curator)


TWIN = "prox, ssADMM's steps"
LONG = "prox, 400 plain steps"
BASELINES: dict[str, Any] = {
    AUTO: "auto",
    PROX: ProximalGradient(),
    LONG: ProximalGradient(steps=400, momentum=0.0, average_last=0.25),
    TWIN: ProxTwin(),
}
# z is a copy of the weights in all of these: the constraint x = z.
ADMM: dict[str, Any] = {
    "ssADMM, all rows": SSADMM(),
    "ssADMM, Poisson": SSADMM(sampling=PoissonBatch(0.05)),
    "mpADMM, noise on x": MPADMM(),
    "mpADMM, published": MPADMM(form="published"),
    "DP-SADMM": DPSADMM(),
    "DP-VRADMM": DPVRADMM(),
    "objective": ObjectivePerturbation(),
    "DPSC": DPSC(),
}
SLOW: dict[str, Any] = {
    "mpADMM, multi-step": MPADMM(form="multi-step")
}  # only on few rows, or in a full run
LOSSES = {PrivateLogisticRegression: Logistic(), PrivateLinearSVC: HuberHinge()}
DOCS = ROOT / "docs" / "figures"
PAGE = ROOT / "docs" / "benchmarks-texts.md"
TIE = 0.003
KEPT = Path(__file__).parent / "results" / "papers.jsonl"
GRAPHS = KEPT.with_name("papers-graphs.jsonl")
NON_PRIVATE = "without privacy"
_MOSTLY_ZERO = 0.2


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to fit, rows to score, and, in a simulation, the true coefficients."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    truth: np.ndarray | None = None

    @cached_property
    def fitted_rows(self) -> Any:
        """X, in sparse form where that is faster: the weights are the same to the last bit."""
        return csr_array(self.X) if np.mean(self.X != 0) < _MOSTLY_ZERO else self.X


@dataclass(frozen=True)
class Row:
    """One solver on one case at one epsilon, over noise draws; ``error`` is the standard error
    of the accuracy.
    """

    case: str
    epsilon: float
    solver: str
    draws: int
    accuracy: float
    error: float
    excess: float
    zeros: float
    extra: dict[str, float]


@dataclass(frozen=True, eq=False)
class Case:
    """A data set with a penalty: one table of an experiment."""

    name: str
    split: Callable[[int], Split]  # function of the index of the draw
    alpha: float
    delta: float
    solvers: dict[str, Any]
    epsilons: tuple[float, ...]
    estimator: Any = PrivateLogisticRegression
    penalty: Any = None  # L1 unless given
    map: Any = None  # A, where the penalty is of A w
    ridge: float = 0.0

    def objective(self, split: Split, w: np.ndarray) -> float:
        """Mean loss on the fitted rows plus penalty, the intercept not penalised."""
        signed = np.where(split.y == 1, 1.0, -1.0)
        loss = float(LOSSES[self.estimator].value(unit_rows(split.X) @ w, signed).mean())
        seen = w[:-1] if self.map is None else self.map @ w[:-1]
        return loss + self._penalty.value(seen) + self.ridge / 2 * float(w[:-1] @ w[:-1])

    def fit(self, split: Split, solver: Any, epsilon: float, seed: int) -> np.ndarray:
        """Weights and intercept, in the units of the records."""
        model = self.estimator(
            epsilon=epsilon,
            delta=self.delta,
            adjacency=ADJACENCY,
            penalty=self._penalty,
            solver=solver,
            classes=sets.CLASSES,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureNoiseWarning)
            warnings.simplefilter(
                "ignore", WeakGuaranteeWarning
            )  # a paper's delta may be above 1/n, as the text states
            model.fit(split.fitted_rows, split.y)
        return np.append(model.coef_[0], model.intercept_)

    def least(self, split: Split) -> float:
        """The objective of the non-private fit; NaN for a penalty that is not convex."""
        if not self._penalty.convex:
            return math.nan
        solver = ExactMinimiser(tolerance=1e-6, most_steps=2_000)
        if self.map is not None or self.ridge:
            plain = DPSADMM(steps=3_000, clip=1.0, sampling=FullBatch(), ridge=self.ridge)
            guided = [s for s in self.solvers.values() if isinstance(s, PublicGraph)]
            solver = replace(guided[0], solver=plain) if guided else plain
        return self.objective(split, self.fit(split, solver, math.inf, 0))

    @property
    def _penalty(self) -> Any:
        return L1(self.alpha) if self.penalty is None else self.penalty


def accuracy_of(w: np.ndarray, split: Split) -> float:
    return float(np.mean((unit_rows(split.X_test) @ w > 0) == (split.y_test == 1)))


def selection_of(w: np.ndarray, split: Split) -> dict[str, float]:
    """Coverage and zero counts, where the truth is known."""
    if split.truth is None:
        return {}
    support, counts = np.flatnonzero(split.truth), zeroed_counts(w[:-1], split.truth)
    return {
        "xi": coverage(ranked(w[:-1]), support, len(support)),
        "CAN": float(counts.correct),
        "ICAN": float(counts.incorrect),
    }


def outcome_of(case: Case, split: Split, w: np.ndarray) -> dict[str, float]:
    """What is kept of one fit."""
    return {
        "accuracy": accuracy_of(w, split),
        "objective": case.objective(split, w),
        "zeros": float(np.mean(w[:-1] == 0)),
        **selection_of(w, split),
    }


def measure(name: str, case: Case, draw: int, stop: float) -> None:
    """Every solver at every epsilon that has not been drawn yet; all share the rows of a draw."""
    done = kept(KEPT)

    @cache
    def split() -> Split:
        return case.split(draw)

    def once(cell: str, found: Callable[[], dict[str, float]]) -> None:
        if draw not in done.get(cell, {}) and time.monotonic() < stop:
            keep(KEPT, cell, draw, {key: round(value, 6) for key, value in found().items()})

    for epsilon, (solver, made) in product(case.epsilons, case.solvers.items()):
        once(
            cell_of(name, case, solver, epsilon),
            lambda epsilon=epsilon, made=made: outcome_of(
                case, split(), case.fit(split(), made, epsilon, 100 + draw)
            ),
        )
    once(cell_of(name, case, NON_PRIVATE), lambda: {"objective": case.least(split())})


def cell_of(name: str, case: Case, solver: str, epsilon: float = math.inf) -> str:
    return f"{name}: {case.name}: {solver}: {epsilon:g}"


Found = Mapping[str, Mapping[int, Mapping[str, float]]]


def rows_of(name: str, case: Case, found: Found) -> list[Row]:
    """Means over the draws that were kept; a cell without any is left out."""
    least = found.get(cell_of(name, case, NON_PRIVATE), {})
    rows = []
    for epsilon, solver in product(case.epsilons, case.solvers):
        outcomes = found.get(cell_of(name, case, solver, epsilon), {})
        if not outcomes:
            continue

        def mean(key: str, outcomes: Any = outcomes) -> float:
            return float(np.mean([outcome[key] for outcome in outcomes.values()]))

        scores = [outcome["accuracy"] for outcome in outcomes.values()]
        excess = [
            outcome["objective"] - least[draw]["objective"]
            for draw, outcome in outcomes.items()
            if draw in least
        ]
        rows.append(
            Row(
                case.name,
                epsilon,
                solver,
                len(outcomes),
                mean("accuracy"),
                float(np.std(scores, ddof=1) / math.sqrt(len(scores)))
                if len(scores) > 1
                else math.nan,
                float(np.mean(excess)) if excess else math.nan,
                mean("zeros"),
                {key: mean(key) for key in ("xi", "CAN", "ICAN") if key in outcomes[min(outcomes)]},
            )
        )
    return rows


# ---------------------------------------------------------------- data


def halves(name: str, share: float, most: int | None = None) -> Callable[[int], Split]:
    """A random split of a real set, one for each draw; ``share`` of the rows are
    fitted.
    """

    def split(draw: int) -> Split:
        X, y = sets.load(name)
        order = np.random.default_rng(draw).permutation(len(X))[:most]
        cut = round(share * len(order))
        return Split(X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]])

    return split


def simulated_rows(design: str, n_rows: int, n_test: int) -> Callable[[int], Split]:
    def split(draw: int) -> Split:
        S = make_sparse_classification(design, n_rows=n_rows + n_test, random_state=draw)
        y = (S.y > 0).astype(int)
        return Split(S.X[:n_rows], y[:n_rows], S.X[n_rows:], y[n_rows:], S.coef)

    return split


SIDE = 10


def grid_edges() -> np.ndarray:
    """Neighbours in a square of columns: a public graph."""
    cell = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    across = np.column_stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()])
    return np.concatenate([across, np.column_stack([cell[:-1].ravel(), cell[1:].ravel()])])


def patches(draw: int) -> Split:
    """100 columns on a square; the weights are constant on two patches and zero elsewhere."""
    rng = np.random.default_rng(draw)
    X, weights = rng.standard_normal((12_000, SIDE * SIDE)), np.zeros((SIDE, SIDE))
    weights[1:5, 1:5], weights[6:9, 5:9] = 1.0, -1.0
    y = (rng.random(len(X)) < expit(X @ weights.ravel())).astype(int)
    return Split(X[:10_000], y[:10_000], X[10_000:], y[10_000:], weights.ravel())


def graph_of_rows(name: str, rows: Callable[[int], Split]) -> tuple[np.ndarray, np.ndarray]:
    """Edges and signs from the rows without noise, as in the paper; not private.

    They are kept: where columns are dependent, a few edges change with the rounding of the machine.
    """
    if name not in kept(GRAPHS):
        records = unit_rows(rows(0).X)
        found = graph_of_moment(records.T @ records / len(records), 0.0, has_constant=True)
        keep(GRAPHS, name, 0, [found.edges.tolist(), found.signs.tolist()])
    edges, signs = kept(GRAPHS)[name][0]
    return np.array(edges), np.array(signs)


# ---------------------------------------------------------------- experiments


@dataclass(frozen=True, eq=False)
class Experiment:
    """One section of one paper: its claim, its cases, and the additional columns of its tables."""

    title: str
    claim: str
    cases: list[Case]
    extra: tuple[str, ...] = ()
    note: str = ""


def present(names: Iterable[str]) -> list[str]:
    """The available sets; missing ones are reported."""
    reasons = {name: sets.missing(name) for name in names}
    for reason in filter(None, reasons.values()):
        print(reason, file=sys.stderr, flush=True)
    return [name for name, reason in reasons.items() if not reason]


def adult(full: bool) -> Experiment:
    epsilons = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6) if full else (0.05, 0.2, 0.8)
    solvers = BASELINES | ADMM | (SLOW if full else {})
    kinds = [(PrivateLogisticRegression, "logistic"), (PrivateLinearSVC, "huber SVM")]
    cases = [
        Case(
            f"{kind}, {alpha:g}" if name == "a9a" else f"{name}: {kind}, {alpha:g}",
            halves(name, 0.8),
            alpha,
            1e-8,
            solvers,
            epsilons,
            estimator,
        )
        for name in present(["a9a", "ipums_br"])
        for estimator, kind in kinds
        for alpha in (1e-4, 1e-3)
        if full or (kind, alpha) != ("huber SVM", 1e-3)
    ]
    claim = (
        "ssADMM has the best accuracy in most cases at small epsilon, ahead of DP-SGD with a prox "
        "step; mpADMM's objective is below DP-SGD's."
    )
    note = "The paper prints its epsilons in figures only; these span its 'high privacy' range."
    return Experiment("Adult, L1 (papers 000 and 002, chapter 4)", claim, cases, note=note)


def simulated(full: bool) -> Experiment:
    epsilons = (0.05, 0.1, 0.2, 0.4, 0.8) if full else (0.05, 0.2, 0.8)
    alphas = (1e-4, 1e-3) if full else (1e-3,)
    rows = simulated_rows("correlated", 36_000, 4_000)
    cases = [Case(f"simulated, {a:g}", rows, a, 1e-8, BASELINES | ADMM, epsilons) for a in alphas]
    claim = (
        "ssADMM, mpADMM and DP-SGD classify alike; mpADMM finds more of the relevant columns, most "
        "of all at small epsilon."
    )
    return Experiment("Simulated columns (papers 000 and 002, chapter 4)", claim, cases, ("xi",))


def sparse(full: bool) -> Experiment:
    epsilons = (0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0) if full else (0.1, 1.0, 4.0)
    paper = {"DPSC, K=100, c=2.5": DPSC(steps=100, c=2.5)} if full else {}
    rows = simulated_rows("threshold", 10_000, 1_000)
    half = {
        name: (BASELINES | ADMM)[name]
        for name in ("ssADMM, all rows", "mpADMM, noise on x", "objective", "DPSC")
    }
    cases = [
        Case("L1", rows, 1e-3, 1e-6, BASELINES | ADMM | SLOW | paper, epsilons),
        Case("L1/2", rows, 1e-3, 1e-6, half | paper, epsilons, penalty=LHalf(1e-3)),
    ]
    claim = (
        "Error falls and correctly found zeros (C.A.N.) rise with epsilon; L1/2 is sparser than "
        "L1. Claimed at pure epsilon."
    )
    note = "delta is 1e-6 here. The paper tunes lambda on the rows, which leaks; here it is 1e-3."
    return Experiment("Sparse logistic regression (paper 003)", claim, cases, ("CAN", "ICAN"), note)


def kddcup(full: bool) -> Experiment:
    epsilons = (0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0) if full else (0.1, 1.0, 3.0)
    rows = halves("kddcup99", 0.8, most=60_000)
    cases = [
        Case("kddcup99", rows, 1e-4, 1e-6, BASELINES | ADMM, epsilons)
        for _ in present(["kddcup99"])
    ]
    return Experiment(
        "KDDCup99 (paper 003)",
        "The error of DPLL and DPLH falls as epsilon grows; fit for real data.",
        cases,
    )


# Training rows of Table II are half of each set; lambda_1 and lambda_2 are its own.
GUIDED = {"covtype": (1e-4, 1e-4), "w8a": (1e-4, 1e-5), "mushrooms": (1e-5, 1e-5)}


def _guided_cases(full: bool, convex: bool) -> list[Case]:
    epsilons = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0) if full else (0.05, 0.2, 1.0)
    cases = []
    for name in present(GUIDED):
        alpha, ridge = GUIDED[name]
        ridge = 0.0 if convex else ridge
        rows = halves(name, 0.5)
        edges, signs = graph_of_rows(name, rows)
        A = graph(edges, rows(0).X.shape[1], signs, with_identity=True).A

        def guided(solver: Any, edges: Any = edges, signs: Any = signs) -> PublicGraph:
            return PublicGraph(solver, edges, signs)

        solvers = BASELINES | {
            "DP-SADMM": guided(DPSADMM(ridge=ridge)),
            "DP-VRADMM": guided(DPVRADMM(ridge=ridge)),
            "DP-SADMM, private graph": PrivateGraph(DPSADMM(ridge=ridge)),
        }
        if convex:
            strengths = (2.0, 3.0) if full else (2.0,)
            solvers |= {f"DP-VRADMM, nu={nu:g}": guided(DPVRADMM(smoothing=nu)) for nu in strengths}
        else:
            solvers["DP-SADMM, 1/t steps"] = guided(
                DPSADMM(ridge=ridge, schedule="strongly-convex")
            )
        case = f"{name}, {len(edges)} edges"
        cases.append(Case(case, rows, alpha, 5e-4, solvers, epsilons, map=A, ridge=ridge))
    return cases


_GRAPH_NOTE = (
    "bio-train is not here. The graph comes from the rows without noise and counts as public, as "
    "in the paper: no release may do "
    "that, and the row 'private graph' pays for it. The baselines know no graph and fit the plain "
    "lasso; all are scored on the "
    "graph's objective. delta=5e-4 is the paper's, and above 1/n in all three sets: a weak "
    "guarantee. covtype is a sample: 50,000 rows "
    "to fit where the paper has 290,506."
)


def guided(full: bool) -> Experiment:
    claim = (
        "DP-VRADMM is much better than DP-SADMM, and smoothing with nu=2 or 3 much better than "
        "without."
    )
    return Experiment(
        "Graph-guided fused lasso (paper 004)",
        claim,
        _guided_cases(full, convex=True),
        note=_GRAPH_NOTE,
    )


def strongly(full: bool) -> Experiment:
    claim = "DP-VRADMM is significantly better than DP-SADMM for the strongly convex problem, too."
    return Experiment(
        "Graph-guided, strongly convex (paper 004)",
        claim,
        _guided_cases(full, convex=False),
        note=_GRAPH_NOTE,
    )


def lasso(full: bool) -> Experiment:
    epsilons = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0) if full else (0.05, 0.2, 1.0)
    cases = [
        Case(n, halves(n, 0.5), 1e-4, 5e-4, BASELINES | ADMM, epsilons)
        for n in present(["covtype", "mushrooms"])
    ]
    claim = "DP-VRADMM and DP-SADMM beat DP-ADMM by far, and DP-VRADMM beats all."
    return Experiment(
        "Lasso, x = z (paper 004)",
        claim,
        cases,
        note="delta=5e-4 is the paper's, above 1/n: a weak guarantee.",
    )


def square(full: bool) -> Experiment:
    epsilons = (0.1, 0.4, 1.6)
    edges = grid_edges()
    A = graph(edges, SIDE * SIDE, with_identity=True).A
    solvers = BASELINES | {
        "DP-SADMM, no graph": DPSADMM(),
        "DP-SADMM, graph": PublicGraph(DPSADMM(), edges),
        "DP-VRADMM, graph": PublicGraph(DPVRADMM(), edges),
    }
    cases = [
        Case(f"alpha {a:g}", patches, a, 1e-6, solvers, epsilons, map=A) for a in (1e-4, 1e-3, 3e-3)
    ]
    claim = (
        "(Ours, no paper's.) With a constraint that has no prox, ADMM can use what a prox "
        "step cannot."
    )
    note = (
        "Weights constant on two patches of a 10 x 10 square of columns, 10,000 rows; the square "
        "is public."
    )
    return Experiment("A general constraint: weights on a square", claim, cases, ("xi",), note)


EXPERIMENTS: dict[str, Callable[[bool], Experiment]] = {
    f.__name__: f for f in (adult, simulated, sparse, kddcup, guided, strongly, lasso, square)
}


# ---------------------------------------------------------------- tables and figures


def number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return "-" if math.isnan(value) else text[1:] if text.startswith("0.") else text


def table(case: Case, rows: Sequence[Row], extra: Sequence[str]) -> str:
    """A line for each solver: accuracy / excess objective at each epsilon, then zeros at the
    largest epsilon, and the other measures.
    """
    epsilons = sorted({row.epsilon for row in rows})
    head = [case.name, *(f"{e:g}" for e in epsilons), "zeros", *extra]
    body = []
    for solver in case.solvers:
        own = {row.epsilon: row for row in rows if row.solver == solver}
        if own:
            cells = [
                f"{number(own[e].accuracy, 4)} / {number(own[e].excess, 4)}" if e in own else "-"
                for e in epsilons
            ]
            body.append(
                [
                    solver,
                    *cells,
                    number(own[max(own)].zeros, 2),
                    *("; ".join(number(r.extra[k], 2) for r in own.values()) for k in extra),
                ]
            )
    return markdown(head, body)


def compared(rows: Sequence[Row], against: str) -> list[list[str]]:
    """Each ADMM algorithm against one proximal gradient baseline, in the same cells."""
    of_prox = {(r.case, r.epsilon): r for r in rows if r.solver == against}
    lines = []
    for solver in dict.fromkeys(r.solver for r in rows if r.solver not in BASELINES):
        pairs = [
            (r, of_prox[r.case, r.epsilon])
            for r in rows
            if r.solver == solver and (r.case, r.epsilon) in of_prox
        ]
        if pairs:
            gains = [ours.accuracy - prox.accuracy for ours, prox in pairs]
            ahead, behind = sum(g > TIE for g in gains), sum(g < -TIE for g in gains)
            lower = sum(ours.excess < prox.excess for ours, prox in pairs)
            lines.append(
                [
                    solver,
                    f"{ahead}",
                    f"{len(pairs) - ahead - behind}",
                    f"{behind}",
                    f"{np.mean(gains):+.4f}",
                    f"{lower}",
                ]
            )
    return lines


def verdicts(rows: Sequence[Row]) -> str:
    """Numbers of cells in which ADMM is ahead of or behind proximal gradient by more than a tie."""
    head = ["accuracy against", "ahead", "tie", "behind", "mean", "objective lower"]
    tables = [
        markdown([f"{head[0]} {name}", *head[1:]], compared(rows, name)) for name in (PROX, TWIN)
    ]
    return "\n\n".join(
        [f"Cells in which an algorithm is ahead or behind by more than {TIE:g}:", *tables]
    )


def ticks(epsilons: Sequence[float]) -> list[str]:
    """Labels of a logarithmic axis, without those that would overlap."""
    labels, last = [], 0.0
    for epsilon in epsilons:
        room = epsilon >= 1.5 * last
        labels.append(f"{epsilon:g}" if room else "")
        last = epsilon if room else last
    return labels


def draw_figure(experiment: Experiment, rows: Sequence[Row], path: Path) -> None:
    """Accuracy against epsilon, a panel for each case."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "hushfit"  # the same numbers make the same file
    import matplotlib.pyplot as plt

    cases = [case for case in experiment.cases if any(row.case == case.name for row in rows)]
    width = len(cases)
    # One colour for each algorithm, the same in every panel.
    ours = dict.fromkeys(
        solver for case in cases for solver in case.solvers if solver not in BASELINES
    )
    colours = {solver: f"C{k}" for k, solver in enumerate(ours)}
    figure, panels = plt.subplots(
        1, width, figsize=(1.2 + 3.0 * width, 3.4), layout="constrained", squeeze=False
    )
    for case, axes in zip(cases, panels[0], strict=True):
        for solver in case.solvers:
            own = [r for r in rows if r.case == case.name and r.solver == solver]
            if not own:
                continue
            baseline = solver in BASELINES
            style = (
                {
                    "color": "black",
                    "linestyle": {AUTO: "-", PROX: "--", LONG: ":"}.get(solver, "-."),
                }
                if baseline
                else {"color": colours[solver], "alpha": 0.8}
            )
            axes.plot(
                [r.epsilon for r in own],
                [r.accuracy for r in own],
                marker=".",
                label=solver,
                **style,
            )
        axes.set(xscale="log", xlabel="epsilon")
        axes.set_xticks(case.epsilons, ticks(case.epsilons))
        axes.minorticks_off()
        axes.set_title(case.name, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("accuracy on test rows")
    handles = {
        label: line
        for axes in panels[0]
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside right center", frameon=False, fontsize=8
    )
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def run(
    names: Sequence[str],
    full: bool = False,
    draws: int = 1,
    minutes: float = math.inf,
    docs: bool = False,
) -> list[Row]:
    """Measure what is missing, draw by draw; then print and store the tables of each experiment.
    Figures go to ``out/``, or with the tables to ``docs``.
    """
    stop = time.monotonic() + 60 * minutes
    experiments = {name: EXPERIMENTS[name](full) for name in names}
    for draw, name in product(range(draws), names):
        for k, case in enumerate(experiments[name].cases, 1):
            measure(name, case, draw, stop)
            progress(k, len(experiments[name].cases), f"{name}, draw {draw + 1}: {case.name}")
    return [row for name in names for row in report(name, EXPERIMENTS[name](True), docs)]


def report(name: str, experiment: Experiment, docs: bool) -> list[Row]:
    """The tables and the figure of one experiment, from all draws that were kept."""
    rows, text = written(name, experiment, kept(KEPT))
    if not rows:
        return []
    title = f"{experiment.title}: {ADJACENCY}, delta={experiment.cases[0].delta:g}"
    publish(f"papers-{name}", title, text, [asdict(row) for row in rows])
    draw_figure(experiment, rows, (DOCS if docs else OUT) / f"papers-{name}.svg")
    if docs:
        write_page(name)
    return rows


def written(name: str, experiment: Experiment, found: Found) -> tuple[list[Row], str]:
    """Means over the draws that were kept, and the text with their tables."""
    by_case = {case.name: rows_of(name, case, found) for case in experiment.cases}
    rows = [row for own in by_case.values() for row in own]
    if not rows:
        return [], ""
    spread = counted({row.draws for row in rows})
    errors = [row.error for row in rows if not math.isnan(row.error)]
    if errors:
        spread += f", standard errors of the accuracy up to {max(errors):.2g}"
    head = (
        f"Claim: {experiment.claim}\n\nAccuracy / objective over the non-private one; {spread}. "
        f"{experiment.note}"
    ).rstrip()
    tables = [
        table(case, by_case[case.name], experiment.extra)
        for case in experiment.cases
        if by_case[case.name]
    ]
    return rows, "\n\n".join([head, *tables, verdicts(rows)])


def write_page(name: str) -> None:
    """Put the tables of one experiment and its figure into docs/benchmarks-texts.md."""
    figure = f"\n![Accuracy against epsilon, one panel for each case](figures/papers-{name}.svg)\n"
    marks = f"<!-- papers, {name}: begin -->", f"<!-- papers, {name}: end -->"
    text = "##" + (OUT / f"papers-{name}.md").read_text() + figure
    write_between(PAGE, marks, [text])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument(
        "--full",
        action="store_true",
        help="the papers' whole grids; takes many times as long",
    )
    parser.add_argument("--draws", type=int, default=1, help="draws of rows and noise for a cell")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--docs", action="store_true", help="write tables and figures into docs")
    given = parser.parse_args()
    run(given.only, given.full, given.draws, given.minutes, given.docs)


if __name__ == "__main__":
    main()
