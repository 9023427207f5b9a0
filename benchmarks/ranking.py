"""The thesis' chapter 6 on MQ2008, and a simulated set of the size of MSLR-WEB30K.

python -m benchmarks.ranking [--parts mq2008 thesis size] [--draws 10] [--folds 5] [--docs]
python -m benchmarks.ranking --only-docs    # tables and figures again, from what was measured

Five folds as given: three parts to train, one to test (the fourth, for validation, is not used:
nothing is tuned). Delta 1e-4. MAP takes every positive grade as relevant; NDCG has gains
``2**grade - 1``. A list without a relevant document counts as 0, as in the thesis; 220 of the 784
lists have none. ``thesis`` has its settings: batches of 10 lists, 400 steps, its noise, with the
epsilon of its captions and the true one. Each fold and draw is stored when it is measured, so an
interrupted run goes on where it stopped.
"""

import argparse
import itertools
import json
import lzma
import math
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from ir_measures import AP, Measure, evaluator, nDCG
from ir_measures.providers import Evaluator

from benchmarks import sets
from benchmarks._report import OUT, ROOT, markdown, publish, write_between
from hushfit import PrivateRanker
from hushfit.data.lists import Documents, RankedLists
from hushfit.privacy import PoissonGaussianCost, Relation, epsilon_of
from hushfit.ranking_problem import ListwiseLoss, RankingProblem
from hushfit.release import Door, gradient_norms
from hushfit.release.queries._list_gradient import NO_MATRIX, gradient_of
from hushfit.solvers.ranking import ListwiseSGD, PrivBR
from hushfit.solvers.ranking._network import spectrally_normalised, start_of

DELTA = 1e-4
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.5)
GOALS = {0.1: 0.39, 0.25: 0.437, 0.5: 0.45, 1.0: 0.458, 2.5: 0.464}
MEASURES: dict[str, Measure] = {
    "MAP": AP,
    **{f"NDCG@{k}": nDCG @ k for k in (1, 2, 4, 8)},
}
SIGMAS = {1.5: 2.301, 2.0: 1.667, 3.0: 1.168, 4.0: 0.972}  # and what the captions claim
STEPS, BATCH = 400, 10
POINTS = (10, 25, 50, 100, 150, 200, 250, 300, 350, STEPS)  # steps at which MAP is measured
_FINE = 2.0**-40  # grid of the exact sums of `Published`
RUNS = OUT / "ranking-thesis.jsonl"
THESIS = ROOT / "benchmarks" / "results" / "ranking-thesis.json"
MARKS = ("<!-- ranking, thesis: start -->", "<!-- ranking, thesis: end -->")


@dataclass(frozen=True, eq=False)
class Lists:
    """Documents with grades, and the query of each."""

    X: Any
    y: Any
    qid: Any


def parts() -> list[Lists]:
    """The five parts of MQ2008."""
    return [read(sets.folder() / "letor" / "MQ2008" / f"S{k}.txt.xz") for k in range(1, 6)]


def read(path: Any) -> Lists:
    """One file of LETOR."""
    X, y, qid = [], [], []
    with lzma.open(path, "rt") as lines:
        for line in lines:
            grade, query, *features = line.split("#")[0].split()
            y.append(float(grade))
            qid.append(query.removeprefix("qid:"))
            X.append([float(feature.split(":")[1]) for feature in features])
    return Lists(np.array(X), np.array(y), np.array(qid))


def folds(given: list[Lists], count: int) -> Iterator[tuple[Lists, Lists]]:
    """Training and test lists of each fold, as LETOR divides them."""
    for k in range(count):
        chosen = [given[(k + i) % 5] for i in range(3)]
        train = Lists(
            *(np.concatenate([getattr(one, name) for one in chosen]) for name in ("X", "y", "qid"))
        )
        yield train, given[(k + 4) % 5]


