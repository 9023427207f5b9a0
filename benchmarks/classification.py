"""``solver="auto"`` in classification beyond two classes on a narrow table: penalties, many
columns, several classes, and what probabilities are worth.

    python -m benchmarks.classification --parts penalties stopping wide several slope rare
    python -m benchmarks.classification --write-page

Results are stored in ``benchmarks/results/classification.json``, part by part; ``--write-page``
makes the tables of ``docs/benchmarks.md`` from them without fitting anything. Which tables the rule
was chosen on, and which are checks, is said there.
"""

import argparse
import gzip
import itertools
import json
import math
import statistics
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks import sets
from benchmarks._report import ROOT, machine, markdown, write_between
from hushfit import PrivateLogisticRegression
from hushfit.errors import InsecureNoiseWarning
from hushfit.solvers import ProximalGradient, ProxNewton, WhitenedGradientDescent

RESULTS = Path(__file__).parent / "results" / "classification.json"
PAGE, MARKS = ROOT / "docs" / "benchmarks.md", ("<!-- classification -->", "<!-- end -->")
DELTA, FOLDS = 1e-6, 5
# Small tables are fitted with up to so many draws of the noise, the larger the fewer.
MOST_DRAWS, CELLS_OF_ALL_DRAWS = 8, 4_000_000
BINARY = ("adult", "bank", "covtype")
PAIRED = ("accuracy", "auc", "log_loss")


@dataclass(frozen=True)
class Score:
    """One model on one test fold."""

    accuracy: float
    auc: float
    log_loss: float
    recall: float
    precision: float  # mean over recalls: the area under the curve
    recall_at_share: float  # with the frequency of the class as the threshold
    specificity_at_share: float
    predicted_recall: float  # of the model's own labels
    predicted_specificity: float
    by_frequencies: float  # log-loss of the frequencies that the fit has counted


def score(model: Any, X: Any, y: np.ndarray) -> Score:
    """With more than two classes accuracy and log-loss only."""
    P, labels = model.predict_proba(X), model.predict(X)
    chosen, own = P.argmax(axis=1), P[np.arange(len(y)), y]
    two = P.shape[1] == 2
    return Score(
        float(np.mean(chosen == y)),
        float(roc_auc_score(y, P[:, 1])) if two else float("nan"),
        float(-np.log(np.maximum(own, 1e-15)).mean()),
        float(np.mean(chosen[y == 1] == 1)) if two else float("nan"),
        float(average_precision_score(y, P[:, 1])) if two else float("nan"),
        float(np.mean(P[y == 1, 1] > y.mean())) if two else float("nan"),
        float(np.mean(P[y == 0, 1] <= y.mean())) if two else float("nan"),
        float(np.mean(labels[y == 1] == 1)) if two else float("nan"),
        float(np.mean(labels[y == 0] == 0)) if two else float("nan"),
        float("nan") if model.threshold_ is None else -float(np.log(model.threshold_)[y].mean()),
    )


