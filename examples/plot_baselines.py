"""Draw docs/algorithms/baselines.svg: test accuracy on Adult of every classic method at its
default settings, against epsilon.
"""

import math
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from hushfit import PrivateLogisticRegression
from hushfit.datasets import load_adult
from hushfit.errors import InsecureNoiseWarning

PAGE = Path(__file__).parent.parent / "docs" / "algorithms" / "baselines.svg"
SOLVERS = [
    "auto",
    "dp-sgd",
    "dp-adam",
    "dp-svrg",
    "newton",
    "ssp",
    "objective",
    "objective-kifer",
    "frank-wolfe",
]
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
SEEDS = range(3)
(X, y), (X_TEST, Y_TEST) = (load_adult(split=part, return_X_y=True) for part in ("train", "test"))


def accuracy(solver, epsilon, seed):
    """Test accuracy of one fit; replace-one, delta 1e-6."""
    model = PrivateLogisticRegression(
        epsilon=epsilon, delta=1e-6, solver=solver, classes=(0, 1), random_state=seed
    )
    return model.fit(X, y).score(X_TEST, Y_TEST)


warnings.simplefilter("ignore", InsecureNoiseWarning)  # a figure, not a release
plt.rcParams["svg.hashsalt"] = "hushfit"  # reproducible file
figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
print("| solver | " + " | ".join(f"{epsilon:g}" for epsilon in EPSILONS) + " |")
for place, solver in enumerate(SOLVERS):
    means = [np.mean([accuracy(solver, epsilon, seed) for seed in SEEDS]) for epsilon in EPSILONS]
    print(f"| {solver} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |", flush=True)
    axes.plot(
        EPSILONS,
        means,
        marker="o",
        markersize=3,
        label=solver,
        color=plt.cm.tab10(place),
        linewidth=2.5 if place == 0 else 1.2,
    )
exact = accuracy("exact", math.inf, None)
axes.axhline(exact, color="black", linestyle=":", label="without noise")
axes.axhline(
    max(np.mean(Y_TEST), 1 - np.mean(Y_TEST)), color="grey", linestyle="--", label="majority"
)
axes.set(
    xlabel="epsilon (replace-one, delta 1e-6)", ylabel="accuracy", xscale="log", ylim=(0.735, 0.851)
)
axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
axes.minorticks_off()
axes.legend(frameon=False, fontsize=7, ncols=4, loc="lower right")
figure.savefig(PAGE, metadata={"Date": None})
print(f"without noise {exact:.4f}")
