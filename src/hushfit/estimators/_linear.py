"""Shared by the linear estimators: validation, penalties by name, and units."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, Protocol

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from hushfit._typing import AnyArray, Matrix, Vector
from hushfit.data import FeatureBounds, SignedBounds
from hushfit.errors import InvalidArgument
from hushfit.estimators._cells import refusal_of_texts, with_numbers
from hushfit.estimators._frames import refuse_dates, refuse_duplicate_names, text_columns
from hushfit.estimators._missing import check_rule
from hushfit.penalties import Penalty, check_penalty, penalty_from_name
from hushfit.problem import Problem

P = ParamSpec("P")


def penalty_of(penalty: str | Penalty | None, alpha: float, l1_ratio: float) -> Penalty:
    """The penalty of an argument: by name, or as given."""
    if penalty is None or isinstance(penalty, str):
        return penalty_from_name(penalty, alpha, l1_ratio)
    check_penalty(penalty)
    return penalty


def validated_rows(
    estimator: Any, X: Any, y: Any, *, texts: bool = False, **options: Any
) -> tuple[Any, AnyArray]:
    """Rows of numbers, or of texts, and labels as arrays; no message reveals a value."""
    check_rule(estimator.nonfinite)
    refuse_dates(X)
    refuse_duplicate_names(X)
    X = cells_read(estimator, X, texts=texts)
    with no_cell_quoted(X):
        X, y = validate_data(
            estimator,
            X,
            y,
            accept_sparse="csr",
            dtype=types_of(texts),
            order=None if isinstance(X, np.ndarray) or issparse(X) else "C",
            ensure_all_finite=False,
            ensure_min_samples=2,
            **options,
        )
    if options.get("y_numeric") and y.dtype.kind in "US":
        raise InvalidArgument("y has a value that is not a number. Give a target of numbers.")
    return X, y


def cells_read(estimator: Any, X: Any, *, texts: bool = False) -> Any:
    """Rows in which objects and texts are floats, unless texts are wanted, or an error for whatever
    is no number.
    """
    return X if texts or estimator.nonfinite == "raise" else with_numbers(X)


def types_of(texts: bool) -> Any:
    """The types that rows may have, as scikit-learn's checks take them."""
    return object if texts else [np.float64, np.float32]


@contextmanager
def no_cell_quoted(X: Any = None) -> Iterator[None]:
    """Report rows that cannot be converted to a table of floats without quoting cells or sizes, as
    numpy and scikit-learn would. Columns of texts are named, as names are public.
    """
    try:
        yield
    except OverflowError:
        raise InvalidArgument(
            "X or y has an integer beyond the largest float. Scale that column first."
        ) from None
    except ValueError as error:
        if "convert string" in str(error):
            found = "X or y has a value that is not a number"
            raise refusal_of_texts(found, text_columns(X)) from None
        if (refusal := refusal_of_shape(error)) is not None:
            raise refusal from None
        raise


def refusal_of_shape(error: ValueError) -> InvalidArgument | None:
    """What to raise instead of a message of numpy or scikit-learn about the shape or type of rows
    that quotes cells, or their number; None for another message.
    """
    if "Complex data" in str(error):
        return InvalidArgument(
            "Complex data not supported: X or y has complex numbers. Give real ones, such as the "
            "real and the imaginary part as two columns."
        )
    if "Expected 2D array" in str(error):
        return InvalidArgument(
            "Expected 2D array: X should have two dimensions, rows and features, and has not. "
            "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
            "or array.reshape(1, -1) if it contains a single sample."
        )
    if "inhomogeneous" in str(error):
        return InvalidArgument(
            "The rows of X, or the values of y, have different lengths. Give every row as many "
            "numbers, and one label for each row."
        )
    return None


def input_names(estimator: Any) -> list[str]:
    """Names of the columns that an estimator was given; x0, x1, ... where they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    count = int(estimator.n_features_in_)
    return [f"x{j}" for j in range(count)] if names is None else [str(name) for name in names]


def n_columns(X: Any) -> int:
    """The number of columns of a table."""
    with no_cell_quoted():
        shape = np.shape(X)
    if len(shape) != 2:
        raise InvalidArgument("X should have two dimensions, rows and features, and has not.")
    return int(shape[1])


def refuse_extras(unsupported: dict[str, Any]) -> None:
    """Refuse weights and unknown arguments of ``fit``."""
    _refuse_class_weight(unsupported)
    if unsupported.get("sample_weight") is not None:
        raise InvalidArgument(
            "sample_weight is refused: a weight multiplies the sensitivity to one row, and the "
            "guarantee holds for rows of weight one. Leave it out."
        )
    unknown = sorted(set(unsupported) - {"sample_weight", "class_weight"})
    if unknown:
        raise TypeError(f"fit() got unexpected arguments: {', '.join(unknown)}.")


def _refuse_class_weight(given: Mapping[str, Any]) -> None:
    """Refuse scikit-learn's class weights, and say what to use."""
    if given.get("class_weight") is not None:
        raise InvalidArgument(
            f"class_weight={given['class_weight']!r} is refused: a weight multiplies the "
            "sensitivity to one row, and with it the noise of the whole fit. Use "
            "threshold='balanced', which finds rare classes as well as balanced weights do, or a "
            "number as threshold."
        )


def refusing_class_weight(init: Callable[P, None]) -> Callable[P, None]:
    """A constructor that says why it has no ``class_weight``, which scikit-learn's have. As a
    parameter that is always refused it would fail scikit-learn's checks.
    """

    @wraps(init)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        _refuse_class_weight(kwargs)
        kwargs.pop("class_weight", None)
        init(*args, **kwargs)

    return checked


class Units(Protocol):
    """The units of columns: what is mapped to 0, and what a step of one stands for."""

    @property
    def origin(self) -> Vector: ...

    @property
    def width(self) -> Vector: ...


def in_original_units(w: Vector, problem: Problem, bounds: Units | None) -> tuple[Matrix, Vector]:
    """Coefficients and intercepts in the units of the caller's columns."""
    w = w / problem.length  # a margin is w times the record, which was divided by it
    coef = np.atleast_2d(problem.columns(w)).copy()
    intercept = (
        np.atleast_2d(w)[:, problem.n_features] * problem.constant
        if problem.fit_intercept
        else np.zeros(len(coef))
    )
    if bounds is not None:
        coef /= bounds.width
        intercept -= coef @ bounds.origin
    return coef, intercept


def in_record_units(coef: Matrix, intercept: Vector, bounds: FeatureBounds | None) -> Matrix:
    """Weights in the units of records, the intercept last: the inverse of `in_original_units`."""
    if bounds is not None:
        intercept = intercept + coef @ bounds.low
        coef = coef * (bounds.high - bounds.low)
    return np.column_stack([coef, intercept])


def clipped(X: Any, bounds: FeatureBounds | SignedBounds) -> Any:
    """Columns clipped to their ranges, in their own units; zeros of sparse rows stay zeros."""
    if not issparse(X):
        return np.clip(X, bounds.low, bounds.high)
    values = np.clip(X.data, bounds.low[X.indices], bounds.high[X.indices])
    return type(X)((values, X.indices, X.indptr), shape=X.shape)
