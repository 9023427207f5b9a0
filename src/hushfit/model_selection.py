"""Private hyperparameter tuning: the best of a random number of trials.

Proof: docs/proofs/random_stopping.md.
"""

import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_features, _num_samples, check_is_fitted

from hushfit._typing import AnyArray, IntVector, Vector
from hushfit.data import Coins, Persons, as_source, fixed_size_units
from hushfit.errors import (
    InsecureNoiseWarning,
    InvalidArgument,
    TooFewRows,
    UndeclaredRelease,
    WeakGuaranteeWarning,
)
from hushfit.estimators import (
    ExplainsArguments,
    as_cells,
    features_of,
    persons_in,
    places_of,
    public_classes,
    split_groups,
)
from hushfit.preprocessing import (
    PrivatePipeline,
    fitted_with,
    payers,
    person_unit_of,
    refuse_choices_by_rows,
    refuse_unused_settings_of,
)
from hushfit.privacy import (
    Budget,
    Cost,
    GaussianCost,
    Guarantee,
    Ledger,
    Receipt,
    Relation,
    ReleaseRecord,
    calibrate,
    epsilon_of,
    usable,
)
from hushfit.privacy.accounting import (
    StoppingRule,
    best_of_many,
    dearest,
    lost_mass,
    normal_form,
    stopping_rule,
)
from hushfit.privacy.ledger import ClosedAccount, Decide, Tally
from hushfit.release import (
    Contract,
    Plan,
    Planned,
    Quote,
    Randomness,
    Terms,
    TotalScore,
    promised_and_paid,
    require_payer,
)
from hushfit.unit import ROW, PrivacyUnit

Scorer = Callable[[Any, Any, AnyArray], Vector]
_SCORE = "score"
_SCORE_PLAN = Plan((Planned(_SCORE, TotalScore, 1),))


class TrialAccount:
    """The account of one trial: it accepts one payment, of exactly the quoted cost."""

    def __init__(self, relation: Relation, delta: float, price: Cost) -> None:
        self.budget, self.relation, self.name = Budget(float("inf"), delta), relation, "trial"
        self.adaptive = False
        self.unit = None  # the search charges the ledger, and states the unit there
        self.costs: list[Cost] = []
        self._price = price
        self._lock = threading.Lock()

    def entries(self) -> tuple[Receipt, ...]:
        return ()

    def tally(self) -> Tally:
        return Tally.of(self)

    def append(self, decide: Decide) -> Receipt:
        receipt = decide(self.tally())
        with self._lock:
            # Before it is recorded: a payment that is refused releases nothing.
            if self.costs or receipt.cost != self._price:
                raise _unpriced(receipt.label)
            self.costs.append(receipt.cost)
        return receipt

    def __deepcopy__(self, memo: dict[int, Any]) -> "TrialAccount":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy elsewhere could pay a second time.
        return ClosedAccount, (self.budget, self.relation, self.name, (), False, self.unit)


def _unpriced(label: str) -> UndeclaredRelease:
    return UndeclaredRelease(
        f"{label} would pay more in a trial than the search was priced with. Nothing was released "
        "for it. Search over an estimator that pays once, independently of the rows; fit private "
        "preprocessing beforehand, with its own budget."
    )


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate's model, its released score, and the index of the candidate."""

    candidate: int
    model: Any = field(repr=False)
    score: float


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
        held = scored_on.taken_from(X), _one_each(scored_on.taken_from(y))
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


@dataclass(frozen=True, eq=False)
class HeldApart:
    """Rows that serve one purpose, fitting or scoring, and whose they are: a person has all of
    their rows here, or none.
    """

    rows: IntVector
    persons: Persons | None

    @classmethod
    def of(cls, units: IntVector, persons: Persons | None) -> "HeldApart":
        """The rows of some units."""
        if persons is None:
            return cls(units, None)
        rows = persons.rows_of(units)
        codes = np.searchsorted(units, persons.codes[rows])
        return cls(rows, Persons(codes, len(units), persons.unit))

    def taken_from(self, table: Any) -> Any:
        """These rows of a table or list."""
        return _safe_indexing(table, self.rows)


