"""Which bits are zero in every one of several rows of random bytes."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def zero_in_all(planes, count, found):
    """Places among the first ``count`` bits where no plane has a one; their number is returned."""
    taken = 0
    for place in range(planes.shape[1]):
        ones = np.uint8(0)
        for plane in range(planes.shape[0]):
            ones |= planes[plane, place]
        if ones == np.uint8(255):
            continue
        for bit in range(min(8, count - 8 * place)):
            # Written whether or not it stays: a branch that nobody can predict would cost more.
            found[taken] = 8 * place + bit
            taken += 1 - int((ones >> bit) & 1)
    return taken