def folds(n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of each fold."""
    order = np.random.default_rng(0).permutation(n)
    for k in range(FOLDS):
        test = order[k::FOLDS]
        yield np.setdiff1d(order, test), test


def scores(X: Any, y: np.ndarray, epsilon: float, draw: int = 0, **settings: Any) -> list[Score]:
    """One fit for each fold, with the noise of one draw."""
    found = []
    for seed, (train, test) in enumerate(folds(len(y)), start=FOLDS * draw):
        model = PrivateLogisticRegression(
            epsilon=epsilon,
            delta=DELTA,
            classes=np.arange(int(y.max()) + 1),
            random_state=seed,
            **settings,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureNoiseWarning)
            model.fit(X[train], y[train])
        found.append(score(model, X[test], y[test]))
    return found


def summary(found: list[Score], measure: str) -> tuple[float, float]:
    """Mean over folds and its standard error."""
    return mean_and_error([getattr(one, measure) for one in found])


def mean_and_error(values: list[float]) -> tuple[float, float]:
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return statistics.fmean(values), error


def paired(ours: list[Score], others: list[Score], measure: str) -> tuple[float, float]:
    """Mean difference over folds and its standard error."""
    pairs = zip(ours, others, strict=True)
    return mean_and_error([getattr(a, measure) - getattr(b, measure) for a, b in pairs])


def mean_of_draws(draws: list[list[Score]]) -> list[Score]:
    """The mean score of each fold over some draws of the noise."""
    return [
        Score(*np.mean([astuple(one) for one in of_fold], axis=0).tolist())
        for of_fold in zip(*draws, strict=True)
    ]


def cell(found: list[Score], *measures: str) -> dict[str, tuple[float, float]]:
    return {measure: summary(found, measure) for measure in measures}


# Tables


def binned(values: np.ndarray) -> np.ndarray:
    """Numbers as the eighth of the rows that they are in."""
    numbers = values.astype(float)
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, 9)[1:-1]))
    return np.searchsorted(edges, numbers).astype(str)


def hashed(cells: np.ndarray, width: int) -> csr_matrix:
    """All values and all pairs of values, hashed to columns."""
    columns, starts = [], [0]
    for row in cells:
        texts = [f"{j}={value}" for j, value in enumerate(row)]
        texts += [f"{a}&{b}" for k, a in enumerate(texts) for b in texts[k + 1 :]]
        own = np.unique([zlib.crc32(text.encode()) % width for text in texts])
        columns.append(own)
        starts.append(starts[-1] + len(own))
    indices = np.concatenate(columns)
    return csr_matrix((np.ones(len(indices)), indices, starts), shape=(len(cells), width))


@lru_cache(maxsize=1)
def text_cells(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Cells of adult or bank as texts, numbers binned; and labels."""
    folder = sets.folder() / name
    if name == "bank":
        head, *rows = sets.cells_of(sets.lines_of(folder / "bank-full.csv.xz"), ";")
        cells = np.array(rows)
        numeric = {"age", "balance", "day", "duration", "campaign", "pdays", "previous"}
        places = {j for j, title in enumerate(head) if title in numeric}
        labels = cells[:, -1] == "yes"
    else:
        lines = [
            line.rstrip(".")
            for part in ("adult.data.xz", "adult.test.xz")
            for line in sets.lines_of(folder / part)
            if line.count(",") == 14
        ]
        cells = np.char.strip(np.array([line.split(",") for line in lines]))
        places, labels = {0, 2, 4, 10, 11, 12}, cells[:, -1] == ">50K"
    parts = [binned(column) if j in places else column for j, column in enumerate(cells[:, :-1].T)]
    return np.array(parts).T, labels.astype(int)


def covertype() -> tuple[np.ndarray, np.ndarray]:
    """All seven classes, a sample of all rows."""
    lines = sets.sampled(sets.lines_of(sets.folder() / "covtype" / "covtype.data.xz"))
    rows = np.loadtxt(lines, delimiter=",")
    return sets.scaled(rows[:, :-1]), rows[:, -1].astype(int) - 1


_KINDS = {
    "normal.": 0,
    **dict.fromkeys(("back.", "land.", "neptune.", "pod.", "smurf.", "teardrop."), 1),
    **dict.fromkeys(("ipsweep.", "nmap.", "portsweep.", "satan."), 2),
}


def attacks() -> tuple[np.ndarray, np.ndarray]:
    """KDD Cup 99: normal, denial of service, probing, and all other attacks."""
    lines = sets.sampled(sets.kddcup99_lines())
    names = sets.cells_of(lines, ",")[:, 41]
    return sets.connections(lines)[0], np.array([_KINDS.get(name, 3) for name in names])


def wine_like(
    rows: int, columns: int, signal: float, classes: int = 3, seed: int = 5
) -> tuple[np.ndarray, np.ndarray]:
    """Unequal classes; ``signal`` is how far columns tell them apart."""
    rng, n = np.random.default_rng(seed), rows * FOLDS // (FOLDS - 1)
    X = np.clip(rng.normal(0.5, 0.2, size=(n, columns)) + 0.1 * rng.normal(size=(n, 1)), 0, 1)
    margins = (X - 0.5) @ (signal * rng.normal(size=(columns, classes)))
    margins += 0.5 * np.arange(classes)
    return X, np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)


