"""
Regression: predicting a number
===============================

The range of the target is public; the penalty and everything else is chosen from what is released
anyway.
"""

import matplotlib.pyplot as plt
import numpy as np

from hushfit import PrivateLinearRegression

# %%
# Rents by size, age of the house and distance, simulated.
rng = np.random.default_rng(3)
n = 3_000
X = rng.uniform([20, 0, 0], [150, 100, 30], (n, 3))
rent = (300 + 9 * X[:, 0] - 2 * X[:, 1] - 12 * X[:, 2] + rng.normal(0, 120, n)).clip(0, 2500)
train, test = slice(0, 2_000), slice(2_000, n)
public = {"feature_bounds": [(20, 150), (0, 100), (0, 30)], "target_bounds": (0, 2500)}

# %%
fits = {}
for epsilon in (0.1, 1.0, float("inf")):
    model = PrivateLinearRegression(epsilon, 1e-6, random_state=0, **public)
    fits[epsilon] = model.fit(X[train], rent[train])
    print(f"epsilon {epsilon:g}: R2 on held-out rows {model.score(X[test], rent[test]):.3f}")

# %%
# Predicted against real rents. The smaller epsilon, the more predictions stay near the middle.
for epsilon, color in ((0.1, "#b4540a"), (float("inf"), "#0b6e69")):
    predicted = fits[epsilon].predict(X[test])
    plt.plot(rent[test], predicted, ".", color=color, alpha=0.4, label=f"epsilon {epsilon:g}")
plt.axline((0, 0), slope=1, color="gray", linewidth=0.8)
plt.xlabel("rent")
plt.ylabel("predicted")
plt.title("Rents of flats that were held out")
plt.legend()
plt.show()
