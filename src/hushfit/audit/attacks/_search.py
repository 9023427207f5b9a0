"""An attack on private model selection: a search that prefers the model that reveals most about the
canary.

Publishing the best of several models leaks more than publishing one, and most if "best" means most
informative for the attacker. So the score here is the weight of the canary's own column, and the
published weight indicates the table.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import _safe_indexing

from hushfit._typing import AnyArray, Matrix, Vector
from hushfit.audit._bounds import Claim, Curve
from hushfit.audit.checks import best_of_gaussians, curve_of
from hushfit.estimators import PrivateLogisticRegression
from hushfit.model_selection import (
    Settled,
    Trial,
    Trials,
    best_of,
    one_per_record,
    split,
    uniform_below,
)
from hushfit.privacy import Budget, Relation, replaces_one, usable
from hushfit.privacy.accounting import StoppingRule, stopping_rule
from hushfit.release import Randomness
from hushfit.solvers import ProximalGradient

# Enough rows that the noise of a score does not decide. A small held-out share makes it more likely
# that the canary is among the fitted rows.
_ROWS, _HOLDOUT = 400, 0.05
_CANDIDATES: list[dict[str, Any]] = [{}]
_SIZING_FITS = 64
SEARCHES = {"search": ("geometric", 3.0)}
"""Attacked searches: the distribution of the number of trials, and its mean."""


@dataclass(frozen=True, eq=False)
class SearchAttack:
    """A private search on two tables that differ in one row, quoted once and run as
    `PrivateSearchCV` runs.

    Parameters
    ----------
    stopping : str
        Distribution of the number of trials.
    expected_trials : float
    relation : Relation
    budget : Budget
        Of the whole search.
    """

    stopping: str
    expected_trials: float
    relation: Relation
    budget: Budget

    @property
    def words(self) -> str:
        """How the tables differ."""
        other = "the opposite label" if replaces_one(self.relation) else "no record"
        return f"a unit record against {other}; the search prefers models that show it"

    @cached_property
    def rule(self) -> StoppingRule:
        return stopping_rule(self.stopping, self.expected_trials)

    @cached_property
    def tables(self) -> tuple[tuple[Matrix, AnyArray], tuple[Matrix, AnyArray]]:
        """Two tables whose rows are zero but for one."""
        X, y = np.zeros((_ROWS, 1)), np.resize([0, 1], _ROWS)
        first, second = X.copy(), X.copy()
        first[0], second[0] = 1.0, 1.0 if replaces_one(self.relation) else np.nan
        return (first, np.where(np.arange(_ROWS) == 0, 1, y)), (second, y)

    @cached_property
    def settled(self) -> Settled:
        """The trials with their noise and the cost of the search."""
        model = PrivateLogisticRegression(
            solver=ProximalGradient(steps=1),
            classes=[0, 1],
            fit_intercept=False,
            nonfinite="zero",
        )
        trials = Trials(model, _CANDIDATES, self.budget.delta, self.relation)
        return trials.settled(usable(self.budget)[0], self.rule, *self.tables[1])

    @cached_property
    def claim(self) -> Claim:
        """The budget, the cost of the search, and the exact trade-off curve of a search as a
        function of the noise factor of its trials.
        """

        def scaled(factor: float) -> Curve:
            mu = self.settled.strength / factor
            # If the record is held out, weights are centred between those with either record, or
            # at those with the null record.
            laws = best_of_gaussians(
                mu, self.rule, _HOLDOUT, mu / 2 if replaces_one(self.relation) else 0.0
            )
            return curve_of(laws)

        return Claim(
            self.budget.epsilon, self.budget.delta, self.relation, self.settled.cost, scaled
        )

    @cached_property
    def size(self) -> float:
        """Standard deviation of the weight over fits, a scale on which scores are neither all 0
        nor all 1.
        """
        return float(np.std([self._fitted(1, seed).coef_[0, 0] for seed in range(_SIZING_FITS)]))

    def _fitted(self, world: int, seed: int) -> Any:
        with warnings.catch_warnings(action="ignore"):
            return self.settled.fitted(0, *self.tables[world], seed)

    def score(self, model: Any, X: Any, y: AnyArray) -> Vector:
        """The same score for every row: larger if the model indicates the first table."""
        return np.full(len(y), float(expit(model.coef_[0, 0] / self.size)))

    def published(self, world: int, seed: int) -> float:
        """The published weight: the larger, the more likely the first table."""
        randomness = Randomness.of(seed % 2**32)
        coins = randomness.coins
        (X, y), reserve = self.tables[world], usable(self.budget)[1]
        # As in PrivateSearchCV.fit; a test compares the two.
        fitted_on, scored_on = split(_ROWS, _HOLDOUT, coins)
        table, labels = _safe_indexing(X, fitted_on), _safe_indexing(y, fitted_on)
        held = _safe_indexing(X, scored_on), np.asarray(_safe_indexing(y, scored_on))

        def one_trial() -> Trial:
            candidate = uniform_below(len(_CANDIDATES), coins)
            model = self.settled.fitted(candidate, table, labels, int(coins.words(1)[0]) % 2**31)
            scores = one_per_record(self.score(model, *held), len(scored_on))
            return Trial(candidate, model, self.settled.score(scores, randomness, reserve))

        with warnings.catch_warnings(action="ignore"):
            return float(best_of(one_trial, self.rule.draw(coins.words)).model.coef_[0, 0])


def search_attacks(relation: Relation | str, budget: Budget) -> dict[str, SearchAttack]:
    """Attacks on private model selection, by name.

    Parameters
    ----------
    relation : Relation or str
    budget : Budget

    Returns
    -------
    dict of str to SearchAttack
    """
    return {
        name: SearchAttack(*law, Relation.parse(relation), budget) for name, law in SEARCHES.items()
    }
