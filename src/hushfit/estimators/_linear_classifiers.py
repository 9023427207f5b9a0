"""Linear classifiers with a privacy guarantee."""

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from hushfit._typing import Matrix
from hushfit.estimators._classifiers import _PrivateLinearClassifier
from hushfit.losses import HuberHinge, Logistic, Loss, OneVsRest, Softmax


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
    feature_bounds : (low, high), one tuple per column in a list or by name in a dict, or None
        Public ranges, each end a number or one number per column: values are clipped to them and
        mapped to [0, 1]. None uses the rows unchanged. Give what is known without looking at the
        rows; a range read from the rows is a leak.
    classes : sequence, optional
        Public label set. A label that is missing or not in it makes its record the zero record; no
        error tells of it. None reads the set from ``y`` and warns: a label that only one row has
        would be revealed.
    fit_intercept : bool, default=True
    nonfinite : {"fill", "zero", "raise"}, default="fill"
        What becomes of a missing value (NaN): it is filled with the middle of its range, or with 0
        without ``feature_bounds``, as infinite values then are. Or its whole record counts as the
        zero record, or the fit is refused, as it then is for an unknown label too. If the absence
        of a value says something, name the column in ``missing`` of
        `hushfit.preprocessing.BoundedScaler` or of `hushfit.features.AdditiveFeatures`: it then
        gets an indicator.
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
        A map such as `hushfit.features.ScatteringMap` for images or `hushfit.features.HashedText`
        for texts is tried out on random rows first, and refused if it mixes rows.
    threshold : None, float in (0, 1) or "balanced", default=None
        From which probability on ``predict`` says the positive class; None is 0.5. ``"balanced"``
        is the frequency of the class, so that rare classes are found too: it is counted privately,
        for 2 % of the budget. With more than two classes, it predicts the class whose probability
        is largest in proportion to its frequency. Probabilities do not depend on it. scikit-learn's
        ``class_weight`` is refused: it would multiply the noise of the whole fit.
    constraint : None, "chain", a constraint of ``hushfit.constraints``, or a function
        A public linear map of the coefficients that the penalty is a function of, instead of the
        coefficients themselves: ``"chain"`` takes differences of neighbours. A function gets the
        number of columns, such as ``lambda d: graph(edges, d)``. The solver is then stochastic
        ADMM.
    inference : bool, default=False
        Whether to estimate ordinary coefficients (log-odds) with standard errors, intervals and
        tests that cover sampling and noise: ``summary()``, ``conf_int()``, ``pvalues_``. For two
        classes, with ``feature_bounds`` and enough rows; predictions are less accurate. Rows with a
        missing value are left out of the fit.
    cov_type : {"model", "robust", "cluster"}, default="model"
        Covariance of the coefficients; "robust" holds where the model does not. With ``groups``
        it is clustered by person, and "cluster" is another name for it.
    even_weights : bool, default=False
        With ``inference``: whether all rows weigh the same. Otherwise rows with unusual features
        weigh less, which changes what is estimated if the model is wrong. Noise is larger; with
        few rows there may be no intervals (docs/algorithms/inference.md).
    expected_mean : float, optional
        With ``inference``: share of a class that you expect from what is public. A fit with too
        few rows for it is refused before anything is charged; nothing else depends on it. None
        assumes a class of 28 %.
    scaling : {"unit", "public"} or float, default="unit"
        How rows are scaled. ``"unit"`` divides each by its own length, which was measured to
        predict slightly better (docs/algorithms/auto-appendix.md). ``"public"`` divides all by one
        number, the largest length that ``feature_bounds`` allow, so that coefficients are log-odds.
        A number is that length itself, with the intercept's 1 in it; longer rows are shortened to
        it. Give one for columns of which few are not zero, such as indicators: the smaller, the
        less noise. It must be public.
    pos_label : label, optional
        Of two classes, the positive one, which ``threshold``, ``summary()``, intervals, marginal
        effects and reports speak of. None is ``classes_[1]``. It changes neither the order of
        ``classes_`` nor ``coef_``, ``decision_function`` and ``predict_proba``.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Towards ``classes_[1]``, or each class of several, in the units of the columns. With
        ``scaling="public"``, and with ``inference=True``, a coefficient is what a unit of its
        column adds to the log-odds, as in every logistic regression. With ``scaling="unit"`` the
        log-odds of a row x are ``(x @ coef_.T + intercept_) / |[x, 1]|``, with x after
        ``feature_bounds`` in the length, so a coefficient is that change times the length of the
        row: for rows of a typical length, divide by it.
        With a feature map, weights of its outputs, in units of these: for an additive model see
        ``shape_values``.
    feature_map_ : FeatureMap or None
        The map that rows go through; None if they are used as they are.
    row_profile_ : RowProfile
        Of an additive model: where the rows lie, as far as the released second moment shows.
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array
    positive_ : label or None
        The positive class of two.
    threshold_ : array of shape (n_classes,) or None
        What probabilities are compared with; None if the largest one decides.
    n_iter_ : int
        Fixed in advance; it does not depend on the rows.
    privacy_ : Guarantee
        The guarantee. Print it.
    receipt_ : Receipt or None
        The payment, which `hushfit.save_model` writes into the file; None without a ledger.

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
    link = "logit"

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
    >>> import numpy as np
    >>> from hushfit import PrivateLinearSVC
    >>> X, y = np.array([[0.2], [0.8]] * 500), np.array([0, 1] * 500)
    >>> model = PrivateLinearSVC(epsilon=1.0, delta=1e-6, classes=[0, 1], feature_bounds=(0, 1))
    >>> model.fit(X, y).predict([[0.1], [0.9]])
    array([0, 1])
    """

    gives_probabilities = False

    def _loss(self, n_classes: int) -> Loss:
        return HuberHinge() if n_classes == 2 else OneVsRest(HuberHinge(), n_classes)
