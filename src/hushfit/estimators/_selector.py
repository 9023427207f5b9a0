"""Private feature selection."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from hushfit._typing import BoolVector
from hushfit.data import FeatureBounds
from hushfit.errors import InvalidArgument
from hushfit.estimators._arguments import ExplainsArguments
from hushfit.estimators._linear import in_record_units, n_columns
from hushfit.estimators._linear_classifiers import PrivateLogisticRegression
from hushfit.estimators._persons import PersonSettings, features_of, persons_in, split_groups
from hushfit.estimators._ranges import feature_ranges
from hushfit.privacy import Budget, Guarantee
from hushfit.release import Quote
from hushfit.solvers import SSADMM
from hushfit.solvers.auto import MAX_WHITENED_COLUMNS
from hushfit.solvers.newton import Screening


class PrivateFeatureSelector(ExplainsArguments, PersonSettings, SelectorMixin, BaseEstimator):
    """Keep the columns with the largest coefficients of a private logistic regression.

    It has its own budget: in a pipeline, the model that follows is charged separately. Give both
    the same ledger.

    Parameters
    ----------
    n_features_to_select : int or None
        How many columns to keep; None keeps those whose coefficient is not zero.
    epsilon, delta, adjacency, feature_bounds, classes, person_weight, rows_per_person, ledger,
    random_state
        As for `PrivateLogisticRegression`.
    solver : name or solver, optional
        None ranks by a few gradient steps without a penalty, more with less noise: a ranking needs
        no zeros, and is clear before a fit converges. Without ``n_features_to_select`` it is
        ``"auto"`` with the penalty.
    alpha : float, default=1e-3
        Weight of the L1 penalty, for ``n_features_to_select=None`` or a given ``solver``.

    Attributes
    ----------
    ranking_ : array of int
        Columns by the size of their coefficient, largest first.
    scores_ : array
        Size of each column's coefficient, over classes.
    privacy_ : Guarantee

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateFeatureSelector
    >>> X = np.random.default_rng(0).integers(0, 2, (4000, 3))
    >>> y = X[:, 1]
    >>> selector = PrivateFeatureSelector(
    ...     n_features_to_select=1, epsilon=1.0, delta=1e-6, classes=[0, 1], feature_bounds=(0, 1)
    ... )
    >>> selector.fit(X, y).get_support()
    array([False,  True, False])
    """

    def __init__(
        self,
        n_features_to_select: int | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        alpha: float = 1e-3,
        solver: Any = None,
        feature_bounds: Any = None,
        classes: Any = None,
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.alpha = alpha
        self.solver = solver
        self.feature_bounds = feature_bounds
        self.classes = classes
        self.person_weight = person_weight
        self.rows_per_person = rows_per_person
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> "PrivateFeatureSelector":
        """Rank the columns and charge the cost.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        groups : array of shape (n_rows,) or str, optional
            Ids, as for `PrivateLogisticRegression.fit`: the privacy unit is then one person.

        Returns
        -------
        self
        """
        X, ids = split_groups(X, groups, y)
        persons = persons_in(self, ids)
        columns = None if self.n_features_to_select is None else n_columns(X)
        model = self._model(columns).fit(X, y, groups=persons)
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        # In the units of the fit, where columns with public ranges are comparable.
        bounds = (
            None
            if self.feature_bounds is None
            else FeatureBounds.parse(feature_ranges(model), model.n_features_in_)
        )
        weights = in_record_units(model.coef_, model.intercept_, bounds)[:, :-1]
        self.scores_ = np.linalg.norm(weights, axis=0)
        self.ranking_ = np.argsort(-self.scores_, kind="stable")
        self.privacy_: Guarantee = model.privacy_
        return self

    def quote(
        self,
        n_units: int,
        n_features: int,
        n_classes: int | None = None,
        per_person: bool = False,
    ) -> Quote:
        """Cost of a fit with these settings; see `PrivateLogisticRegression.quote`."""
        return self._model(n_features).quote(n_units, n_features, n_classes, per_person)

    def transform(self, X: Any) -> Any:
        """The chosen columns. A column of ids that was no feature in training is left out.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array or CSR matrix of shape (n_rows, n_chosen)
        """
        check_is_fitted(self)
        return super().transform(features_of(X, self.privacy_.unit.column))

    def _model(self, n_columns: int | None) -> PrivateLogisticRegression:
        wanted = self.n_features_to_select
        if wanted is None or n_columns is None:
            return self._sparse_model()
        if not 1 <= wanted <= n_columns:
            raise InvalidArgument(
                f"n_features_to_select={wanted!r} is not between 1 and the {n_columns} columns. "
                "Give such a number, or None."
            )
        return self._ranking_model(n_columns)

    def _sparse_model(self) -> PrivateLogisticRegression:
        return PrivateLogisticRegression(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            penalty="l1",
            alpha=self.alpha,
            solver="auto" if self.solver is None else self.solver,
            feature_bounds=self.feature_bounds,
            classes=self.classes,
            person_weight=self.person_weight,
            rows_per_person=self.rows_per_person,
            ledger=self.ledger,
            random_state=self.random_state,
        )

    def _ranking_model(self, n_columns: int) -> PrivateLogisticRegression:
        """The model that ranks the columns; chosen from public numbers only."""
        model = self._sparse_model()
        if self.solver is not None or not Budget(self.epsilon, self.delta).is_private:
            return model
        if n_columns > MAX_WHITENED_COLUMNS:
            return model.set_params(solver=SSADMM(clip=0.25))
        return model.set_params(solver=Screening(), penalty=None)

    def _get_support_mask(self) -> BoolVector:
        check_is_fitted(self)
        if self.n_features_to_select is None:
            return np.asarray(self.scores_ > 0)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.ranking_[: self.n_features_to_select]] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
