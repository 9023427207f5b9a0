"""Draw the figures of docs/algorithms/{dp-sadmm,dp-vradmm,smoothing}.md: true epsilon of the
published noise.
"""

import math
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from hushfit.privacy import FixedSizeGaussianCost, Relation, epsilon_of
from hushfit.privacy.costs._mixture_cost import MixtureGaussianCost
from hushfit.solvers.admm._smoothing import helps_below

PAGES = Path(__file__).parent.parent / "docs" / "algorithms"
DELTA = 5e-4


def theorem_2(n, b, epochs, claimed):
    """True epsilon of the noise of Theorem 2."""
    steps = int(epochs * n / b)
    order = 2 * math.log(1 / DELTA) / claimed + 1
    multiplier = math.sqrt(10 * order * b**2 * steps / (claimed * n**2))
    return epsilon_of(FixedSizeGaussianCost(multiplier, b / n, steps), DELTA, Relation.REPLACE_ONE)


def theorem_1(c2, claimed, n=45211, b=250, epochs=5):
    """True epsilon of the noise of Theorem 1 with its constant set to c2."""
    steps = epochs * (2 * n // b)
    furthest = 2 / b - 1 / n
    scale = math.sqrt(c2 * steps * math.log(1 / DELTA)) / (n * claimed)
    return epsilon_of(
        MixtureGaussianCost(scale / furthest, b / n, 1 / n / furthest, steps),
        DELTA,
        Relation.ADD_REMOVE,
    )


def draw(name, curves, x_label, y_label, reference, log=True):
    figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
    for label, x, y in curves:
        axes.plot(x, y, marker="o", markersize=3, label=label)
    axes.axhline(reference[1], color="black", linestyle=":", label=reference[0])
    axes.set(xlabel=x_label, ylabel=y_label, **({"xscale": "log", "yscale": "log"} if log else {}))
    axes.legend(frameon=False)
    figure.savefig(PAGES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


plt.rcParams["svg.hashsalt"] = "hushfit"  # reproducible file
epochs = np.array([1, 2, 5, 10, 20])
sets = {"w8a": (24875, 20), "bio": (72876, 20), "mushrooms": (4062, 10)}
curves = [
    (name, epochs, [theorem_2(n, b, e, 1.0) for e in epochs]) for name, (n, b) in sets.items()
]
draw("dp-sadmm", curves, "epochs", "true epsilon", ("claimed", 1.0))

constants = np.array([1, 2, 4, 8, 16])
curves = [
    (f"claimed {e:g}", constants, [theorem_1(c, e) / e for c in constants]) for e in (0.1, 0.3, 1.0)
]
draw("dp-vradmm", curves, "constant c2", "true / claimed epsilon", ("as claimed", 1.0))

strengths = np.linspace(0.05, 5, 60)
curves = [("smoothing helps below", strengths, [helps_below(nu) for nu in strengths])]
draw(
    "smoothing",
    curves,
    "strength nu",
    "roughness of the optimum",
    ("weights without order", 2.0),
    log=False,
)
