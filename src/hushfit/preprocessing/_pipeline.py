"""A pipeline with one budget and one guarantee. Proof: docs/proofs/quantiles.md."""

import math
from collections.abc import Mapping
from typing import Any, Final

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if

from hushfit.data import Persons
from hushfit.errors import InvalidArgument
from hushfit.estimators import as_frame, features_of, labels_of, persons_in, split_groups, unwrapped
from hushfit.preprocessing._parts import (
    fitted_with,
    person_unit_of,
    private_parts,
    refuse_choices_by_rows,
    refuse_unused_settings_of,
    row_norm_of,
)
from hushfit.preprocessing._pipeline_account import OverOwnBudget, PipelineAccount
from hushfit.preprocessing._pipeline_guarantee import guarantee_of_account
from hushfit.privacy import (
    Budget,
    Cost,
    GaussianCost,
    Guarantee,
    Ledger,
    Relation,
    epsilon_of,
    filtered_epsilon,
    gaussian_mu,
    usable,
)
from hushfit.privacy.accounting import LOST_SHARE
from hushfit.release import Randomness, require_payer
from hushfit.unit import ROW, PrivacyUnit

# Share of the budget (of mu squared) for all preprocessing together.
_PREPROCESSING: Final = 0.1
# Share of delta for parts that may not be the first to pay, and as much for a last step whose
# failure probability would exceed what the filter allows: half of LOST_SHARE of what the first
# leaves.
_LATER_DELTA: Final = LOST_SHARE / 8
# How often a last step may request less, because its cost exceeded that of the Gaussian release
# that was assumed.
_ATTEMPTS: Final = 20
# Factor on mu: a filter may count more than the Gaussian release in which a part's share is stated.
_MARGIN: Final = 0.99
_AFTER_FITTING: Final = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score",
    "transform",
)


def _on_features(name: str) -> Any:
    """A method of scikit-learn's pipeline that leaves the column of ids out first."""

    def method(self: "PrivatePipeline", X: Any, *args: Any, **params: Any) -> Any:
        fitted: Guarantee | None = self.__dict__.get("privacy_")
        column = None if fitted is None else fitted.unit.column
        rows = unwrapped(features_of(as_frame(X), column))
        return getattr(super(PrivatePipeline, self), name)(rows, *args, **params)

    method.__name__ = name
    method.__doc__ = f"As ``{name}`` of scikit-learn's pipeline, without the column of ids."
    return available_if(lambda self: hasattr(super(PrivatePipeline, self), name))(method)


