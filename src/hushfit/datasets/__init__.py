"""Data that comes with the library, real and simulated, for examples, tests and benchmarks."""

from hushfit.datasets._adult import ADULT_SCHEMA, Adult, load_adult
from hushfit.datasets._heart import HEART_SCHEMA, Heart, load_heart, simulate_heart
from hushfit.datasets._simulate import SparseClassification, make_sparse_classification

__all__ = [
    "ADULT_SCHEMA",
    "HEART_SCHEMA",
    "Adult",
    "Heart",
    "SparseClassification",
    "load_adult",
    "load_heart",
    "make_sparse_classification",
    "simulate_heart",
]
