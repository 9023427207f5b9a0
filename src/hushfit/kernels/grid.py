"""Addition of noise on a grid: answer and noise as integer numbers of grid steps."""

import numpy as np

from hushfit.kernels._compile import compiled


@compiled(nogil=True, error_model="numpy")
def add_on_grid(answer, noise, step):
    """Round to multiples of ``step``, add noise in steps, scale back. Plain IEEE arithmetic, in the
    order written.
    """
    noisy = np.empty(answer.shape[0])
    for k in range(answer.shape[0]):
        noisy[k] = (np.int64(np.rint(answer[k] / step)) + noise[k]) * step
    return noisy
