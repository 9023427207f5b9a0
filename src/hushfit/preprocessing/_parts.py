"""Which parts of a composite estimator spend privacy, which cost nothing, and which would leak."""

import math
from collections.abc import Iterator
from typing import Any

from scipy.sparse import issparse
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer

from hushfit.data import Persons
from hushfit.errors import InvalidArgument
from hushfit.estimators import ProtectsPersons, refuse_unused_settings
from hushfit.preprocessing._bounded import BoundedScaler
from hushfit.preprocessing._encoder import SchemaEncoder
from hushfit.preprocessing._public_features import PublicFeatures
from hushfit.preprocessing._quantile_scaler import PrivateQuantileScaler
from hushfit.privacy import Guarantee
from hushfit.unit import PrivacyUnit

# Parameters that a part must have, so that a pipeline can set its budget and charge for it.
TERMS = ("epsilon", "delta", "adjacency", "ledger", "random_state")
_NOTHING = (None, "passthrough", "drop")
# Parts that store nothing of the rows. By exact type: models that store all rows also have the tag
# ``requires_fit=False``.
_ROW_BY_ROW = (Normalizer, Binarizer, AdditiveChi2Sampler, BoundedScaler)
_FREE = (*_ROW_BY_ROW, PublicFeatures, FunctionTransformer, FeatureHasher, HashingVectorizer)
# Their output is sparse only if their input is.
_AS_GIVEN = (*_ROW_BY_ROW, PrivateQuantileScaler)


def is_private(part: Any) -> bool:
    """Whether an estimator pays for what it learns."""
    return hasattr(part, "get_params") and set(TERMS) <= part.get_params(deep=False).keys()


