"""The search: the best of a random number of trials. Proof: docs/proofs/random_stopping.md."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from hushfit._typing import AnyArray
from hushfit.data import Coins
from hushfit.errors import InsecureNoiseWarning, WeakGuaranteeWarning
from hushfit.estimators import ExplainsArguments, features_of, persons_in, split_groups
from hushfit.model_selection._draws import HeldApart, listed, split, uniform_below
from hushfit.model_selection._scoring import one_each, one_per_record, scorer_from
from hushfit.model_selection._trials import Trial, Trials, best_of, sole_payer
from hushfit.preprocessing import payers, person_unit_of
from hushfit.privacy import Budget, Guarantee, Relation, ReleaseRecord, usable
from hushfit.privacy.accounting import StoppingRule, stopping_rule
from hushfit.release import Randomness, Terms, promised_and_paid, require_payer
from hushfit.unit import ROW, PrivacyUnit


class PrivateSearchCV(ExplainsArguments, MetaEstimatorMixin, BaseEstimator):
    """Choose settings privately: the best of a random number of random candidates.

    Each candidate is fitted and scored privately, and only the best is published. Tuning on private
    rows costs privacy, even if only the best model is shown. Here the number of trials is random
    and stays secret, so that all of them together cost little more than one or two, and are charged
    once. ``solver="auto"`` needs no tuning: use this for what it does not choose, such as the
    weight of a penalty, and see docs/model-selection.md for when it is worth its cost.

    Parameters
    ----------
    estimator : private estimator
        Such as `PrivateLogisticRegression`, or a scikit-learn pipeline with one such part. Its own
        epsilon, delta, adjacency, ledger and random_state are set by the search.
    candidates : mapping or sequence of mappings
        A grid (parameter name to list of values), several grids, or, where a value has ``rvs``,
        distributions to draw ``n_candidates`` settings from. Must be known without reading the
        rows.
    expected_trials : float, default=10
        Mean number of trials.
    epsilon : float, default=1.0
        Budget of the whole search: all trials, their scores and the model.
    delta : float, default=1e-6
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    stopping : {"geometric", "logarithmic", "poisson"}, default="geometric"
        Distribution of the number of trials. "logarithmic" is the cheapest and often stops after
        one trial; "poisson" is the most expensive and stays near its mean.
    holdout : float, default=0.2
        Share of the rows, or of the persons, held out to score the candidates.
    scoring : {"accuracy", "brier"} or callable, default="accuracy"
        ``"brier"`` is one minus the mean squared error of the probability given to the true class.
        A callable takes ``(model, X, y)`` and returns one number in [0, 1] for each row, of that
        row and the model alone. With ``groups`` scores are weighted as rows are in the fit.
    n_candidates : int, default=20
        Number of settings to draw where ``candidates`` has distributions.
    ledger : Ledger, optional
        Charged once, before the rows are read.
    random_state : None or int, default=None
        None is the only secure setting.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted on the rows that were not held out. Its ``privacy_`` is that of the search.
    best_params_ : dict
    best_index_ : int
        Its index in ``candidates_``.
    best_score_ : float
        Its noisy score: biased upwards, as the maximum of several. With ``groups`` it is the mean
        over persons; with ``person_weight="cap"``, where persons with few rows count less than
        one, it is divided by the number of persons all the same, and so smaller.
    candidates_ : list of dict
        All settings that a trial could draw.
    guarantee_, privacy_ : Guarantee
    classes_, n_features_in_
        Of the best estimator, where it has them.

    Notes
    -----
    Nothing about the other trials is stored, nor how many there were. The running time grows with
    the number of trials: do not let anyone who may not know the rows measure it.

    Examples
    --------
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.model_selection import PrivateSearchCV
    >>> model = PrivateLogisticRegression(penalty="l1", classes=[0, 1])
    >>> PrivateSearchCV(model, {"alpha": [1e-4, 1e-3, 1e-2]}, expected_trials=5).epsilon
    1.0
    """

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        expected_trials: float = 10,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        stopping: str = "geometric",
        holdout: float = 0.2,
        scoring: Any = "accuracy",
        n_candidates: int = 20,
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.expected_trials = expected_trials
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.stopping = stopping
        self.holdout = holdout
        self.scoring = scoring
        self.n_candidates = n_candidates
        self.ledger = ledger
        self.random_state = random_state

    def person_unit(self, column: str | None = None) -> PrivacyUnit:
        """The privacy unit of a search with ``groups``: that of the estimator.

        Parameters
        ----------
        column : str, optional
            Name of the column of ids.

        Returns
        -------
        PrivacyUnit
        """
        sole_payer(self.estimator)
        return person_unit_of(payers(self.estimator), column)

    def fit(self, X: Any, y: Any, groups: Any = None) -> "PrivateSearchCV":
        """Run the search and charge its cost.

        Parameters
        ----------
        X : whatever the estimator takes
        y : array of shape (n_rows,)
        groups : array of shape (n_rows,) or str, optional
            Ids: whose row each is. The search then protects persons, and holds out persons with
            all of their rows. A text names a column of the data frame, which is no feature.

        Returns
        -------
        self
        """
        budget, relation, scorer = (
            Budget(self.epsilon, self.delta),
            Relation.parse(self.adjacency),
            scorer_from(self.scoring),
        )
        require_payer(self.ledger)
        rule = stopping_rule(self.stopping, self.expected_trials)
        X, ids = split_groups(X, groups, y)
        persons = persons_in(self, ids)
        n, unit = (_num_samples(X), ROW) if persons is None else (persons.n_persons, persons.unit)
        randomness = Randomness.of(self.random_state)
        coins = randomness.coins
        candidates = listed(self.candidates, self.n_candidates, coins)
        fitted_on, scored_on = (
            HeldApart.of(units, persons) for units in split(n, self.holdout, coins, unit)
        )
        table, labels = fitted_on.taken_from(X), fitted_on.taken_from(y)
        trials = Trials(self.estimator, candidates, budget.delta, relation, fitted_on.persons)
        trials.require_one_unit()
        spendable, reserve = usable(budget)
        with warnings.catch_warnings():
            # The search issues these once, below.
            for category in (InsecureNoiseWarning, WeakGuaranteeWarning):
                warnings.simplefilter("ignore", category)
            settled = trials.settled(spendable, rule, table, labels)
        record = self._record(settled.strength, rule)
        terms = self._terms(budget, randomness, unit)
        held = scored_on.taken_from(X), one_each(scored_on.taken_from(y))
        guarantee, _ = promised_and_paid(settled.cost, (record,), n, relation, terms, unit)

        def one_trial() -> Trial:
            candidate = uniform_below(len(candidates), coins)
            model = settled.fitted(candidate, table, labels, _seed(self.random_state, coins))
            scores = one_per_record(scorer(model, *held), len(scored_on.rows))
            score = settled.score(scores, randomness, reserve, scored_on.persons)
            return Trial(candidate, model, score)

        # Their warnings would reveal the number of trials.
        with warnings.catch_warnings(action="ignore"):
            best = best_of(one_trial, rule.draw(coins.words))
        self._store(best, candidates, guarantee)
        return self

    def _store(self, best: Trial, candidates: list[dict[str, Any]], guarantee: Guarantee) -> None:
        # All at once, at the end: a search that was refused leaves the result and the guarantee of
        # the one before.
        self.candidates_, self.guarantee_ = candidates, guarantee
        self.best_index_, self.best_score_ = best.candidate, best.score
        self.best_params_ = candidates[best.candidate]
        self.best_estimator_ = best.model
        for _, part in payers(best.model):
            own: Guarantee = part.privacy_
            # All but its number of units, which is that of the training rows.
            public, notes = (
                (*self.guarantee_.public, *own.public[1:]),
                (*self.guarantee_.notes, *own.notes),
            )
            self.guarantee_ = self.privacy_ = part.privacy_ = replace(
                self.guarantee_, public=public, notes=notes
            )
            # The account of a trial belongs to the search.
            part.set_params(ledger=None)

    def _record(self, strength: float, rule: StoppingRule) -> ReleaseRecord:
        how = f"at least one trial, {rule.mean:g} expected ({type(rule).__name__})"
        what, name = "best of a random number of trials", type(self.estimator).__name__
        return ReleaseRecord(what, name, 1, 1 / strength, how)

    def _terms(self, budget: Budget, randomness: Randomness, unit: PrivacyUnit) -> Terms:
        return Terms(
            budget,
            type(self).__name__,
            randomness,
            self.ledger,
            public=("the candidates, given by the caller",),
            notes=(
                "The number of trials is secret; so is everything about those that lost.",
                f"Each trial is fitted on some {unit.plural} and scored on the others, "
                f"{self.holdout:g} of all.",
            ),
        )

    @available_if(lambda self: hasattr(self._best(), "predict"))
    def predict(self, X: Any) -> Any:
        """Predict with the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(self._features(X))

    @available_if(lambda self: hasattr(self._best(), "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(self._features(X))

    @available_if(lambda self: hasattr(self._best(), "decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Margins of the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(self._features(X))

    @available_if(lambda self: hasattr(self._best(), "score"))
    def score(self, X: Any, y: Any) -> float:
        """Score of the best estimator. On private rows this is an unpaid release."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(self._features(X), y))

    @property
    def classes_(self) -> AnyArray:
        """Labels of the best estimator."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.classes_)

    @property
    def n_features_in_(self) -> int:
        """Columns of the best estimator."""
        check_is_fitted(self)
        return int(self.best_estimator_.n_features_in_)

    def _features(self, X: Any) -> Any:
        return features_of(X, self.privacy_.unit.column)

    def _best(self) -> Any:
        return getattr(self, "best_estimator_", self.estimator)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = self.estimator.__sklearn_tags__().estimator_type
        return tags


def _seed(random_state: Any, coins: Coins) -> int | None:
    """A seed for one trial of a seeded search; None if the search is secure."""
    return None if random_state is None else int(coins.words(1)[0]) % 2**31
