"""Addition of noise on a grid: answer and noise as integer numbers of grid steps."""

import numpy as np

from hushfit._typing import IntVector, Vector


def add_on_grid(answer: Vector, noise: IntVector, step: float) -> Vector:
    """Round to multiples of ``step``, add noise in steps, scale back. Plain IEEE arithmetic, in the
    order written.
    """
    with np.errstate(all="ignore"):
        steps = np.rint(answer / step).astype(np.int64)
    steps += noise
    return np.asarray(steps * step)
