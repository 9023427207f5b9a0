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
n = 12_000
X = rng.uniform([20, 0, 0], [150, 100, 30], (n, 3))
rent = (300 + 9 * X[:, 0] - 2 * X[:, 1] - 12 * X[:, 2] + rng.normal(0, 120, n)).clip(0, 2500)
train, test = slice(0, 9_000), slice(9_000, n)
public = {"feature_bounds": [(20, 150), (0, 100), (0, 30)], "target_bounds": (0, 2500)}

# %%
fits = {}
for epsilon in (0.1, 1.0, float("inf")):
    model = PrivateLinearRegression(epsilon, 1e-6, random_state=0, **public)
    fits[epsilon] = model.fit(X[train], rent[train])
    print(f"epsilon {epsilon:g}: R2 on held-out rows {model.score(X[test], rent[test]):.3f}")

# %%
some = slice(9_000, 9_400)
figure, places = plt.subplots(1, 3, figsize=(8, 3), layout="constrained", sharex=True, sharey=True)
for place, (epsilon, model) in zip(places, fits.items(), strict=False):
    place.plot(rent[some], model.predict(X[some]), ".", color="#0b6e69", alpha=0.5)
    place.plot([0, 2500], [0, 2500], color="gray", linewidth=0.8)
    place.set_title(f"epsilon {epsilon:g}")
    place.set_xlabel("rent")
places[0].set_ylabel("predicted")
plt.show()
