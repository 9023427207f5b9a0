"""From ids to persons: which rows have the same id.

Ids may be whole numbers of any size, texts, bytes, dates or categories. A row without an id is its
own person.
"""

from typing import Any

import numpy as np

from hushfit._typing import AnyArray, BoolVector, IntVector
from hushfit.data.rows._persons import Persons
from hushfit.errors import InvalidArgument
from hushfit.unit import PrivacyUnit


def persons_of(ids: Any, n_rows: int, unit: PrivacyUnit) -> Persons:
    """The persons of rows.

    Parameters
    ----------
    ids : array-like, one id for each row
        Missing ids (None, NaN, NaT) stand for persons of one row.
    n_rows : int
        How many rows there are.
    unit : PrivacyUnit

    Returns
    -------
    Persons

    Raises
    ------
    InvalidArgument
        If there are more or fewer ids than rows, if they cannot be compared, or if all are equal.
    """
    known = np.asarray(ids)
    if known.ndim != 1 or len(known) != n_rows:
        raise InvalidArgument(
            f"groups has shape {known.shape}, but X has {n_rows} rows. Give one id for each row."
        )
    codes, n_persons = _codes(known)
    if n_persons < 2:
        raise InvalidArgument(
            "All ids in groups are equal: that is one person, and nothing can be fitted while "
            "hiding one person. Give the ids of at least two, or leave groups out."
        )
    return Persons(codes, n_persons, unit)


def _codes(ids: AnyArray) -> tuple[IntVector, int]:
    """Numbers from 0 for the persons of rows, and how many there are."""
    missing = _missing(ids)
    codes = np.empty(len(ids), np.int64)
    values, codes[~missing] = np.unique(ids[~missing], return_inverse=True)
    alone = int(missing.sum())
    codes[missing] = len(values) + np.arange(alone)
    return codes, len(values) + alone


def _missing(ids: AnyArray) -> BoolVector:
    if ids.dtype.kind in "fcmM":
        return np.isnan(ids) if ids.dtype.kind in "fc" else np.isnat(ids)
    if ids.dtype.kind == "O":
        return np.array([one is None or one != one for one in ids], dtype=np.bool_)
    return np.zeros(len(ids), dtype=np.bool_)
