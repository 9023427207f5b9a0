"""Wavelet scattering of images by kymatio, behind one door. Needs ``pip install hushfit[images]``.

``kymatio.numpy`` cannot be imported where scipy has no ``sph_harm`` any more (1.17): it also loads
the three-dimensional transform. The two-dimensional one is imported by itself here.
"""

from collections.abc import Callable
from functools import lru_cache

from kymatio.scattering2d.frontend.numpy_frontend import ScatteringNumPy2D

from hushfit._typing import AnyArray


@lru_cache(maxsize=8)  # the filters take longer than some images
def scattering(shape: tuple[int, int], scale: int, angles: int) -> Callable[[AnyArray], AnyArray]:
    """The transform of images: from (n, height, width) to (n, paths, height, width)."""
    transform: Callable[[AnyArray], AnyArray] = ScatteringNumPy2D(scale, shape, angles)
    return transform
