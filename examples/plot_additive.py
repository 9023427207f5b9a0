"""What curved effects gain at the same privacy, and what a fitted one looks like.

python examples/plot_additive.py        # writes additive.svg in docs/algorithms

Left: AUC of additive minus linear models on five tables, from the stored results of
``python -m benchmarks.additive``. Right: the effect of one column on 20,000 simulated rows,
and the shape functions that private additive models find. Replace-one, delta 1e-6, seeded noise.
"""

import json
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from hushfit import PrivateLogisticRegression
from hushfit.errors import InsecureNoiseWarning

matplotlib.use("svg")
import matplotlib.pyplot as plt

matplotlib.rcParams["svg.hashsalt"] = "hushfit"  # the same numbers make the same file

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "algorithms" / "additive.svg"
RESULTS = ROOT / "benchmarks" / "results" / "additive.json"
SETS = ("adult", "bank", "covtype", "credit", "housing")
MARKERS = dict(zip(SETS, "osv^D", strict=True))
GREEN, ORANGE = "#0b6e69", "#b4540a"


def gains() -> dict[str, dict[float, list[float]]]:
    """AUC of additive minus linear models, by set and epsilon, one number for each fold."""
    rows = json.loads(RESULTS.read_text())["rows"]
    auc = {(r["set"], r["method"], r["epsilon"], r["fold"]): r["auc"] for r in rows}
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (name, method, epsilon, fold), value in auc.items():
        other = auc.get((name, "linear", epsilon, fold))
        if method == "additive" and other is not None:
            found[name][epsilon].append(value - other)
    return found


def left_panel(axes: Any) -> None:
    shown = gains()
    for name in SETS:
        epsilons = sorted(shown[name])
        means = [np.mean(shown[name][epsilon]) for epsilon in epsilons]
        axes.plot(epsilons, means, marker=MARKERS[name], markersize=4, label=name)
        print(name, [f"{m:+.4f}" for m in means])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="epsilon", ylabel="AUC, additive minus linear")
    axes.set_yscale("symlog", linthresh=0.02)
    axes.set_xticks([0.05, 0.1, 0.4, 1, 3], ["0.05", "0.1", "0.4", "1", "3"])
    axes.set_yticks([0, 0.01, 0.02, 0.05, 0.1], ["0", ".01", ".02", ".05", ".10"])
    axes.minorticks_off()
    axes.set_ylim(bottom=-0.012)
    axes.legend(frameon=False, fontsize=8, loc="lower right", ncols=3)
    axes.set_title("Five tables", loc="left", fontsize=11)


def right_panel(axes: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 5))
    effect = 2 * np.sin(2 * np.pi * X[:, 0]) + 2 * X[:, 1] - 1
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-effect))).astype(int)
    grid = np.linspace(0, 1, 200)
    axes.plot(grid, 2 * np.sin(2 * np.pi * grid), color="black", label="true effect")
    for epsilon, colour in ((0.2, ORANGE), (1.0, GREEN)):
        model = PrivateLogisticRegression(
            epsilon=epsilon,
            delta=1e-6,
            classes=[0, 1],
            feature_bounds=(0, 1),
            features="additive",
            random_state=1,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureNoiseWarning)
            knots, values = model.fit(X, y).shape_values(0)
        length = model.row_profile_.length or 1.0
        style = {"color": colour, "marker": ".", "linestyle": "--"}
        axes.plot(knots, values / length, label=f"epsilon {epsilon:g}", **style)
    axes.set(xlabel="column", ylabel="log-odds")
    axes.legend(frameon=False, fontsize=8)
    axes.set_title("One shape function", loc="left", fontsize=11)


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
    left_panel(left)
    right_panel(right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(OUT, metadata={"Date": None})
    print(OUT)


if __name__ == "__main__":
    main()
