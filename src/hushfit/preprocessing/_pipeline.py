"""A pipeline with one budget and one guarantee. Proof: docs/proofs/quantiles.md."""

import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from hushfit.errors import BudgetExceeded, InvalidArgument
from hushfit.estimators._fit import noise_and_coins
from hushfit.preprocessing._parts import guarantees_of, is_private, private_parts, refuse_choices_by_rows, row_norm_of
from hushfit.privacy import (
    Budget,
    Cost,
    GaussianCost,
    Guarantee,
    Ledger,
    Receipt,
    Relation,
    calibrate,
    compose,
    epsilon_of,
    gaussian_mu,
)
from hushfit.privacy._ledger import ClosedAccount, Decide
from hushfit.privacy._reserve import RESERVED_SHARE

# Share of the budget, in squares of mu, for all preprocessing together.
_PREPROCESSING = 0.1
# How much less a last step asks for, time after time, when its price composes worse than that of a Gaussian.
_LESS = tuple(1e-4 * 2.5**k for k in range(11))


class _OverOwnBudget(BudgetExceeded):
    """The pipeline's own budget does not cover a step; nothing was released for it."""


class PipelineAccount:
    """The account of one fit of a pipeline: holds its total, and passes every payment on to the account of the data set."""

    def __init__(self, budget: Budget, relation: Relation, ledger: Ledger | None) -> None:
        self.budget, self.relation, self.name = budget, relation, "pipeline"
        # The steps divide the budget by settings and public sizes, and nothing is handed out before the last of them: one plan.
        self.adaptive = False
        self._plan = f"pipeline {secrets.token_hex(8)}"
        self._ledger = ledger
        self._entries: list[Receipt] = []
        self._lock = threading.RLock()

    def entries(self) -> tuple[Receipt, ...]:
        return tuple(self._entries)

    def append(self, decide: Decide) -> Receipt:
        # Parts of a column transformer may be fitted by threads, each asking for what the others are about to spend.
        with self._lock:
            try:
                receipt = decide(self.entries())
            except BudgetExceeded as error:
                raise _OverOwnBudget(str(error)) from None
            if self._ledger is not None:
                self._ledger.charge(receipt.cost, receipt.label, receipt.relation, self._plan)
            self._entries.append(receipt)
        return receipt

    def __deepcopy__(self, memo: dict[int, Any]) -> "PipelineAccount":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy elsewhere could spend the rest a second time.
        return ClosedAccount, (self.budget, self.relation, self.name, self.entries(), self.adaptive)


