"""Private rows, and the secret random bits that sample them.

design/  Columns of regression tables: main effects of a schema, and formulas
lists/   Lists of documents, for ranking
rows/    Rows in memory, in blocks, and the secret random bits that sample them
schema/  The public description of a table
tables/  Tables in files: read in record batches, encoded by a schema, stored compactly
"""

from hushfit.data.rows import (
    FEWEST_BLOCK_ROWS,
    MOST_BLOCK_ROWS,
    PERSON_BLOCK_ROWS,
    Block,
    BoundedBlock,
    Coins,
    DataSource,
    DenseRows,
    FeatureBounds,
    Persons,
    PublicBlock,
    PublicRows,
    RecordScaling,
    SecureCoins,
    SeededCoins,
    SignedBounds,
    SparseRows,
    as_source,
    bounded_blocks,
    fixed_size_units,
    persons_of,
    places,
    poisson_units,
    proved_scalings,
    scaling_of,
    whole_shares,
)

__all__ = [
    "FEWEST_BLOCK_ROWS",
    "MOST_BLOCK_ROWS",
    "PERSON_BLOCK_ROWS",
    "Block",
    "BoundedBlock",
    "Coins",
    "DataSource",
    "DenseRows",
    "FeatureBounds",
    "Persons",
    "PublicBlock",
    "PublicRows",
    "RecordScaling",
    "SecureCoins",
    "SeededCoins",
    "SignedBounds",
    "SparseRows",
    "as_source",
    "bounded_blocks",
    "fixed_size_units",
    "persons_of",
    "places",
    "poisson_units",
    "proved_scalings",
    "scaling_of",
    "whole_shares",
]
