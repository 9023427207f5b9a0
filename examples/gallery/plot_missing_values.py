"""
Missing values
==============

A missing cell becomes the middle of its public range, and a column may declare an indicator, so
that the model can learn that the cell was missing. Nothing about other rows is used: it costs
nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hushfit import PrivateLogisticRegression, SchemaEncoder
from hushfit.data.schema import NumericColumn, Schema

# %%
# A test that is ordered mostly for patients who look ill: that it is missing says something.
rng = np.random.default_rng(1)
n = 20_000
ill = rng.random(n) < 0.4
level = rng.normal(np.where(ill, 6.0, 5.0), 1.0).clip(0, 12)
level[rng.random(n) < np.where(ill, 0.2, 0.7)] = np.nan
table = pd.DataFrame({"level": level, "age": rng.uniform(18, 95, n)})
train, test = slice(0, 15_000), slice(15_000, n)

# %%
# The same column without and with an indicator.
scores = {}
for name, missing in (("filled", None), ("with an indicator", "indicator")):
    given = {} if missing is None else {"missing": missing}
    schema = Schema((NumericColumn("level", 0, 12, **given), NumericColumn("age", 18, 110)))
    X = SchemaEncoder(schema).fit(table[train]).transform(table)
    model = PrivateLogisticRegression(1.0, 1e-6, classes=[False, True], random_state=0)
    scores[name] = model.fit(X[train], ill[train]).score(X[test], ill[test])
print(scores)

# %%
plt.bar([*scores], [*scores.values()], color=["#b4540a", "#0b6e69"], width=0.5)
plt.axhline(0.6, color="gray", linestyle=":", label="most frequent class")
plt.ylim(0.5, 0.85)
plt.title("A feature that says: this was missing")
plt.ylabel("accuracy on held-out rows")
plt.legend()
plt.show()