class PrivatePipeline(Pipeline):
    """A scikit-learn pipeline with one privacy budget for preprocessing and model together.

    The budget is divided among the steps that spend it, also those inside a ``ColumnTransformer`` or ``FeatureUnion``, and what they
    cost is composed: two steps at 0.3 and 0.9 make about 1, not 1.2. A step that would learn from the rows without paying, such as
    ``StandardScaler``, is refused.

    Parameters
    ----------
    steps : list of (name, estimator)
        Their own epsilon, delta, adjacency, ledger and random_state are set by the pipeline, on copies.
    epsilon : float, default=1.0
        Of the whole pipeline.
    delta : float, default=1e-6
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    shares : mapping from part names to weights, optional
        How to divide the budget (the square of the Gaussian parameter mu), by names such as ``"model"`` or ``"prepare__numbers"``.
        None gives a tenth to all preprocessing together. The last step has what the others leave.
    ledger : Ledger, optional
        The account of the data set; charged by each step before it looks at the rows.
    random_state : None or int, default=None
        None is the only secure setting.
    verbose : bool, default=False

    Attributes
    ----------
    guarantee_, privacy_ : Guarantee
        Of everything that the pipeline released.
    row_norm_ : float or None
        Length that no row reaching the last step exceeds, if the step before certifies one.

    Examples
    --------
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.preprocessing import PrivatePipeline, PrivateQuantileScaler
    >>> steps = [("scale", PrivateQuantileScaler()), ("model", PrivateLogisticRegression(classes=[0, 1]))]
    >>> PrivatePipeline(steps, epsilon=1.0).parts_
    ['scale', 'model']
    """

    def __init__(
        self,
        steps: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        shares: Mapping[str, float] | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, verbose=verbose)
        self.steps: list[tuple[str, Any]]
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.shares = shares
        self.ledger = ledger
        self.random_state = random_state

    @property
    def parts_(self) -> list[str]:
        """Names of the parts that spend privacy, in the order in which they do."""
        return [name for name, _ in private_parts(self)]

    def fit(self, X: Any, y: Any = None, **params: Any) -> "PrivatePipeline":
        """Fit all steps within the budget.

        Parameters
        ----------
        X : whatever the first step takes
        y : array of shape (n_rows,), optional
        **params : refused

        Returns
        -------
        self
        """
        if params:
            raise InvalidArgument(
                f"fit() takes no {', '.join(sorted(params))}: the guarantee holds for rows of weight one. Leave it out."
            )
        if not isinstance(self.ledger, Ledger | None):
            raise InvalidArgument(f"ledger={self.ledger!r} keeps no account. Give a Ledger(epsilon, delta), or None for none.")
        account = PipelineAccount(Budget(self.epsilon, self.delta), Relation.parse(self.adjacency), self.ledger)
        self.steps = [(name, part if isinstance(part, str | None) else clone(part)) for name, part in self.steps]
        epsilons = self._settle(account)
        refuse_choices_by_rows(self, X)
        head, (last_name, last) = self.steps[:-1], self.steps[-1]
        self._validate_steps()
        prepared = Pipeline(head, verbose=self.verbose).fit_transform(X, y) if head else X
        if not isinstance(last, str | None):
            _fit_within(last, prepared, y, _rest(account) if last_name in epsilons else None)
        self.guarantee_ = self.privacy_ = _composed(self, account)
        return self

    def _settle(self, account: PipelineAccount) -> dict[str, float]:
        """Tell every part its terms; what each may spend."""
        names = self.parts_
        if not names:
            raise InvalidArgument(
                "No step of the pipeline spends privacy, so there is nothing to divide. Use scikit-learn's Pipeline."
            )
        shares = _shares(names, self.shares, self.steps[-1][0])
        epsilons = {name: _part_epsilon(account.budget, share) for name, share in shares.items()}
        seeds = _seeds(self.random_state, len(names))
        for name, seed in zip(names, seeds, strict=True):
            terms = {"epsilon": epsilons[name], "delta": self.delta, "adjacency": self.adjacency, "random_state": seed}
            self.set_params(
                **{f"{name}__{term}": value for term, value in terms.items()}, **{f"{name}__ledger": Ledger.over(account)}
            )
        return epsilons

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, then transform the same rows; for pipelines whose last step is a transformer."""
        return self.fit(X, y, **params).transform(X)

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, then predict the same rows."""
        return self.fit(X, y, **params).predict(X)

    @property
    def row_norm_(self) -> float | None:
        """Length that no row reaching the last step exceeds."""
        before = [part for _, part in self.steps[:-1] if part not in (None, "passthrough")]
        return row_norm_of(before[-1]) if before else None


def pipeline_guarantee(pipeline: Any, delta: float | None = None) -> Guarantee:
    """One guarantee for a fitted scikit-learn pipeline whose steps paid for themselves.

    Parameters
    ----------
    pipeline : Pipeline, ColumnTransformer or FeatureUnion
        Fitted. A part that learnt from the rows without paying is refused.
    delta : float, optional
        At which to state epsilon; None takes the largest delta among the parts.

    Returns
    -------
    Guarantee
        The costs of all parts, composed.

    Examples
    --------
    >>> from hushfit.preprocessing import pipeline_guarantee
    >>> pipeline_guarantee(fitted_pipeline).epsilon  # doctest: +SKIP
    """
    list(private_parts(pipeline))
    refuse_choices_by_rows(pipeline, None)
    found = list(guarantees_of(pipeline))
    if not found:
        raise InvalidArgument("No part of the pipeline spent privacy, so there is no guarantee to state.")
    relations = {guarantee.relation for _, guarantee in found}
    if len(relations) > 1:
        raise InvalidArgument(f"The parts are stated under {sorted(relations)}, which do not add up. Give all the same adjacency.")
    delta = max(guarantee.delta for _, guarantee in found) if delta is None else delta
    return _together(found, delta, relations.pop())


