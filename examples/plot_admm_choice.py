"""Accuracy of ssADMM, objective perturbation and DPSC on Adult, compared with proximal gradient
descent and ``auto``.

python examples/plot_admm_choice.py        # writes ss-admm.svg, objective.svg and dpsc.svg in
                                           docs/algorithms

L1-penalised logistic regression on the bundled Adult table, its training part fitted and its test
part scored; replace-one, delta 1e-6, seeded noise, means of two draws.
"""

import math
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from hushfit import PrivateLogisticRegression
from hushfit.datasets import load_adult
from hushfit.errors import InsecureNoiseWarning
from hushfit.solvers import DPSC, SSADMM, ObjectivePerturbation, ProximalGradient

matplotlib.use("svg")
import matplotlib.pyplot as plt

matplotlib.rcParams["svg.hashsalt"] = "hushfit"  # the same numbers make the same file

OUT = Path(__file__).parents[1] / "docs" / "algorithms"
EPSILONS = (0.05, 0.2, 0.8, 1.6)
DRAWS = 2
ROUNDS = (1, 3, 10, 20)
GREEN, ORANGE, GREY = "#0b6e69", "#b4540a", "#777777"


@cache
def fits(solver: Any, epsilon: float, alpha: float = 1e-4) -> tuple[float, float, float]:
    """Mean accuracy on the test part, half the distance between its draws, and the share of
    zeros.
    """
    (X, y), (X_test, y_test) = (
        load_adult(split=part, return_X_y=True) for part in ("train", "test")
    )
    scores, zeros = [], []
    for seed in range(DRAWS if epsilon < math.inf else 1):
        model = PrivateLogisticRegression(
            epsilon=epsilon,
            delta=1e-6,
            penalty="l1",
            alpha=alpha,
            solver=solver,
            classes=(0, 1),
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureNoiseWarning)
            model.fit(X, y)
        scores.append(model.score(X_test, y_test))
        zeros.append(np.mean(model.coef_ == 0))
    return float(np.mean(scores)), float(np.ptp(scores) / 2), float(np.mean(zeros))


def curve(axes: Any, solver: Any, label: str, **style: Any) -> None:
    """Accuracy against epsilon; error bars span the two draws."""
    means, errors, _ = zip(*(fits(solver, epsilon) for epsilon in EPSILONS), strict=True)
    axes.errorbar(EPSILONS, means, yerr=errors, marker=".", capsize=2, label=label, **style)


def finish(figure: Any, axes: Any, name: str) -> None:
    for each in np.atleast_1d(axes):
        each.spines[["top", "right"]].set_visible(False)
        each.legend(frameon=False, fontsize=8)
    figure.savefig(OUT / f"{name}.svg", metadata={"Date": None})
    print(OUT / f"{name}.svg")


def epsilon_axis(axes: Any) -> None:
    axes.set(
        xscale="log", xlabel="epsilon (replace-one, delta 1e-6)", ylabel="accuracy on the test part"
    )
    axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axes.minorticks_off()


def plot_ss_admm() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
    curve(left, "auto", "auto", color="black")
    curve(left, ProximalGradient(), "proximal gradient", color=ORANGE, linestyle="--")
    curve(left, SSADMM(), "ssADMM", color=GREEN)
    epsilon_axis(left)
    left.set_title("Accuracy", loc="left", fontsize=11)
    alphas = (1e-4, 5e-4, 2e-3, 1e-2)
    for output, color in (("z", GREEN), ("x", GREY)):
        right.plot(
            alphas,
            [fits(SSADMM(output=output), 0.8, a)[2] for a in alphas],
            marker=".",
            color=color,
            label=f"output={output!r}",
        )
    right.set(
        xscale="log",
        xlabel="alpha of the L1 penalty",
        ylabel="share of weights that are zero",
        ylim=(-0.03, 1.03),
    )
    right.set_title("Sparsity at epsilon 0.8", loc="left", fontsize=11)
    finish(figure, (left, right), "ss-admm")


def plot_objective() -> None:
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    curve(axes, "auto", "auto", color="black")
    curve(axes, ObjectivePerturbation(), "objective perturbation, one release", color=GREEN)
    curve(axes, DPSC(), "DPSC, ten releases", color=ORANGE, linestyle="--")
    epsilon_axis(axes)
    axes.set_title("One minimiser, released once", loc="left", fontsize=11)
    finish(figure, axes, "objective")


def plot_dpsc() -> None:
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for epsilon, color in ((0.2, GREY), (1.6, GREEN), (math.inf, "black")):
        label = "no noise" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
        axes.plot(
            ROUNDS,
            [fits(DPSC(steps=k), epsilon)[0] for k in ROUNDS],
            marker=".",
            color=color,
            label=f"DPSC, {label}",
        )
        if not math.isinf(epsilon):
            once = fits(ObjectivePerturbation(), epsilon)[0]
            axes.axhline(once, color=color, linestyle="--", label=f"objective, {label}")
    axes.set(
        xscale="log",
        xlabel="rounds, each a release with fresh noise",
        ylabel="accuracy on the test part",
    )
    axes.set_xticks(ROUNDS, [str(k) for k in ROUNDS])
    axes.minorticks_off()
    axes.set_title("Accuracy against rounds of DPSC", loc="left", fontsize=11)
    finish(figure, axes, "dpsc")


def main() -> None:
    plot_ss_admm()
    plot_objective()
    plot_dpsc()


if __name__ == "__main__":
    main()
