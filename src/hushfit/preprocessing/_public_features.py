"""A public feature map as a step of a pipeline."""

import math
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hushfit.data import FeatureBounds
from hushfit.estimators import features_of, input_names, public_map, split_groups
from hushfit.features import FeatureMap, mapped_rows
from hushfit.preprocessing._rows import check_settings, read_rows, read_texts


class PublicFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Rows through a public feature map: each by itself, learnt from no row, at no cost.

    The map is tried out on public random rows when the step is fitted, and refused if it mixes
    rows or draws random numbers: a guarantee about mapped rows holds for the rows themselves only
    if every row is mapped by itself.

    Parameters
    ----------
    features : FeatureMap, AdditiveFeatures, "additive" or "centred", default="additive"
        `hushfit.features.ScatteringMap` for images, `hushfit.features.HashedText` for texts,
        `hushfit.torch.FrozenModule` for a network that was trained on public data. An additive map
        has as many knots as its settings allow here; as ``features`` of an estimator it has as
        many as suit the budget.
    bounds : (low, high), one pair per column, or None, default=(0, 1)
        Public ranges of numbers: values are clipped to them and mapped to [0, 1], as maps expect.
        None gives values to the map as they are. Ignored for texts.
    max_row_norm : float, optional
        Mapped rows longer than this are scaled down to it. None takes what the map certifies.

    Attributes
    ----------
    feature_map_ : FeatureMap
    row_norm_ : float
        Bound on the length of a mapped row, for all inputs, enforced by scaling longer rows down;
        infinity if neither the map nor ``max_row_norm`` gives one.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from hushfit.features import HashedText
    >>> from hushfit.preprocessing import PublicFeatures
    >>> PublicFeatures(HashedText(size=8)).fit_transform(["fever and cough", "cough"]).shape
    (2, 8)
    """

    # With metadata routing: ids that are meant for other steps need not be given to this one.
    __metadata_request__fit: ClassVar = {"groups": False}

    def __init__(
        self,
        features: Any = "additive",
        bounds: Any = (0.0, 1.0),
        max_row_norm: float | None = None,
    ) -> None:
        self.features = features
        self.bounds = bounds
        self.max_row_norm = max_row_norm

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> "PublicFeatures":
        """Try the map out on random rows; nothing is learnt from X.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)
            A list of texts is one column.
        y : ignored
        groups : array of shape (n_rows,) or str, optional
            Ids. Nothing is learnt, so nobody has to be protected: a text names a column that is
            left out, and ids change nothing else.

        Returns
        -------
        self
        """
        check_settings("keep", self.max_row_norm)
        X, ids = split_groups(X, groups)
        self._id_column = None if ids is None else ids.column
        X = self._read(X, reset=True)
        bounds = self._bounds(X.shape[1])
        self.feature_map_: FeatureMap = public_map(self.features, bounds, input_names(self))
        self.row_norm_ = min(self.feature_map_.row_norm, self.max_row_norm or math.inf)
        self._n_features_out = self.feature_map_.n_outputs
        return self

    def transform(self, X: Any) -> Any:
        """Map rows, each on its own. The column of ids is left out.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array or CSR matrix of shape (n_rows, n_outputs)
            A row with a missing value is mapped to missing values, unless the map fills them.
        """
        check_is_fitted(self)
        X = self._read(features_of(X, self._id_column), reset=False)
        bounds = self._bounds(X.shape[1])
        before = None if bounds is None else bounds.apply_any
        return mapped_rows(self.feature_map_, X, before, self.row_norm_)

    def leaves_sparse(self, sparse: bool) -> bool:
        """Whether its output is sparse, given whether its input is."""
        features = self.features
        return features.leaves_sparse(sparse) if isinstance(features, FeatureMap) else sparse

    @property
    def _reads_text(self) -> bool:
        return isinstance(self.features, FeatureMap) and self.features.reads_text

    def _read(self, X: Any, *, reset: bool) -> Any:
        read = read_texts if self._reads_text else read_rows
        return read(self, X, reset=reset)

    def _bounds(self, n_features: int) -> FeatureBounds | None:
        given = None if self._reads_text else self.bounds
        return None if given is None else FeatureBounds.parse(given, n_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._reads_text
        tags.input_tags.string = self._reads_text
        tags.input_tags.allow_nan = True
        return tags