class PrivatePipeline(Pipeline):
    """A scikit-learn pipeline with one privacy budget for preprocessing and model together.

    The budget is divided among the steps that spend it, also those inside a ``ColumnTransformer``
    or ``FeatureUnion``, and a privacy filter composes their costs: two steps at 0.3 and 0.9 give
    about 1, not 1.2. A step that would learn from the rows without paying, such as
    ``StandardScaler``, is refused.

    Parameters
    ----------
    steps : list of (name, estimator)
        Their own epsilon, delta, adjacency, ledger and random_state are set by the pipeline, on
        copies.
    epsilon : float, default=1.0
        Of the whole pipeline.
    delta : float, default=1e-6
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    shares : mapping from part names to weights, optional
        How to divide the budget (the square of the Gaussian parameter mu), by names such as
        ``"model"`` or ``"prepare__numbers"``. None gives a tenth to all preprocessing together. The
        last step gets what the others leave.
    ledger : Ledger, optional
        The ledger of the data set; charged by each step before it reads the rows.
    random_state : None or int, default=None
        None is the only secure setting.
    verbose : bool, default=False

    Attributes
    ----------
    guarantee_, privacy_ : Guarantee
        Of everything that the pipeline released.
    row_norm_ : float or None
        Bound on the length of rows that reach the last step, if the step before certifies one.

    Examples
    --------
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.preprocessing import PrivatePipeline, PrivateQuantileScaler
    >>> steps = [
    ...     ("scale", PrivateQuantileScaler()),
    ...     ("model", PrivateLogisticRegression(classes=[0, 1])),
    ... ]
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

    def person_unit(self, column: str | None = None) -> PrivacyUnit:
        """The privacy unit of a fit with ``groups``: that of all parts.

        Parameters
        ----------
        column : str, optional
            Name of the column of ids.

        Returns
        -------
        PrivacyUnit
        """
        return person_unit_of(list(private_parts(self)), column)

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> "PrivatePipeline":
        """Fit all steps within the budget.

        Parameters
        ----------
        X : whatever the first step takes
            Also any table with an Arrow stream.
        y : array of shape (n_rows,) or str, optional
            A text names a column of the data frame.
        groups : array of shape (n_rows,) or str, optional
            Ids: whose row each is. Every step that spends privacy then protects persons, and so
            does the guarantee of the whole; all must have the same ``person_weight`` and
            ``rows_per_person``. A text names a column of the data frame, which no step sees.
        **params : refused

        Returns
        -------
        self
        """
        if params:
            raise InvalidArgument(
                f"fit() takes no {', '.join(sorted(params))}: the guarantee holds for rows of "
                "weight one. Leave it out."
            )
        require_payer(self.ledger)
        account = PipelineAccount(
            Budget(self.epsilon, self.delta), Relation.parse(self.adjacency), self.ledger
        )
        # A refit that fails half-way must not leave the guarantee of the fit before.
        for attribute in ("guarantee_", "privacy_"):
            self.__dict__.pop(attribute, None)
        self.steps = [
            (name, part if isinstance(part, str | None) else clone(part))
            for name, part in self.steps
        ]
        ends = self._settle(account)
        X, y = labels_of(X, y)
        X, persons = self._persons(X, y, groups)
        X = unwrapped(X)
        refuse_choices_by_rows(self, X)
        head, last = self.steps[:-1], self.steps[-1][1]
        self._validate_steps()
        if head:
            before = Pipeline(head, verbose=self.verbose)
            X = fitted_with(before, X, y, persons, "fit_transform")
        if not isinstance(last, str | None):
            _fit_within(last, X, y, account, ends, persons)
        unit = ROW if persons is None else persons.unit
        self.guarantee_ = self.privacy_ = guarantee_of_account(self, account, unit)
        return self

    def _persons(self, X: Any, y: Any, groups: Any) -> tuple[Any, Persons | None]:
        """The features and the persons, before any step is fitted."""
        X, ids = split_groups(X, groups, y)
        if ids is None:
            refuse_unused_settings_of(self)
        return X, persons_in(self, ids)

    def _settle(self, account: PipelineAccount) -> bool:
        """Set epsilon, delta, adjacency, ledger and seed of every private part.

        Returns whether the last step is one of them; it gets what the others leave.
        """
        names = self.parts_
        if not names:
            raise InvalidArgument(
                "No step of the pipeline spends privacy, so there is nothing to divide. Use "
                "scikit-learn's Pipeline."
            )
        last = self.steps[-1][0]
        shares = _shares(names, self.shares, last)
        deltas = _deltas(names, last, self.delta)
        seeds = _seeds(self.random_state, len(names))
        for name, seed in zip(names, seeds, strict=True):
            epsilon = _part_epsilon(account.budget, shares[name], deltas[name])
            terms = {
                "epsilon": epsilon,
                "delta": deltas[name],
                "adjacency": self.adjacency,
                "random_state": seed,
            }
            self.set_params(
                **{f"{name}__{term}": value for term, value in terms.items()},
                **{f"{name}__ledger": Ledger.over(account)},
            )
        return last in names

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, then transform the same rows; for pipelines whose last step is a transformer."""
        return self.fit(X, y, **params).transform(X)

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, then predict the same rows."""
        return self.fit(X, y, **params).predict(X)

    predict = _on_features("predict")
    predict_proba = _on_features("predict_proba")
    predict_log_proba = _on_features("predict_log_proba")
    decision_function = _on_features("decision_function")
    score_samples = _on_features("score_samples")
    score = _on_features("score")
    transform = _on_features("transform")

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata of `fit` is requested by the pipeline itself, for all steps at once; that of
        the other methods by the steps, as in scikit-learn's pipeline.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        last = self.steps[-1][0]
        for name, step in self.steps:
            if not isinstance(step, str | None):
                mapping = MethodMapping()
                mapping.add(caller="inverse_transform", callee="inverse_transform")
                for method in _AFTER_FITTING:
                    mapping.add(caller=method, callee=method if name == last else "transform")
                router.add(method_mapping=mapping, **{name: step})
        return router

    def __getitem__(self, index: Any) -> Any:
        """A step, by name or position; a slice gives a plain pipeline, which has no budget."""
        return (
            Pipeline(self.steps[index], verbose=self.verbose)
            if isinstance(index, slice)
            else super().__getitem__(index)
        )

    @property
    def row_norm_(self) -> float | None:
        """Bound on the length of rows that reach the last step."""
        before = [part for _, part in self.steps[:-1] if part not in (None, "passthrough")]
        return row_norm_of(before[-1]) if before else None


def _gaussian_rest(account: PipelineAccount) -> float:
    """Largest mu of a Gaussian release that still fits after the earlier steps; 0 if none."""
    spendable, _ = usable(account.budget)
    paid = [entry.cost for entry in account.entries()]

    def fits(mu: float) -> bool:
        return (
            filtered_epsilon([*paid, GaussianCost(1 / mu)], spendable, account.relation)
            <= spendable.epsilon
        )

    low, high = 0.0, gaussian_mu(spendable.epsilon, spendable.delta)
    while high - low > 1e-7 * high and high > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _excess(account: PipelineAccount, price: Cost) -> float:
    """Approximate factor by which a cost exceeds what earlier steps left: squares of mu add."""
    spendable, _ = usable(account.budget)
    paid = [entry.cost for entry in account.entries()]
    total, before = (
        filtered_epsilon([*paid, cost], spendable, account.relation)
        for cost in (price, GaussianCost(math.inf))
    )
    if total == math.inf:
        return math.inf
    most, all_, known = (
        gaussian_mu(max(epsilon, 1e-9), spendable.delta) ** 2
        for epsilon in (spendable.epsilon, total, before)
    )
    return math.sqrt((all_ - known) / (most - known))


def _fit_within(
    last: Any,
    X: Any,
    y: Any,
    account: PipelineAccount,
    private: bool,
    persons: Persons | None,
) -> None:
    """Fit the last step with what is left of the budget.

    It requests less where its cost exceeds a Gaussian's. A refused step has read no rows.
    """
    paid = account.entries()
    if private and not paid:
        last.set_params(epsilon=account.budget.epsilon)
    if not (private and paid and account.budget.is_private):
        fitted_with(last, X, y, persons)
        return
    mu, delta = _gaussian_rest(account), account.budget.delta
    # If nothing is left it requests its share, and the refusal says why.
    epsilon = epsilon_of(GaussianCost(1 / mu), delta, account.relation) if mu > 0 else last.epsilon
    for _ in range(_ATTEMPTS):
        last.set_params(epsilon=epsilon, delta=delta)
        try:
            fitted_with(last, X, y, persons)
            return
        except OverOwnBudget as error:
            refused = error
        if mu == 0 or refused.price is None or account.entries() != paid:
            raise refused
        excess = _excess(account, refused.price)
        if 1 < excess < math.inf:
            epsilon *= (1 - 1e-4) / excess
        elif delta == account.budget.delta:
            delta *= _LATER_DELTA
            # No more than would fit alone: otherwise its cost stays unknown.
            epsilon = min(
                epsilon_of(GaussianCost(1 / mu), delta, account.relation),
                0.999 * account.budget.epsilon,
            )
        else:
            raise refused
    raise refused


def _shares(names: list[str], given: Mapping[str, float] | None, last: str) -> dict[str, float]:
    """Weights of the parts, normalised to sum to one."""
    if given is None:
        before = [name for name in names if name != last]
        ends = last in names
        weight = (_PREPROCESSING if ends else 1.0) / max(len(before), 1)
        given = {
            **dict.fromkeys(before, weight),
            **({last: 1 - _PREPROCESSING if before else 1.0} if ends else {}),
        }
    if set(given) != set(names) or not all(share > 0 for share in given.values()):
        raise InvalidArgument(
            f"shares={dict(given)!r} should give a positive weight to each of {names}, and to "
            "nothing else."
        )
    total = sum(given.values())
    return {name: given[name] / total for name in names}


def _deltas(names: list[str], last: str, delta: float) -> dict[str, float]:
    """Delta of each part.

    Only the first payment may have a large failure probability, and several parts before the last
    may compete to be first.
    """
    before = [name for name in names if name != last]
    small = _LATER_DELTA * delta / len(before) if len(before) > 1 else delta
    return {name: delta if name == last else small for name in names}


def _part_epsilon(budget: Budget, share: float, delta: float) -> float:
    """Epsilon at a given delta of a Gaussian mechanism with that share of mu squared."""
    if not budget.is_private or share == 1:
        return budget.epsilon
    mu = _MARGIN * gaussian_mu(budget.epsilon, budget.delta) * share**0.5
    return epsilon_of(GaussianCost(1 / mu), delta, Relation.REPLACE_ONE)


def _seeds(random_state: Any, count: int) -> list[int | None]:
    """One seed for each part: with the same seed, their noise would be equal."""
    if random_state is None:
        return [None] * count
    return [int(word) % 2**31 for word in Randomness.of(random_state).coins.words(count)]
