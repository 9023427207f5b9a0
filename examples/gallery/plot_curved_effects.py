"""
Curved effects
==============

``features="additive"`` gives each numeric column a curve. The knots are at public places, so it
costs no budget of its own.
"""

import matplotlib.pyplot as plt
import numpy as np

from hushfit import PrivateLogisticRegression

# %%
# Both the young and the old are at risk, which a straight line cannot say.
rng = np.random.default_rng(10)
n = 20_000
X = np.column_stack([rng.uniform(0, 100, n), rng.uniform(0, 1, n)])
logit = 3 * ((X[:, 0] - 50) / 50) ** 2 - 1 + X[:, 1]
y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
public = {"classes": [0, 1], "feature_bounds": [(0, 100), (0, 1)], "random_state": 0}

# %%
ages = np.linspace(0, 100, 101)
grid = np.column_stack([ages, np.full(101, 0.5)])
plt.plot(ages, 1 / (1 + np.exp(-(3 * ((ages - 50) / 50) ** 2 - 0.5))), "k:", label="true risk")
for features, color in (("linear", "#b4540a"), ("additive", "#0b6e69")):
    model = PrivateLogisticRegression(1.0, 1e-6, features=features, **public).fit(X, y)
    plt.plot(ages, model.predict_proba(grid)[:, 1], color=color, label=f"{features}, epsilon 1")
plt.xlabel("age")
plt.title("A risk that is no straight line")
plt.ylabel("risk")
plt.legend()
plt.show()