@dataclass(frozen=True, eq=False)
class Trials:
    """What trials share: the estimator, the candidates, and their costs before any row is read.

    ``persons`` has the persons of the rows that trials are fitted on; None if units are rows.
    """

    estimator: Any
    candidates: list[dict[str, Any]]
    delta: float
    relation: Relation
    persons: Persons | None = None

    def __post_init__(self) -> None:
        sole_payer(self.estimator)

    def require_one_unit(self) -> None:
        """Refuse candidates that protect something other than the search does."""
        for index in range(len(self.candidates)):
            model = self.candidate(index, 1.0, None, None)
            if self.persons is None:
                refuse_unused_settings_of(model)
                continue
            unit = self.persons.unit
            own = person_unit_of(payers(model), unit.column)
            if own != unit:
                raise InvalidArgument(
                    f"The candidate {self.candidates[index]!r} would protect {own}, and the "
                    f"estimator {unit}. The weights of a person's rows are part of the guarantee: "
                    "set person_weight and rows_per_person on the estimator, not in candidates."
                )

    def candidate(
        self, index: int, strength: float, seed: int | None, account: TrialAccount | None
    ) -> Any:
        """A candidate's estimator, calibrated to a Gaussian mechanism of mu ``strength``."""
        # An estimator among the settings must not be fitted itself: it would store what another
        # trial has learnt.
        settings = {
            name: clone(value, safe=False) for name, value in self.candidates[index].items()
        }
        model = clone(self.estimator).set_params(**settings)
        # A setting may have replaced a part.
        name = sole_payer(model)
        epsilon = (
            epsilon_of(GaussianCost(1 / strength), self.delta, self.relation)
            if np.isfinite(strength)
            else strength
        )
        terms = {
            "epsilon": epsilon,
            "delta": self.delta,
            "adjacency": str(self.relation),
            "random_state": seed,
        }
        prefix = f"{name}__" if name else ""
        # Output of the trials would reveal how many there are.
        silent = dict.fromkeys(
            (key for key in model.get_params() if key.rpartition("__")[2] == "verbose"), False
        )
        terms["ledger"] = None if account is None else Ledger.over(account)
        return model.set_params(
            **silent, **{f"{prefix}{term}": value for term, value in terms.items()}
        )

    def price(self, index: int, strength: float, X: Any, y: Any) -> Cost:
        """Cost of fitting one candidate, from the shape of the input of its private part."""
        model = self.candidate(index, strength, None, None)
        refuse_choices_by_rows(model, X)
        return _quote_of(model, X, y, self.persons).cost

    def prices(self, strength: float, X: Any, y: Any) -> tuple[Cost, ...]:
        """Cost of fitting each candidate."""
        return tuple(self.price(index, strength, X, y) for index in range(len(self.candidates)))

    def one(self, strength: float, prices: tuple[Cost, ...]) -> Cost:
        """Cost of one trial: the most expensive of scoring and the fits of all candidates.

        A record is used for fitting or for scoring, never for both.
        """
        return dearest([GaussianCost(1 / strength), *prices], self.relation)

    def settled(self, budget: Budget, rule: StoppingRule, X: Any, y: Any) -> "Settled":
        """Trials calibrated to the budget, with the cost of the whole search."""
        if not budget.is_private:
            return Settled(self, float("inf"), self.prices(float("inf"), X, y), GaussianCost(0.0))

        def whole(one: Cost) -> Cost:
            return best_of_many(one, rule, self.relation)

        strength = calibrate(lambda mu: whole(GaussianCost(1 / mu)), budget, self.relation)
        prices = self.prices(strength, X, y)
        one = self.one(strength, prices)
        # If trials have a failure probability, each gets so small a delta that all together leave
        # half of delta to the rest.
        share = budget.delta / (2 * rule.mean)
        if lost_mass(one) > share and self.delta > share:
            return replace(self, delta=share).settled(budget, rule, X, y)
        if not normal_form(one, self.relation).is_gaussian:
            # Costs that are not Gaussian must be computed again at every strength.
            strength = calibrate(
                lambda mu: whole(self.one(mu, self.prices(mu, X, y))), budget, self.relation
            )
            prices = self.prices(strength, X, y)
            one = self.one(strength, prices)
        return Settled(self, strength, prices, whole(one))


