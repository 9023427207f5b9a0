"""Linear classifiers with a privacy guarantee."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hushfit._typing import AnyArray, Matrix, Vector
from hushfit.data import DataSource, FeatureBounds, as_source
from hushfit.errors import InvalidArgument
from hushfit.estimators._labels import encode_labels, public_classes
from hushfit.estimators._linear import (
    in_original_units,
    in_record_units,
    no_cell_quoted,
    penalty_of,
    refuse_extras,
    validated_rows,
)
from hushfit.estimators._persons import PersonSettings, features_of, persons_in, split_groups
from hushfit.estimators._private_fit import private_fit, quote_for
from hushfit.losses import HuberHinge, Logistic, Loss, OneVsRest, Softmax
from hushfit.penalties import Penalty
from hushfit.privacy import Budget, Guarantee, Relation
from hushfit.problem import Problem
from hushfit.release import Quote, Randomness, Terms
from hushfit.solvers import Result
from hushfit.unit import ROW, PrivacyUnit


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows ready to be fitted, and the public half of the fit. ``source`` is private."""

    source: DataSource = field(repr=False)
    problem: Problem
    classes: AnyArray
    bounds: FeatureBounds | None


class _PrivateLinearClassifier(PersonSettings, ClassifierMixin, BaseEstimator):
    """Base of the linear classifiers, which differ in their loss and in what they can predict."""

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        penalty: str | Penalty | None = None,
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        solver: Any = "auto",
        feature_bounds: Any = None,
        classes: Any = None,
        fit_intercept: bool = True,
        nonfinite: str = "zero",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.feature_bounds = feature_bounds
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.nonfinite = nonfinite
        self.person_weight = person_weight
        self.rows_per_person = rows_per_person
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, n_classes: int) -> Loss:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, groups: Any = None, **unsupported: Any) -> Any:
        """Fit the model and charge its cost.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        groups : array of shape (n_rows,) or str, optional
            Ids: whose row each is. The privacy unit is then one person with all of their rows
            (user-level privacy). A text names a column of the data frame, which is no feature; a
            row without an id is its own person. None protects single rows.

        Returns
        -------
        self
        """
        refuse_extras(unsupported)
        budget = Budget(self.epsilon, self.delta)
        prepared = self.prepare(X, y, groups)
        fit = private_fit(
            prepared.source, prepared.problem, self.solver, self._terms(budget), self.verbose
        )
        return self.accept(fit.result, fit.guarantee, prepared)

    def quote(
        self,
        n_units: int,
        n_features: int,
        n_classes: int | None = None,
        per_person: bool = False,
    ) -> Quote:
        """Cost of a fit with these settings; no row is read and nothing is charged.

        Parameters
        ----------
        n_units : int
            Number of privacy units, which is public: of rows, or of persons. For persons the
            number of rows is private and changes nothing.
        n_features : int
            Number of columns, without the column of ids.
        n_classes : int, optional
            Number of classes, if ``classes`` is not set.
        per_person : bool, default=False
            Whether units are persons: the cost of a fit with ``groups``.

        Returns
        -------
        Quote
            Cost, noise multipliers and planned releases. Print it.
        """
        if n_classes is None:
            if self.classes is None:
                raise InvalidArgument(
                    "The cost depends on the number of classes. Set classes, or give n_classes."
                )
            n_classes = len(self.classes)
        unit = self.person_unit() if per_person else ROW
        problem = self.problem(n_units, n_features, n_classes, unit)
        return quote_for(problem, self.solver, Budget(self.epsilon, self.delta))

    def problem(
        self, n_units: int, n_features: int, n_classes: int, unit: PrivacyUnit = ROW
    ) -> Problem:
        """The public half of a fit with these settings.

        Parameters
        ----------
        n_units, n_features, n_classes : int
        unit : PrivacyUnit, default=ROW

        Returns
        -------
        Problem
        """
        relation, outputs = Relation.parse(self.adjacency), 1 if n_classes == 2 else n_classes
        return Problem(
            self._loss(n_classes),
            self._penalty(),
            n_units,
            n_features,
            relation,
            bool(self.fit_intercept),
            outputs,
            privacy_unit=unit,
        )

    def prepare(self, X: Any, y: Any, groups: Any = None) -> "Prepared":
        """Check rows and labels and convert them to a data source; nothing is charged.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        groups : array of shape (n_rows,) or str, optional
            As for `fit`.

        Returns
        -------
        Prepared
            With the private rows inside: it is for code that fits them in another way, as
            `hushfit.federated` does.
        """
        Relation.parse(self.adjacency)
        self._penalty()
        X, ids = split_groups(X, groups, y)
        persons = persons_in(self, ids)
        X, y = validated_rows(self, X, y)
        if self.classes is None:
            check_classification_targets(y)
        classes = public_classes(self.classes, y)
        labels = encode_labels(y, classes)
        bounds = (
            None
            if self.feature_bounds is None
            else FeatureBounds.parse(self.feature_bounds, X.shape[1])
        )
        source = as_source(
            X, labels, fit_intercept=bool(self.fit_intercept), bounds=bounds, persons=persons
        )
        problem = self.problem(source.n_units, X.shape[1], len(classes), source.privacy_unit)
        return Prepared(source, problem, classes, bounds)

    def accept(self, result: Result, guarantee: Guarantee, prepared: "Prepared") -> Any:
        """Take over the result of a fit.

        Parameters
        ----------
        result : Result
        guarantee : Guarantee
        prepared : Prepared

        Returns
        -------
        self
        """
        self.classes_ = prepared.classes
        self.n_features_in_ = prepared.problem.n_features
        self.coef_, self.intercept_ = in_original_units(result.w, prepared.problem, prepared.bounds)
        self.n_iter_ = result.steps
        self.privacy_: Guarantee = guarantee
        return self

    def decision_function(self, X: Any) -> Vector:
        """Signed margin of each row: above zero for ``classes_[1]``; one column per class for more.

        Rows are scaled to unit length as in training, so this is ``(X @ coef_.T + intercept_)``
        divided by each row's length (with the intercept's 1 in it, after ``feature_bounds``). A row
        with a missing or infinite value is the zero record here too: it lies on every boundary,
        unless ``nonfinite="raise"``. A column of ids that was no feature in training is left out.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_classes)
        """
        check_is_fitted(self)
        X = features_of(X, self.privacy_.unit.column)
        with no_cell_quoted():
            X = validate_data(
                self,
                X,
                reset=False,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=self.nonfinite == "raise",
            )
        bounds = (
            None
            if self.feature_bounds is None
            else FeatureBounds.parse(self.feature_bounds, X.shape[1])
        )
        source = as_source(
            X, np.zeros(X.shape[0]), fit_intercept=bool(self.fit_intercept), bounds=bounds
        )
        weights = in_record_units(self.coef_, self.intercept_, bounds)
        margins = np.empty((X.shape[0], len(weights)))
        for block in source.blocks():
            for k, w in enumerate(weights):
                margins[block.place, k] = block.margins(w)
        margins = np.nan_to_num(margins, copy=False)  # an empty row lies on every boundary
        return margins[:, 0] if len(weights) == 1 else margins

    def predict(self, X: Any) -> AnyArray:
        """The most likely label of each row.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        margins = self.decision_function(X)
        chosen = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
        return self.classes_[chosen]

    @property
    def support_(self) -> AnyArray:
        """Columns with a coefficient other than zero, in any class."""
        check_is_fitted(self)
        return np.flatnonzero(np.any(self.coef_ != 0, axis=0))

    def _penalty(self) -> Penalty:
        return penalty_of(self.penalty, self.alpha, self.l1_ratio)

    def _terms(self, budget: Budget) -> Terms:
        given = "given by the caller"
        public = [
            f"the classes, {given}"
            if self.classes is not None
            else "the classes, READ FROM THE ROWS"
        ]
        public.append("the names and number of the columns")
        if self.feature_bounds is not None:
            public.append(f"the range of every column, {given}")
        notes = [
            "Records are scaled to unit length; one with a missing or infinite value counts as the "
            "zero record."
        ]
        if self.classes is None:
            notes.append("The classes were read from the labels, outside the guarantee.")
        return Terms(
            budget,
            type(self).__name__,
            Randomness.of(self.random_state),
            self.ledger,
            tuple(public),
            tuple(notes),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        # A private model of a few dozen rows is mostly noise, as it must be.
        tags.classifier_tags.poor_score = True
        return tags


class PrivateLogisticRegression(_PrivateLinearClassifier):
    r"""Logistic regression with a differential-privacy guarantee.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of this fit. ``inf`` fits without privacy, and says so in ``privacy_``.
    delta : float, default=1e-6
        Should be well below one over the number of rows, or of persons.
    adjacency : {"replace-one", "add-remove", "label", "person-label"}, default="replace-one"
        Adjacency relation: neighbouring tables have one row exchanged for another, or for nothing;
        with ``groups``, all rows of one person. With ``"label"`` they differ in the label of one
        row, and FEATURES ARE NOT PROTECTED; with ``"person-label"`` and ``groups`` in all labels of
        one person.
    penalty : None, "l1", "l2", "elasticnet", or a penalty of ``hushfit.penalties``
    alpha : float, default=1e-4
        Weight of a penalty given by name, against the mean loss.
    l1_ratio : float, default=0.5
        Share of L1 in "elasticnet".
    solver : "auto", another name, or a solver of ``hushfit.solvers``
    feature_bounds : (low, high), or one pair per column, or None
        Public ranges: values are clipped to them and mapped to [0, 1]. None uses the rows
        unchanged. Give what is known without looking at the rows; a range read from the rows is a
        leak.
    classes : sequence, optional
        Public label set. None reads it from ``y`` and warns: a label that only one row has would be
        revealed.
    fit_intercept : bool, default=True
    nonfinite : {"zero", "raise"}, default="zero"
        What becomes of a record with a NaN or infinite value: it counts as the zero record, or the
        fit is refused.
    person_weight : {"mean", "cap"}, default="mean"
        Contribution bounding of a fit with ``groups``, whose privacy unit is one person: what a row
        of a person with k rows weighs. ``"mean"``: 1 / k, so that every person counts once.
        ``"cap"``: 1 / max(k, ``rows_per_person``), so that a person with few rows counts less.
    rows_per_person : int, optional
        With ``"mean"``, how many rows of one person are used, the first ones: 1000 if None. With
        ``"cap"``, where it must be given, the number of rows at which a person counts as one. It is
        public: give what you know without looking at the rows.
    ledger : Ledger, optional
        The ledger of the data set; charged before the rows are read.
    random_state : None or int, default=None
        None is the only secure setting. With a seed the noise is reproducible and the guarantee has
        ``secure=False``.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array
    n_iter_ : int
        Fixed in advance; it does not depend on the rows.
    privacy_ : Guarantee
        The guarantee. Print it.

    Examples
    --------
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.datasets import load_adult
    >>> adult = load_adult()
    >>> model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1])
    >>> model.fit(adult.X, adult.y).privacy_.epsilon
    1.0
    """

    def _loss(self, n_classes: int) -> Loss:
        return Logistic() if n_classes == 2 else Softmax(n_classes)

    def predict_proba(self, X: Any) -> Matrix:
        """Probability of each class.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        margins = self.decision_function(X)
        if margins.ndim == 1:
            positive = expit(margins)
            return np.column_stack([1 - positive, positive])
        return np.asarray(softmax(margins, axis=1))

    def predict_log_proba(self, X: Any) -> Matrix:
        """Logarithm of ``predict_proba``.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        margins = self.decision_function(X)
        # Not the logarithm of the probabilities, which far from the boundary are 0 as floats.
        if margins.ndim == 1:
            return np.column_stack([log_expit(-margins), log_expit(margins)])
        return np.asarray(log_softmax(margins, axis=1))


class PrivateLinearSVC(_PrivateLinearClassifier):
    """Linear support vector machine (huberised hinge loss) with a differential-privacy guarantee.

    More than two classes are fitted one against the rest, in one model with one budget. Parameters
    and attributes are those of `PrivateLogisticRegression`; there is no ``predict_proba``.

    Examples
    --------
    >>> from hushfit import PrivateLinearSVC
    >>> PrivateLinearSVC(epsilon=0.5, classes=[0, 1])
    PrivateLinearSVC(classes=[0, 1], epsilon=0.5)
    """

    def _loss(self, n_classes: int) -> Loss:
        return HuberHinge() if n_classes == 2 else OneVsRest(HuberHinge(), n_classes)