def private_parts(estimator: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The parts that pay, by their names in ``set_params``, in the order of fitting.

    Raises
    ------
    InvalidArgument
        If a part would learn from the rows without paying.
    """
    for name, part in inner_parts(estimator):
        path = f"{prefix}{name}"
        if is_private(part):
            yield path, part
        elif inner_parts(part):
            yield from private_parts(part, f"{path}__")
        elif not _learns_nothing(part):
            raise InvalidArgument(
                f"The part {path!r} ({type(part).__name__}) learns from the rows and pays nothing "
                "for it: one row could change how all others are transformed. Use BoundedScaler, "
                "PublicFeatures, PrivateQuantileScaler, SchemaEncoder, or a part without state "
                "such as Normalizer or FunctionTransformer."
            )


def payers(estimator: Any) -> list[tuple[str, Any]]:
    """The parts that spend privacy; the estimator itself, under an empty name, if it is one."""
    return [("", estimator)] if is_private(estimator) else list(private_parts(estimator))


def person_unit_of(parts: list[tuple[str, Any]], column: str | None = None) -> PrivacyUnit:
    """The one privacy unit that all parts have in a fit with ``groups``.

    Raises
    ------
    InvalidArgument
        If a part takes no ``groups``, or if parts would weigh the rows of a person differently.
    """
    units: dict[PrivacyUnit, str] = {}
    for name, part in parts:
        if not isinstance(part, ProtectsPersons):
            raise InvalidArgument(
                f"The part {name!r} ({type(part).__name__}) takes no groups: it protects single "
                "rows, and so would the whole. Leave groups out, or use parts of hushfit."
            )
        units.setdefault(part.person_unit(column), name)
    if len(units) > 1:
        (one, first), (other, second) = list(units.items())[:2]
        raise InvalidArgument(
            f"The parts have different privacy units: {first!r} protects {one}, and {second!r} "
            f"protects {other}. Give all the same person_weight and rows_per_person."
        )
    return next(iter(units))


def refuse_unused_settings_of(estimator: Any) -> None:
    """Refuse weights for the rows of a person, in any part, where there are no ids."""
    refuse_unused_settings(estimator)
    for _, part in inner_parts(estimator):
        refuse_unused_settings_of(part)


def fitted_with(
    estimator: Any, X: Any, y: Any, persons: Persons | None, method: str = "fit"
) -> Any:
    """Fit an estimator, every private part with the same persons.

    scikit-learn's metadata routing takes them to parts of parts.
    """
    parts = payers(estimator) if persons is not None else []
    if not parts:
        return getattr(estimator, method)(X, y)
    with config_context(enable_metadata_routing=True):
        for _, part in parts:
            part.set_fit_request(groups=True)
        return getattr(estimator, method)(X, y, groups=persons)


def inner_parts(estimator: Any) -> list[tuple[str, Any]]:
    """Parts of a pipeline, column transformer or feature union; none for other estimators."""
    if not isinstance(estimator, Pipeline | ColumnTransformer | FeatureUnion):
        return []
    for attribute in ("steps", "transformers", "transformer_list"):
        entries = getattr(estimator, attribute, None)
        if isinstance(entries, list):
            left_over = (
                [("remainder", estimator.remainder)] if hasattr(estimator, "remainder") else []
            )
            return [(entry[0], entry[1]) for entry in entries] + left_over
    return []


def fitted_parts(estimator: Any) -> list[tuple[str, Any]]:
    """The same after fitting.

    A column transformer stores fitted copies elsewhere, and one for the remaining columns.
    """
    if hasattr(estimator, "transformers_"):
        return [(entry[0], entry[1]) for entry in estimator.transformers_]
    return inner_parts(estimator)


def _learns_nothing(part: Any) -> bool:
    return part in _NOTHING if isinstance(part, str | None) else type(part) in _FREE


def refuse_choices_by_rows(estimator: Any, X: Any) -> None:
    """Refuse a column transformer whose columns or layout depend on the rows.

    One row could change how all others are transformed.

    Parameters
    ----------
    estimator : Pipeline, ColumnTransformer, FeatureUnion or one of their parts
    X : rows, or None if they are not available
    """
    _leaves_sparse(estimator, X is None or _is_sparse(X))


def _is_sparse(X: Any) -> bool:
    """Whether rows are sparse, or may be after selecting columns, as from a frame."""
    return issparse(X) or any(str(dtype).startswith("Sparse") for dtype in getattr(X, "dtypes", ()))


def _leaves_sparse(part: Any, sparse: bool) -> bool:
    """Whether a part's output may be sparse, given whether its input may.

    Refuses what `refuse_choices_by_rows` describes.
    """
    if isinstance(part, str | None):
        return part != "drop" and sparse
    if isinstance(part, Pipeline):
        for _, step in part.steps:
            sparse = _leaves_sparse(step, sparse)
        return sparse
    if isinstance(part, FeatureUnion | ColumnTransformer):
        # All of them before any(): every part must be checked.
        found = [_leaves_sparse(inner, sparse) for _, inner in fitted_parts(part)]
        return (
            _dense_or_refused(part, any(found))
            if isinstance(part, ColumnTransformer)
            else any(found)
        )
    if type(part) is PublicFeatures:
        return part.leaves_sparse(sparse)
    if type(part) in _AS_GIVEN:
        # A fitted part knows the layout of its input.
        return bool(getattr(part, "_sparse", sparse))
    return type(part) is not SchemaEncoder


def _dense_or_refused(columns: ColumnTransformer, any_sparse: bool) -> bool:
    """False: its output is always dense; refused if it could depend on the rows."""
    chosen = [name for name, _, of in columns.transformers if callable(of)]
    if chosen:
        raise InvalidArgument(
            f"The columns of {chosen[0]!r} are chosen by a function of the table, so one row could "
            "change them. List their names or numbers."
        )
    if any_sparse and columns.sparse_threshold != 0:
        raise InvalidArgument(
            f"A ColumnTransformer with sparse_threshold={columns.sparse_threshold:g} counts the "
            "zeros of all rows to decide whether its output is sparse, so one row could change "
            "it. Give ColumnTransformer(..., sparse_threshold=0), or dense rows."
        )
    return False


def guarantees_of(estimator: Any, prefix: str = "") -> Iterator[tuple[str, Guarantee]]:
    """The guarantees of the fitted parts that spent something."""
    for name, part in fitted_parts(estimator):
        path = f"{prefix}{name}"
        if is_private(part):
            if not hasattr(part, "privacy_"):
                raise InvalidArgument(
                    f"The part {path!r} is not fitted, so its cost is not known. Fit the pipeline "
                    "first."
                )
            if part.privacy_ is not None:
                yield path, part.privacy_
        else:
            yield from guarantees_of(part, f"{path}__")


def row_norm_of(estimator: Any) -> float | None:
    """Bound on the length of rows that a fitted transformer returns; None if not certified."""
    if isinstance(estimator, Pipeline):
        # A pipeline certifies the length of rows that reach its last step, not of its output.
        return None
    if hasattr(estimator, "transformers_"):
        weights = estimator.transformer_weights or {}
        norms = [
            (row_norm_of(part), weights.get(name, 1.0))
            for name, part in fitted_parts(estimator)
            if part != "drop"
        ]
        known = [abs(weight) * norm for norm, weight in norms if norm is not None]
        # The factor covers rounding in the products and the sum of squares.
        return math.hypot(*known) * (1 + 1e-12) if len(known) == len(norms) else None
    return float(estimator.row_norm_) if hasattr(estimator, "row_norm_") else None