@dataclass(frozen=True, eq=False)
class Settled:
    """Calibrated trials: their mu, the cost of each candidate, and the cost of the search."""

    trials: Trials
    strength: float
    prices: tuple[Cost, ...]
    cost: Cost

    def fitted(self, index: int, X: Any, y: Any, seed: int | None) -> Any:
        """A candidate's model, for the cost that the search was accounted with."""
        account = TrialAccount(self.trials.relation, self.trials.delta, self.prices[index])
        model = self.trials.candidate(index, self.strength, seed, account)
        return fitted_with(model, X, y, self.trials.persons)

    def score(
        self,
        scores: Vector,
        randomness: Randomness,
        reserve: float,
        persons: Persons | None = None,
    ) -> float:
        """The noisy mean score of the held-out rows or persons, for the same cost."""
        return released_score(scores, self.strength, self.trials, randomness, reserve, persons)


def sole_payer(estimator: Any) -> str:
    """Name of the one part that spends privacy; empty for the estimator itself.

    Refuses estimators with none or several such parts, or with one that pays in parts.
    """
    found = payers(estimator)
    if len(found) != 1:
        raise InvalidArgument(
            f"{type(estimator).__name__} has {len(found)} parts that spend privacy; a trial should "
            "have one. Fit private preprocessing once, with its own budget, and search over the "
            "model alone."
        )
    ((name, part),) = found
    if isinstance(part, PrivatePipeline):
        raise InvalidArgument(
            "A PrivatePipeline divides one budget among its steps, so the cost of a trial is not "
            "known before it runs. Fit private preprocessing once, with its own budget, and "
            "search over the model alone."
        )
    return name


