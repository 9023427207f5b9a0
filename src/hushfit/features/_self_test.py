"""A trial of a feature map on public random rows, before anything is paid.

Privacy rests on maps that treat every row by itself: what is computed of a row must not change, in
any bit, with the other rows. This is tried out on the machine that will run the fit: with other
rows exchanged, also for huge and for missing ones, in another order, and for a row alone.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hushfit._typing import AnyArray
from hushfit.errors import HushfitError, InvalidArgument
from hushfit.features._feature_map import FeatureMap

_SEED = 20_261_117  # public: the same rows for everybody
_ROWS = 24
_HUGE = 1e30
_WORDS = ("fever", "cough", "no", "pain", "left", "right", "since", "Monday", "x", "?")


def refuse_if_rows_mix(feature_map: FeatureMap) -> None:
    """Refuse a map that is not what it declares: deterministic, row by row, with outputs of the
    stated number and length.

    Parameters
    ----------
    feature_map : FeatureMap

    Raises
    ------
    InvalidArgument
        With the reason. Messages are about public random rows.
    """
    name = type(feature_map).__name__
    draw = np.random.default_rng(_SEED)
    X = _random_rows(feature_map, draw)
    try:
        _check_rows_apart(feature_map, X, draw)
    except HushfitError:
        raise
    except Exception as error:
        raise InvalidArgument(
            f"the feature map {name} failed on random rows: {error}. Nothing was charged. Check "
            f"that it takes {feature_map.n_inputs} columns."
        ) from error


def _check_rows_apart(feature_map: FeatureMap, X: AnyArray, draw: np.random.Generator) -> None:
    given = X.copy()
    expected = _mapped(feature_map, X)
    longest = float(np.linalg.norm(expected.astype(np.float64), axis=1).max())
    if not longest <= feature_map.row_norm:  # also if it is not a number
        raise _refusal(
            feature_map,
            f"made a row of length {longest:g}, beyond row_norm={feature_map.row_norm:g}",
        )
    if not _same(given, X):
        raise _refusal(feature_map, "changes the rows that it is given")
    if not _same(expected, _mapped(feature_map, X)):
        raise _refusal(feature_map, "maps the same rows differently each time")
    order = draw.permutation(len(X))
    if not _same(expected[order], _mapped(feature_map, X[order])):
        raise _refusal(feature_map, "maps a row differently in another place")
    if not _same(expected[:1], _mapped(feature_map, X[:1])):
        raise _refusal(feature_map, "maps a row differently when it is alone")
    others = np.zeros(len(X), dtype=bool)
    others[draw.permutation(len(X))[: len(X) // 2]] = True
    for exchanged in _exchanged(feature_map, X, others):
        if not _same(expected[~others], _mapped(feature_map, exchanged)[~others]):
            raise _refusal(feature_map, "maps a row differently beside other rows")


def _random_rows(feature_map: FeatureMap, draw: np.random.Generator) -> AnyArray:
    shape = (_ROWS, feature_map.n_inputs)
    if not feature_map.reads_text:
        return draw.random(shape)
    texts = np.empty(shape, dtype=object)
    for place in np.ndindex(*shape):
        texts[place] = " ".join(draw.choice(_WORDS, size=draw.integers(1, 9)))
    return texts


def _exchanged(feature_map: FeatureMap, X: AnyArray, others: AnyArray) -> Iterator[AnyArray]:
    """The same rows with some replaced: by others, by empty ones, and by absurd ones."""
    texts = ("", None, "x" * 1000) if feature_map.reads_text else (0.0, _HUGE, np.nan)
    yield np.where(others[:, None], np.roll(X, 1, axis=0), X)
    for value in texts:
        exchanged = X.copy()
        exchanged[others] = value
        yield exchanged


def _mapped(feature_map: FeatureMap, X: AnyArray) -> AnyArray:
    """Mapped rows as a dense array, checked."""
    with np.errstate(all="ignore"):
        made: Any = feature_map.transform(X)
    sparse = hasattr(made, "indptr")
    if sparse is not feature_map.leaves_sparse(False):
        raise _refusal(feature_map, "is not as dense or sparse as it declares")
    rows = np.asarray(made.toarray() if sparse else made)
    if rows.shape != (len(X), feature_map.n_outputs) or rows.dtype.kind != "f":
        raise _refusal(
            feature_map,
            f"made an array of {rows.dtype} and shape {rows.shape} of {len(X)} rows, not floats "
            f"with {feature_map.n_outputs} columns",
        )
    return rows


def _same(one: AnyArray, other: AnyArray) -> bool:
    if one.dtype == object:
        return bool((one == other).all())
    return np.array_equal(one, other, equal_nan=True)


def _refusal(feature_map: FeatureMap, what: str) -> InvalidArgument:
    return InvalidArgument(
        f"the feature map {type(feature_map).__name__} {what}. A guarantee needs a map that "
        "treats each row by itself, always alike. Nothing was charged. Remove what mixes rows or "
        "draws random numbers."
    )
