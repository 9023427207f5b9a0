"""What ``auto`` gains from denoising its weights, and what it loses where there is nothing to
gain.

python examples/plot_auto.py        # writes auto.svg in docs/algorithms

Left: simulated rows of which 20 columns in 100 matter, 20,000 to fit and 20,000 to score. Right:
the bundled Adult table, its training part fitted and its test part scored. Replace-one, delta 1e-6,
seeded noise, means of four draws.
"""

import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from hushfit import PrivateLogisticRegression
from hushfit.datasets import load_adult, make_sparse_classification
from hushfit.errors import InsecureNoiseWarning
from hushfit.penalties import ScaledL2

matplotlib.use("svg")
import matplotlib.pyplot as plt

matplotlib.rcParams["svg.hashsalt"] = "hushfit"  # the same numbers make the same file

OUT = Path(__file__).parents[1] / "docs" / "algorithms"
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
DRAWS = 4
GREEN, ORANGE = "#0b6e69", "#b4540a"
# With a penalty of weight zero, the weights are not denoised.
LINES = {
    "auto": ({}, {"color": "black"}),
    "auto, not denoised": (
        {"penalty": ScaledL2(0.0)},
        {"color": GREEN, "linestyle": "--"},
    ),
    "proximal gradient": ({"solver": "proximal-gd"}, {"color": ORANGE, "linestyle": ":"}),
}


def simulated() -> tuple[np.ndarray, ...]:
    X, y, _, _ = make_sparse_classification(random_state=1)
    return X[:20_000], y[:20_000], X[20_000:], y[20_000:]


def adult() -> tuple[np.ndarray, ...]:
    parts = (load_adult(split=part, return_X_y=True) for part in ("train", "test"))
    return tuple(array for part in parts for array in part)


def scores(rows: tuple[np.ndarray, ...], epsilon: float, settings: dict[str, Any]) -> list[float]:
    """Accuracy on the rows to score, one for each draw."""
    X, y, X_test, y_test = rows
    found = []
    for seed in range(DRAWS):
        model = PrivateLogisticRegression(
            epsilon=epsilon, delta=1e-6, classes=np.unique(y), random_state=seed, **settings
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureNoiseWarning)
            found.append(model.fit(X, y).score(X_test, y_test))
    return found


def panel(axes: Any, rows: tuple[np.ndarray, ...], title: str) -> None:
    for label, (settings, style) in LINES.items():
        found = [scores(rows, epsilon, settings) for epsilon in EPSILONS]
        errors = [np.std(values, ddof=1) / np.sqrt(DRAWS) for values in found]
        axes.errorbar(
            EPSILONS,
            [np.mean(v) for v in found],
            yerr=errors,
            marker=".",
            capsize=2,
            label=label,
            **style,
        )
        print(title, label, [f"{np.mean(v):.4f}" for v in found])
    axes.set(xscale="log", xlabel="epsilon (replace-one, delta 1e-6)")
    axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, loc="left", fontsize=11)


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
    panel(left, simulated(), "Simulated: 20 of 100 columns matter")
    panel(right, adult(), "Adult")
    left.set_ylabel("accuracy on rows not fitted")
    left.legend(frameon=False, fontsize=8)
    figure.savefig(OUT / "auto.svg", metadata={"Date": None})
    print(OUT / "auto.svg")


if __name__ == "__main__":
    main()
