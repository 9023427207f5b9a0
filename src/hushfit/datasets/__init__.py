"""Data that comes with the library, for examples, tests and benchmarks."""

from hushfit.datasets._adult import ADULT_SCHEMA, Adult, load_adult

__all__ = ["ADULT_SCHEMA", "Adult", "load_adult"]
