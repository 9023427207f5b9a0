"""Targets of regressors: their public range, and what is missing among them."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument, PrivacyLeakWarning
from hushfit.estimators._cells import as_cells
from hushfit.estimators._labels import numbers_of

# What arrays that are no targets hold, by the kind of their type; texts, of other types.
_HELD = {"M": "dates", "m": "durations"}


@dataclass(frozen=True)
class TargetScale:
    """Public map of the target to [-1, 1]: clip, shift, scale; without an intercept no shift."""

    low: float
    high: float
    centre: float
    half_width: float

    @classmethod
    def of(cls, bounds: Any, y: Vector, fit_intercept: bool, stacklevel: int = 5) -> "TargetScale":
        """From public bounds; from the targets themselves, with a warning, when there are none.

        ``stacklevel`` is that of the warning: usually ``fit`` calls two methods in between.
        """
        if bounds is None:
            warnings.warn(
                "target_bounds=None: the range of the target is read from y, outside the "
                "guarantee. Give (low, high) as you know them without looking; values outside are "
                "clipped.",
                PrivacyLeakWarning,
                stacklevel=stacklevel,
            )
            low, high = float(y.min()), float(y.max())
            high = high if high > low else low + max(1.0, 1e-9 * abs(low))
        else:
            low, high = cls._checked(bounds)
        if fit_intercept:
            return cls(low, high, low + (high - low) / 2, (high - low) / 2)
        return cls(low, high, 0.0, max(abs(low), abs(high)))

    @staticmethod
    def _checked(bounds: Any) -> tuple[float, float]:
        try:
            low, high = (float(end) for end in bounds)
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgument(
                f"target_bounds={bounds!r} is not a pair of numbers. Give (low, high)."
            ) from None
        # Targets are divided by half of the width, which must be a number of full precision.
        if not (
            np.isfinite(low) and np.isfinite(high) and 2 * sys.float_info.min <= high - low < np.inf
        ):
            raise InvalidArgument(
                f"target_bounds=({low:g}, {high:g}) is not a range. Give finite numbers with low < "
                "high."
            )
        return low, high

    @property
    def mapped_range(self) -> tuple[float, float]:
        """The range of mapped targets; all of [-1, 1] with an intercept."""
        low, high = self(np.array([self.low, self.high])).tolist()
        return low, high

    def __call__(self, y: Vector) -> Vector:
        return (np.clip(y, self.low, self.high) - self.centre) / self.half_width

    def in_units_of_targets(self, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Coefficients and intercept of the target itself, from those of the mapped one."""
        return coef * self.half_width, float(intercept * self.half_width + self.centre)


class TargetMap(Protocol):
    """A public map of targets, and of coefficients back to their units."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...

    def __call__(self, y: Vector) -> Vector: ...

    def in_units_of_targets(self, coef: Vector, intercept: float) -> tuple[Vector, float]: ...


def with_missing_targets(y: Any, check: Callable[..., tuple[Any, Vector]]) -> tuple[Any, Vector]:
    """Rows and targets as ``check(y=...)`` returns them, with infinite targets as they are and NaN
    for those that are missing or no numbers: scikit-learn refuses these, which would tell of a row.

    Targets are float64 in any case: one that is missing must not change how others are rounded.
    """
    # Columns of a type for texts are refused by that type, whatever they hold.
    cells = np.asarray(y, dtype=str) if _is_of_texts(y) else as_cells(y)
    targets = numbers_of(cells)
    if targets is None:
        if cells.dtype.kind != "c":  # complex ones are refused by scikit-learn
            raise InvalidArgument(
                f"y is an array of {_HELD.get(cells.dtype.kind, 'texts')}, and not of numbers. "
                "Convert it first, such as with pandas.to_numeric(y, errors='coerce'), which makes "
                "what is no number a missing target."
            )
        return check(y=cells)
    X, _ = check(y=np.where(np.isfinite(targets), targets, 0.0))
    return X, targets.ravel()


def _is_of_texts(y: Any) -> bool:
    """Whether a column of pandas or polars is of a type for texts, or for categories in texts."""
    kind = getattr(y, "dtype", None)
    categories = getattr(kind, "categories", None)
    return str(getattr(categories, "dtype", kind)).lower() in ("str", "string")


@dataclass(frozen=True)
class CountScale:
    """Counts from 0 to a public largest one, as they are."""

    high: float
    low: float = 0.0

    def __call__(self, y: Vector) -> Vector:
        return np.clip(y, self.low, self.high)

    def in_units_of_targets(self, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Coefficients of log-rates, which have no unit."""
        return coef, intercept
