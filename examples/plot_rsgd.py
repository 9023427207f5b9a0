"""True and printed sensitivity of RSGD-AR: how far one record changes a run with restarts, and
which batch is worst.

python examples/plot_rsgd.py        # writes docs/algorithms/rsgd.svg
"""

from pathlib import Path

import matplotlib
import numpy as np

from hushfit.data import as_source
from hushfit.losses import HuberHinge, Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release import Passes, PermutedRun

matplotlib.use("svg")
import matplotlib.pyplot as plt

plt.rcParams["svg.hashsalt"] = "hushfit"  # reproducible file

ROWS, BATCHES, RESTART, FIRST, MU = 900, 9, 5, 0.5, 1e-3
OUT = Path(__file__).parents[1] / "docs" / "algorithms" / "rsgd.svg"


def run_of(steps: list[float], restart: int | None) -> PermutedRun:
    problem = Problem(HuberHinge(), Zero(), ROWS, 1, Relation.REPLACE_ONE, fit_intercept=False)
    return PermutedRun(problem, Passes.even(ROWS, BATCHES, tuple(steps), restart), 1.0, MU)


def reset_steps(epochs: int) -> list[float]:
    return [FIRST / (s % RESTART + 1) for s in range(epochs)]


def printed_steps(epochs: int) -> list[float]:
    return [FIRST / (s + 1) for s in range(epochs)]


def true_shift(epochs: int) -> float:
    """Equal rows, half of them positive; one label in the last batch changes."""
    X, y = np.ones((ROWS, 1)), np.tile([1.0, -1.0], ROWS // 2)
    changed = y.copy()
    changed[-2] = -1.0
    run = run_of(reset_steps(epochs), RESTART)
    one, other = (run(as_source(X, labels, fit_intercept=False), None) for labels in (y, changed))
    return float(np.linalg.norm(one - other))


def main() -> None:
    epochs = np.arange(RESTART, 41, RESTART)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.6), layout="constrained")
    left.plot(
        epochs,
        [run_of(reset_steps(T), RESTART).shifts.max() for T in epochs],
        color="#0b6e69",
        label="bound here",
    )
    left.plot(
        epochs,
        [true_shift(T) for T in epochs],
        color="#0b6e69",
        linestyle=":",
        marker="o",
        label="one pair of tables",
    )
    left.plot(
        epochs,
        [run_of(printed_steps(T), None).shifts.max() for T in epochs],
        color="#b4540a",
        label="printed (Algorithm 3.2)",
    )
    left.set(xlabel="epochs", ylabel="distance of the last iterates", ylim=(0, None))
    left.set_title("Step sizes restart every 5 epochs", loc="left", fontsize=11)
    left.legend(frameon=False)

    problem = Problem(Logistic(), Zero(), 9 * 4341, 1, Relation.REPLACE_ONE, fit_intercept=False)
    batch = np.arange(1, BATCHES + 1)
    for restart, label, color in (
        (RESTART, "averaged every 5 epochs", "#0b6e69"),
        (None, "never averaged", "#7a7a7a"),
    ):
        run = PermutedRun(problem, Passes((4341,) * 9, tuple(reset_steps(20)), restart), 1.0, MU)
        right.plot(batch, 1e3 * run.shifts, marker="o", color=color, label=label)
    right.set(
        xlabel="batch of the replaced record",
        ylabel="largest distance, in thousandths",
        ylim=(0, None),
        xticks=batch,
    )
    right.set_title("The last batch is not always the worst", loc="left", fontsize=11)
    right.legend(frameon=False, loc="lower left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(OUT, metadata={"Date": None})
    print(OUT)


if __name__ == "__main__":
    main()
