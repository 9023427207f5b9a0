"""The ``groups`` of a fit: rows of one person are protected together."""

from typing import Any

from hushfit.data import Persons, persons_of
from hushfit.errors import InvalidArgument
from hushfit.unit import PrivacyUnit


def split_groups(X: Any, groups: Any) -> tuple[Any, Any, str | None]:
    """Rows without the id column, the ids, and the column's name if it was given by name."""
    if not isinstance(groups, str):
        return X, groups, None
    columns = getattr(X, "columns", None)
    if columns is None or groups not in list(columns):
        raise InvalidArgument(
            f"groups={groups!r} names a column, but X has none of that name. Give a data frame "
            "with it, or an array with one id for each row."
        )
    ids = X[groups]
    return X.drop(columns=groups) if hasattr(X, "loc") else X.drop(groups), ids, groups


def privacy_unit(estimator: Any, column: str | None = None) -> PrivacyUnit:
    """The unit of a fit with groups, from the settings of an estimator."""
    return PrivacyUnit.person(estimator.person_weight, estimator.rows_per_person, column)


def persons_in(estimator: Any, ids: Any, n_rows: int, column: str | None) -> Persons | None:
    """The persons of a fit; None if every row is its own unit."""
    if ids is None:
        return None
    return persons_of(ids, n_rows, privacy_unit(estimator, column))
