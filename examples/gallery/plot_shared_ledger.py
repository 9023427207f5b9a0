"""
One budget for everybody
========================

A ledger is charged before rows are read, adds up costs as they compose, and refuses what would
exceed the budget.
"""

import matplotlib.pyplot as plt
import numpy as np

from hushfit import Ledger, PrivateLogisticRegression
from hushfit.errors import BudgetExceeded

rng = np.random.default_rng(5)
X, y = rng.uniform(-1, 1, (5_000, 4)), rng.integers(0, 2, 5_000)

# %%
# Analysts come one after the other, each with a request of epsilon 0.4.
ledger = Ledger(epsilon=2.0, delta=1e-6)
spent = [0.0]
try:
    while True:
        PrivateLogisticRegression(
            0.4, 1e-7, classes=[0, 1], ledger=ledger, random_state=len(spent)
        ).fit(X, y)
        spent.append(ledger.spent().epsilon)
except BudgetExceeded as refused:
    print(f"request {len(spent)} was refused: {refused}")

# %%
counts = np.arange(len(spent))
plt.step(counts, 0.4 * counts, where="post", color="#b4540a", label="sum of the epsilons")
plt.step(counts, spent, where="post", color="#0b6e69", label="composed, as the ledger counts")
plt.axhline(2.0, color="black", linestyle=":", label="budget")
plt.xlabel("fits paid for")
plt.title("What many fits cost together")
plt.ylabel("epsilon at delta 1e-6")
plt.legend()
plt.show()
