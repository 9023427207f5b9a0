"""Accuracy and objective of networks against the privacy spent: figure 5.5 of the thesis, and the
fits without tuning.

``python -m benchmarks.network_curves run`` takes one cell after another and appends it to
``out/network-curves.jsonl``; cells that are there, or among the stored results, are not run again.
``collect`` copies them into ``benchmarks/results/networks.json``, in place of older ones; ``table``
and ``plot`` write them into the page. The data are public test sets, so losses are printed here
that a private fit would never show.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks._report import markdown, write_between
from benchmarks.networks import DATA, DELTA, FOLDERS, RESULTS, SOLVERS, made
from hushfit.data import SeededCoins
from hushfit.privacy import Budget, RdpFilter, Relation, SeededSampler, epsilon_of
from hushfit.privacy.accounting import filter_orders
from hushfit.release import Quote, Randomness, unpaid_curator
from hushfit.torch import ArrayRecords, Network, NetworkRows, RecordShape, load_mnist, quote_of
from hushfit.torch.solvers import network_solver_from, run_network

CELLS = Path("out") / "network-curves.jsonl"
PICTURES = Path(__file__).parents[1] / "docs" / "figures"
RELATION = Relation.ADD_REMOVE
POINTS = 8  # of a curve
SEEN = 2000  # images on which a curve is measured
PAGE = Path(__file__).parents[1] / "docs" / "algorithms" / "networks.md"
TITLES = {
    "mnist": "MNIST",
    "fashion": "Fashion-MNIST",
    "small-mlp": "784-256-256-10",
    "mlp": "784-1000-10",
    "cnn": "small CNN",
    "thesis-cnn": "thesis' CNN",
}
CURVES = ("small-mlp", "cnn", "thesis-cnn")  # networks of figure 5.5
# Papernot et al. (2020) at delta 1e-5, tuned on the test set.
LITERATURE = {("mnist", "cnn", 3.0): ".981", ("fashion", "cnn", 3.0): ".861"}
THESIS = ("thesis-sgd", "thesis-adam", "bls", "bls-ac", "bls-cheb")


@dataclass(frozen=True)
class Cell:
    """One fit; a step of the thesis' algorithms has 300 records, one of `auto` 1,000 or 2,000."""

    data: str
    network: str
    solver: str
    epsilon: float
    seed: int
    steps: int | None = None


def cells() -> Iterator[Cell]:
    """All cells, the first seed of each before the second; those of the thesis' CNN at the end."""
    for seed in range(3):
        for data in reversed(FOLDERS):
            yield from (Cell(data, "small-mlp", name, 3.0, seed, 150) for name in THESIS)
            yield Cell(data, "small-mlp", "auto", 3.0, seed)
            yield Cell(data, "cnn", "auto", 3.0, seed)
        for data in FOLDERS:
            yield from (Cell(data, "cnn", name, 3.0, seed, 100) for name in THESIS)
        yield Cell("fashion", "small-mlp", "auto", 1.0, seed)
        yield Cell("mnist", "cnn", "auto", 1.0, seed)
        yield Cell("mnist", "cnn", "auto", 0.5, seed)
        yield Cell("mnist", "mlp", "auto", 1.0, seed)
    for data in reversed(FOLDERS):
        for seed in range(3):
            yield from (Cell(data, "thesis-cnn", name, 3.0, seed, 100) for name in THESIS)
            yield Cell(data, "thesis-cnn", "auto", 3.0, seed)


class MeteredDoor:
    """A curator that also says what was spent on the answers so far."""

    def __init__(self, door: Any, quote: Quote, n_units: int, epsilon: float) -> None:
        self._door, self._n_units = door, n_units
        [self._part] = quote.plan.parts
        self._multiplier, self._made = quote.multipliers[self._part.name], 0
        self._adaptive = self._part.sampling.alone
        if self._adaptive:
            run = self._part.sampling.cost(self._multiplier, 1, n_units)
            orders = filter_orders(run.epsilon, run.delta)
            self._filter = RdpFilter(run.epsilon, run.delta, RELATION, orders)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._door, name)

    def release(self, name: str, query: Any) -> Any:
        answer = self._door.release(name, query)
        self._made += 1
        if self._adaptive:
            self._filter.charge(query.cost)
        return answer

    def spent(self) -> float:
        """Epsilon of all answers so far, at the delta of the run."""
        if self._adaptive:
            used = self._filter
            return float(np.min(used._spent + used.epsilon - used.allowances))
        cost = self._part.sampling.cost(self._multiplier, self._made, self._n_units)
        return epsilon_of(cost, DELTA, RELATION)


