"""The positive class: of two classes, the one that thresholds, intervals and reports speak of.

Classes are sorted, as in scikit-learn, and coefficients point towards the second. Of "ja" and
"nein" that is "nein", so the positive one can be named.
"""

from typing import Any

from hushfit._typing import AnyArray
from hushfit.errors import InvalidArgument


def positive_place(pos_label: Any, classes: AnyArray) -> int | None:
    """Place of the positive class among two; None if there are more."""
    known = classes.tolist()
    if pos_label is None:
        return 1 if len(known) == 2 else None
    if len(known) != 2:
        raise InvalidArgument(
            f"pos_label={pos_label!r} is for two classes, and there are {len(known)}. Leave it out."
        )
    if pos_label not in known:
        raise InvalidArgument(
            f"pos_label={pos_label!r} is not among the classes. Name one of them, as it is written "
            "in classes."
        )
    return known.index(pos_label)


def direction_of(place: int | None) -> float:
    """Sign of a weight towards the positive class, where weights point to the second of two."""
    return -1.0 if place == 0 else 1.0
