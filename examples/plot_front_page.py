"""The picture of the front page: accuracy on the Adult census table for each epsilon, from the
stored results of `python -m benchmarks.thesis`.

    python examples/plot_front_page.py
"""

import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "thesis.json"
FIGURE = ROOT / "docs" / "figures" / "front-page.svg"

LINES = {
    "auto": ("default of hushfit, nothing tuned", "#0b6e69", "o-"),
    "dp-sgd": ("DP-SGD, as in hushfit", "#b4540a", "s-"),
    "objective": ("objective perturbation, as in hushfit", "#8a8a8a", "^-"),
}
LEVELS = {"without privacy": "--", "majority": ":"}  # names in the stored results


def accuracies(solver: str) -> dict[float | None, float]:
    """Accuracy for each epsilon; None stands for references without privacy."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))
    asked = {"set": "a9a", "model": "logistic", "solver": solver}
    return {
        row["epsilon"]: row["accuracy"]
        for row in rows
        if asked.items() <= row.items() and row["relation"] in ("replace-one", "none")
    }


def main() -> None:
    mpl.rcParams["svg.hashsalt"] = "hushfit"  # the same numbers make the same file
    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    for solver, (label, colour, form) in LINES.items():
        found = accuracies(solver)
        axes.plot([*found], [*found.values()], form, color=colour, label=label, markersize=4)
    for solver, form in LEVELS.items():
        (level,) = {*accuracies(solver).values()}
        axes.axhline(level, color="black", linewidth=1, linestyle=form, label=solver)
    axes.set(xscale="log", xlabel="epsilon: smaller is more private", ylabel="accuracy, new rows")
    axes.set_xticks([*accuracies("auto")], [f"{epsilon:g}" for epsilon in accuracies("auto")])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1.0, 0.05))
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
