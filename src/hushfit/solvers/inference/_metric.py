"""The metric of the next look, from a noisy curvature."""

from typing import NamedTuple

import numpy as np

from hushfit._typing import Matrix, Vector

# Eigenvalues above so many times the edge of the noise are believed; the others share the rest of
# the trace, of at least a quarter of the edge.
_VISIBLE, _LEAST = 1.5, 0.25
# Squares of records in the metric are about p; those beyond so many of their standard deviations
# get less weight.
_REACH = 2.5
# Share of the edge of the noise below which no eigenvalue is taken to be.
FLOOR = 0.3
# Of so many columns all corners of the box are looked at.
_CORNERS = 12
# Noise may add so much to the sampling variance of an estimate for the sake of even weights. Where
# the model may be wrong the squared reach is twice as long, three times if noise then adds no more
# than the second number. The noise of the curvature must stay below a share of the curvature.
_ADDED, _ADDED_IF_WRONG, _TWICE, _THRICE, _RATIO = 0.02, 0.2, 2.0, 3.0, 0.25


def squared_reach(p: int) -> float:
    """Squared length in the metric beyond which records weigh less, where noise is not small."""
    return float(p + _REACH * np.sqrt(2 * p))


def longer_reach(added: float, ratio: float, robust: bool) -> float:
    """How many times as long the squared reach may be in the last looks.

    ``added`` is the variance that noise adds, over the sampling variance, and ``ratio`` the noise
    of the curvature over the curvature, both at the usual reach, with which they grow. ``robust``
    says whether the model may be wrong: then weights change what is estimated.
    """
    allowed = _ADDED / added
    if robust:
        allowed = max(allowed, _TWICE, min(_THRICE, _ADDED_IF_WRONG / added))
    return max(1.0, min(allowed, _RATIO / ratio))


class Seen(NamedTuple):
    """A noisy symmetric matrix and the largest eigenvalue that noise alone would have."""

    matrix: Matrix
    noise: float

    @property
    def edge(self) -> float:
        return float(self.noise * np.sqrt(2 * len(self.matrix)))

    def floored(self) -> Matrix:
        """The matrix with eigenvalues no smaller than a share of the edge."""
        values, vectors = np.linalg.eigh(self.matrix)
        least = max(FLOOR * self.edge, 1e-12 * max(float(values[-1]), 1e-300))
        return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def farthest_square(images: Matrix, constant: float) -> float:
    """Largest squared length of the image of a record with entries in [-1, 1], the last of which
    is ``constant``; for many columns an upper bound.

    The length is convex, so that it is largest in a corner. And for any positive D it is at most
    the largest eigenvalue of D^-1/2 G D^-1/2 times the sum of D z^2, where G = images' images.
    """
    moved = images * np.append(np.ones(len(images) - 1), constant)
    if len(images) - 1 <= _CORNERS:
        ends = moved[:, -1:]
        for column in moved[:, :-1].T:
            ends = np.hstack([ends + column[:, None], ends - column[:, None]])
        return float(np.sum(ends**2, axis=0).max())
    gram = moved.T @ moved
    scales = np.ones(len(gram)), np.maximum(np.diag(gram), 1e-300)
    return min(
        float(np.linalg.eigvalsh(gram / np.sqrt(np.outer(D, D)))[-1] * D.sum()) for D in scales
    )


def whitened(seen: Seen, images: Matrix, constant: float) -> Matrix:
    """The metric in which curvatures are alike in all directions, of length one for all but the
    longest records.

    ``images`` maps records to those that were looked at; ``constant`` is the last entry of every
    record.
    """
    p = len(images)
    values, vectors = np.linalg.eigh(seen.matrix)
    visible = values > _VISIBLE * seen.edge
    hidden = int(np.sum(~visible))
    rest = (float(np.trace(seen.matrix)) - float(values[visible].sum())) / max(hidden, 1)
    believed = np.where(visible, values, max(rest, _LEAST * seen.edge, 1e-300))
    total = total_curvature(seen, images, constant)
    M = (vectors / np.sqrt(believed / total)) @ vectors.T @ images
    square = min(squared_reach(p), farthest_square(M, constant))
    return np.asarray(M / np.sqrt(square))


def total_curvature(seen: Seen, images: Matrix, constant: float) -> float:
    """Sum of the curvatures of all records: that of the intercept."""
    a = intercept_direction(images) / constant
    return max(float(a @ seen.matrix @ a), FLOOR * seen.noise * float(a @ a), 1e-300)


def intercept_direction(images: Matrix) -> Vector:
    """The vector whose inner product with an image is the last entry of the record."""
    return np.linalg.solve(images.T, np.eye(len(images))[-1])