@cache
def _evaluator(test: Lists, wanted: tuple[Measure, ...]) -> Evaluator:
    """What compares scores with the grades of a test part, which are read into it once."""
    # trec_eval's NDCG takes gains as they are given.
    gains = (2**test.y - 1).astype(int).tolist()
    return evaluator(wanted, _by_list(test, gains))


def _by_list(test: Lists, values: list[Any]) -> dict[str, dict[str, Any]]:
    """The values of the documents of each list."""
    found: dict[str, dict[str, Any]] = {}
    for place, (query, value) in enumerate(zip(test.qid.tolist(), values, strict=True)):
        found.setdefault(query, {})[str(place)] = value
    return found


def measures(
    test: Lists, scores: Any, wanted: tuple[Measure, ...] = tuple(MEASURES.values())
) -> list[float]:
    """MAP and NDCG of scores."""
    found = _evaluator(test, wanted).calc_aggregate(_by_list(test, scores.tolist()))
    return [found[measure] for measure in wanted]


def averaged(
    given: list[Lists], count: int, draws: int, fitted: Callable[[Lists, int], Any]
) -> list[float]:
    """Means over folds and draws of a scorer, a function of training lists and a seed."""
    found = [
        measures(test, fitted(train, 1000 * draw + fold)(test.X))
        for fold, (train, test) in enumerate(folds(given, count))
        for draw in range(draws)
    ]
    return list(np.mean(found, axis=0))


def private(**settings: Any) -> Callable[[Lists, int], Any]:
    """A fit by `PrivateRanker`."""

    def fitted(train: Lists, seed: int) -> Any:
        model = PrivateRanker(delta=DELTA, max_grade=2, random_state=seed, **settings)
        return model.fit(train.X, train.y, qid=train.qid).predict

    return fitted


def boosted(train: Lists, seed: int) -> Any:
    """LightGBM's ranker, without privacy."""
    from lightgbm import LGBMRanker

    sizes = np.unique(train.qid, return_index=True)[1]
    sizes = np.diff(np.append(np.sort(sizes), len(train.qid)))
    model = LGBMRanker(
        n_estimators=100, learning_rate=0.05, num_leaves=15, random_state=seed, verbose=-1, n_jobs=1
    )
    return model.fit(train.X, train.y.astype(int), group=sizes).predict


def by_chance(train: Lists, seed: int) -> Any:
    """Random scores."""
    return lambda X: np.random.default_rng(seed).random(len(X))


Scorer = Callable[[Any], Any]
# Scorers after some steps of a run; the last one is its result.
Trajectory = dict[int, Scorer]


