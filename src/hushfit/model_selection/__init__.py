"""Private hyperparameter tuning: the best of a random number of trials.

Proof: docs/proofs/random_stopping.md.

PrivateSearchCV  Choose settings privately
HeldApart        Rows that serve one purpose, fitting or scoring
listed           All candidates; those from distributions are drawn
split            Units to fit on and units to score on
uniform_below    An integer below a number, exactly uniform
Scorer           A function of (model, X, y) with one score for each record
one_per_record   The scores, refused unless there is one for each record
scorer_from      The scoring function, by name or as given
Settled          Calibrated trials, and the cost of the search
Trial            A candidate's model and its released score
TrialAccount     The account of one trial
Trials           What trials share, and their costs before any row is read
best_of          The trial with the highest score
released_score   The noisy mean of scores
sole_payer       Name of the one part of an estimator that spends privacy
"""

from hushfit.model_selection._draws import HeldApart, listed, split, uniform_below
from hushfit.model_selection._scoring import Scorer, one_per_record, scorer_from
from hushfit.model_selection._search import PrivateSearchCV
from hushfit.model_selection._trials import (
    Settled,
    Trial,
    TrialAccount,
    Trials,
    best_of,
    released_score,
    sole_payer,
)

__all__ = [
    "HeldApart",
    "PrivateSearchCV",
    "Scorer",
    "Settled",
    "Trial",
    "TrialAccount",
    "Trials",
    "best_of",
    "listed",
    "one_per_record",
    "released_score",
    "scorer_from",
    "sole_payer",
    "split",
    "uniform_below",
]
