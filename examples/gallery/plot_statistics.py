"""
Statistics with intervals
=========================

Means, quantiles and shares of a whole table for one budget, each with an interval that covers
sampling and noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.statistics import describe

# %%
rng = np.random.default_rng(9)
n = 10_000
table = {
    "age": rng.gamma(9, 5, n).clip(0, 110),
    "income": rng.lognormal(10.3, 0.5, n),
    "region": rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
}
schema = Schema(
    (
        NumericColumn("age", 0, 110),
        NumericColumn("income", 0, 150_000),
        CategoricalColumn("region", ("north", "south", "west")),
    )
)

# %%
found = describe(table, schema, epsilon=1.0, delta=1e-6, random_state=0)
for one in found.estimates:
    label = one.of if one.of is not None else ""
    print(
        f"{one.column:8} {one.statistic:10} {label!s:6} {one.value:12.3f}"
        f"  [{one.low:.3f}, {one.high:.3f}]"
    )

# %%
shares = [one for one in found.estimates if one.column == "region"]
values = [one.value for one in shares]
errors = [
    [v - one.low for v, one in zip(values, shares, strict=False)],
    [one.high - v for v, one in zip(values, shares, strict=False)],
]
plt.bar([str(one.of) for one in shares], values, yerr=errors, color="#0b6e69", capsize=5)
plt.title("Shares of the regions")
plt.ylabel("share, with an interval of 95 %")
plt.show()
