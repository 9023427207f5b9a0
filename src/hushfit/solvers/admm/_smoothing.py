"""Laplacian smoothing: a circular moving average of noisy directions, by fast Fourier transform.

It is post-processing, so it costs no privacy. When it helps: docs/algorithms/smoothing.md.
"""

import numpy as np

from hushfit._typing import Vector


def smoothed(v: Vector, nu: float) -> Vector:
    r"""Solve :math:`Q u = v` along the last axis.

    Here :math:`Q = I +
    u L` and L is the Laplacian of a cycle.

    Parameters
    ----------
    v : array
        Its last axis is the cycle: neighbours in it are averaged, the first and the last entry
        count as neighbours.
    nu : float
        Strength, at least 0; 0 changes nothing.

    Returns
    -------
    array
    """
    if nu == 0:
        return v
    d = v.shape[-1]
    turns = np.arange(d // 2 + 1) / d
    eigenvalues = 1 + 2 * nu * (1 - np.cos(2 * np.pi * turns))
    u: Vector = np.fft.irfft(np.fft.rfft(v, axis=-1) / eigenvalues, n=d, axis=-1)
    return u


def noise_left(d: int, nu: float) -> float:
    """Mean share of white-noise variance that the smoothed *step* keeps: tau in the papers."""
    return float(np.mean(1 / (1 + 2 * nu * (1 - np.cos(2 * np.pi * np.arange(d) / d)))))


def helps_below(nu: float) -> float:
    r"""Largest roughness of the optimum at which smoothing improves the error bound.

    Roughness is :math:`\sum_i (x_i - x_{i+1})^2 / \|x\|^2`, around the cycle; white weights have 2.

    Parameters
    ----------
    nu : float
        Positive.

    Returns
    -------
    float
        :math:`(\sqrt{1 + 4\nu} - 1) / \nu`, which is below 2 for every positive strength.
    """
    return float((np.sqrt(1 + 4 * nu) - 1) / nu)
