"""Where an exact answer meets its noise: whole numbers of grid steps, added as integers."""

import numpy as np

from hushfit.kernels._compile import compiled


@compiled(nogil=True, error_model="numpy")
def add_on_grid(answer, noise, step):
    """Round to multiples of ``step``, add so many steps of noise, scale back. Plain IEEE
    arithmetic, in the order written.
    """
    noisy = np.empty(answer.shape[0])
    for k in range(answer.shape[0]):
        noisy[k] = (np.int64(np.rint(answer[k] / step)) + noise[k]) * step
    return noisy