def housing() -> tuple[np.ndarray, np.ndarray]:
    """California: price above 180,000."""
    path = next((sets.folder() / "housing").glob("*.csv*"))
    head, *lines = sets.lines_of(path)
    rows = [line.split(",") for line in lines]
    names = head.replace('"', "").split(",")
    target = names.index("median_house_value")
    ranges = {
        "longitude": (-125, -114),
        "latitude": (32, 42),
        "housing_median_age": (0, 52),
        "total_rooms": (0, 10000),
        "total_bedrooms": (0, 2000),
        "population": (0, 5000),
        "households": (0, 2000),
        "median_income": (0, 15),
    }
    parts = []
    for j, name in enumerate(names):
        column = np.array([row[j] for row in rows])
        if name in ranges:
            low, high = ranges[name]
            values = np.array([float(v) if v else low for v in column])
            parts.append(np.clip((values - low) / (high - low), 0, 1)[:, None])
        elif j != target:
            parts.append(sets.indicators(column))
    price = np.array([float(row[target]) for row in rows])
    return np.hstack(parts), (price > 180_000).astype(int)


# Parts


PENALISED: dict[str, Any] = {
    "auto": "auto",
    "prox-newton": ProxNewton(),
    "prox-newton, 20 steps": ProxNewton(steps=20),
    "proximal-gd": ProximalGradient(),
}


def penalty_cell(
    name: str, table: tuple[np.ndarray, np.ndarray], kind: str, alpha: float, epsilon: float
) -> dict[str, Any]:
    """``auto`` against other solvers of the library that take the penalty; and its leads, paired
    fold by fold. With L1, ``auto`` is prox-newton itself.
    """
    found = {
        label: scores(*table, epsilon, penalty=kind, alpha=alpha, solver=solver)
        for label, solver in PENALISED.items()
        if (kind, label) != ("l1", "prox-newton")
    }
    return {
        "set": name,
        "penalty": kind,
        "alpha": alpha,
        "epsilon": epsilon,
        "rows": len(table[1]),
        "folds": FOLDS,
        "models": {label: cell(of_one, *PAIRED) for label, of_one in found.items()},
        "leads": {
            label: {measure: paired(found["auto"], of_one, measure) for measure in PAIRED}
            for label, of_one in found.items()
            if label != "auto"
        },
    }


def penalties(name: str, table: tuple[np.ndarray, np.ndarray]) -> Iterator[dict[str, Any]]:
    for kind, alpha, epsilon in itertools.product(
        ("l2", "l1"), (1e-4, 1e-3, 1e-2), (0.1, 0.3, 1.0, 3.0)
    ):
        yield penalty_cell(name, table, kind, alpha, epsilon)


def stopping(name: str, table: tuple[np.ndarray, np.ndarray]) -> Iterator[dict[str, Any]]:
    """Whether a solver that stops before the minimum is ahead for that reason: the exact minimiser,
    ``auto``, and proximal gradient descent with more and more steps; on all folds.
    """
    fits: list[tuple[str, float, Any]] = [("exact minimiser", math.inf, "auto")]
    fits += [("auto", epsilon, "auto") for epsilon in (1.0, 3.0)]
    fits += [
        (f"proximal-gd, {steps} steps", epsilon, ProximalGradient(steps=steps))
        for epsilon, numbers in ((1.0, (40,)), (3.0, (40, 160)), (math.inf, (20, 40, 80, 160, 640)))
        for steps in numbers
    ]
    for label, epsilon, solver in fits:
        found = scores(*table, epsilon, penalty="l2", alpha=1e-3, solver=solver)
        yield {
            "set": name,
            "epsilon": epsilon if math.isfinite(epsilon) else None,
            "models": {label: cell(found, "accuracy", "auc", "log_loss")},
        }


def hashed_table(name: str, width: int) -> tuple[csr_matrix, np.ndarray]:
    cells, y = text_cells(name)
    return hashed(cells, width), y


