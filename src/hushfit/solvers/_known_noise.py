r"""Settings for a statistic that is released once with noise whose law is known exactly.

The statistic is, near the starting point, :math:`z = M \varphi + \text{noise}` with a public second
moment M of the features and unknown scaled weights :math:`\varphi`. In the eigenvectors of M, with
eigenvalues :math:`m_j`, coordinates separate: :math:`z_j = m_j \varphi_j + N(0, \nu_j)`. Weights
are given the prior :math:`\varphi_j \sim N(0, \kappa_j)`, :math:`\kappa_j = \tau m_j^p`.

* Before the release, `chosen_metric` picks the metric of the noise whose expected error under a
  default prior is least: from public features and the amount of noise alone.
* After the release, `fitted_prior` estimates tau and p from z by maximum likelihood (empirical
  Bayes), which is post-processing. `ridges` are the penalties whose minimiser is then the best
  linear estimate: :math:`c\, \nu_j / (m_j \kappa_j)`, c the mean second derivative of the loss.
"""

from dataclasses import dataclass

import numpy as np

from hushfit._typing import Matrix, Vector

# Powers p of the prior, and values of log tau in units of the noise's own scale.
_POWERS = np.linspace(-1.0, 1.5, 11)
_LOG_SCALES = np.linspace(-16.0, 10.0, 105)
_LEAST_EIGENVALUE, _LEAST_SHARE = 1e-12, 1e-4
# A block has a quarter as many directions as there are larger ones.
_BLOCK_GROWTH = 4
# Every direction is penalised: along one in which no record varies the noise alone would decide.
LEAST_RIDGE, _MOST_RIDGE = 1e-8, 1e3
# Eigenvalues below this share of the largest get no more weight in a metric.
_FLOOR = 1e-3
POWERS = (0.0, 0.25, 0.5)
QUANTILES = (1.0, 0.8, 0.5)
# Under the default prior the expected statistic has this standard deviation over the rows, as a
# share of the labels' diameter.
_PRIOR_SPREAD = 0.4


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors (columns) of the public second moment; the coordinates
    themselves where there are too many for them.
    """

    values: Vector
    vectors: Matrix | None

    @classmethod
    def of(cls, M: Matrix, most_columns: int) -> "Spectrum":
        if len(M) > most_columns:
            return cls(np.maximum(np.diag(M), 0.0), None)
        values, vectors = np.linalg.eigh(M)
        return cls(np.maximum(values, 0.0), vectors)

    def into(self, v: Vector) -> Vector:
        """Coordinates of one vector or of several rows."""
        return v if self.vectors is None else v @ self.vectors

    def back(self, v: Vector) -> Vector:
        """The inverse of `into`."""
        return v if self.vectors is None else v @ self.vectors.T

    def matrix(self, values: Vector) -> Matrix:
        """The matrix with these eigenvalues."""
        if self.vectors is None:
            return np.diag(values)
        return np.asarray((self.vectors * values) @ self.vectors.T)


def metric_squares(values: Vector, power: float) -> Vector:
    """Squared eigenvalues of a metric that raises small directions by a power, at most one."""
    raised = (values + max(_FLOOR * values.max(), _LEAST_EIGENVALUE)) ** -power
    return np.asarray(raised / raised.max())


def default_prior(values: Vector, diameter: float) -> Vector:
    """Variances of the scaled weights, the same in all directions."""
    total = max(float(values.sum()), _LEAST_EIGENVALUE)
    return np.full(len(values), (_PRIOR_SPREAD * diameter) ** 2 / total)


def expected_error(values: Vector, used: Vector, noise: Vector, prior: Vector) -> float:
    """Mean squared error of the fitted statistic over rows with second moment ``values``, from a
    statistic whose second moment is ``used``.
    """
    return float(np.sum(values * prior * noise / (used**2 * prior + noise)))


def fitted_prior(z: Matrix, values: Vector, noise: Vector) -> Vector:
    """Prior variances of largest marginal likelihood; ``z`` has one row for each output,
    and several rows add up to zero.
    """
    m = np.maximum(values, _LEAST_EIGENVALUE)
    if not noise.any():
        return np.full(len(m), np.inf)
    squares, outputs = np.sum(z**2, axis=0), max(len(z) - 1, 1)
    # A direction in which records hardly vary must not get a wide prior: noise would decide it.
    shapes = np.maximum(m / m.max(), _LEAST_SHARE) ** _POWERS[:, None]
    # The scale at which the largest direction has as much signal as noise is zero on this axis.
    own = float(np.median(noise)) / m.max() ** 2
    priors = own * np.exp(_LOG_SCALES)[:, None, None] * shapes
    spread = m**2 * priors + noise
    fit = -0.5 * np.sum(outputs * np.log(spread) + squares / spread, axis=-1)
    best = np.unravel_index(int(fit.argmax()), fit.shape)
    return np.asarray(priors[best])


def signal_shares(z: Matrix, values: Vector, noise: Vector) -> Vector:
    """Share of signal in the square of each coordinate of ``z``, by the fitted prior."""
    if not noise.any():
        return np.ones(len(values))
    signal = fitted_prior(z, values, noise) * np.maximum(values, _LEAST_EIGENVALUE) ** 2
    return np.asarray(signal / (signal + noise))


def shares_by_block(z: Matrix, values: Vector, noise: Vector) -> Vector:
    """The same without a prior: James and Stein's estimate in blocks of directions with similar
    eigenvalues, one by one for the largest, more and more for the many small ones.
    """
    if not noise.any():
        return np.ones(len(values))
    freedom = max(len(z) - 1, 1)
    squares = np.sum(z**2, axis=0) / noise
    shares = np.zeros(len(values))
    order, start = np.argsort(values)[::-1], 0
    while start < len(order):
        block = order[start : start + 1 + start // _BLOCK_GROWTH]
        size = freedom * len(block)
        shares[block] = max(1 - size / max(float(squares[block].sum()), 1e-300), 0.0)
        start += len(block)
    return shares


def ridges(values: Vector, curvature: float, shares: Vector) -> Vector:
    """The penalty on each coordinate of the weights with which the minimiser keeps this share of
    the statistic; the largest one where there is nothing to keep.
    """
    kept = np.maximum(shares, 1e-300)
    wanted = curvature * np.maximum(values, _LEAST_EIGENVALUE) * (1 - kept) / kept
    return np.asarray(np.clip(wanted, LEAST_RIDGE, _MOST_RIDGE))


def noise_in(scale: float, squares: Vector) -> Vector:
    """Variance of the noise in each coordinate, isotropic with this scale in the metric."""
    return np.asarray(scale**2 / squares)


def quantile_bound(lengths: Vector, quantile: float) -> float:
    """The length to which longer records are scaled down."""
    longest = float(lengths.max(initial=0.0))
    if quantile >= 1.0:
        return longest
    return float(np.quantile(lengths, quantile)) or longest
