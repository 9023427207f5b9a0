"""Private rows and the secret coins that choose among them."""

from hushfit.data._sampling import Coins, SecureCoins, SeededCoins, fixed_size_rows, poisson_rows
from hushfit.data._source import (
    FEWEST_BLOCK_ROWS,
    MOST_BLOCK_ROWS,
    Block,
    DataSource,
    DenseRows,
    FeatureBounds,
    SparseRows,
    as_source,
)

__all__ = [
    "FEWEST_BLOCK_ROWS",
    "MOST_BLOCK_ROWS",
    "Block",
    "Coins",
    "DataSource",
    "DenseRows",
    "FeatureBounds",
    "SecureCoins",
    "SeededCoins",
    "SparseRows",
    "as_source",
    "fixed_size_rows",
    "poisson_rows",
]
