"""How the records of a classifier are scaled: each to length one, or all by one public length."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from hushfit.data import RecordScaling
from hushfit.errors import InvalidArgument

UNIT, PUBLIC = "unit", "public"
# Beyond, records are so short that no fit could learn from them.
_MOST = 1e6


@dataclass(frozen=True)
class ChosenScaling:
    """The scaling of records, and the public length that they are divided by."""

    records: RecordScaling = RecordScaling.UNIT_LENGTH
    length: float = 1.0

    @property
    def in_words(self) -> str:
        """What is done to records, for a guarantee."""
        if self.records is RecordScaling.BOUNDED:
            return "keep their lengths"
        if self.records is RecordScaling.UNIT_LENGTH:
            return "are scaled to unit length"
        return f"are divided by the public length {self.length:.4g}, longer ones by their own"


def scaling_from(
    scaling: Any, n_columns: int, fit_intercept: bool, *, bounded: bool, mapped: bool
) -> ChosenScaling:
    """The scaling of a setting.

    Parameters
    ----------
    scaling : "unit", "public" or float
    n_columns : int
        Columns of a record, without the intercept's.
    fit_intercept : bool
    bounded : bool
        Whether columns are mapped to [0, 1].
    mapped : bool
        Whether they then go through a feature map.

    Returns
    -------
    ChosenScaling
    """
    if isinstance(scaling, str) and scaling == UNIT:
        return ChosenScaling()
    if isinstance(scaling, str) and scaling == PUBLIC:
        if not bounded or mapped:
            raise InvalidArgument(
                "scaling='public' divides rows by the largest length that their ranges allow, so "
                "it needs feature_bounds and features='linear'. Give both, or a length as a "
                "number, or scaling='unit'."
            )
        return ChosenScaling(RecordScaling.PUBLIC_LENGTH, math.sqrt(n_columns + fit_intercept))
    is_number = isinstance(scaling, Real) and not isinstance(scaling, bool)
    if not is_number or not 1 <= float(scaling) <= _MOST:
        raise InvalidArgument(
            f"scaling={scaling!r} is not known. Use 'unit', 'public', or a public length from 1 to "
            f"{_MOST:,.0f} that rows, with the intercept's 1, rarely exceed."
        )
    return ChosenScaling(RecordScaling.PUBLIC_LENGTH, float(scaling))
