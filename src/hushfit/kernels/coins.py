"""Which bits are zero in every one of several rows of random words."""

import numpy as np
from numba import njit

# Multiplied by a power of two, it has a different number in its top six bits for each (a de Bruijn sequence).
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
_SHIFT = np.uint64(58)
_PLACES = np.empty(64, dtype=np.int64)
for _bit in range(64):
    _PLACES[(int(_SEQUENCE) << _bit) % 2**64 >> 58] = _bit


@njit(cache=True, nogil=True)
def zero_in_all(planes, count, found):
    """Places among the first ``count`` bits where no plane has a one; their number is returned."""
    taken = 0
    for place in range(planes.shape[1]):
        zeros = ~planes[0, place]
        for plane in range(1, planes.shape[0]):
            zeros &= ~planes[plane, place]
        while zeros:
            rest = zeros & (zeros - np.uint64(1))
            where = 64 * place + _PLACES[((zeros ^ rest) * _SEQUENCE) >> _SHIFT]
            if where >= count:
                break
            found[taken] = where
            taken += 1
            zeros = rest
    return taken
