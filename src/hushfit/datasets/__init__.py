"""Data that comes with the library, real and simulated, for examples, tests and benchmarks.

ADULT_SCHEMA                Vocabularies as printed in the documentation of the UCI data set, in
                            its order
Adult                       The Adult census table, raw and encoded
load_adult                  Load the Adult census table that comes with the library
HEART_SCHEMA                Codes as the UCI page explains them
Heart                       The patients of one hospital
load_heart                  Read the four hospitals from the files of the UCI page
simulate_heart              Simulate four hospitals with the columns and sizes of the
                            heart-disease data
LabelledRows                Numeric columns and labels in {0, 1}
load_ipums_br               Read IPUMS-BR from a local file
SparseClassification        Simulated rows and their true coefficients
make_sparse_classification  Simulate two classes that depend on a few features only
"""

from hushfit.datasets._adult import ADULT_SCHEMA, Adult, load_adult
from hushfit.datasets._heart import HEART_SCHEMA, Heart, load_heart, simulate_heart
from hushfit.datasets._ipums import LabelledRows, load_ipums_br
from hushfit.datasets._simulate import SparseClassification, make_sparse_classification

__all__ = [
    "ADULT_SCHEMA",
    "HEART_SCHEMA",
    "Adult",
    "Heart",
    "LabelledRows",
    "SparseClassification",
    "load_adult",
    "load_heart",
    "load_ipums_br",
    "make_sparse_classification",
    "simulate_heart",
]
