"""How many rows a private graph needs: true edges found, and false ones, against epsilon.

python examples/plot_private_graph.py        # writes docs/algorithms/private-graph.svg

20 Gaussian columns in a chain (correlation 0.5 between neighbours), so that the true graph is
known: 19 edges of 190 pairs. The second moment gets a tenth of the budget; replace-one, delta 1e-6,
seeded noise, means over a few draws.
"""

import warnings
from pathlib import Path

import matplotlib
import numpy as np

from hushfit import PrivateGraphLogisticRegression
from hushfit.datasets import make_sparse_classification
from hushfit.errors import InsecureNoiseWarning
from hushfit.solvers import DPSADMM

matplotlib.use("svg")
import matplotlib.pyplot as plt

matplotlib.rcParams["svg.hashsalt"] = "hushfit"  # the same numbers make the same file

OUT = Path(__file__).parents[1] / "docs" / "algorithms" / "private-graph.svg"
COLUMNS, DRAWS = 20, 4
EPSILONS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
SIZES = ((3_000, "#b4540a"), (10_000, "#777777"), (30_000, "#0b6e69"))


def found(rows: int, epsilon: float, seed: int) -> tuple[float, float]:
    """Share of the true edges that the private graph has, and the number of its false ones."""
    S = make_sparse_classification(
        n_rows=rows, n_features=COLUMNS, n_informative=10, random_state=seed
    )
    # The graph is estimated before the first step, so a single step is enough.
    model = PrivateGraphLogisticRegression(
        "private",
        epsilon=epsilon,
        delta=1e-6,
        admm=DPSADMM(steps=1),
        classes=(-1, 1),
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        model.fit(S.X, S.y)
    true = int(np.sum(np.abs(model.graph_[:, 0] - model.graph_[:, 1]) == 1))
    return true / (COLUMNS - 1), len(model.graph_) - true


def main() -> None:
    figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
    for rows, color in SIZES:
        means = [np.mean([found(rows, e, seed) for seed in range(DRAWS)], axis=0) for e in EPSILONS]
        for axes, values in zip(panels, np.transpose(means), strict=True):
            axes.plot(EPSILONS, values, marker=".", color=color, label=f"{rows:,} rows")
    panels[0].set(ylabel="share of the 19 true edges found", ylim=(-0.03, 1.03))
    panels[1].set(ylabel="false edges, of 171 possible")
    panels[1].set_ylim(bottom=-0.5)
    for axes, title in zip(panels, ("True edges", "False edges"), strict=True):
        axes.set(xscale="log", xlabel="epsilon of the whole fit (replace-one)")
        axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
        axes.minorticks_off()
        axes.set_title(title, loc="left", fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    figure.savefig(OUT, metadata={"Date": None})
    print(OUT)


if __name__ == "__main__":
    main()