HASHED: dict[str, Callable[[], tuple[csr_matrix, np.ndarray]]] = {
    f"{name}, {width}": partial(hashed_table, name, width)
    for name, width in (("adult", 2000), ("adult", 5000), ("adult", 20_000), ("bank", 2000))
}


def wide(name: str, table: tuple[csr_matrix, np.ndarray]) -> Iterator[dict[str, Any]]:
    for epsilon in (0.4, 1.0, 3.0):
        found = {
            label: scores(*table, epsilon, solver=solver)
            for label, solver in {"auto": "auto", "proximal-gd": ProximalGradient()}.items()
        }
        yield {
            "set": name,
            "epsilon": epsilon,
            "models": {label: cell(of_one, *PAIRED) for label, of_one in found.items()},
            "leads": {
                measure: paired(found["auto"], found["proximal-gd"], measure) for measure in PAIRED
            },
        }


SEVERAL: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "covertype, 7 classes": covertype,
    "KDD Cup 99, 4 classes": attacks,
    "covertype, 10,000 rows": lambda: tuple(part[:12_500] for part in covertype()),
    "simulated, 10,000 x 13, strong": lambda: wine_like(10_000, 13, 6.0),
    "simulated, 5,000 x 30, weak": lambda: wine_like(5_000, 30, 0.5),
    "simulated, 2,000 x 13, strong": lambda: wine_like(2_000, 13, 6.0),
    "simulated, 2,000 x 13, weak": lambda: wine_like(2_000, 13, 1.0),
    "simulated, 500 x 13": lambda: wine_like(500, 13, 2.0),
}


def fashion() -> tuple[np.ndarray, np.ndarray]:
    """The 10,000 test images of Fashion-MNIST."""
    folder = sets.folder() / "fashion-mnist"
    with gzip.open(folder / "t10k-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read()[16:], np.uint8).reshape(-1, 784) / 255.0
    with gzip.open(folder / "t10k-labels-idx1-ubyte.gz") as file:
        return X, np.frombuffer(file.read()[8:], np.uint8).astype(int)


# Fashion-MNIST was looked at after the rule was fixed, the simulated tables before its last change.
CHECKS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "simulated, 4,000 x 20, 5 classes": lambda: wine_like(4_000, 20, 2.0, 5, 11),
    "simulated, 8,000 x 50, 4 classes, weak": lambda: wine_like(8_000, 50, 0.5, 4, 12),
    "simulated, 1,000 x 8, strong": lambda: wine_like(1_000, 8, 8.0, 3, 13),
    "Fashion-MNIST, 10,000 test images": fashion,
}


def frequencies(y: np.ndarray) -> float:
    """Log-loss of the exact frequencies of the classes in the training rows."""
    found = []
    for train, test in folds(len(y)):
        counts = np.bincount(y[train], minlength=int(y.max()) + 1)
        found.append(-np.log(np.maximum(counts / len(train), 1e-15))[y[test]].mean())
    return float(np.mean(found))


def against_counted(found: list[Score]) -> tuple[float, float]:
    """How far the log-loss is above that of the frequencies that the same fit has counted."""
    return mean_and_error([one.log_loss - one.by_frequencies for one in found])


