"""What the linear classifiers share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hushfit._typing import AnyArray, Matrix, Vector
from hushfit.data import (
    DataSource,
    FeatureBounds,
    RecordScaling,
    SignedBounds,
    as_source,
    record_margins,
)
from hushfit.errors import InvalidArgument
from hushfit.estimators._arguments import ExplainsArguments
from hushfit.estimators._constraints import constraint_of
from hushfit.estimators._encoded_rows import EncodedRows
from hushfit.estimators._features import (
    additive_settings,
    columns_of,
    feature_map_of,
    is_linear,
    reads_text,
    refuse_shapes_of_several_classes,
    reshaped,
    row_profile,
    shape_values,
    whole_rows,
)
from hushfit.estimators._frames import as_frame, labels_of, unwrapped
from hushfit.estimators._inference import (
    About,
    Inference,
    Inferring,
    inference_of,
    middle_of,
    require_feasible,
)
from hushfit.estimators._labels import (
    encode_labels,
    given_classes,
    public_classes,
    with_unknown_labels,
)
from hushfit.estimators._linear import (
    Units,
    cells_read,
    clipped,
    in_original_units,
    in_record_units,
    input_names,
    no_cell_quoted,
    penalty_of,
    refuse_extras,
    refusing_class_weight,
    types_of,
    validated_rows,
)
from hushfit.estimators._little_data import warn_of_few_for_classes
from hushfit.estimators._missing import stated_rule
from hushfit.estimators._persons import PersonSettings, features_of, persons_in, split_groups
from hushfit.estimators._positive import direction_of, positive_place
from hushfit.estimators._private_fit import Fit, check_sizes, private_fit, quote_for
from hushfit.estimators._ranges import feature_ranges, quoted_ranges
from hushfit.estimators._scaling import ChosenScaling, scaling_from
from hushfit.estimators._threshold import (
    check_threshold,
    fitted_threshold,
    needs_class_counts,
)
from hushfit.features import CLASSIFICATION, FeatureMap, InputColumn, RowProfile
from hushfit.losses import Loss
from hushfit.penalties import Penalty
from hushfit.privacy import Budget, Guarantee, Relation, labels_only
from hushfit.problem import Problem
from hushfit.release import Quote, Randomness, Released, Terms
from hushfit.solvers import (
    MAX_SMOOTH_COLUMNS,
    MAX_WHITENED_COLUMNS,
    Counted,
    Result,
    solver_from,
)
from hushfit.unit import ROW, PrivacyUnit


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows ready to be fitted, and the public half of the fit. ``source`` is private."""

    source: DataSource = field(repr=False)
    problem: Problem
    classes: AnyArray
    bounds: Units | None
    feature_map: FeatureMap | None = None
    columns: tuple[InputColumn, ...] = ()


