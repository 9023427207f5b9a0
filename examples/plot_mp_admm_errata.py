"""True epsilon of one step of mpADMM with its printed sensitivity, against the step size, for a
claimed epsilon of 1.

python examples/plot_mp_admm_errata.py        # writes docs/algorithms/mp-admm.svg
"""

import math
from pathlib import Path

import matplotlib
import numpy as np

from hushfit.privacy import GaussianCost, epsilon_of
from hushfit.release import primal_step

matplotlib.use("svg")
import matplotlib.pyplot as plt

RHO, ROWS, DELTA = 0.5, 100, 1e-5
OUT = Path(__file__).parents[1] / "docs" / "algorithms" / "mp-admm.svg"
ORDERS = np.linspace(1.01, 200, 20_000)


def printed_noise(eta: float) -> float:
    """Standard deviation of the noise by the paper's sensitivity and conversion."""
    sensitivity = 2 / (ROWS * (1 + eta * RHO))

    def claimed(sigma: float) -> float:
        rdp = ORDERS * (2 + RHO**2) * sensitivity**2 / (2 * sigma**2)
        return float(np.min(rdp + np.log(1 / DELTA) / (ORDERS - 1)))

    low, high = 1e-5, 10.0
    while high > 1.0001 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if claimed(middle) > 1 else (low, middle)
    return high


def true_epsilon(eta: float, stretch: float) -> float:
    shift = 2 * primal_step(eta, RHO) / ROWS * stretch
    return epsilon_of(GaussianCost(printed_noise(eta) / shift), DELTA, "replace-one")


def main() -> None:
    etas = np.geomspace(0.25, 16, 40)
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.plot(
        etas,
        [true_epsilon(eta, math.sqrt(2)) for eta in etas],
        color="#0b6e69",
        label="whole transcript (x, z, y)",
    )
    axes.plot(
        etas,
        [true_epsilon(eta, 1.0) for eta in etas],
        color="#0b6e69",
        linestyle="--",
        label="x alone",
    )
    axes.axhline(1.0, color="#b4540a", label="claimed")
    axes.set(
        xscale="log", yscale="log", xlabel="step size eta", ylabel="true epsilon at delta 1e-5"
    )
    axes.set_title("One step of mpADMM with the printed noise", loc="left", fontsize=11)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(OUT, metadata={"Date": None})
    print(OUT)


if __name__ == "__main__":
    main()
