"""
A network on a table
====================

``hushfit.torch`` trains a perceptron with the same guarantee, ledger and noise; nothing is tuned.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from hushfit import PrivateLogisticRegression
from hushfit.torch import PrivateMLPClassifier

# %%
# Two rings, which no straight line separates.
rng = np.random.default_rng(8)
n = 6_000
angle, y = rng.uniform(0, 2 * np.pi, n), rng.integers(0, 2, n)
radius = np.where(y == 1, 0.35, 0.8) + rng.normal(scale=0.08, size=n)
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).clip(-1, 1)

# %%
settings = {"epsilon": 3.0, "delta": 1e-5, "classes": [0, 1], "feature_bounds": (-1, 1)}
fits = {
    "linear": PrivateLogisticRegression(random_state=0, **settings).fit(X[:5000], y[:5000]),
    "network": PrivateMLPClassifier(hidden=(32,), random_state=0, **settings).fit(
        X[:5000].astype(np.float32), y[:5000]
    ),
}

# %%
figure, places = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
for place, (name, model) in zip(places, fits.items(), strict=False):
    accuracy = model.score(X[5000:].astype(np.float32), y[5000:])
    DecisionBoundaryDisplay.from_estimator(
        model,
        X.astype(np.float32),
        response_method="predict",
        eps=0.1,
        ax=place,
        alpha=0.3,
        cmap="BrBG",
    )
    place.scatter(*X[5000:5400].T, c=y[5000:5400], s=6, cmap="BrBG", edgecolors="none")
    place.set_title(f"{name}: accuracy {accuracy:.2f}")
    place.set_aspect("equal")
plt.show()
