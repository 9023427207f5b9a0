"""Scaling by private quantiles, for unknown ranges. Proof: docs/proofs/quantiles.md."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hushfit._typing import Vector
from hushfit.data import as_source
from hushfit.errors import InvalidArgument
from hushfit.estimators import (
    ExplainsArguments,
    PersonSettings,
    features_of,
    persons_in,
    split_groups,
)
from hushfit.features import shortened
from hushfit.preprocessing._quantiles import FIRST_EDGES, Spread, significant
from hushfit.preprocessing._rows import (
    IndicatorNames,
    certified_norm,
    check_settings,
    column_terms,
    filled,
    flagged_columns,
    read_rows,
    with_indicators,
)
from hushfit.privacy import Budget, Guarantee, Relation
from hushfit.release import ColumnHistogram, Contract, Door, Plan, Planned, Quote

LOOKS = ("powers of two", "quantiles")
# Pieces of the second histogram; each column gets about this many, and at most one more for each
# bin of the first.
_PIECES = 64
# A column whose bounds are this close, relative to their size, is constant.
_NARROWEST = 1e-12


class PrivateQuantileScaler(
    ExplainsArguments, PersonSettings, IndicatorNames, TransformerMixin, BaseEstimator
):
    r"""Clip every column to two private quantiles and map it to [0, 1].

    No range need be known. Two noisy histograms of all columns at once: the first has a bin for
    every sign and power of two, the second divides the occupied bins of the first. Each costs the
    same, and its standard deviation is :math:`\sqrt{2 d}` times a noise multiplier for d columns,
    so a column needs a few hundred rows to be visible at all. In a pipeline the model that follows
    is charged separately: use `PrivatePipeline` for one budget, or give both the same ledger.

    Parameters
    ----------
    quantiles : (float, float), default=(0.005, 0.995)
        Shares of the values that lie below the lower and the upper bound.
    output : {"range", "rank"}, default="range"
        ``"range"`` maps linearly between the bounds. ``"rank"`` maps a value to the share of values
        below it, by the noisy histogram, which helps columns with long tails and costs nothing
        more.
    epsilon : float, default=0.3
    delta : float, default=1e-6
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    missing : {"middle", "indicator", "keep"} or list of columns, default="middle"
        What becomes of a missing value: it takes the private median of its column. The other
        choices are those of `BoundedScaler`. It is in no bin of the histograms.
    max_row_norm : float, optional
        Rows longer than this are scaled down to it.
    person_weight, rows_per_person
        Contribution bounding of a fit with ``groups``, as for `PrivateLogisticRegression`: counts
        are weighted, so that a person adds at most one to a histogram.
    ledger : Ledger, optional
        Charged before the rows are read.
    random_state : None or int, default=None
        None is the only secure setting.

    Attributes
    ----------
    low_, high_ : array of shape (n_features,)
        The bounds: functions of the releases. A column hidden by noise has 0 and 1.
    seen_ : bool array of shape (n_features,)
        Whether any bin of the column was above the noise.
    row_norm_ : float
        Bound on the length of a transformed row, for all inputs.
    privacy_ : Guarantee
    n_features_in_, feature_names_in_

    Notes
    -----
    A sparse matrix keeps its zeros: values are divided by the larger of the two bounds in size, and
    lie in [-1, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.preprocessing import PrivateQuantileScaler
    >>> ages = np.linspace(20, 80, 4000)[:, None]
    >>> scaler = PrivateQuantileScaler(epsilon=1.0, output="rank").fit(ages)
    >>> scaler.transform([[50.0]]).round(1)
    array([[0.5]])
    """

    def __init__(
        self,
        quantiles: tuple[float, float] = (0.005, 0.995),
        output: str = "range",
        epsilon: float = 0.3,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        missing: Any = "middle",
        max_row_norm: float | None = None,
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        self.quantiles = quantiles
        self.output = output
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.missing = missing
        self.max_row_norm = max_row_norm
        self.person_weight = person_weight
        self.rows_per_person = rows_per_person
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> "PrivateQuantileScaler":
        """Find the quantiles and charge for them.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)
        y : ignored
        groups : array of shape (n_rows,) or str, optional
            Ids, as for `PrivateLogisticRegression.fit`: the privacy unit is then one person.

        Returns
        -------
        self
        """
        self._check()
        X, ids = split_groups(X, groups)
        persons = persons_in(self, ids)
        X = read_rows(self, X, reset=True)
        d = X.shape[1]
        self._flagged = flagged_columns(self, self.missing)
        source = as_source(X, np.zeros(X.shape[0]), fit_intercept=False, persons=persons)
        terms = column_terms(self, "A missing value is in no cell.")
        quote = self.quote(source.n_units, d, source.privacy_unit.is_person)
        relation = Relation.parse(self.adjacency)
        contract = Contract.signed(source, quote, relation, terms)
        self._sparse = issparse(X)
        self._learn(spreads_of(contract.curator, d), self._sparse)
        self.row_norm_ = certified_norm(d + len(self._flagged), self.max_row_norm)
        self.privacy_: Guarantee = contract.guarantee
        return self

    def quote(self, n_units: int, n_features: int, per_person: bool = False) -> Quote:
        """Cost of finding the quantiles; no row is read and nothing is charged.

        Parameters
        ----------
        n_units, n_features : int
            Number of rows, or of persons, and of columns; public.
        per_person : bool, default=False
            Whether units are persons. The cost is the same: a person adds as much as a row does.

        Returns
        -------
        Quote
        """
        plan = Plan(tuple(Planned(name, ColumnHistogram, 1) for name in LOOKS))
        most = 2 * n_features * (2 * len(FIRST_EDGES) + _PIECES)
        budget, relation = Budget(self.epsilon, self.delta), Relation.parse(self.adjacency)
        return plan.quote_for(n_units, relation, budget, most)

    def _check(self) -> None:
        check_settings(self.missing, self.max_row_norm)
        if self.output not in ("range", "rank"):
            raise InvalidArgument(f"output={self.output!r} is not known. Use 'range' or 'rank'.")
        try:
            low, high = (float(share) for share in self.quantiles)
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"quantiles={self.quantiles!r} is not a pair of shares. Give, say, (0.005, 0.995)."
            ) from None
        if not 0 <= low < high <= 1:
            raise InvalidArgument(
                f"quantiles=({low:g}, {high:g}) is not a range of shares. Give 0 <= low < high <= "
                "1."
            )

    def _learn(self, spreads: list[Spread | None], sparse: bool) -> None:
        """Bounds, medians and ranks from the releases."""
        low, high = (
            np.array([0.0 if s is None else s.quantile(share) for s in spreads])
            for share in self.quantiles
        )
        self.seen_ = np.array([s is not None for s in spreads])
        # A column that is constant, or hidden by noise.
        size = np.maximum(np.abs(low), np.abs(high))
        high = np.where(
            high - low > _NARROWEST * np.maximum(size, 1e-100), high, low + np.maximum(size, 1.0)
        )
        if sparse:
            high = np.maximum(np.abs(low), np.abs(high))
            low = -high
        self.low_, self.high_ = low, high
        self.spreads_ = spreads
        self._median = np.array([0.5 if s is None else s.quantile(0.5) for s in spreads])

    def transform(self, X: Any) -> Any:
        """Scale rows, each on its own. A column of ids that was no feature is left out.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array or CSR matrix
            Entries in [0, 1] (sparse: in [-1, 1]); with "keep", or missing.
        """
        check_is_fitted(self)
        X = read_rows(self, features_of(X, self.privacy_.unit.column), reset=False)
        scaled = self._scaled(filled(X, self._median, self.missing))
        return shortened(with_indicators(scaled, X, self._flagged), self.max_row_norm)

    def _scaled(self, X: Any) -> Any:
        if issparse(X):
            high = self.high_[X.indices]
            values = np.clip(X.data, -high, high, dtype=np.float64) / high
            return type(X)((values, X.indices, X.indptr), shape=X.shape)
        scaled: Any = np.clip(X, self.low_, self.high_, dtype=np.float64)
        scaled -= self.low_
        scaled /= self.high_ - self.low_
        if self.output == "rank":
            for j, spread in enumerate(self.spreads_):
                if spread is not None:
                    scaled[:, j] = self._ranks(X[:, j], spread)
        return np.clip(scaled, 0.0, 1.0)

    def _ranks(self, values: Vector, spread: Spread) -> Vector:
        low, high = self.quantiles
        shares = np.interp(values, spread.edges, spread.below)
        return np.asarray((np.clip(shares, low, high) - low) / (high - low))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def spreads_of(door: Door, d: int) -> list[Spread | None]:
    """Distribution of each column, from two noisy histograms: coarse, then fine."""
    edges: list[Vector] = [FIRST_EDGES] * d
    found: list[Spread | None] = [None] * d
    for name in LOOKS:
        query = ColumnHistogram(tuple(edges))
        std = door.noise_multiplier(name) * query.sensitivity(door.relation)
        counts = query.by_column(door.release(name, query))
        seen = [
            Spread.of(e, c, max(significant(std, query.size), 0.5))
            for e, c in zip(edges, counts, strict=True)
        ]
        found = [new or old for new, old in zip(seen, found, strict=True)]
        edges = [FIRST_EDGES[:1] if s is None else s.finer(_PIECES) for s in found]
    return found