def measured(cell: Cell) -> dict[str, Any]:
    """Fit one network; accuracy on all test images, and a curve on some."""
    X, y = load_mnist(DATA / FOLDERS[cell.data])
    tests = load_mnist(DATA / FOLDERS[cell.data], "test")
    record = RecordShape(X.shape[1:], classes=10)
    small = 320 if cell.solver != "auto" else 352
    net = Network.of(
        made(cell.network, cell.seed),
        torch.nn.CrossEntropyLoss(),
        record,
        len(X),
        RELATION,
        physical_batch=small,
    )
    budget = Budget(cell.epsilon, DELTA)
    solver = network_solver_from(_settings(cell), budget, net)
    used = time.process_time()
    quote = quote_of(solver, net, budget)
    randomness = Randomness(SeededSampler(cell.seed), SeededCoins(cell.seed + 1000))
    rows = NetworkRows(ArrayRecords(X, y), record)
    curator = unpaid_curator(rows, quote, RELATION, randomness, remember=False)
    door, curve = MeteredDoor(curator, quote, len(X), cell.epsilon), []
    due = {max(1, round(solver.steps * k / POINTS)) for k in range(1, POINTS + 1)}

    def seen(state: Any) -> None:
        if state.step in due:
            correct, _ = _scores(net, state.w, tests[0][:SEEN], tests[1][:SEEN])
            _, loss = _scores(net, state.w, X[:SEEN], y[:SEEN])
            curve.append([state.step, round(door.spent(), 4), correct, round(loss, 4)])

    weights = run_network(solver, net, door, seen=seen)
    return {
        "kind": "curve",
        **asdict(cell),
        "delta": DELTA,
        "adjacency": RELATION.value,
        "rows": len(X),
        "releases": door._made,
        "accuracy": _scores(net, weights, *tests)[0],
        "objective": round(_scores(net, weights, X[:SEEN], y[:SEEN])[1], 4),
        "curve": curve,
        "cpu_seconds": round(time.process_time() - used, 1),
    }


def _settings(cell: Cell) -> Any:
    if cell.solver == "auto":
        return "auto"
    solver = SOLVERS[cell.solver]
    name = "expected_steps" if cell.solver.startswith("bls") else "steps"
    return type(solver)(**{**solver.__dict__, name: cell.steps})


def _scores(net: Network, w: Any, X: Any, y: Any) -> tuple[float, float]:
    """Share of correct classes, and mean loss."""
    module, target = net.module_at(w), torch.from_numpy(y)
    with torch.no_grad():
        outputs = torch.cat([module(part) for part in torch.from_numpy(X).split(500)])
    correct = (outputs.argmax(1) == target).double().mean()
    return float(correct), float(F.cross_entropy(outputs, target))


def _key(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in Cell.__dataclass_fields__)


def _done() -> dict[tuple[Any, ...], dict[str, Any]]:
    """Cells that are stored, or were run since."""
    known = [line for line in json.loads(RESULTS.read_text()) if line["kind"] == "curve"]
    new = [json.loads(line) for line in CELLS.read_text().splitlines()] if CELLS.exists() else []
    return {_key(line): line for line in [*known, *new]}


def run(minutes: float) -> None:
    """Run cells that are not there yet, until the minutes of the processor are used up."""
    CELLS.parent.mkdir(exist_ok=True)
    done = _done()
    for cell in cells():
        if tuple(asdict(cell).values()) in done or time.process_time() > 60 * minutes:
            continue
        line = measured(cell)
        with CELLS.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps({name: line[name] for name in (*asdict(cell), "accuracy", "cpu_seconds")}))


