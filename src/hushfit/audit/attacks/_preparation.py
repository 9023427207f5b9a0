"""The queries of private preprocessing in the form of solvers, so that they are attacked and
replayed in the same way.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushfit.preprocessing import LOOKS, LOST_SHARE_OF_VOCABULARIES, spreads_of
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import (
    ColumnHistogram,
    Door,
    Plan,
    Planned,
    Thresholded,
    Vocabulary,
    vocabulary_of,
)
from hushfit.solvers import Iterate


@dataclass(frozen=True)
class QuantileQueries:
    """The two histograms of `PrivateQuantileScaler`; the second depends on the first answer. The
    weights are the medians.
    """

    takes_constraint = False

    def plan(self, problem: Problem) -> Plan:
        return Plan(tuple(Planned(name, ColumnHistogram, 1) for name in LOOKS))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        spreads = spreads_of(door, problem.n_features)
        yield Iterate(
            np.array([0.0 if spread is None else spread.quantile(0.5) for spread in spreads])
        )


@dataclass(frozen=True)
class VocabularyQuery:
    """The vocabulary of `SchemaEncoder`. The weights are the numbers of named texts.

    Parameters
    ----------
    lost : float or None
        Probability of naming a text that only one record has. None is the share of delta that the
        encoder takes.
    """

    lost: float | None = None

    takes_constraint = False

    def for_budget(self, budget: Budget, problem: Problem) -> "VocabularyQuery":
        """The same with its share of delta."""
        return VocabularyQuery(
            LOST_SHARE_OF_VOCABULARIES * budget.delta if self.lost is None else self.lost
        )

    def mechanism(self, problem: Problem) -> Thresholded:
        """The mechanism that names the texts."""
        return Thresholded(self.lost or 0.0, problem.n_features)

    def plan(self, problem: Problem) -> Plan:
        return Plan((Planned("vocabulary", Vocabulary, 1, sampling=self.mechanism(problem)),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        named = vocabulary_of(door.release("vocabulary", Vocabulary(problem.n_features)))
        yield Iterate(np.array([float(len(texts)) for texts in named]))
