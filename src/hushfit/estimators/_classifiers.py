"""Linear classifiers with a privacy guarantee."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hushfit._typing import AnyArray, Matrix, Vector
from hushfit.data import DataSource, FeatureBounds, as_source
from hushfit.errors import InvalidArgument
from hushfit.estimators._features import (
    additive_settings,
    columns_of,
    feature_map_of,
    refuse_shapes_of_several_classes,
    reshaped,
    row_profile,
)
from hushfit.estimators._labels import encode_labels, public_classes
from hushfit.estimators._linear import (
    in_original_units,
    in_record_units,
    input_names,
    no_cell_quoted,
    penalty_of,
    refuse_extras,
    validated_rows,
)
from hushfit.estimators._persons import PersonSettings, features_of, persons_in, split_groups
from hushfit.estimators._private_fit import private_fit, quote_for
from hushfit.estimators._threshold import (
    check_threshold,
    fitted_threshold,
    needs_class_counts,
)
from hushfit.features import AdditiveMap, FeatureMap, InputColumn, RowProfile, centred
from hushfit.losses import HuberHinge, Logistic, Loss, OneVsRest, Softmax
from hushfit.penalties import Penalty
from hushfit.privacy import Budget, Guarantee, Relation
from hushfit.problem import Problem
from hushfit.release import Quote, Randomness, Released, Terms
from hushfit.solvers import Counted, Result, solver_from
from hushfit.unit import ROW, PrivacyUnit


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows ready to be fitted, and the public half of the fit. ``source`` is private."""

    source: DataSource = field(repr=False)
    problem: Problem
    classes: AnyArray
    bounds: FeatureBounds | None
    feature_map: FeatureMap | None = None
    columns: tuple[InputColumn, ...] = ()


