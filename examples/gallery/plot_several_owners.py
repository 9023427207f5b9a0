"""
Several owners, no pooled rows
==============================

Four hospitals fit one model. Rows stay where they are; noisy vectors go along the edges of a
network.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from hushfit import PrivateLogisticRegression
from hushfit.federated import fit_together

# %%
# One of them has few patients.
rng = np.random.default_rng(6)
weights = np.array([2.0, -1.5, 1.0, 0.5, 0.0])


def rows(n):
    X = rng.uniform(-1, 1, (n, 5))
    return X, (X @ weights + rng.logistic(scale=0.5, size=n) > 0).astype(int)


tables = {"north": rows(1_200), "east": rows(800), "south": rows(800), "west": rows(150)}
X_test, y_test = rows(5_000)
model = PrivateLogisticRegression(0.5, 1e-5, classes=[0, 1], feature_bounds=(-1, 1))

# %%
# Each alone, and all together.
alone = {
    name: clone(model).set_params(random_state=0).fit(*table).score(X_test, y_test)
    for name, table in tables.items()
}
together = fit_together(model, tables, network="ring", random_state=0)
shared = {name: fit.score(X_test, y_test) for name, fit in together.models.items()}
print(together.guarantees["west"])

# %%
places = np.arange(len(tables))
plt.bar(places - 0.2, [*alone.values()], 0.4, color="#b4540a", label="alone")
plt.bar(places + 0.2, [shared[name] for name in tables], 0.4, color="#0b6e69", label="together")
plt.xticks(places, [*tables])
plt.ylim(0.5, 0.95)
plt.title("Accuracy of each hospital's model")
plt.ylabel("accuracy on other rows")
plt.legend()
plt.show()
