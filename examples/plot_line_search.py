"""Draw the figure of docs/algorithms/bls.md: true and claimed privacy loss of the thesis' line
search.
"""

import math
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import log_ndtr

from hushfit.privacy import GatedCost, PoissonGaussianCost, compose, epsilon_of

PAGES = Path(__file__).parent.parent / "docs" / "algorithms"


def gates(calls, count, multiplier=math.inf, rate=0.01, epsilon=0.5):
    """``calls`` searches on each of ``count`` batches."""
    return GatedCost(multiplier, rate, "laplace", 2 / epsilon, 4 / epsilon, 20, calls, count=count)


def excess(rho, order, queries):
    """True over claimed divergence of a Gaussian gate (Theorem 5.3): alternating queries, three
    merged outcomes.
    """
    s1, s2 = math.sqrt(1.5 / rho), math.sqrt(3 / rho)
    z = np.linspace(-10 * s1, 10 * s1, 4001)
    density = np.exp(-0.5 * (z / s1) ** 2)
    density /= density.sum()

    def outcome_probabilities(up, down, off):
        a, b = (np.exp(log_ndtr((move - off - z) / s2)) for move in (up, down))
        pair = np.log1p(-a) + np.log1p(-b)
        times = np.expm1(queries // 2 * pair) / np.expm1(pair)
        return np.array(
            [
                density @ (a * times),
                density @ ((1 - a) * b * times),
                density @ np.exp(queries // 2 * pair),
            ]
        )

    def divergence(off):
        pair = outcome_probabilities(0.0, 0.0, off), outcome_probabilities(1.0, -1.0, off)
        return max(
            math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
            for p, q in (pair, pair[::-1])
        )

    return max(divergence(off) for off in np.linspace(0, 5 * s2, 41)) / (order * rho)


plt.rcParams["svg.hashsalt"] = "hushfit"  # reproducible file
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
calls = np.arange(1, 6)
claimed = [
    compose([PoissonGaussianCost(1.0, 0.01, 500), gates(1, 500 * k)]) for k in calls.tolist()
]
true = [gates(k, 500, multiplier=1.0) for k in calls.tolist()]
for label, costs in (("true", true), ("amplified one by one", claimed)):
    left.plot(
        calls,
        [epsilon_of(cost, 1e-6, "add-remove") for cost in costs],
        marker="o",
        markersize=3,
        label=label,
    )
left.set(xlabel="searches on one batch", ylabel="epsilon at delta 1e-6 (add-remove)", xticks=calls)
queries = np.array([10, 100, 1000, 10_000, 100_000, 1_000_000])
for rho, order in ((0.1, 2), (0.1, 4), (0.5, 2)):
    right.plot(
        queries,
        [excess(rho, order, int(k)) for k in queries],
        marker="o",
        markersize=3,
        label=f"rho {rho:g}, order {order}",
    )
right.axhline(1.0, color="black", linestyle=":", label="as claimed")
right.set(xlabel="queries", ylabel="true / claimed divergence", xscale="log")
for axes in (left, right):
    axes.legend(frameon=False)
figure.savefig(PAGES / "bls.svg", metadata={"Date": None})
plt.close(figure)
