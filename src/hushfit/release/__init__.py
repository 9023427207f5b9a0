"""The trusted boundary: queries with proved sensitivities, and the curator that answers them."""

from hushfit.release._curator import Curator, Released
from hushfit.release._gradient import ClippedGradient, Metric
from hushfit.release._histogram import MarginHistogram
from hushfit.release._moment import SecondMoment
from hushfit.release._plan import FixedSizeBatch, FullBatch, Plan, Planned, PoissonBatch, Sampling
from hushfit.release._query import Query

__all__ = [
    "ClippedGradient",
    "Curator",
    "FixedSizeBatch",
    "FullBatch",
    "MarginHistogram",
    "Metric",
    "Plan",
    "Planned",
    "PoissonBatch",
    "Query",
    "Released",
    "Sampling",
    "SecondMoment",
]
