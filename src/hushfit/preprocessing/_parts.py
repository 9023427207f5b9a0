"""Which parts of a composite estimator spend privacy, which cost nothing, and which would leak."""

import math
from collections.abc import Iterator
from typing import Any

from sklearn.utils import get_tags

from hushfit.errors import InvalidArgument
from hushfit.preprocessing._bounded import BoundedScaler
from hushfit.privacy import Guarantee

# What a part must let its owner settle, so that the owner can pay for it.
TERMS = ("epsilon", "delta", "adjacency", "ledger", "random_state")
_NOTHING = (None, "passthrough", "drop")


def is_private(part: Any) -> bool:
    """Whether an estimator pays for what it learns."""
    return hasattr(part, "get_params") and set(TERMS) <= part.get_params(deep=False).keys()


def private_parts(estimator: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The parts that pay, under the names that ``set_params`` knows them by; in the order in which they are fitted.

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
                f"The part {path!r} ({type(part).__name__}) learns from the rows and pays nothing for it: one row could change how "
                "all others are transformed. Use BoundedScaler, PrivateQuantileScaler, SchemaEncoder, or a part without state such "
                "as Normalizer or FunctionTransformer."
            )


def inner_parts(estimator: Any) -> list[tuple[str, Any]]:
    """What a pipeline, column transformer or feature union is made of."""
    for attribute in ("steps", "transformers", "transformer_list"):
        entries = getattr(estimator, attribute, None)
        if isinstance(entries, list):
            left_over = [("remainder", estimator.remainder)] if hasattr(estimator, "remainder") else []
            return [(entry[0], entry[1]) for entry in entries] + left_over
    return []


def fitted_parts(estimator: Any) -> list[tuple[str, Any]]:
    """The same after fitting: a column transformer keeps fitted copies elsewhere, and one for the columns left over."""
    if hasattr(estimator, "transformers_"):
        return [(entry[0], entry[1]) for entry in estimator.transformers_]
    return inner_parts(estimator)


def _learns_nothing(part: Any) -> bool:
    if isinstance(part, str | None):
        return part in _NOTHING
    return isinstance(part, BoundedScaler) or not get_tags(part).requires_fit


def guarantees_of(estimator: Any, prefix: str = "") -> Iterator[tuple[str, Guarantee]]:
    """The guarantees of the fitted parts that spent something."""
    for name, part in fitted_parts(estimator):
        path = f"{prefix}{name}"
        if is_private(part):
            if not hasattr(part, "privacy_"):
                raise InvalidArgument(f"The part {path!r} is not fitted, so nothing is known of its cost. Fit the pipeline first.")
            if part.privacy_ is not None:
                yield path, part.privacy_
        else:
            yield from guarantees_of(part, f"{path}__")


def row_norm_of(estimator: Any) -> float | None:
    """Length that no row leaving a fitted transformer exceeds; None where nothing is certified."""
    if hasattr(estimator, "row_norm_"):
        return float(estimator.row_norm_)
    if hasattr(estimator, "transformers_"):
        norms = [row_norm_of(part) for _, part in fitted_parts(estimator) if part != "drop"]
        known = [norm for norm in norms if norm is not None]
        return math.hypot(*known) if len(known) == len(norms) else None
    return None
