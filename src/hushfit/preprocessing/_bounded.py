"""Scaling by public ranges."""

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hushfit.data import FeatureBounds
from hushfit.estimators import ExplainsArguments, features_of, ranges_by_place, split_groups
from hushfit.features import shortened
from hushfit.preprocessing._rows import (
    IndicatorNames,
    certified_norm,
    check_settings,
    filled,
    flagged_columns,
    read_rows,
    with_indicators,
)


class BoundedScaler(ExplainsArguments, IndicatorNames, TransformerMixin, BaseEstimator):
    """Clip every column to its public range and map it to [0, 1].

    Nothing is learnt from the rows, so it costs nothing.

    Parameters
    ----------
    bounds : (low, high), one pair per column, or a mapping of names of columns to pairs
        Known without reading the rows. A sparse matrix needs ranges that start at 0.
    missing : {"middle", "indicator", "keep"} or list of columns, default="middle"
        What becomes of a missing value: it becomes 0.5. A list of columns, by name or number, gives
        each of these an indicator too, ``name=<missing>``, after the scaled columns; with
        "indicator" every column has one. With "keep" it stays, for an estimator that fills it.
        Which columns may have missing values is public: list what is known without looking.
    max_row_norm : float, optional
        Rows longer than this are scaled down to it. None sets no limit.

    Attributes
    ----------
    row_norm_ : float
        Bound on the length of a transformed row, for all inputs.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from hushfit.preprocessing import BoundedScaler
    >>> BoundedScaler(bounds=(0, 10)).fit_transform([[5.0, 20.0], [-1.0, 10.0]]).tolist()
    [[0.5, 1.0], [0.0, 1.0]]
    """

    # With metadata routing: ids that are meant for other steps need not be given to this one.
    __metadata_request__fit: ClassVar = {"groups": False}

    def __init__(
        self, bounds: Any = (0.0, 1.0), missing: Any = "middle", max_row_norm: float | None = None
    ) -> None:
        self.bounds = bounds
        self.missing = missing
        self.max_row_norm = max_row_norm

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> "BoundedScaler":
        """Check the settings against the number of columns.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)
        y : ignored
        groups : array of shape (n_rows,) or str, optional
            Ids. Nothing is learnt, so nobody has to be protected: a text names a column that is
            left out, and ids change nothing else.

        Returns
        -------
        self
        """
        check_settings(self.missing, self.max_row_norm)
        X, ids = split_groups(X, groups)
        self._id_column = None if ids is None else ids.column
        X = read_rows(self, X, reset=True)
        names = getattr(self, "feature_names_in_", None)
        bounds = FeatureBounds.parse(ranges_by_place(self.bounds, names, "bounds"), X.shape[1])
        self.low_, self.high_ = bounds.low, bounds.high
        self._flagged = flagged_columns(self, self.missing)
        self.row_norm_ = certified_norm(X.shape[1] + len(self._flagged), self.max_row_norm)
        self._sparse = issparse(X)
        return self

    def transform(self, X: Any) -> Any:
        """Scale rows, each on its own. The column of ids is left out.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array or CSR matrix
            Entries in [0, 1]; with "keep", or missing.
        """
        check_is_fitted(self)
        X = read_rows(self, features_of(X, self._id_column), reset=False)
        bounds = FeatureBounds(self.low_, self.high_)
        scaled = bounds.apply_sparse(X) if issparse(X) else bounds.apply(X)
        scaled = filled(scaled, np.full(len(self.low_), 0.5), self.missing)
        return shortened(with_indicators(scaled, X, self._flagged), self.max_row_norm)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