def _together(found: Sequence[tuple[str, Guarantee]], delta: float, relation: Relation, epsilon: float | None = None) -> Guarantee:
    """The guarantees of the parts as one; epsilon from what they cost if it is not given."""
    cost = compose(guarantee.cost for _, guarantee in found)
    return Guarantee(
        _stated(cost, delta, relation) if epsilon is None else epsilon,
        delta,
        relation,
        unit=found[0][1].unit,
        public=tuple(dict.fromkeys(text for _, guarantee in found for text in guarantee.public)),
        releases=tuple(
            replace(release, name=f"{name}: {release.name}") for name, guarantee in found for release in guarantee.releases
        ),
        cost=cost,
        secure=all(guarantee.secure for _, guarantee in found),
        notes=tuple(dict.fromkeys(text for _, guarantee in found for text in guarantee.notes)),
    )


def _stated(cost: Cost, delta: float, relation: Relation) -> float:
    """Epsilon with the reserve that every budget keeps for noise being discrete."""
    kept = 1 - RESERVED_SHARE
    return epsilon_of(cost, kept * delta, relation) / kept


def _composed(pipeline: PrivatePipeline, account: PipelineAccount) -> Guarantee:
    """The one guarantee of a fit, from what its parts say they released."""
    found = list(guarantees_of(pipeline))
    if not found:
        # Every private part turned out to have nothing to learn.
        return Guarantee(account.budget.epsilon, account.budget.delta, account.relation, secure=True)
    whole = _together(found, account.budget.delta, account.relation, account.budget.epsilon)
    if whole.cost != compose(entry.cost for entry in account.entries()):
        raise InvalidArgument(
            "A step released something else than it paid for, so no guarantee can be stated. Report this as a bug."
        )
    spent = epsilon_of(whole.cost, whole.delta, account.relation)
    if not spent <= account.budget.epsilon:
        raise BudgetExceeded(
            f"The steps released epsilon={spent:.6g} together, over the pipeline's {account.budget.epsilon:g}, so no guarantee is stated. "
            "Report this as a bug."
        )
    return whole


def _rest(account: PipelineAccount) -> float:
    """Epsilon that the steps before have left for the last, if its releases are Gaussian."""
    budget, relation = account.budget, account.relation
    paid = [entry.cost for entry in account.entries()]
    if not budget.is_private or not paid:
        return budget.epsilon
    # The account keeps one reserve back and the step another.
    kept = 1 - 2 * RESERVED_SHARE
    spendable = Budget(kept * budget.epsilon, kept * budget.delta)
    strength = calibrate(lambda mu: compose([*paid, GaussianCost(1 / mu)]), spendable, relation)
    return epsilon_of(GaussianCost(1 / strength), budget.delta, relation)


def _fit_within(last: Any, X: Any, y: Any, epsilon: float | None) -> None:
    """Fit the last step, asking for less where its price does not compose as a Gaussian's does. A refused step saw no rows."""
    if epsilon is None or not is_private(last):
        last.fit(X, y)
        return
    for less in (0.0, *_LESS):
        last.set_params(epsilon=epsilon * (1 - less))
        try:
            last.fit(X, y)
            return
        except _OverOwnBudget as error:
            refused = error
    raise refused


def _shares(names: list[str], given: Mapping[str, float] | None, last: str) -> dict[str, float]:
    """Weights of the parts, adding up to one."""
    if given is None:
        before = [name for name in names if name != last]
        ends = last in names
        weight = (_PREPROCESSING if ends else 1.0) / max(len(before), 1)
        given = {**dict.fromkeys(before, weight), **({last: 1 - _PREPROCESSING if before else 1.0} if ends else {})}
    if set(given) != set(names) or not all(share > 0 for share in given.values()):
        raise InvalidArgument(f"shares={dict(given)!r} should give a positive weight to each of {names}, and to nothing else.")
    total = sum(given.values())
    return {name: given[name] / total for name in names}


def _part_epsilon(budget: Budget, share: float) -> float:
    """Epsilon at the same delta of a Gaussian mechanism with that share of the square of mu."""
    if not budget.is_private:
        return budget.epsilon
    mu = gaussian_mu(budget.epsilon, budget.delta) * share**0.5
    return epsilon_of(GaussianCost(1 / mu), budget.delta, Relation.REPLACE_ONE)


def _seeds(random_state: Any, count: int) -> list[int | None]:
    """One seed for each part: with the same for all, their noise would be the same."""
    if random_state is None:
        return [None] * count
    return [int(word) % 2**31 for word in noise_and_coins(random_state)[1].words(count)]
