"""
Ranking with private grades
===========================

Documents are public, grades are not: one noisy release fits the whole ranking.
"""

import matplotlib.pyplot as plt
import numpy as np

from hushfit import PrivateRanker

# %%
# 400 queries with ten documents each, and what judges thought of them.
rng = np.random.default_rng(7)
lists, length = 400, 10
X = rng.uniform(-1, 1, (lists * length, 5))
taste = X @ [1.5, -1.0, 0.5, 0.0, 0.0] + rng.normal(scale=0.4, size=len(X))
grades = np.digitize(taste, [-0.5, 0.5, 1.5])
qid = np.repeat(np.arange(lists), length)
train, test = qid < 300, qid >= 300

# %%
epsilons = [0.03, 0.1, 0.3, 1.0, 3.0]
scores = [
    [
        PrivateRanker(epsilon, 1e-4, max_grade=3, random_state=draw)
        .fit(X[train], grades[train], qid=qid[train])
        .score(X[test], grades[test], qid=qid[test])
        for draw in range(5)
    ]
    for epsilon in epsilons
]
print(PrivateRanker(1.0, 1e-4, max_grade=3).fit(X[train], grades[train], qid=qid[train]).privacy_)

# %%
plt.errorbar(epsilons, np.mean(scores, 1), np.std(scores, 1), fmt="o-", color="#0b6e69", capsize=3)
plt.xscale("log")
plt.xlabel("epsilon, of the grades of one list")
plt.title("Quality of the ranking for each budget")
plt.ylabel("NDCG@10 on other queries")
plt.show()