class _PrivateLinearClassifier(
    ExplainsArguments, Inferring, PersonSettings, ClassifierMixin, BaseEstimator
):
    """Base of the linear classifiers, which differ in their loss and in what they can predict."""

    # Of classes that do not take them.
    features: Any = "linear"
    threshold: Any = None
    constraint: Any = None
    scaling: Any = "unit"
    gives_probabilities: ClassVar[bool]

    @refusing_class_weight
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
        nonfinite: str = "fill",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        features: Any = "linear",
        threshold: Any = None,
        constraint: Any = None,
        inference: bool = False,
        cov_type: str = "model",
        scaling: Any = "unit",
        even_weights: bool = False,
        expected_mean: float | None = None,
        pos_label: Any = None,
    ) -> None:
        self.pos_label = pos_label
        self.features = features
        self.threshold = threshold
        self.constraint = constraint
        self.inference = inference
        self.cov_type = cov_type
        self.even_weights = even_weights
        self.expected_mean = expected_mean
        self.scaling = scaling
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

    def fit(self, X: Any, y: Any = None, groups: Any = None, **unsupported: Any) -> Any:
        """Fit the model and charge its cost.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)
            Or any table with an Arrow stream: an Arrow table, a DuckDB relation. Or rows with a
            schema (`hushfit.data.tables.CodedRows`, `hushfit.dask.DaskRows`), which need no y.
        y : array of shape (n_rows,) or str
            A text names a column of the data frame.
        groups : array of shape (n_rows,) or str, optional
            Ids: whose row each is. The privacy unit is then one person with all of their rows
            (user-level privacy). A text names a column of the data frame, which is no feature; a
            row without an id is its own person. None protects single rows.

        Returns
        -------
        self
        """
        refuse_extras(unsupported)
        if isinstance(X, EncodedRows):
            from hushfit.estimators._table_fit import fitted_to_schema_rows

            return fitted_to_schema_rows(self, X, y, groups)
        budget = Budget(self.epsilon, self.delta)
        prepared = self.prepare(X, y, groups)
        if self.inference:
            require_feasible(prepared.problem, budget, self.cov_type, self.expected_mean)
        else:
            warn_of_few_for_classes(prepared.problem, budget)
        fit = private_fit(
            prepared.source,
            prepared.problem,
            self.chosen_solver(prepared.problem, budget),
            self._terms(budget, ChosenScaling(prepared.problem.scaling, prepared.problem.length)),
            self.verbose,
        )
        self.keep_inference(
            self.inferred(fit, prepared, input_names(self)) if self.inference else None
        )
        self.receipt_ = fit.receipt
        return self.accept(fit.result, fit.guarantee, prepared, fit.transcript)

    def _solver(self) -> Any:
        """The solver of the settings; refuses those under which there are no intervals."""
        if not self.inference:
            return self.solver
        self._require_plain(is_linear(self.features), self._penalty())
        if needs_class_counts(self.threshold):
            raise InvalidArgument(
                "threshold='balanced' is for models without intervals: it would take a share of "
                "their budget. Give a number, or leave it out."
            )
        return self._score_steps()

    def _scaling(self, n_columns: int, feature_map: FeatureMap | None) -> ChosenScaling:
        """How records with that many columns are scaled."""
        bounded, mapped = self.feature_bounds is not None, feature_map is not None
        chosen = scaling_from(
            self.scaling, n_columns, bool(self.fit_intercept), bounded=bounded, mapped=mapped
        )
        if not self.inference:
            return chosen
        if chosen != ChosenScaling():
            raise InvalidArgument(
                f"scaling={self.scaling!r} is for models without intervals: with inference=True "
                "records keep their lengths, and coefficients are log-odds. Leave it out."
            )
        return ChosenScaling(RecordScaling.BOUNDED)

    @property
    def public_length(self) -> float:
        """What rows are divided by, unless they are longer; 1 where each is divided by its own."""
        check_is_fitted(self)
        if self.inference:
            return 1.0
        return self._scaling(self.coef_.shape[1], self.feature_map_).length

    def inferred(self, fit: Fit, prepared: "Prepared", names: Sequence[str]) -> Inference:
        """The inference of a fit with ``inference=True``.

        Parameters
        ----------
        fit : Fit
        prepared : Prepared
        names : sequence of str
            Of the columns.

        Returns
        -------
        Inference
        """
        problem, place = prepared.problem, positive_place(self.pos_label, prepared.classes)
        towards = direction_of(place)

        def in_units(w: Vector) -> Vector:
            coef, intercept = in_original_units(w, problem, prepared.bounds)
            return towards * np.append(intercept, coef[0])

        counted = f"{problem.n_units} {problem.privacy_unit.plural}"
        title = f"{type(self).__name__} of {prepared.classes[place]!s}, {counted}"
        middle = middle_of(feature_ranges(self), problem.n_features)
        about = About(names, self.cov_type, title, self.link, middle)
        return inference_of(fit, problem, in_units, about)

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
        check_sizes(n_units=n_units, n_features=n_features)
        if n_classes is None:
            if self.classes is None:
                raise InvalidArgument(
                    "The cost depends on the number of classes. Set classes, or give n_classes."
                )
            n_classes = len(given_classes(self.classes))
        unit = self.person_unit() if per_person else ROW
        given = quoted_ranges(self.feature_bounds, n_features)
        bounds = None if given is None else FeatureBounds.parse(given, n_features)
        columns = columns_of(self.features, bounds, [f"x{j}" for j in range(n_features)])
        feature_map = self.feature_map(n_units, columns)
        problem = self.problem(n_units, n_features, n_classes, unit, feature_map)
        budget = Budget(self.epsilon, self.delta)
        if not self.inference:
            warn_of_few_for_classes(problem, budget)
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
        if self.inference:
            return self._solver()
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
        smooth = self._penalty().ridge is not None
        return feature_map_of(
            self.features,
            columns,
            n_units,
            Budget(self.epsilon, self.delta),
            Relation.parse(self.adjacency),
            CLASSIFICATION,
            (MAX_SMOOTH_COLUMNS if smooth else MAX_WHITENED_COLUMNS) - 1,
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
        columns = n_features if feature_map is None else feature_map.n_outputs
        scaling = self._scaling(columns, feature_map)
        return Problem(
            self._loss(n_classes),
            self._penalty(),
            n_units,
            columns,
            relation,
            bool(self.fit_intercept),
            outputs,
            constraint_of(self.constraint, columns),
            privacy_unit=unit,
            scaling=scaling.records,
            rotated=feature_map is not None and feature_map.rotated,
            length=scaling.length,
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
        X, y = labels_of(X, y)
        X, ids = split_groups(X, groups, y)
        persons = persons_in(self, ids)
        additive_settings(self.features)  # refuses what is not known
        texts = reads_text(self.features)
        check = partial(validated_rows, self, unwrapped(X), texts=texts)
        if self._leaves_out_unlabelled:
            classes = public_classes(self.classes, y)
            X, labels = with_unknown_labels(y, classes, check)
        else:
            X, y = check(y=y)
            if self.classes is None:
                check_classification_targets(y)
            classes = public_classes(self.classes, y)
            labels = encode_labels(y, classes)
        positive_place(self.pos_label, classes)  # refuses what is no class
        bounds = self._bounds(X.shape[1])
        columns = columns_of(self.features, bounds, input_names(self))
        n_units = X.shape[0] if persons is None else persons.n_persons
        feature_map = self.feature_map(n_units, columns)
        problem = self.problem(
            n_units,
            X.shape[1],
            len(classes),
            ROW if persons is None else persons.unit,
            feature_map,
        )
        X = whole_rows(X, self._rule_of_gaps, bounds, feature_map)
        signed = self._signed_bounds(X)
        source = as_source(
            X if signed is None else signed.apply(X),
            labels,
            fit_intercept=bool(self.fit_intercept),
            bounds=bounds if signed is None else None,
            persons=persons,
            scaling=problem.scaling,
            feature_map=feature_map,
            length=problem.length,
            keep_unlabelled=labels_only(problem.relation),
        )
        units = bounds if signed is None else signed
        return Prepared(source, problem, classes, units, feature_map, tuple(columns))

    def _signed_bounds(self, X: Any) -> SignedBounds | None:
        """The map of columns to [-1, 1] where records keep their lengths."""
        if not self.inference:
            return None
        self._solver()  # refuses other settings, before anything is read
        return SignedBounds.parse(feature_ranges(self), X.shape[1], issparse(X))

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
        coef, intercept = in_original_units(result.w, prepared.problem, bounds)
        self.row_profile_: RowProfile = row_profile(
            prepared.feature_map, prepared.problem, transcript, guarantee
        )
        self.coef_, self.intercept_ = reshaped(
            coef,
            intercept,
            self.features,
            prepared.feature_map,
            prepared.columns,
            self.row_profile_,
        )
        multipliers = {made.name: made.noise_multiplier for made in guarantee.releases}
        self.threshold_: Vector | None = fitted_threshold(
            self.threshold,
            transcript,
            multipliers,
            prepared.problem.relation,
            positive_place(self.pos_label, self.classes_),
        )
        self.n_iter_ = result.steps
        self.privacy_: Guarantee = guarantee
        return self

    @property
    def positive_(self) -> Any:
        """Of two classes, the one that the threshold, intervals and reports speak of; else None."""
        check_is_fitted(self)
        place = positive_place(self.pos_label, self.classes_)
        return None if place is None else self.classes_.tolist()[place]

    @property
    def towards_(self) -> float:
        """1 if ``coef_`` points towards the positive class, -1 if away from it."""
        return direction_of(positive_place(self.pos_label, self.classes_))

    def decision_function(self, X: Any) -> Vector:
        """Signed margin of each row: above zero for ``classes_[1]``; one column per class for more.

        Rows are scaled as in training. With ``scaling="unit"`` this is ``(X @ coef_.T +
        intercept_)`` divided by each row's length (with the intercept's 1 in it, after
        ``feature_bounds``); with a feature map, of the mapped row. With a public length it is ``X @
        coef_.T + intercept_`` for rows that are no longer. Missing values are treated as in
        training: see ``nonfinite``. A column of ids that was no feature in training is left out.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_classes)
        """
        check_is_fitted(self)
        X = unwrapped(features_of(as_frame(X), self.privacy_.unit.column))
        texts = reads_text(self.feature_map_)
        with no_cell_quoted(X):
            X = validate_data(
                self,
                cells_read(self, X, texts=texts),
                reset=False,
                accept_sparse="csr",
                dtype=types_of(texts),
                ensure_all_finite=self.nonfinite == "raise" and not texts,
            )
        bounds = self._bounds(X.shape[1])
        X = whole_rows(X, self.nonfinite, bounds, self.feature_map_)
        if self.inference and bounds is not None:  # coefficients are those of the rows themselves
            margins = np.asarray(clipped(X, bounds) @ self.coef_[0] + self.intercept_[0])
            middle = float(self.inference_.middle @ self.coef_[0] + self.intercept_[0])
            return np.where(np.isfinite(margins), margins, middle)
        scaling = (
            ChosenScaling()
            if self.inference
            else self._scaling(self.coef_.shape[1], self.feature_map_)
        )
        units = bounds if self.feature_map_ is None else None
        weights = scaling.length * in_record_units(self.coef_, self.intercept_, units)
        # An empty row lies on every boundary.
        if self.feature_map_ is None:
            public = scaling.records is RecordScaling.PUBLIC_LENGTH
            least = scaling.length if public else 0.0
            margins = record_margins(X, weights, bool(self.fit_intercept), bounds, least)
        else:
            margins = np.nan_to_num(self._mapped_margins(X, weights, bounds, scaling), copy=False)
        return margins[:, 0] if len(weights) == 1 else margins

    def _mapped_margins(
        self, X: Any, weights: Matrix, bounds: FeatureBounds | None, scaling: ChosenScaling
    ) -> Matrix:
        """The margins of rows that go through the feature map, block by block."""
        source = as_source(
            X,
            np.zeros(X.shape[0]),
            fit_intercept=bool(self.fit_intercept),
            bounds=bounds,
            scaling=scaling.records,
            feature_map=self.feature_map_,
            length=scaling.length,
        )
        margins = np.empty((X.shape[0], len(weights)))
        for block in source.blocks():
            for k, w in enumerate(weights):
                margins[block.place, k] = block.margins(w)
        return margins

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
            low, high = (0.0, 0.0) if self.threshold_ is None else np.log(self.threshold_)
            return self.classes_[(margins - high > -low).astype(np.intp)]
        if self.threshold_ is not None:
            margins -= np.log(self.threshold_)
        return self.classes_[margins.argmax(axis=1)]

    @property
    def support_(self) -> AnyArray:
        """Columns with a coefficient other than zero, in any class; with a feature map, of its
        outputs.
        """
        check_is_fitted(self)
        return np.flatnonzero(np.any(self.coef_ != 0, axis=0))

    def shape_values(self, column: int | str, output: int = 0) -> tuple[Vector, Vector]:
        """The shape function of a numeric column of an additive model, at its knots.

        It is linear between knots. A margin is the sum of the shape functions, of the weights of
        the other columns and of the intercept, divided by the length of the mapped row. Functions
        are centred: their mean is zero over the rows, as far as the released second moment shows
        where these lie, or over the range if it shows nothing.

        Parameters
        ----------
        column : int or str
            Number or name of the input column.
        output : int, default=0
            Number of the class, for more than two classes.

        Returns
        -------
        knots : array
            In [0, 1] of the public range.
        values : array
        """
        check_is_fitted(self)
        if not 0 <= output < len(self.coef_):
            raise InvalidArgument(
                f"output={output!r} is no row of coef_, which has {len(self.coef_)}. With two "
                "classes leave it out; with more it is the place of the class in classes_."
            )
        return shape_values(self, self.coef_[output], column)

    def _bounds(self, n_features: int) -> FeatureBounds | None:
        given = feature_ranges(self)
        return None if given is None else FeatureBounds.parse(given, n_features)

    def _penalty(self) -> Penalty:
        return penalty_of(self.penalty, self.alpha, self.l1_ratio)

    def _terms(self, budget: Budget, scaling: ChosenScaling) -> Terms:
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
        if isinstance(self.scaling, Real):
            public.append(f"the length that rows are divided by, {given}")
        rule = stated_rule(self._rule_of_gaps, self.feature_bounds is not None)
        notes = [f"Records {scaling.in_words}; {rule}{self._rule_of_labels}."]
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

    @property
    def _leaves_out_unlabelled(self) -> bool:
        """Whether a label that is missing or not among the classes is left out; refused if not."""
        return self.classes is not None and self.nonfinite != "raise"

    @property
    def _rule_of_labels(self) -> str:
        """What becomes of such labels, as a guarantee states it."""
        if not self._leaves_out_unlabelled:
            return ""
        halfway = labels_only(Relation.parse(self.adjacency))
        counts = "as halfway between the classes" if halfway else "as the zero record"
        return f"; one whose label is not among the classes counts {counts}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        # A private model of a few dozen rows is mostly noise, as it must be.
        tags.classifier_tags.poor_score = True
        return tags
