"""Data that comes with the library, real and simulated, for examples, tests and benchmarks."""

from hushfit.datasets._adult import ADULT_SCHEMA, Adult, load_adult
from hushfit.datasets._simulate import SparseClassification, make_sparse_classification

__all__ = ["ADULT_SCHEMA", "Adult", "SparseClassification", "load_adult", "make_sparse_classification"]
