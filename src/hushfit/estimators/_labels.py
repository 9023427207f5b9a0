"""Labels, the public label set, and targets, each of which is read by itself."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from hushfit._typing import AnyArray, IntVector, Vector
from hushfit.errors import InvalidArgument, PrivacyLeakWarning
from hushfit.estimators._cells import alone, as_cells, held_in, numbers_of_cells


def public_classes(classes: Any, y: AnyArray) -> AnyArray:
    """The label set, sorted: as given, or read from the labels with a warning."""
    if classes is not None:
        return given_classes(classes)
    warnings.warn(
        "classes=None: the label set is read from y, outside the guarantee. A label that a "
        "single row has would be revealed. Give classes=[...] as you know them without "
        "looking.",
        PrivacyLeakWarning,
        stacklevel=4,
    )
    return _several(np.unique(y))


def given_classes(classes: Any) -> AnyArray:
    """The label set that the caller gave, sorted."""
    if np.ndim(classes) != 1:
        raise InvalidArgument(
            f"classes={classes!r} is not a list of labels. Give all of them, such as "
            "classes=[0, 1]."
        )
    found = np.unique(np.asarray(classes))
    if len(found) < len(np.asarray(classes)):
        raise InvalidArgument(f"classes={classes!r} names a label twice. Name each once.")
    return _several(found)


def _several(found: AnyArray) -> AnyArray:
    if len(found) < 2:
        raise InvalidArgument(
            f"Classification needs at least 2 classes; got {len(found)} class. If the rows happen "
            "to have one label only, give all possible labels in classes=[...]."
        )
    if found.dtype.kind in "iu" and len(np.unique(found.astype(np.float64))) < len(found):
        raise InvalidArgument(
            "Two classes are whole numbers with one nearest float, as which labels are compared. "
            "Give them as texts, in classes and in y."
        )
    return found


def encode_labels(y: AnyArray, classes: AnyArray) -> Vector:
    """-1 and +1 for two classes, the index of the class for more; refuses other labels."""
    places = places_of(y, classes)
    if (places < 0).any():
        raise InvalidArgument(
            f"y has a label that is not in classes={classes.tolist()!r}. Add it to classes if it "
            "is publicly possible, or map it to one of them. (This error reveals something about "
            "the rows to whoever sees it.)"
        )
    return _numbers(places, len(classes))


def with_unknown_labels(
    y: Any, classes: AnyArray, check: Callable[..., tuple[Any, AnyArray]]
) -> tuple[Any, Vector]:
    """Rows as ``check(y=...)`` returns them, and labels as `encode_labels` does; NaN for a label
    that is missing or not among the classes, of which no error may tell.

    Each label is read by itself.
    """
    cells = as_cells(y)
    kinds = held_in(y), held_in(classes)
    if None not in kinds and kinds[0] != kinds[1]:
        raise InvalidArgument(
            f"y is an array of {kinds[0]}, and classes={classes.tolist()!r} are {kinds[1]}. Give "
            "both as numbers, or both as texts."
        )
    complex_type = cells.dtype.kind == "c"  # which scikit-learn refuses
    places = places_of(cells.ravel(), classes).reshape(cells.shape)
    X, places = check(y=y if complex_type else places)
    return X, np.where(places < 0, np.nan, _numbers(places, len(classes)))


def places_of(cells: AnyArray, classes: AnyArray) -> IntVector:
    """The number of the class of each label, -1 for none; each label is read by itself.

    Parameters
    ----------
    cells : array
        As `as_cells` gives them.
    classes : array
        Sorted.

    Returns
    -------
    int array
    """
    cells, classes = _as_floats(cells), _as_floats(classes)
    if held_in(cells) is not None and held_in(cells) == held_in(classes):
        found = np.searchsorted(classes, cells)
        known = classes[np.minimum(found, len(classes) - 1)] == cells
        return np.where(known, found, -1)
    place_of = {label: place for place, label in enumerate(classes.tolist())}
    return np.array([_place(cell, place_of) for cell in cells.tolist()], np.int64)


def numbers_of(cells: AnyArray) -> Vector | None:
    """Targets as floats, NaN where a cell is no number; each is read by itself. None for an array
    whose type holds no real numbers.

    Parameters
    ----------
    cells : array
        As `as_cells` gives them.

    Returns
    -------
    float array or None
    """
    if cells.dtype.kind in "biuf":
        return cells.astype(np.float64, copy=False)
    if cells.dtype.kind != "O":
        return None
    return numbers_of_cells(cells.ravel().tolist()).reshape(cells.shape)


def _as_floats(cells: AnyArray) -> AnyArray:
    """Whole numbers as floats: a missing cell makes floats of all of a column, and must not change
    which class the others are.
    """
    return cells.astype(np.float64) if cells.dtype.kind in "iu" else cells


def _place(cell: Any, place_of: dict[Any, int]) -> int:
    try:
        cell = alone(cell)
        return place_of.get(float(cell) if isinstance(cell, int | np.integer) else cell, -1)
    except Exception:  # a cell that cannot be compared is no label
        return -1


def _numbers(places: IntVector, n_classes: int) -> Vector:
    numbers = places.astype(np.float64)
    return 2 * numbers - 1 if n_classes == 2 else numbers
