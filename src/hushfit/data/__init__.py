"""Private rows, and the secret random bits that sample them.

design/  Columns of regression tables: main effects of a schema, and formulas
lists/   Lists of documents, for ranking
rows/    Rows in memory, in blocks, and the secret random bits that sample them
schema/  The public description of a table
tables/  Tables in files: read in record batches, encoded by a schema, stored compactly
"""

from typing import TYPE_CHECKING

from hushfit._on_demand import on_demand

if TYPE_CHECKING:
    from hushfit.data.rows import (
        AT_MOST_ONE,
        FEWEST_BLOCK_ROWS,
        MOST_BLOCK_ROWS,
        PERSON_BLOCK_ROWS,
        Block,
        BoundedBlock,
        Coins,
        DataSource,
        DenseRows,
        FeatureBounds,
        InParts,
        Part,
        Persons,
        PublicBlock,
        PublicRows,
        RecordScaling,
        SecureCoins,
        SeededCoins,
        SignedBounds,
        SparseRows,
        SumsOverRows,
        as_source,
        bounded_blocks,
        fixed_size_units,
        one_place_each,
        persons_of,
        places,
        poisson_units,
        proved_scalings,
        record_margins,
        scaling_of,
        sum_of_parts,
        whole_shares,
    )
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "AT_MOST_ONE",
    "FEWEST_BLOCK_ROWS",
    "MOST_BLOCK_ROWS",
    "PERSON_BLOCK_ROWS",
    "Block",
    "BoundedBlock",
    "Coins",
    "DataSource",
    "DenseRows",
    "FeatureBounds",
    "InParts",
    "Part",
    "Persons",
    "PublicBlock",
    "PublicRows",
    "RecordScaling",
    "SecureCoins",
    "SeededCoins",
    "SignedBounds",
    "SparseRows",
    "SumsOverRows",
    "as_source",
    "bounded_blocks",
    "fixed_size_units",
    "one_place_each",
    "persons_of",
    "places",
    "poisson_units",
    "proved_scalings",
    "record_margins",
    "scaling_of",
    "sum_of_parts",
    "whole_shares",
]
