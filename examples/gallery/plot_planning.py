"""
Planning: how many rows, how much budget
========================================

The noise of a fit follows from public numbers alone, and so does a forecast of what it costs in
accuracy. The :doc:`planner page </start/planner>` does the same with sliders.
"""

import matplotlib.pyplot as plt
import numpy as np

from hushfit.forecast import forecast, rows_needed

# %%
epsilons = np.geomspace(0.05, 4, 5)
for rows, color in ((1_000, "#b4540a"), (30_000, "#0b6e69")):
    plans = [forecast(rows, 50, epsilon, 0.1 / rows) for epsilon in epsilons]
    plt.plot(epsilons, [100 * plan.loss for plan in plans], color=color, label=f"{rows:,} rows")
    plt.fill_between(
        epsilons,
        [100 * plan.loss_low for plan in plans],
        [100 * plan.loss_high for plan in plans],
        color=color,
        alpha=0.12,
        linewidth=0,
    )
plt.loglog()
plt.xlabel("epsilon")
plt.title("Accuracy lost, by budget and rows")
plt.ylabel("points of accuracy lost (nine cases in ten)")
plt.legend()
plt.show()

# %%
# Rows needed to lose one point with 50 columns:
for epsilon in (0.1, 0.5, 1.0, 2.0):
    expected, low, high = rows_needed(0.01, 50, epsilon, 1e-6)
    print(f"epsilon {epsilon}: about {expected:,} ({low:,} to {high:,})")
