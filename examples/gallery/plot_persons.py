"""
Several rows per person
=======================

A guarantee for one row says little to somebody with forty rows. With ``groups`` it protects a
person with all of their rows, at the noise of a table with one row per person.
"""

import matplotlib.pyplot as plt
import numpy as np

from hushfit import PrivateLogisticRegression

# %%
# 8,000 persons with 1 to 20 visits each.
rng = np.random.default_rng(2)
persons = 8_000
visits = rng.integers(1, 21, persons)
patient = np.repeat(np.arange(persons), visits)
X = np.repeat(rng.uniform(-1, 1, (persons, 6)), visits, axis=0)
X = (X + rng.normal(scale=0.3, size=X.shape)).clip(-1, 1)
y = (X @ [2, -1, 1, 0, 0, 0.5] + rng.logistic(size=len(X)) > 0).astype(int)

# %%
# What a guarantee for one row means for a person with more of them.
settings = {"epsilon": 1.0, "delta": 1e-6, "classes": [0, 1], "random_state": 0}
settings["feature_bounds"] = (-1, 1)
by_row = PrivateLogisticRegression(**settings).fit(X, y)
sizes = [1, 2, 5, 10, 20]
epsilons = [by_row.privacy_.for_group(k).epsilon for k in sizes]

# %%
# And the fit that protects persons.
by_person = PrivateLogisticRegression(**settings).fit(X, y, groups=patient)
print(by_person.privacy_)

plt.plot(sizes, epsilons, "o-", color="#b4540a", label="fit for rows")
plt.plot(sizes, [1.0] * len(sizes), "s-", color="#0b6e69", label="fit for persons")
plt.xlabel("rows of one person")
plt.title("What one person is promised")
plt.ylabel("epsilon for that person, delta 1e-6")
plt.yscale("log")
plt.legend()
plt.show()