class _PrivateLinearClassifier(PersonSettings, ClassifierMixin, BaseEstimator):
    """Base of the linear classifiers, which differ in their loss and in what they can predict."""

    # Of classes that do not take them.
    features: Any = "linear"
    threshold: Any = None
    gives_probabilities: ClassVar[bool]

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
        features: Any = "linear",
        threshold: Any = None,
    ) -> None:
        self.features = features
        self.threshold = threshold
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
            prepared.source,
            prepared.problem,
            self.chosen_solver(prepared.problem, budget),
            self._terms(budget),
            self.verbose,
        )
        return self.accept(fit.result, fit.guarantee, prepared, fit.transcript)

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
        columns = columns_of(
            self.features, self._bounds(n_features), [f"x{j}" for j in range(n_features)]
        )
        feature_map = self.feature_map(n_units, columns)
        problem = self.problem(n_units, n_features, n_classes, unit, feature_map)
        budget = Budget(self.epsilon, self.delta)
        return quote_for(problem, self.chosen_solver(problem, budget), budget)

    def chosen_solver(self, problem: Problem, budget: Budget) -> Any:
        """The solver of a fit with these settings: one that counts the classes too, if the
        threshold needs it.

        Parameters
        ----------
        problem : Problem
        budget : Budget

        Returns
        -------
        str or Solver
        """
        if not needs_class_counts(self.threshold):
            return self.solver
        return Counted(solver_from(self.solver, problem, budget))

    def feature_map(self, n_units: int, columns: Sequence[InputColumn]) -> FeatureMap | None:
        """The public map that rows go through in a fit with these settings.

        Parameters
        ----------
        n_units : int
        columns : sequence of InputColumn
            What is public about the columns.

        Returns
        -------
        FeatureMap or None
            None if rows are used as they are.
        """
        return feature_map_of(
            self.features,
            columns,
            n_units,
            Budget(self.epsilon, self.delta),
            Relation.parse(self.adjacency),
            self._penalty(),
        )

    def problem(
        self,
        n_units: int,
        n_features: int,
        n_classes: int,
        unit: PrivacyUnit = ROW,
        feature_map: FeatureMap | None = None,
    ) -> Problem:
        """The public half of a fit with these settings.

        Parameters
        ----------
        n_units, n_features, n_classes : int
        unit : PrivacyUnit, default=ROW
        feature_map : FeatureMap, optional
            Its outputs are the columns of the problem.

        Returns
        -------
        Problem
        """
        refuse_shapes_of_several_classes(self.features, n_classes)
        check_threshold(self.threshold, n_classes, self.gives_probabilities)
        relation, outputs = Relation.parse(self.adjacency), 1 if n_classes == 2 else n_classes
        return Problem(
            self._loss(n_classes),
            self._penalty(),
            n_units,
            n_features if feature_map is None else feature_map.n_outputs,
            relation,
            bool(self.fit_intercept),
            outputs,
            privacy_unit=unit,
            rotated=feature_map is not None and feature_map.rotated,
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
        additive_settings(self.features)  # refuses what is not known
        X, y = validated_rows(self, X, y)
        bounds = self._bounds(X.shape[1])
        columns = columns_of(self.features, bounds, input_names(self))
        if self.classes is None:
            check_classification_targets(y)
        classes = public_classes(self.classes, y)
        labels = encode_labels(y, classes)
        n_units = X.shape[0] if persons is None else persons.n_persons
        feature_map = self.feature_map(n_units, columns)
        source = as_source(
            X,
            labels,
            fit_intercept=bool(self.fit_intercept),
            bounds=bounds,
            persons=persons,
            feature_map=feature_map,
        )
        problem = self.problem(
            source.n_units, X.shape[1], len(classes), source.privacy_unit, feature_map
        )
        return Prepared(source, problem, classes, bounds, feature_map, tuple(columns))

    def accept(
        self,
        result: Result,
        guarantee: Guarantee,
        prepared: "Prepared",
        transcript: Sequence[Released] = (),
    ) -> Any:
        """Take over the result of a fit.

        Parameters
        ----------
        result : Result
        guarantee : Guarantee
        prepared : Prepared
        transcript : sequence of Released, optional
            What was released; for an additive model it says where the rows lie, and for
            ``threshold="balanced"`` how frequent the classes are.

        Returns
        -------
        self
        """
        self.classes_ = prepared.classes
        self.feature_map_ = prepared.feature_map
        self.n_features_in_ = (
            prepared.problem.n_features
            if prepared.feature_map is None
            else prepared.feature_map.n_inputs
        )
        # Weights of mapped columns stay in their units.
        bounds = prepared.bounds if prepared.feature_map is None else None
        self.coef_, self.intercept_ = in_original_units(result.w, prepared.problem, bounds)
        multipliers = {made.name: made.noise_multiplier for made in guarantee.releases}
        self.row_profile_: RowProfile = row_profile(
            prepared.feature_map, prepared.problem, transcript, multipliers
        )
        settings = additive_settings(self.features)
        if settings is not None and isinstance(prepared.feature_map, AdditiveMap):
            self.coef_, self.intercept_ = reshaped(
                self.coef_,
                self.intercept_,
                prepared.feature_map,
                settings,
                prepared.columns,
                self.row_profile_,
            )
        self.threshold_: Vector | None = fitted_threshold(
            self.threshold, transcript, multipliers, prepared.problem.relation
        )
        self.n_iter_ = result.steps
        self.privacy_: Guarantee = guarantee
        return self

    def decision_function(self, X: Any) -> Vector:
        """Signed margin of each row: above zero for ``classes_[1]``; one column per class for more.

        Rows are scaled to unit length as in training, so this is ``(X @ coef_.T + intercept_)``
        divided by each row's length (with the intercept's 1 in it, after ``feature_bounds``); with
        a feature map, of the mapped row. A row
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
        bounds = self._bounds(X.shape[1])
        source = as_source(
            X,
            np.zeros(X.shape[0]),
            fit_intercept=bool(self.fit_intercept),
            bounds=bounds,
            feature_map=self.feature_map_,
        )
        units = bounds if self.feature_map_ is None else None
        weights = in_record_units(self.coef_, self.intercept_, units)
        margins = np.empty((X.shape[0], len(weights)))
        for block in source.blocks():
            for k, w in enumerate(weights):
                margins[block.place, k] = block.margins(w)
        margins = np.nan_to_num(margins, copy=False)  # an empty row lies on every boundary
        return margins[:, 0] if len(weights) == 1 else margins

    def predict(self, X: Any) -> AnyArray:
        """The most likely label of each row; with a threshold, the label whose probability is
        largest in proportion to it.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        margins = self.decision_function(X)
        if margins.ndim == 1:
            margins = np.column_stack([np.zeros(len(margins)), margins])
        if self.threshold_ is not None:
            margins = margins - np.log(self.threshold_)
        return self.classes_[margins.argmax(axis=1)]

    @property
    def support_(self) -> AnyArray:
        """Columns with a coefficient other than zero, in any class; with a feature map, of its
        outputs.
        """
        check_is_fitted(self)
        return np.flatnonzero(np.any(self.coef_ != 0, axis=0))

    def shape_values(self, column: int, output: int = 0) -> tuple[Vector, Vector]:
        """The shape function of a numeric column of an additive model, at its knots.

        It is linear between knots. A margin is the sum of the shape functions, of the weights of
        the other columns and of the intercept, divided by the length of the mapped row. Functions
        are centred: their mean is zero over the rows, as far as the released second moment shows
        where these lie, or over the range if it shows nothing.

        Parameters
        ----------
        column : int
            Number of the input column.
        output : int, default=0
            Number of the class, for more than two classes.

        Returns
        -------
        knots : array
            In [0, 1] of the public range.
        values : array
        """
        check_is_fitted(self)
        made = self.feature_map_
        span = made.spans[column] if isinstance(made, AdditiveMap) else None
        if not isinstance(made, AdditiveMap) or span is None or not span.intervals:
            raise InvalidArgument(
                f"column {column} has no shape function: it has one weight, in coef_. Shape "
                "functions belong to numeric columns of a fit with features='additive'."
            )
        values = made.table(span) @ self.coef_[output, span.shape]
        knots = np.linspace(0.0, 1.0, span.intervals + 1)
        return knots, centred(values, self.row_profile_.masses.get(column))

    def _bounds(self, n_features: int) -> FeatureBounds | None:
        given = self.feature_bounds
        return None if given is None else FeatureBounds.parse(given, n_features)

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
        if self.features != "linear":
            public.append("the feature map, which no row enters")
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
    features : "linear", "additive", "centred", AdditiveFeatures or FeatureMap, default="linear"
        What the model is linear in. ``"additive"`` fits a sum of one piecewise linear function per
        column, ``"centred"`` straight lines centred in the range, through a public map that costs
        no budget; both need ``feature_bounds``. Name columns
        with two values, whole numbers or missing values in `hushfit.features.AdditiveFeatures`.
    threshold : None, float in (0, 1) or "balanced", default=None
        From which probability on ``predict`` says ``classes[1]``; None is 0.5. ``"balanced"`` is
        the frequency of the class, so that rare classes are found too: it is counted privately, for
        2 % of the budget. With more than two classes, it predicts the class whose probability is
        largest in proportion to its frequency. Probabilities do not depend on it. There is no
        ``class_weight`` as in scikit-learn: it would multiply the noise of the whole fit.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        With a feature map, weights of its outputs, in units of these: for an additive model see
        ``shape_values``.
    feature_map_ : FeatureMap or None
        The map that rows go through; None if they are used as they are.
    row_profile_ : RowProfile
        Of an additive model: where the rows lie, as far as the released second moment shows.
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array
    threshold_ : array of shape (n_classes,) or None
        What probabilities are compared with; None if the largest one decides.
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

    gives_probabilities = True

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
    and attributes are those of `PrivateLogisticRegression`; there is no ``predict_proba``, and so
    no threshold.

    Examples
    --------
    >>> from hushfit import PrivateLinearSVC
    >>> PrivateLinearSVC(epsilon=0.5, classes=[0, 1])
    PrivateLinearSVC(classes=[0, 1], epsilon=0.5)
    """

    gives_probabilities = False

    def _loss(self, n_classes: int) -> Loss:
        return HuberHinge() if n_classes == 2 else OneVsRest(HuberHinge(), n_classes)