def collect() -> None:
    """Copy the cells into the stored results."""
    known = json.loads(RESULTS.read_text())
    kept = [line for line in known if line["kind"] != "curve"]
    RESULTS.write_text(json.dumps([*kept, *_done().values()], indent=1) + "\n")


def stored() -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Stored cells; those of different seeds together."""
    found = defaultdict(list)
    for line in json.loads(RESULTS.read_text()):
        if line["kind"] == "curve":
            found[tuple(line[k] for k in ("data", "network", "solver", "epsilon"))].append(line)
    return dict(found)


def table() -> None:
    """Write means over the seeds into the page: fits without tuning, and the thesis' algorithms."""
    cells = stored()
    write_between(
        PAGE,
        ("<!-- networks, auto: begin -->", "<!-- networks, auto: end -->"),
        [_means(cells, lambda key: key[2] == "auto", tuned=True)],
    )
    write_between(
        PAGE,
        ("<!-- networks, curves: begin -->", "<!-- networks, curves: end -->"),
        [_means(cells, lambda key: key[1] in CURVES and key[3] == 3.0)],
    )


def _means(cells: Any, chosen: Callable[[Any], bool], *, tuned: bool = False) -> str:
    rows = []
    order = (*THESIS, "auto").index
    for key in sorted(filter(chosen, cells), key=lambda key: (*key[:2], key[3], order(key[2]))):
        lines = cells[key]
        data, network, solver, epsilon = key
        each = [line["accuracy"] for line in lines]
        spread = f"{np.std(each, ddof=1):.4f}" if len(each) > 1 else "-"
        row = [
            TITLES[data],
            TITLES[network],
            f"`{solver}`",
            f"{epsilon:g}",
            f"{np.mean(each):.4f}",
            spread,
            str(len(each)),
            f"{np.mean([line['objective'] for line in lines]):.3f}",
            f"{np.mean([line['cpu_seconds'] for line in lines]):.0f}",
        ]
        rows.append([*row, LITERATURE.get((data, network, epsilon), "-")] if tuned else row)
    head = ["set", "network", "solver", "epsilon", "accuracy", "std", "seeds", "objective", "s"]
    return markdown([*head, "literature, tuned"] if tuned else head, rows)


def plot() -> None:
    """Draw the curves of each set and network."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "hushfit"
    for network in CURVES:
        sets = [data for data in FOLDERS if (data, network, "auto", 3.0) in stored()]
        size = (4.5 * len(sets), 6)
        figure, axes = plt.subplots(2, len(sets), figsize=size, sharex=True, squeeze=False)
        for column, data in enumerate(sets):
            for solver in ("auto", *THESIS):
                lines = stored().get((data, network, solver, 3.0), [])
                for row, value in enumerate((2, 3)):
                    _draw(axes[row, column], lines, value, solver)
            axes[0, column].set_title(data)
            axes[1, column].set_xlabel("epsilon spent")
        axes[0, 0].set_ylabel("test accuracy")
        axes[1, 0].set_ylabel("objective")
        axes[0, 0].legend(fontsize=8)
        figure.tight_layout()
        target = PICTURES / f"networks-{network}.svg"
        figure.savefig(target, metadata={"Date": None})
        print(target)


def _draw(axis: Any, lines: list[dict[str, Any]], value: int, name: str) -> None:
    if not lines:
        return
    # Adaptive runs end at different steps: the points that all seeds have.
    length = min(len(line["curve"]) for line in lines)
    curves = np.array([line["curve"][:length] for line in lines])
    middle, spread = curves.mean(0), curves.std(0)
    axis.plot(middle[:, 1], middle[:, value], label=name, marker=".")
    low, high = middle[:, value] - spread[:, value], middle[:, value] + spread[:, value]
    axis.fill_between(middle[:, 1], low, high, alpha=0.2)


def main() -> None:
    """Run one of the four parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.network_curves")
    parser.add_argument("part", choices=["run", "collect", "table", "plot"])
    parser.add_argument("--minutes", type=float, default=45.0, help="of the processor, at most")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.part == "run":
        run(given.minutes)
    else:
        {"collect": collect, "table": table, "plot": plot}[given.part]()


if __name__ == "__main__":
    main()
