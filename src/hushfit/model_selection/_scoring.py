"""Scores of a model: one number in [0, 1] for each held-out record."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hushfit._typing import AnyArray, Vector
from hushfit.errors import InvalidArgument
from hushfit.estimators import as_cells, places_of

Scorer = Callable[[Any, Any, AnyArray], Vector]


def one_each(y: Any) -> AnyArray:
    """Held-out labels, each as it is; refused in more than one dimension, before payment."""
    labels = as_cells(y)
    if labels.shape[1:] not in ((), (1,)):
        raise InvalidArgument(
            "y should have one value for each row of X, in one dimension, and has not."
        )
    return labels.ravel()


def one_per_record(scores: Vector, count: int) -> Vector:
    """The scores, if there is one for each record.

    Otherwise their number may reveal something about the rows, so no message has it.
    """
    if np.shape(scores) != (count,):
        raise InvalidArgument(
            "scoring should return one number for each held-out row, in their order, and did not. "
            "Score every row on its own; give 0 to a row that does not count."
        )
    return scores


def scorer_from(scoring: Any) -> Scorer:
    """The scoring function, by name or as given."""
    if callable(scoring):
        return lambda model, X, y: np.asarray(scoring(model, X, y), dtype=np.float64)
    if scoring not in _SCORERS:
        names = ", ".join(map(repr, _SCORERS))
        raise InvalidArgument(
            f"scoring={scoring!r} is not known. Use {names}, or a function of (model, X, y) with a "
            "score for each row."
        )
    return _SCORERS[scoring]


def _hits(model: Any, X: Any, y: AnyArray) -> Vector:
    # Not compared as arrays: one odd label would then turn all scores into misses.
    predicted, given = np.unique(model.predict(X), return_inverse=True)
    return np.asarray(places_of(y, predicted) == given, dtype=np.float64)


def _brier(model: Any, X: Any, y: AnyArray) -> Vector:
    # A label that is not a class has probability 0; looking it up would raise an error that reveals
    # something about its row.
    classes = np.asarray(model.classes_)
    is_true_class = places_of(y, classes)[:, None] == np.arange(len(classes))
    given = np.where(is_true_class, model.predict_proba(X), 0.0).sum(axis=1)
    return np.asarray(1 - (1 - given) ** 2)


_SCORERS: dict[str, Scorer] = {"accuracy": _hits, "brier": _brier}
