"""Handwritten digits: a private linear model of pixels, and of public scattering features.

python examples/plot_public_features.py        # writes public-features.svg in docs/figures

The digits come with scikit-learn: 1,797 images of 8 by 8 pixels, a third of them held out. Such a
small table needs a large epsilon; docs/public-features.md has the figures for 60,000 images.
Add-remove, delta 1e-5, seeded noise, three draws. Needs ``pip install hushfit[images]``.
"""

import warnings
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hushfit import PrivateLogisticRegression
from hushfit.errors import InsecureNoiseWarning
from hushfit.features import ScatteringMap

matplotlib.use("svg")
import matplotlib.pyplot as plt

matplotlib.rcParams["svg.hashsalt"] = "hushfit"  # the same numbers make the same file

OUT = Path(__file__).parents[1] / "docs" / "figures" / "public-features.svg"
EPSILONS = (1.0, 2.0, 4.0, 8.0)
DRAWS = 3
FEATURES = {"pixels": "linear", "scattering": ScatteringMap((8, 8), scale=1)}
STYLES = {"pixels": ("#b4540a", "o"), "scattering": ("#0b6e69", "s")}


def accuracies(features: object, epsilon: float) -> list[float]:
    """Accuracy on held-out images, one for each draw of the noise."""
    images, labels = load_digits(return_X_y=True)
    X, held_out, y, expected = train_test_split(images, labels, test_size=1 / 3, random_state=0)
    found = []
    for seed in range(DRAWS):
        model = PrivateLogisticRegression(
            epsilon=epsilon,
            delta=1e-5,
            adjacency="add-remove",
            classes=range(10),
            feature_bounds=(0, 16),  # grey levels, as the documentation of the data says
            features=features,
            random_state=seed,
        )
        found.append(float(model.fit(X, y).score(held_out, expected)))
    return found


def main() -> None:
    """Fit, print and draw."""
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for name, features in FEATURES.items():
        results = np.array([accuracies(features, epsilon) for epsilon in EPSILONS])
        colour, marker = STYLES[name]
        axes.plot(EPSILONS, results.mean(axis=1), color=colour, marker=marker, label=name)
        axes.fill_between(
            EPSILONS, results.min(axis=1), results.max(axis=1), color=colour, alpha=0.15
        )
        print(name, [f"{value:.3f}" for value in results.mean(axis=1)])
    axes.set(xscale="log", xlabel="epsilon", ylabel="accuracy on held-out digits")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="lower right")
    OUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        main()
