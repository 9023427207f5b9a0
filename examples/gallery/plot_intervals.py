"""
Intervals that cover
====================

``inference=True`` gives coefficients in your units with standard errors that cover sampling *and*
noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from hushfit import PrivateLogisticRegression

# %%
# 20,000 simulated patients: a treatment, their age and their weight.
rng = np.random.default_rng(4)
n, true = 20_000, np.array([-0.8, 0.03, 0.01])
X = np.column_stack([rng.integers(0, 2, n), rng.uniform(18, 95, n), rng.uniform(45, 130, n)])
centred = X - [0.5, 55.0, 85.0]
y = (rng.random(n) < 1 / (1 + np.exp(-(centred @ true)))).astype(int)
public = {"feature_bounds": [(0, 1), (18, 95), (45, 130)], "classes": [0, 1]}

# %%
model = PrivateLogisticRegression(1.0, 1e-6, inference=True, random_state=0, **public).fit(X, y)
print(model.summary())

# %%
# The interval of the treatment's effect for five budgets (inf: without privacy). Dotted: the truth.
budgets = [0.3, 0.5, 1.0, 3.0, float("inf")]
for height, epsilon in enumerate(budgets):
    fit = PrivateLogisticRegression(
        epsilon, 1e-6, inference=True, random_state=height, **public
    ).fit(X, y)
    low, high = np.asarray(fit.conf_int())[-3]
    plt.plot([low, high], [height, height], color="#0b6e69", linewidth=4)
    plt.plot((low + high) / 2, height, "o", color="black")
plt.axvline(true[0], color="#b4540a", linestyle=":")
plt.yticks(range(len(budgets)), [f"{epsilon:g}" for epsilon in budgets])
plt.ylabel("epsilon")
plt.xlabel("change of the log-odds by the treatment")
plt.title("95 % intervals")
plt.show()