class _Widths(list[int]):
    """Recorded numbers of columns; shared by the copies that scikit-learn makes of their holder."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Widths":
        return self


class _Probe(TransformerMixin, BaseEstimator):
    """Replaces a private part and records how many columns it gets; learns and releases nothing."""

    def __init__(self, seen: _Widths) -> None:
        self.seen = seen

    def fit(self, X: Any, y: Any = None) -> "_Probe":
        self.seen.append(_num_features(X))
        return self

    def transform(self, X: Any) -> Any:
        return X


def _quote_of(model: Any, X: Any, y: Any, persons: Persons | None) -> Quote:
    """Quote for a model with one private part; the parts before it learn nothing from the rows."""
    ((name, part),) = payers(model)
    if not callable(getattr(part, "quote", None)):
        raise InvalidArgument(
            f"{type(part).__name__} has no quote(n_units, n_features), so no trial of it can be "
            "priced. Give it one, or search over an estimator of hushfit."
        )
    n_features = _width_at(model, name, X, y) if name else _num_features(X)
    further: dict[str, Any] = {}
    if is_classifier(part) and part.classes is None:
        further["n_classes"] = len(public_classes(None, y))
    if persons is None:
        return part.quote(_num_samples(X), n_features, **further)
    return part.quote(persons.n_persons, n_features, per_person=True, **further)


def _width_at(model: Any, name: str, X: Any, y: Any) -> int:
    """Number of columns that reach the part of that name."""
    seen = _Widths()
    clone(model).set_params(**{name: _Probe(seen)}).fit(X, y)
    return seen[0]


def _one_each(y: Any) -> AnyArray:
    """Held-out labels, each as it is; refused in more than one dimension, before payment."""
    labels = as_cells(y)
    if labels.shape[1:] not in ((), (1,)):
        raise InvalidArgument(
            "y should have one value for each row of X, in one dimension, and has not."
        )
    return labels.ravel()


def best_of(one_trial: Callable[[], Trial], count: int) -> Trial:
    """The trial with the highest score; the first of equal ones."""
    best = one_trial()
    for _ in range(count - 1):
        trial = one_trial()
        if trial.score > best.score:
            best = trial
    return best


def one_per_record(scores: Vector, count: int) -> Vector:
    """The scores, if there is one for each record.

    Otherwise their number may reveal something about the rows, so no message has it.
    """
    if np.shape(scores) != (count,):
        raise InvalidArgument(
            "scoring should return one number for each held-out row, in their order, and did not. "
            "Score every row on its own; give 0 to a row that does not count."
        )
    return scores


def released_score(
    scores: Vector,
    strength: float,
    trials: Trials,
    randomness: Randomness,
    reserve: float,
    persons: Persons | None = None,
) -> float:
    """The noisy mean of scores, released by a Gaussian mechanism of mu ``strength``."""
    source = as_source(np.zeros((len(scores), 1)), scores, persons=persons)
    multiplier = 1 / strength if np.isfinite(strength) else 0.0
    quote = Quote.at(_SCORE_PLAN, {_SCORE: multiplier}, source.n_units, reserve)
    account = Ledger.over(TrialAccount(trials.relation, trials.delta, quote.cost))
    budget = Budget(float("inf"), trials.delta)
    terms = Terms(budget, "score of a trial", randomness, account, warn=False)
    contract = Contract.signed(source, quote, trials.relation, terms)
    return float(contract.curator.release(_SCORE, TotalScore())[0]) / source.n_units


def scorer_from(scoring: Any) -> Scorer:
    """The scoring function, by name or as given."""
    if callable(scoring):
        return lambda model, X, y: np.asarray(scoring(model, X, y), dtype=np.float64)
    if scoring not in _SCORERS:
        names = ", ".join(map(repr, _SCORERS))
        raise InvalidArgument(
            f"scoring={scoring!r} is not known. Use {names}, or a function of (model, X, y) with a "
            "score for each row."
        )
    return _SCORERS[scoring]


def _hits(model: Any, X: Any, y: AnyArray) -> Vector:
    # Not compared as arrays: one odd label would then turn all scores into misses.
    predicted, given = np.unique(model.predict(X), return_inverse=True)
    return np.asarray(places_of(y, predicted) == given, dtype=np.float64)


def _brier(model: Any, X: Any, y: AnyArray) -> Vector:
    # A label that is not a class has probability 0; looking it up would raise an error that reveals
    # something about its row.
    classes = np.asarray(model.classes_)
    is_true_class = places_of(y, classes)[:, None] == np.arange(len(classes))
    given = np.where(is_true_class, model.predict_proba(X), 0.0).sum(axis=1)
    return np.asarray(1 - (1 - given) ** 2)


_SCORERS: dict[str, Scorer] = {"accuracy": _hits, "brier": _brier}


def listed(candidates: Any, count: int, coins: Coins) -> list[dict[str, Any]]:
    """All candidates; those from distributions are drawn here, and are public from then on."""
    grids = (
        [candidates]
        if isinstance(candidates, Mapping)
        else list(candidates)
        if isinstance(candidates, Iterable)
        else []
    )
    if not grids or not all(isinstance(grid, Mapping) for grid in grids):
        raise InvalidArgument(
            f"candidates={candidates!r} has no settings. Give a mapping from parameter names to "
            "lists of values."
        )
    if any(hasattr(values, "rvs") for grid in grids for values in grid.values()):
        seed = int(coins.words(1)[0]) % 2**32
        return list(ParameterSampler(grids, count, random_state=seed))
    found = list(
        ParameterGrid([{name: _values(values) for name, values in grid.items()} for grid in grids])
    )
    if len(found) > 1000:
        raise InvalidArgument(f"{len(found)} candidates are too many to price. Give at most 1000.")
    return found


def _values(values: Any) -> Any:
    """A single value counts as a list of one."""
    return values if isinstance(values, list | tuple | np.ndarray) else [values]


def split(
    n_units: int, share: float, coins: Coins, unit: PrivacyUnit = ROW
) -> tuple[IntVector, IntVector]:
    """Units to fit on and units to score on, by random bits independent of the rows."""
    if not 0 < share < 1:
        raise InvalidArgument(
            f"holdout={share!r} is not a share of the {unit.plural}. Give a number between 0 and "
            "1, such as 0.2."
        )
    count = round(share * n_units)
    if not 1 <= count <= n_units - 2:
        raise TooFewRows(
            f"holdout={share:g} of {n_units} {unit.plural} leaves too few to score or to fit on. "
            f"Give more {unit.plural}."
        )
    scored_on = fixed_size_units(n_units, count, coins)
    return np.setdiff1d(np.arange(n_units), scored_on), scored_on


def uniform_below(count: int, coins: Coins) -> int:
    """An integer from 0 to count - 1, exactly uniform."""
    whole = 2**64 // count * count
    while True:
        word = int(coins.words(1)[0])
        if word < whole:
            return word % count


def _seed(random_state: Any, coins: Coins) -> int | None:
    """A seed for one trial of a seeded search; None if the search is secure."""
    return None if random_state is None else int(coins.words(1)[0]) % 2**31