@dataclass(frozen=True)
class Published:
    """PrivBR as the thesis has it: the noise of a step is scaled by the largest sensitivity in its
    batch. Noise is numpy's; for this comparison only.
    """

    sigma: float
    hidden: int
    sign: float = 1.0
    learning_rate: float = 0.1

    def __call__(self, train: Lists, seed: int) -> Trajectory:
        rng = np.random.default_rng(seed)
        starts = np.append(np.sort(np.unique(train.qid, return_index=True)[1]), len(train.qid))
        documents = Documents(train.X, starts.astype(np.int64))
        problem = RankingProblem(
            ListwiseLoss("bayesrank", 1, "one-hot"),
            documents.n_lists,
            train.X.shape[1],
            Relation.LABEL,
            self.hidden,
            documents=documents,
        )
        source, unscaled = RankedLists(documents, train.y), np.ones(documents.n_lists)
        theta = spectrally_normalised(start_of(problem), problem)
        found = {}
        for t in range(STEPS):
            batch = np.flatnonzero(rng.random(documents.n_lists) < BATCH / documents.n_lists)
            if len(batch):
                # One-hot targets: the sum of the two largest norms, at most twice the largest.
                largest = 2 * _largest_norm(problem, theta, batch)
                (block,) = source.list_blocks(batch)
                exact = gradient_of(problem, theta, block, NO_MATRIX, 0.0, unscaled, _FINE)
                noise = self.sigma * largest * rng.standard_normal(len(theta))
                step = self.learning_rate * (1 - t * 4 // STEPS / 4)
                theta = spectrally_normalised(theta - self.sign * step * (exact + noise), problem)
            if t + 1 in POINTS:
                found[t + 1] = scorer_of(theta, train.X.shape[1], self.hidden)
        return found


def _largest_norm(problem: RankingProblem, theta: Any, batch: Any) -> float:
    """The largest gradient of a single utility in the batch; for a linear scorer it is the
    probability of a document times its distance from the expected one.
    """
    if problem.hidden:
        return float(gradient_norms(problem, theta, batch).max())
    documents = problem.public_documents
    starts, lengths = documents.starts, documents.lengths[batch]
    F = documents.X[np.concatenate([np.arange(starts[j], starts[j + 1]) for j in batch])]
    ends = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    scores = F @ theta
    odds = np.exp(scores - np.repeat(np.maximum.reduceat(scores, ends), lengths))
    p = odds / np.repeat(np.add.reduceat(odds, ends), lengths)
    expected = np.repeat(np.add.reduceat(p[:, None] * F, ends), lengths, axis=0)
    return float((p * np.linalg.norm(F - expected, axis=1)).max())


def scorer_of(theta: Any, d: int, hidden: int) -> Scorer:
    """Scores of documents by given weights."""
    if hidden == 0:
        return lambda X: X @ theta
    inner, outer = d * hidden, (d + 1) * hidden
    return lambda X: (
        np.maximum(X @ theta[:inner].reshape(d, hidden) + theta[inner:outer], 0) @ theta[outer:]
    )


@dataclass(frozen=True)
class KeptWeights:
    """A door that keeps the weights of each gradient that passes."""

    door: Door
    weights: list[Any]

    def release(self, name: str, query: Any) -> Any:
        self.weights.append(query.weights)
        return self.door.release(name, query)


@dataclass(frozen=True)
class Watched:
    """A solver whose iterates are kept, as many as it asks gradients at."""

    solver: PrivBR | ListwiseSGD
    weights: list[Any]

    def plan(self, problem: RankingProblem) -> Any:
        return self.solver.plan(problem)

    def solve(self, problem: RankingProblem, door: Any, watch: Any = None) -> Any:
        return self.solver.solve(problem, KeptWeights(door, self.weights), watch)


def trajectory(
    solver: PrivBR | ListwiseSGD, hidden: int, **settings: Any
) -> Callable[[Lists, int], Trajectory]:
    """A fit by `PrivateRanker` with what it would have returned after fewer steps: the mean of the
    latter half of the iterates so far, as the solvers return it.
    """
    scorer = {"scorer": "mlp"} if hidden else {}

    def fitted(train: Lists, seed: int) -> Trajectory:
        weights: list[Any] = []
        chosen = {**settings, **scorer, "solver": Watched(solver, weights)}
        result = private(**chosen)(train, seed)
        columns = train.X.shape[1]
        so_far = {
            t: scorer_of(np.mean(weights[t // 2 + 1 : t + 1], axis=0), columns, hidden)
            for t in POINTS[:-1]
        }
        return {**so_far, STEPS: result}

    return fitted


def revealed_epsilon(sigma: float, rate: float) -> float:
    """Epsilon of the published algorithm: the scale of the noise tells whether the list with the
    largest sensitivity is in the batch, so sampling hides nothing but that it is drawn seldom.

    Delta of one step is the rate times that of a Gaussian release; here by drawing the number of
    batches with the list, which is binomial.
    """
    from scipy.optimize import brentq
    from scipy.stats import binom

    from hushfit.privacy import gaussian_delta

    counts = np.arange(1, 80)
    chances = binom.pmf(counts, STEPS, rate)

    def excess(epsilon: float) -> float:
        deltas = [gaussian_delta(epsilon, math.sqrt(k) / sigma) for k in counts]
        return float(chances @ deltas) - DELTA

    return float(brentq(excess, 0.0, 200.0))


def run_mq2008(draws: int, count: int) -> list[list[Any]]:
    """The default at every epsilon, against the goals, other units and references."""
    given, rows = parts(), []

    def add(name: str, epsilon: float | str, fitted: Any, repeats: int) -> list[float]:
        found = averaged(given, count, repeats, fitted)
        rows.append([name, epsilon, *(f"{value:.4f}"[1:] for value in found)])
        print(*rows[-1], flush=True)
        return found

    add("random order", "", by_chance, draws)
    add("linear, without privacy", "inf", private(epsilon=math.inf), 1)
    add("LightGBM, without privacy", "inf", boosted, 1)
    for epsilon in EPSILONS:
        found = add("**default** (labels)", epsilon, private(epsilon=epsilon), draws)
        verdict = "reached" if found[0] >= GOALS[epsilon] else "MISSED"
        rows[-1][0] += "" if verdict == "reached" else " MISSED"
    for name, settings in {
        "list, ListNet": {"unit": "list"},
        "list, ListMLE": {"unit": "list", "loss": "listmle"},
        "labels, PrivBR": {"loss": "bayesrank"},
        "labels, one release, random layer of 256": {"scorer": "mlp"},
    }.items():
        for epsilon in EPSILONS[2:]:
            few = max(1, draws // 5) if "PrivBR" in name or "layer" in name else draws
            add(name, epsilon, private(epsilon=epsilon, **settings), few)
    return rows


@dataclass(frozen=True)
class Contender:
    """One line of the thesis' experiment."""

    name: str
    hidden: int
    sigma: float
    epsilon: str
    fitted: Callable[[Lists, int], Trajectory]

    @property
    def key(self) -> str:
        return f"{self.name}, sigma {self.sigma:g}"


def contenders() -> list[Contender]:
    """The thesis' settings: its noise, its batches, its network; claimed and true epsilon."""
    found = []
    rate = BATCH / 470
    for hidden, (sigma, claimed) in itertools.product((0, 256), SIGMAS.items()):
        scorer = "linear" if hidden == 0 else "46-256-1"
        told = f"claimed {claimed}, true {revealed_epsilon(sigma, rate):.1f}"
        name = f"PrivBR as published, {scorer}"
        found.append(Contender(name, hidden, sigma, told, Published(sigma, hidden)))
        replaced = epsilon_of(PoissonGaussianCost(sigma / 2, rate, STEPS), DELTA, "label")
        told = f"{replaced:.2f}"
        fit = trajectory(PrivBR(STEPS, BATCH), hidden, epsilon=replaced, loss="bayesrank")
        found.append(Contender(f"PrivBR corrected, {scorer}", hidden, sigma, told, fit))
        for loss in ("listnet", "listmle"):
            solver = ListwiseSGD(STEPS, BATCH)
            fit = trajectory(solver, hidden, epsilon=replaced, unit="list", loss=loss)
            found.append(Contender(f"{loss}, clipped, {scorer}", hidden, sigma, told, fit))
        if hidden == 0:
            fit = _only_result(private(epsilon=replaced))
            found.append(Contender("default (labels)", hidden, sigma, told, fit))
    reverse = Published(1.5, 0, sign=-1.0)
    return [*found, Contender("PrivBR as printed: minus sign", 0, 1.5, "", reverse)]


def _only_result(fitted: Callable[[Lists, int], Scorer]) -> Callable[[Lists, int], Trajectory]:
    return lambda train, seed: {STEPS: fitted(train, seed)}


def run_thesis(draws: int, count: int) -> list[dict[str, Any]]:
    """Every contender on every fold and draw, and the means of all that was measured."""
    given, lines = parts(), contenders()
    OUT.mkdir(exist_ok=True)
    known = _measured()
    # Linear scorers first: a network takes longer than all of them.
    for hidden, draw in itertools.product((0, 256), range(draws)):
        for fold, (train, test) in enumerate(folds(given, count)):
            for line in lines:
                if line.hidden == hidden and (line.key, fold, draw) not in known:
                    run = _run(line, train, test, fold, draw)
                    with RUNS.open("a") as file:
                        file.write(json.dumps(run) + "\n")
        print(f"{hidden} hidden units, draw {draw}", flush=True)
    return means_of_runs(count)


def means_of_runs(count: int) -> list[dict[str, Any]]:
    """The means of all runs that were measured so far."""
    found = _measured().values()
    return [
        _mean_of(line, [run for run in found if run["key"] == line.key], count)
        for line in contenders()
    ]


def _run(line: Contender, train: Lists, test: Lists, fold: int, draw: int) -> dict[str, Any]:
    scorers = line.fitted(train, 1000 * draw + fold)
    return {
        "key": line.key,
        "fold": fold,
        "draw": draw,
        "curve": [measures(test, scorers[t](test.X), (AP,))[0] for t in POINTS if t in scorers],
        "measures": measures(test, scorers[STEPS](test.X)),
    }


def _measured() -> dict[tuple[str, int, int], dict[str, Any]]:
    stored = [json.loads(text) for text in RUNS.read_text().splitlines()] if RUNS.exists() else []
    return {(run["key"], run["fold"], run["draw"]): run for run in stored}


def _mean_of(line: Contender, runs: list[dict[str, Any]], count: int) -> dict[str, Any]:
    """Means over the draws that all folds have, and the standard error of the MAP over them."""
    draws = min(sum(run["fold"] == fold for run in runs) for fold in range(count))
    row: dict[str, Any] = {
        "name": line.name,
        "sigma": line.sigma,
        "epsilon": line.epsilon,
        "draws": draws,
    }
    if draws == 0:
        return row
    used = [run for run in runs if run["draw"] < draws]
    row["measures"] = _rounded(np.mean([run["measures"] for run in used], axis=0))
    row["curve"] = _rounded(np.mean([run["curve"] for run in used], axis=0))
    if draws > 1:
        by_draw = [
            np.mean([run["measures"][0] for run in used if run["draw"] == draw])
            for draw in range(draws)
        ]
        row["MAP error"] = round(float(np.std(by_draw, ddof=1)) / math.sqrt(draws), 5)
    return row


def store_thesis(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Store rows, and keep stored ones that have more draws."""
    known = {(row["name"], row["sigma"]): row for row in stored_thesis()}
    kept = []
    for row in rows:
        other = known.get((row["name"], row["sigma"]), row)
        kept.append(other if other["draws"] > row["draws"] else row)
    THESIS.parent.mkdir(exist_ok=True)
    THESIS.write_text(json.dumps({"points": POINTS, "rows": kept}, indent=1) + "\n")
    return kept


def stored_thesis() -> list[dict[str, Any]]:
    """The stored rows, none if there are none."""
    return json.loads(THESIS.read_text())["rows"] if THESIS.exists() else []


def _cells(row: dict[str, Any]) -> list[Any]:
    """A stored row, for a table."""
    first, *others = (f"{value:.3f}"[1:] for value in row["measures"])
    error = f" ± {row['MAP error']:.3f}".replace("0.", ".") if "MAP error" in row else ""
    return [row["name"], row["sigma"], row["epsilon"], row["draws"], first + error, *others]


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 5) for value in values]


def run_size(lists: int = 30_000, length: int = 120, columns: int = 136) -> list[list[Any]]:
    """Time and memory of a fit on simulated lists of the size of MSLR-WEB30K."""
    rng = np.random.default_rng(0)
    X = np.empty((lists * length, columns), dtype=np.float32)
    y = np.empty(lists * length)
    truth = rng.standard_normal(columns) / math.sqrt(columns)
    for start in range(0, len(X), 100 * length):  # in chunks: no copy of the whole
        stop = min(start + 100 * length, len(X))
        X[start:stop] = rng.standard_normal((stop - start, columns), dtype=np.float32)
        noisy = X[start:stop] @ truth + rng.standard_normal(stop - start)
        y[start:stop] = np.clip(np.floor(2 * noisy), 0, 4)
    few = slice(0, 10 * length)  # compiles
    PrivateRanker(random_state=0, delta=1e-2).fit(X[few], y[few], group=[length] * 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, worked = time.perf_counter(), time.process_time()
    model = PrivateRanker(epsilon=1.0, delta=1e-6, random_state=0)
    model.fit(X, y, group=np.full(lists, length))
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    cosine = float(model.coef_ @ truth / np.linalg.norm(model.coef_) / np.linalg.norm(truth))
    row = [
        f"{lists:,} x {length} x {columns}",
        f"{X.nbytes / 2**30:.2f} GB",
        f"{seconds:.1f} s",
        f"{worked:.1f} s",
        f"{extra:.0f} MB",
        f"{cosine:.4f}",
    ]
    print(*row, flush=True)
    return [row]


HEADS = {
    "mq2008": ["model", "epsilon", *MEASURES],
    "thesis": ["model", "sigma", "epsilon", "draws", *MEASURES],
    "size": [
        "lists x documents x columns",
        "X",
        "fit",
        "processor time",
        "additional memory",
        "cosine to the truth",
    ],
}

TITLES = {
    "mq2008": f"Ranking on MQ2008, delta {DELTA:g}",
    "thesis": "The thesis' chapter 6 on MQ2008, its noise and batches",
    "size": "A simulated set of the size of MSLR-WEB30K",
}


def run(draws: int) -> list[str]:
    """The default on MQ2008; goals that were missed."""
    if not (sets.folder() / "letor").is_dir():
        print("letor is missing: skipped")
        return []
    rows = run_mq2008(draws, 5)
    return [f"ranking at epsilon {row[1]}" for row in rows if "MISSED" in str(row[0])]


def by_relation(rows: list[list[Any]]) -> dict[str, list[list[Any]]]:
    """Models that protect grades, and models that protect whole lists: two relations are not
    compared in one table. References without privacy are in the first.
    """
    of_lists = [row for row in rows if str(row[0]).startswith(("list,", "listnet", "listmle"))]
    return {
        "grades of one list (label)": [row for row in rows if row not in of_lists],
        "one list with its documents (replace-one)": of_lists,
    }


# Algorithms whose curves are drawn, and what each of them protects.
CURVES = {
    "PrivBR as published": "grades, epsilon 3 to 10",
    "PrivBR corrected": "grades (label)",
    "listnet, clipped": "lists (replace-one)",
    "listmle, clipped": "lists (replace-one)",
}


def figure(rows: list[list[Any]]) -> None:
    """MAP by epsilon, a panel for each relation, for the page of benchmarks."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "hushfit"
    from matplotlib import pyplot

    drawing, panels = pyplot.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True)
    references = [row for row in rows if str(row[1]) in ("", "inf")]
    for axes, (title, own) in zip(panels, by_relation(rows).items(), strict=True):
        for k, (name, _, found, *_) in enumerate(references):
            axes.axhline(float(found), ls=":", lw=1, color="grey")
            # Two references without privacy are nearly equal: one label above, one below.
            above = {"va": "bottom"} if k % 2 == 0 else {"va": "top"}
            axes.text(EPSILONS[0], float(found), str(name), fontsize=7, color="grey", **above)
        points: dict[str, list[tuple[float, float]]] = {}
        for name, epsilon, found, *_ in own:
            if str(epsilon) not in ("", "inf"):
                label = str(name).replace("*", "")
                points.setdefault(label, []).append((float(epsilon), float(found)))
        for label, line in points.items():
            axes.plot(*zip(*line, strict=True), marker="o", label=label)
        axes.set(xscale="log", xlabel=f"epsilon (delta {DELTA:g})")
        axes.set_title(f"protects {title}", fontsize=9)
        axes.minorticks_off()
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1, 0.1))
    panels[0].set_ylabel("MAP")
    drawing.tight_layout()
    drawing.savefig(ROOT / "docs" / "figures" / "ranking-mq2008.svg", metadata={"Date": None})


def curves(rows: list[dict[str, Any]]) -> None:
    """MAP against the number of steps: a column for each algorithm, a row for each scorer. What is
    protected differs between columns, never within one.
    """
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "hushfit"
    from matplotlib import pyplot

    drawn = [row for row in rows if len(row.get("curve", ())) == len(POINTS)]
    scorers = [name for name in ("linear", "46-256-1") if any(name in r["name"] for r in drawn)]
    size = (11, 0.7 + 2.7 * len(scorers))
    drawing, panels = pyplot.subplots(
        len(scorers), len(CURVES), figsize=size, sharex=True, sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for (j, scorer), (k, (name, protected)) in itertools.product(
        enumerate(scorers), enumerate(CURVES.items())
    ):
        axes = panels[j][k]
        for colour, sigma in enumerate(SIGMAS):
            for row in drawn:
                if (row["name"], row["sigma"]) == (f"{name}, {scorer}", sigma):
                    label = f"sigma {sigma:g}"
                    axes.plot(POINTS, row["curve"], marker=".", color=f"C{colour}", label=label)
            for row in rows:
                same = row["name"] == "default (labels)" and row["sigma"] == sigma
                if same and name == "PrivBR corrected":
                    axes.axhline(row["measures"][0], ls=":", lw=1, color=f"C{colour}")
        axes.set_title(f"{name}, {scorer}\nprotects {protected}", loc="left", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[-1]:
        axes.set_xlabel("steps")
    for axes in panels[:, 0]:
        axes.set_ylabel("MAP")
    handles, labels = panels[0][0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    drawing.savefig(ROOT / "docs" / "figures" / "ranking-thesis.svg", metadata={"Date": None})


def thesis_tables(rows: list[dict[str, Any]]) -> list[str]:
    """The tables of stored rows, one for each relation."""
    return _tables("thesis", [_cells(row) for row in rows if row["draws"]])


def write_thesis() -> None:
    """The tables and the figure of the page, from stored results."""
    rows = stored_thesis()
    curves(rows)
    drawn = "![MAP on MQ2008 by steps](figures/ranking-thesis.svg)\n"
    parts = [f"{table}\n" for table in thesis_tables(rows)]
    write_between(ROOT / "docs" / "benchmarks.md", MARKS, [*parts, drawn])


def _tables(part: str, rows: list[list[Any]]) -> list[str]:
    parted = {"": rows} if part == "size" else by_relation(rows)
    return [
        f"{title[:1].upper()}{title[1:]}:\n\n"
        + markdown(HEADS[part], [[str(cell) for cell in row] for row in own])
        for title, own in parted.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=HEADS, default=list(HEADS))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--docs", action="store_true", help="draw the figures of the page")
    parser.add_argument("--only-docs", action="store_true", help="from what was measured")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.only_docs:
        store_thesis(means_of_runs(given.folds))
        write_thesis()
        return 0
    missed = 0
    for part in given.parts:
        if part == "thesis":
            found = store_thesis(run_thesis(given.draws, given.folds))
            publish("ranking-thesis", TITLES[part], "\n\n".join(thesis_tables(found)), found)
            if given.docs:
                write_thesis()
            continue
        rows = run_size() if part == "size" else run_mq2008(given.draws, given.folds)
        missed += sum("MISSED" in str(row[0]) for row in rows)
        if given.docs and part == "mq2008":
            figure(rows)
        publish(f"ranking-{part}", TITLES[part], "\n\n".join(_tables(part, rows)), rows)
    return missed


if __name__ == "__main__":
    sys.exit(main())
