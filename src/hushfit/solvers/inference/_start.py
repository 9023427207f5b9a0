"""From the first look at zero weights to the model with an intercept alone: all records have one
mean there, so the move is exact.
"""

import numpy as np

from hushfit._typing import Vector
from hushfit.release import Means, Moments
from hushfit.solvers.inference._metric import Seen

_LEAST_MEAN = 0.005


def moved_to_intercept(
    moments: Moments, means: Means, image: float, n_units: int
) -> tuple[float, Vector, Seen]:
    """The margin of the model with an intercept alone, and what the first look would have seen
    there: the sum of scores, and the curvature.

    ``image`` is the entry of the intercept in the image of every record.
    """
    at_zero, curvature = means.mean(0.0), means.curvature(0.0)
    images = moments.curvature[:, -1] / (curvature * image)  # the sum of all images
    mean = at_zero - moments.score[-1] / (image * n_units)
    least = max(_LEAST_MEAN, moments.score_noise / (image * n_units))
    mean = float(np.clip(mean, min(least, means.largest), means.largest))
    margin = means.margin(mean)
    ratio = means.curvature(margin) / curvature
    score = moments.score + (mean - at_zero) * images
    return margin, score, Seen(moments.curvature * ratio, moments.curvature_noise * ratio)
