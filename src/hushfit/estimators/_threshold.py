"""Thresholds of a classifier: which probability makes it predict a class."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation
from hushfit.release import Released
from hushfit.solvers import released_class_shares

_BALANCED = "balanced"


def needs_class_counts(threshold: Any) -> bool:
    """Whether the frequencies of the classes have to be released for it."""
    return isinstance(threshold, str) and threshold == _BALANCED


def check_threshold(threshold: Any, n_classes: int, gives_probabilities: bool) -> None:
    """Refuse what is no threshold, before anything is paid."""
    if threshold is None:
        return
    if not gives_probabilities:
        raise InvalidArgument(
            f"threshold={threshold!r} needs probabilities, which a support vector machine does not "
            "give. Use PrivateLogisticRegression, or threshold=None."
        )
    if needs_class_counts(threshold):
        return
    is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
    if not is_number or not 0 < float(threshold) < 1:
        raise InvalidArgument(
            f"threshold={threshold!r} is not a threshold. Use a number between 0 and 1, "
            "'balanced', or leave it out."
        )
    if n_classes != 2:
        raise InvalidArgument(
            f"threshold={threshold!r} is for two classes, and there are {n_classes}. Use "
            "'balanced', or leave it out."
        )


def fitted_threshold(
    threshold: Any,
    transcript: Sequence[Released],
    multipliers: Mapping[str, float],
    relation: Relation,
    positive: int | None,
) -> Vector | None:
    """What the probabilities of the classes are compared with; None if the largest one decides."""
    if threshold is None:
        return None
    if not needs_class_counts(threshold):
        of_two = np.full(2, 1 - float(threshold))
        of_two[positive] = float(threshold)
        return of_two
    shares = released_class_shares(transcript, multipliers, relation)
    if shares is None:
        raise InvalidArgument(
            "threshold='balanced' needs the counts of the classes, which this fit did not release. "
            "Give a number, or None."
        )
    return shares
