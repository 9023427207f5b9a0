"""
Your own CSV: from a file to a model with a guarantee
=====================================================

The steps of every private fit: say what is public, plan, fit, look at the guarantee, score on rows
that were held out. The file here is simulated; put the name of yours in its place.
"""

import csv
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hushfit import PrivateLogisticRegression, SchemaEncoder
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.forecast import forecast

# %%
# A file such as a hospital has: age, days in bed, ward, and whether the patient came back.
rng = np.random.default_rng(0)
n = 20_000
age, days = rng.uniform(18, 95, n), rng.gamma(2.0, 3.0, n)
ward = rng.choice(["medicine", "surgery", "maternity"], n, p=[0.5, 0.35, 0.15])
logit = 0.04 * (age - 60) + 0.25 * (days - 6) - 1.5 * (ward == "maternity")
again = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no")
path = Path(mkdtemp()) / "stays.csv"
with path.open("w", newline="") as file:
    csv.writer(file).writerows(
        [
            ["age", "days", "ward", "again"],
            *zip(age.round(1), days.round(1), ward, again, strict=False),
        ]
    )

# %%
# **What is public.** Ranges and labels come from the hospital's forms, never from the rows.
schema = Schema(
    (
        NumericColumn("age", 18, 110),
        NumericColumn("days", 0, 30),
        CategoricalColumn("ward", ("medicine", "surgery", "maternity")),
    )
)

# %%
# **Plan.** Nothing is read: is epsilon 1 enough for 15,000 rows?
for epsilon in (0.1, 0.3, 1.0):
    plan = forecast(15_000, 6, epsilon, 1e-6)
    print(f"epsilon {epsilon}: about {100 * plan.loss:.1f} points of accuracy lost")

# %%
# **Fit** on 15,000 rows, and keep 5,000 to score.
table = pd.read_csv(path)
train, test = table[:15_000], table[15_000:]
encoder = SchemaEncoder(schema).fit(train)
model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=["no", "yes"], random_state=0)
model.fit(encoder.transform(train), train["again"])
print(model.privacy_)

# %%
# **Score**, beside the same model without privacy and at smaller budgets.
scores = {}
for epsilon in (0.03, 0.1, 0.3, 1.0, float("inf")):
    fit = PrivateLogisticRegression(epsilon, 1e-6, classes=["no", "yes"], random_state=1)
    fit.fit(encoder.transform(train), train["again"])
    scores[f"{epsilon:g}"] = fit.score(encoder.transform(test), test["again"])

plt.bar([*scores], [*scores.values()], color=["#0b6e69"] * 4 + ["#999999"])
plt.axhline((test["again"] == "no").mean().clip(0.5), color="#b4540a", label="most frequent class")
plt.ylim(0.4, 0.85)
plt.xlabel("epsilon")
plt.title("Accuracy for each budget")
plt.ylabel("accuracy on held-out rows")
plt.legend()
plt.show()
