"""Public feature maps that are data, so that a model file can hold them.

A map is applied to one document at a time and must not have been fitted on private rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument

ACTIVATIONS: Final = ("linear", "relu", "tanh", "cosine")


class DocumentMap(Protocol):
    """A map from documents to features that can be written down."""

    def transform(self, X: Matrix) -> Matrix:
        """The features of documents."""

    def width(self, n_features: int) -> int:
        """Number of features that it makes of so many columns; refuses other numbers."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `feature_map_from` reads them."""


@dataclass(frozen=True, eq=False)
class LayerMap:
    """A layer with public weights: an activation of ``X @ weights + offsets``.

    Random weights with ``"cosine"`` are random Fourier features; a diagonal matrix with
    ``"linear"`` scales columns by publicly known ranges.

    Parameters
    ----------
    weights : array of shape (n_features, n_outputs)
    offsets : array of shape (n_outputs,), optional
        Zero when not given.
    activation : {"linear", "relu", "tanh", "cosine"}, default="linear"

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.estimators import LayerMap
    >>> LayerMap(np.eye(2), [0.0, 1.0], "relu").transform(np.array([[-1.0, 2.0]]))
    array([[0., 3.]])
    """

    weights: Matrix
    offsets: Vector | None = None
    activation: str = "linear"

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if weights.ndim != 2 or 0 in weights.shape or not np.isfinite(weights).all():
            raise InvalidArgument(
                "weights of a LayerMap should be a matrix of finite numbers, a row for each column "
                "of X. Give one."
            )
        given = np.zeros(weights.shape[1]) if self.offsets is None else self.offsets
        offsets = np.array(given, dtype=np.float64)
        if offsets.shape != weights.shape[1:] or not np.isfinite(offsets).all():
            raise InvalidArgument(
                f"offsets of a LayerMap should be {weights.shape[1]} finite numbers, one for each "
                "column of weights."
            )
        if self.activation not in ACTIVATIONS:
            raise InvalidArgument(
                f"activation={self.activation!r} is not known. Use one of {ACTIVATIONS}."
            )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "offsets", offsets)
        keep_read_only(self, "weights", "offsets")

    def transform(self, X: Matrix) -> Matrix:
        """The features of documents."""
        units: Matrix = X @ self.weights + np.asarray(self.offsets)
        match self.activation:
            case "relu":
                return np.asarray(np.maximum(units, 0.0))
            case "tanh":
                return np.asarray(np.tanh(units))
            case "cosine":
                return np.asarray(np.cos(units))
        return np.asarray(units)

    def width(self, n_features: int) -> int:
        """Number of features that it makes of so many columns."""
        if n_features != len(self.weights):
            raise InvalidArgument(
                f"the feature map takes {len(self.weights)} columns, not {n_features}."
            )
        return int(self.weights.shape[1])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "kind": "layer",
            "weights": self.weights.tolist(),
            "offsets": np.asarray(self.offsets).tolist(),
            "activation": self.activation,
        }


@dataclass(frozen=True)
class QuadraticMap:
    """All columns, and all products of two of them, squares included.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.estimators import QuadraticMap
    >>> QuadraticMap().transform(np.array([[2.0, 3.0]]))
    array([[2., 3., 4., 6., 9.]])
    """

    def transform(self, X: Matrix) -> Matrix:
        """The features of documents."""
        first, second = np.triu_indices(X.shape[1])
        return np.hstack([X, X[:, first] * X[:, second]])

    def width(self, n_features: int) -> int:
        """Number of features that it makes of so many columns."""
        return n_features + n_features * (n_features + 1) // 2

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"kind": "quadratic"}


@dataclass(frozen=True)
class ChainedMaps:
    """Several maps, one after the other.

    Parameters
    ----------
    maps : tuple of LayerMap or QuadraticMap

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.estimators import ChainedMaps, LayerMap, QuadraticMap
    >>> halved = LayerMap(np.diag([0.5, 0.5]))
    >>> ChainedMaps((halved, QuadraticMap())).transform(np.array([[2.0, 4.0]]))
    array([[1., 2., 1., 2., 4.]])
    """

    maps: tuple[DocumentMap, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "maps", tuple(self.maps))
        if not self.maps or not all(isinstance(m, LayerMap | QuadraticMap) for m in self.maps):
            raise InvalidArgument("ChainedMaps needs one or more of LayerMap and QuadraticMap.")

    def transform(self, X: Matrix) -> Matrix:
        """The features of documents."""
        for one in self.maps:
            X = one.transform(X)
        return X

    def width(self, n_features: int) -> int:
        """Number of features that it makes of so many columns."""
        for one in self.maps:
            n_features = one.width(n_features)
        return n_features

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"kind": "chain", "maps": [one.to_dict() for one in self.maps]}


STORED_MAPS: Final = (LayerMap, QuadraticMap, ChainedMaps)
"""Maps that a model file can hold."""


def feature_map_from(data: object) -> DocumentMap:
    """Read what ``to_dict`` of a map wrote; nothing else is accepted, and no code is run.

    Parameters
    ----------
    data : mapping

    Returns
    -------
    DocumentMap
    """
    if isinstance(data, Mapping) and sorted(data) == ["kind", "maps"] and data["kind"] == "chain":
        return ChainedMaps(tuple(map(_single_map, data["maps"])))
    return _single_map(data)


def _single_map(data: object) -> DocumentMap:
    described = dict(data) if isinstance(data, Mapping) else {}
    match described.pop("kind", None), sorted(described):
        case "layer", ["activation", "offsets", "weights"]:
            return LayerMap(**described)
        case "quadratic", []:
            return QuadraticMap()
    raise InvalidArgument("the feature map of the model file is none that this version knows.")
