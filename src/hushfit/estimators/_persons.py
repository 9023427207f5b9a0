"""The ``groups`` of a fit: rows of one person are protected together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.utils.validation import _num_samples

from hushfit.data import Persons, persons_of
from hushfit.errors import InvalidArgument
from hushfit.unit import PrivacyUnit


@runtime_checkable
class ProtectsPersons(Protocol):
    """An estimator whose ``fit`` takes ``groups``."""

    def person_unit(self, column: str | None = None) -> PrivacyUnit:
        """Whom a fit with ``groups`` protects; ``column`` is the name of the ids."""


class PersonSettings:
    """The settings of an estimator that say what the rows of one person weigh."""

    person_weight: str
    rows_per_person: int | None

    def person_unit(self, column: str | None = None) -> PrivacyUnit:
        """The privacy unit of a fit with ``groups``.

        Parameters
        ----------
        column : str, optional
            Name of the column of ids.

        Returns
        -------
        PrivacyUnit
            One person, with the weights and the contribution bound of these settings.
        """
        return PrivacyUnit.person(self.person_weight, self.rows_per_person, column)


@dataclass(frozen=True, eq=False)
class Ids:
    """Whose row each is, and the name of the column of ids if they have one. Private."""

    values: Any
    column: str | None
    n_rows: int


def split_groups(X: Any, groups: Any, y: Any = None) -> tuple[Any, Ids | None]:
    """The features, and whose row each is. A column of ids is no feature.

    ``groups`` may also be `Persons`, from code that has compared the ids already. The number of
    rows is private here, so no message has it.
    """
    if groups is None:
        return X, None
    n_rows = _n_rows(X)
    if isinstance(groups, str):
        X, ids = _taken_out(X, groups)
    else:
        ids = Ids(groups, name_of_ids(groups), n_rows)
        if ids.column in column_names(X):
            raise InvalidArgument(
                f"X still has the column {ids.column!r} of the ids, which would make it a feature. "
                f"Give groups={ids.column!r}, or leave the column out of X."
            )
        _refuse_other_order(X, groups)
    if _length_of(ids.values) != n_rows:
        raise InvalidArgument("groups should be a list with one id for each row of X, and is not.")
    shape: tuple[Any, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[1] == 0:
        raise InvalidArgument("X has no features. Give at least one column besides the ids.")
    if y is not None and _labels_shape(y) not in ((n_rows,), (n_rows, 1)):
        raise InvalidArgument(
            "y should have one value for each row of X, in one dimension, and has not."
        )
    return X, ids


def _refuse_other_order(X: Any, groups: Any) -> None:
    """Refuse a series of ids whose index is not that of the rows: by position, ids of other rows
    would be taken, and the guarantee would protect nobody.
    """
    own: Any = getattr(X, "index", None)
    other = getattr(groups, "index", None)
    if hasattr(own, "equals") and hasattr(other, "equals") and not own.equals(other):
        raise InvalidArgument(
            "groups is a series whose index is not that of X, so its ids may belong to other rows. "
            "Give it the index of X, or groups.to_numpy() if the ids are in the order of the rows."
        )


def persons_in(estimator: Any, ids: Ids | None) -> Persons | None:
    """The persons of a fit with the settings of an estimator; None if every row is its own unit."""
    if ids is None:
        refuse_unused_settings(estimator)
        return None
    unit = estimator.person_unit(ids.column)
    if not isinstance(ids.values, Persons):
        return persons_of(ids.values, ids.n_rows, unit)
    if ids.values.unit != unit:
        raise InvalidArgument(
            f"{type(estimator).__name__} would protect {unit}, but the rows were put together for "
            f"{ids.values.unit}. Give all steps the same person_weight and rows_per_person."
        )
    return ids.values


def refuse_unused_settings(estimator: Any) -> None:
    """Refuse weights for the rows of a person where no ids say whose rows they are: the guarantee
    would be for rows, and the settings suggest that it is for persons.
    """
    if not isinstance(estimator, PersonSettings):
        return
    given = estimator.person_weight, estimator.rows_per_person
    if given != ("mean", None):
        raise InvalidArgument(
            "person_weight={!r} and rows_per_person={!r} are for the rows of one person, but no "
            "groups were given: the guarantee would protect single rows. Give groups=, or leave "
            "both settings out.".format(*given)
        )


def features_of(X: Any, column: str | None) -> Any:
    """Rows without the column of ids, which was no feature, if they still have it."""
    return X if column is None or column not in column_names(X) else without_column(X, column)


def column_names(X: Any) -> list[Any]:
    """Names of the columns of a frame or mapping; none for other rows."""
    if isinstance(X, Mapping):
        return list(X)
    return list(X.columns) if hasattr(X, "columns") else []


def _taken_out(X: Any, column: str) -> tuple[Any, Ids]:
    found = column_names(X).count(column)
    if found != 1:
        has = "has none" if found == 0 else f"has {found}"
        raise InvalidArgument(
            f"groups={column!r} names a column, but X {has} of that name. Give a data frame "
            "with it, or an array with one id for each row."
        )
    return without_column(X, column), Ids(X[column], column, _n_rows(X))


def without_column(X: Any, column: str) -> Any:
    """A frame or mapping without one of its columns."""
    others = [name for name in column_names(X) if name != column]
    return {name: X[name] for name in others} if isinstance(X, Mapping) else X[others]


def name_of_ids(ids: Any) -> str | None:
    """The name of a series of ids, which is that of its column."""
    name = ids.unit.column if isinstance(ids, Persons) else getattr(ids, "name", None)
    return name if isinstance(name, str) and name else None


def _n_rows(X: Any) -> int:
    try:
        if isinstance(X, Mapping):
            return max((_num_samples(cells) for cells in X.values()), default=0)
        return int(_num_samples(X))
    except TypeError:  # whose message quotes the value
        raise InvalidArgument("X should be a table of rows, and is a single value.") from None


def _labels_shape(y: Any) -> tuple[int, ...] | None:
    """The shape of labels; None if they have none, being lists of different lengths."""
    try:
        return tuple(getattr(y, "shape", None) or np.shape(y))
    except ValueError:  # whose message tells how many there are
        return None


def _length_of(ids: Any) -> int | None:
    """The number of ids; None if they are not a list."""
    if isinstance(ids, Persons):
        return len(ids.codes)
    if isinstance(ids, Mapping) or len(getattr(ids, "shape", (0,))) != 1:
        return None
    try:
        return int(_num_samples(ids))
    except TypeError:
        return None
