"""Trials: what one may pay, their price before any row is read, and the best of them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier
from sklearn.utils.validation import _num_features, _num_samples

from hushfit._typing import Vector
from hushfit.data import Persons, as_source
from hushfit.errors import InvalidArgument, UndeclaredRelease
from hushfit.estimators import public_classes
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
    Ledger,
    Receipt,
    Relation,
    calibrate,
    epsilon_of,
)
from hushfit.privacy.accounting import StoppingRule, best_of_many, dearest, lost_mass, normal_form
from hushfit.privacy.ledger import ClosedAccount, Decide, Tally
from hushfit.release import Contract, Plan, Planned, Quote, Randomness, Terms, TotalScore

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


def best_of(one_trial: Callable[[], Trial], count: int) -> Trial:
    """The trial with the highest score; the first of equal ones."""
    best = one_trial()
    for _ in range(count - 1):
        trial = one_trial()
        if trial.score > best.score:
            best = trial
    return best


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
