"""Labels and the public label set."""

import warnings
from typing import Any

import numpy as np

from hushfit._typing import AnyArray, Vector
from hushfit.errors import InvalidArgument, PrivacyLeakWarning


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
    return found


def encode_labels(y: AnyArray, classes: AnyArray) -> Vector:
    """-1 and +1 for two classes, the index of the class for more."""
    place = np.searchsorted(classes, y)
    known = classes[np.minimum(place, len(classes) - 1)] == y
    if not np.all(known):
        raise InvalidArgument(
            f"y has a label that is not in classes={classes.tolist()!r}. Add it to classes if it "
            "is publicly possible, or map it to one of them."
        )
    numbers = place.astype(np.float64)
    return 2 * numbers - 1 if len(classes) == 2 else numbers
