"""Wavelet scattering of images: a public convolutional network whose filters are fixed.

Two layers of wavelets and moduli, averaged over patches (Bruna and Mallat 2013), then normalised in
groups of channels, image by image, as Tramer and Boneh (2021) do. On small images a linear model on
these features is a strong private classifier.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushfit._typing import AnyArray
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_map

_IMAGES_AT_ONCE = 64
# Added to variances, which are those of pixels in [0, 1]: what is smaller is no structure.
_LEAST_VARIANCE = 1e-5
# Bound on the relative rounding error of the length of a row in float32.
_ROUNDING = 1e-5
_FIELDS = ("shape", "channels", "scale", "angles", "group")


@dataclass(frozen=True)
class ScatteringMap:
    """Rows of pixels as scattering coefficients, normalised in groups; needs ``hushfit[images]``.

    Parameters
    ----------
    shape : tuple of int
        Height and width.
    channels : int, default=1
        Colours. A row has the pixels of the first colour, line by line, then those of the next.
    scale : int, default=2
        Coefficients are averaged over patches of ``2**scale`` by ``2**scale`` pixels.
    angles : int, default=8
        Orientations of the wavelets.
    group : int, default=3
        Channels of coefficients that are centred and scaled to variance one together; the last
        group may have fewer.

    Examples
    --------
    >>> from hushfit.features import ScatteringMap
    >>> ScatteringMap((28, 28)).n_outputs
    3969
    """

    shape: tuple[int, int]
    channels: int = 1
    scale: int = 2
    angles: int = 8
    group: int = 3

    kind: ClassVar[str] = "scattering"
    rotated: ClassVar[bool] = False
    kept: ClassVar[bool] = True
    reads_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        shape = tuple(self.shape) if isinstance(self.shape, Sequence) else ()
        numbers = (*shape, self.channels, self.scale, self.angles, self.group)
        if len(shape) != 2 or not all(type(n) is int and n >= 1 for n in numbers):
            raise InvalidArgument(
                f"{self!r} should have a height and a width, such as (28, 28), and whole numbers "
                "from 1."
            )
        if 2**self.scale > min(shape):
            raise InvalidArgument(
                f"scale={self.scale} averages over {2**self.scale} x {2**self.scale} pixels, and "
                f"images have {shape[0]} x {shape[1]}. Choose a smaller scale."
            )
        object.__setattr__(self, "shape", shape)

    @property
    def n_inputs(self) -> int:
        return self.channels * math.prod(self.shape)

    @property
    def n_outputs(self) -> int:
        return self.n_paths * self.channels * math.prod(self._patches)

    @property
    def n_paths(self) -> int:
        """Coefficients of a patch: its mean, those of each wavelet, and of each pair of them."""
        pairs = self.scale * (self.scale - 1) // 2
        return 1 + self.angles * self.scale + self.angles**2 * pairs

    @property
    def row_norm(self) -> float:
        """Each group has variance one at most, whatever the pixels."""
        return math.sqrt(self.n_outputs) * (1 + _ROUNDING)

    @property
    def _patches(self) -> tuple[int, int]:
        return self.shape[0] // 2**self.scale, self.shape[1] // 2**self.scale

    def leaves_sparse(self, sparse: bool) -> bool:
        return False

    def transform(self, X: AnyArray) -> AnyArray:
        """Map rows of pixels in [0, 1] to float32 features.

        Parameters
        ----------
        X : array of shape (n, n_inputs)

        Returns
        -------
        float32 array of shape (n, n_outputs)
        """
        mapped = np.empty((len(X), self.n_outputs), np.float32)
        scattering = _transform_of(self)

        def fill(start: int) -> None:
            place = slice(start, start + _IMAGES_AT_ONCE)
            images = np.asarray(X[place], np.float32).reshape(-1, *self.shape)
            # A pixel that is missing or not a number makes the features of its own image so.
            with np.errstate(invalid="ignore", over="ignore"):
                paths = scattering(np.ascontiguousarray(images))
                mapped[place] = self._normalised(paths).reshape(-1, self.n_outputs)

        list(parallel_map(fill, range(0, len(X), _IMAGES_AT_ONCE)))
        return mapped

    def _normalised(self, paths: AnyArray) -> AnyArray:
        """Channels centred and scaled in groups, each image by itself, in float64."""
        channels = paths.reshape(-1, self.channels * self.n_paths, math.prod(self._patches))
        channels = channels.astype(np.float64)
        for start in range(0, channels.shape[1], self.group):
            part = channels[:, start : start + self.group]
            part -= part.mean(axis=(1, 2), keepdims=True)
            variance = np.square(part).mean(axis=(1, 2), keepdims=True)
            part /= np.sqrt(variance + _LEAST_VARIANCE)
        return channels

    def transform_sparse(self, X: Any) -> AnyArray:
        """Map the rows of a CSR matrix, as an array: coefficients of dark pixels are not zero."""
        return self.transform(X.toarray())

    def output_names(self, names: Sequence[str]) -> list[str]:
        """Names of the outputs: path and patch."""
        height, width = self._patches
        return [
            f"path{path}[{row},{column}]"
            for path in range(self.channels * self.n_paths)
            for row in range(height)
            for column in range(width)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as in a model file."""
        settings = {name: getattr(self, name) for name in _FIELDS[1:]}
        return {"kind": self.kind, "shape": list(self.shape), **settings}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> "ScatteringMap":
        """Read what `to_dict` writes."""
        return cls(tuple(described["shape"]), *(described[name] for name in _FIELDS[1:]))


def _transform_of(settings: ScatteringMap) -> Any:
    try:
        from hushfit.features._wavelets import scattering
    except ImportError as error:
        raise InvalidArgument(
            f"scattering needs kymatio ({error}). Install it: pip install 'hushfit[images]'."
        ) from None
    return scattering(settings.shape, settings.scale, settings.angles)