def several(name: str, table: tuple[np.ndarray, np.ndarray]) -> Iterator[dict[str, Any]]:
    """Small tables are fitted several times; without temperature once."""
    X, y = table
    draws = max(1, min(CELLS_OF_ALL_DRAWS // X.size, MOST_DRAWS))
    for epsilon in (0.1, 0.3, 1.0, 3.0):
        # The threshold changes no probability; with it the model keeps the counted frequencies.
        found = mean_of_draws(
            [scores(X, y, epsilon, draw, threshold="balanced") for draw in range(draws)]
        )
        plain = scores(X, y, epsilon, solver=WhitenedGradientDescent())
        yield {
            "set": name,
            "epsilon": epsilon,
            "draws": draws,
            "models": {
                "auto": cell(found, "accuracy", "log_loss"),
                "without temperature": cell(plain, "accuracy", "log_loss"),
            },
            "frequencies": frequencies(y),
            "counted": summary(found, "by_frequencies")[0],
            "against counted": against_counted(found),
        }


MEASURES = (
    "accuracy",
    "auc",
    "log_loss",
    "precision",
    "recall",
    "recall_at_share",
    "specificity_at_share",
)


def slope(name: str, table: tuple[np.ndarray, np.ndarray]) -> Iterator[dict[str, Any]]:
    """Log-loss of two-class probabilities, and AUC, recall and mean precision of the same fits."""
    for epsilon in (0.1, 0.4, 1.6):
        made = cell(scores(*table, epsilon), *MEASURES)
        yield {"set": name, "epsilon": epsilon, "models": {"auto": made}}


RARE = ("recall", "predicted_recall", "predicted_specificity", "precision", "auc")


def rare(name: str, table: tuple[np.ndarray, np.ndarray]) -> Iterator[dict[str, Any]]:
    """``threshold="balanced"`` against .5 with the same fit, where one class is rare."""
    for epsilon in (0.1, 0.4, 1.6):
        made = cell(scores(*table, epsilon, threshold="balanced"), *RARE)
        yield {"set": name, "epsilon": epsilon, "models": {"balanced": made}}


def loaded(*names: str) -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
    return {name: partial(sets.load, name) for name in names}


# Every part is measured table by table.
PARTS: dict[str, tuple[Callable[..., Iterator[dict[str, Any]]], dict[str, Callable[[], Any]]]] = {
    "penalties": (penalties, loaded(*BINARY)),
    "stopping": (stopping, loaded("covtype")),
    "wide": (wide, HASHED),
    "several": (several, SEVERAL),
    "several-check": (several, CHECKS),
    "slope": (slope, {"housing": housing, **loaded(*BINARY, "w8a")}),
    "rare": (rare, loaded("adult", "bank", "w8a")),
}


def measure(part: str, only: list[str]) -> None:
    """Store the rows of the tables whose name contains one of some texts, or of all.

    Each table is stored when it is done, and next to what others may have stored meanwhile.
    """
    rows_of, tables = PARTS[part]
    for name, made_by in tables.items():
        if not only or any(text in name for text in only):
            store(part, name, list(rows_of(name, made_by())))


def store(part: str, name: str, rows: list[dict[str, Any]]) -> None:
    """Put the rows of one table in place of those that are stored."""
    print(*rows, sep="\n", flush=True)
    kept = stored()
    by_table = {table: [] for table in PARTS[part][1]}
    for row in kept.get(part, {}).get("rows", []):
        by_table.get(row["set"], []).append(row)
    by_table[name] = rows
    kept[part] = {"machine": machine(), "rows": [row for of in by_table.values() for row in of]}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


# Page


def shown(value: tuple[float, float], digits: int = 4) -> str:
    return f"{value[0]:.{digits}f} ± {value[1]:.{digits}f}"


def triple(model: dict[str, Any]) -> str:
    """Accuracy, AUC and log-loss."""
    return " / ".join(
        f"{model[measure][0]:.{digits}f}" for measure, digits in zip(PAIRED, (4, 3, 3), strict=True)
    )


def in_points(value: tuple[float, float], lost: bool = False) -> str:
    """A difference and its standard error in 1e-4; bold if it is called a loss."""
    text = f"{1e4 * value[0]:+.0f} ± {1e4 * value[1]:.0f}"
    return f"**{text}**" if lost else text


def penalties_table(rows: list[dict[str, Any]]) -> str:
    """The lead of ``auto`` over the rival with the best accuracy, which may differ from cell to
    cell.
    """
    body = []
    for row in rows:
        models, leads = row["models"], row["leads"]
        best = max(leads, key=lambda name: models[name]["accuracy"][0])
        lead = leads[best]
        body.append(
            [
                row["set"],
                row["penalty"],
                f"{row['alpha']:g}",
                f"{row['epsilon']:g}",
                f"{row['rows']:,}",
                str(row["folds"]),
                triple(models["auto"]),
                f"{triple(models[best])} ({best})",
                in_points(lead["accuracy"], lead["accuracy"][0] < -0.003),
                *(in_points(lead[measure]) for measure in PAIRED[1:]),
            ]
        )
    head = ["set", "penalty", "alpha", "epsilon", "rows", "folds", "auto", "best other"]
    return markdown([*head, "lead: accuracy", "AUC", "log-loss"], body)


def stopping_table(rows: list[dict[str, Any]]) -> str:
    body = [
        [
            row["set"],
            "no noise" if row["epsilon"] is None else f"{row['epsilon']:g}",
            label,
            *(shown(value) for value in model.values()),
        ]
        for row in rows
        for label, model in row["models"].items()
    ]
    return markdown(["set", "epsilon", "solver", "accuracy", "AUC", "log-loss"], body)


def wide_table(rows: list[dict[str, Any]]) -> str:
    body = [
        [
            row["set"],
            f"{row['epsilon']:g}",
            *(triple(row["models"][name]) for name in ("proximal-gd", "auto")),
            *(in_points(row["leads"][measure]) for measure in PAIRED),
        ]
        for row in rows
    ]
    head = ["hashed table, columns", "epsilon", "40 proximal steps", "auto"]
    return markdown([*head, "lead: accuracy", "AUC", "log-loss"], body)


def several_table(rows: list[dict[str, Any]]) -> str:
    body = []
    for row in rows:
        auto, plain = row["models"]["auto"], row["models"]["without temperature"]
        body.append(
            [
                row["set"],
                f"{row['epsilon']:g}",
                str(FOLDS * row["draws"]),
                f"{auto['accuracy'][0]:.3f}",
                f"{plain['accuracy'][0]:.3f}",
                shown(auto["log_loss"], 3),
                f"{plain['log_loss'][0]:.3f}",
                f"{row['frequencies']:.3f}",
                f"{row['counted']:.3f}",
                "{:+.4f} ± {:.4f}".format(*row["against counted"]),
            ]
        )
    head = ["table", "epsilon", "fits", "accuracy", "without", "log-loss", "without"]
    return markdown([*head, "class frequencies", "counted privately", "log-loss minus that"], body)


def slope_table(rows: list[dict[str, Any]]) -> str:
    body = [
        [
            row["set"],
            f"{row['epsilon']:g}",
            *(shown(row["models"]["auto"][m], 3) for m in MEASURES),
        ]
        for row in rows
    ]
    head = ["set", "epsilon", "accuracy", "AUC", "log-loss", "mean precision", "recall at .5"]
    return markdown([*head, "recall at the class share", "specificity there"], body)


def rare_table(rows: list[dict[str, Any]]) -> str:
    body = [
        [
            row["set"],
            f"{row['epsilon']:g}",
            *(shown(row["models"]["balanced"][measure], 3) for measure in RARE),
        ]
        for row in rows
    ]
    head = ["set", "epsilon", "recall at .5", "recall, balanced", "specificity, balanced"]
    return markdown([*head, "PR-AUC", "AUC"], body)


TABLES = {
    "penalties": ("Penalties", penalties_table),
    "stopping": ("Penalties: stopping early, L2 with alpha 1e-3", stopping_table),
    "wide": ("Many columns", wide_table),
    "several": ("Several classes", several_table),
    "several-check": ("Several classes, second list", several_table),
    "slope": ("Two classes: probabilities and rare classes", slope_table),
    "rare": ("Rare classes: threshold counted privately", rare_table),
}


def stored() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def write_page() -> None:
    found = stored()
    parts = [
        f"### {title}\n\n{found[name]['machine']}\n\n{table(found[name]['rows'])}\n"
        for name, (title, table) in TABLES.items()
        if name in found
    ]
    write_between(PAGE, MARKS, parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=[])
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        help="tables whose name contains one of these",
    )
    parser.add_argument("--write-page", action="store_true")
    given = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    for name in given.parts:
        measure(name, given.only)
    if given.write_page:
        write_page()


if __name__ == "__main__":
    main()
