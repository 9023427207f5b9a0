"""Rows in memory, in blocks, and the secret random bits that sample them.

Coins              A random source of uniform 64-bit words
SecureCoins        Words from OpenSSL's cryptographic generator, with fresh entropy of the
                   operating system mixed in
SeededCoins        Reproducible words, for tests and simulations only
fixed_size_units    ``size`` different rows, every subset equally likely
poisson_units       Poisson sampling: each row independently with probability ``rate``, rounded down
                   to a multiple of 2**-64
ALL_ROWS           Row index of a kernel call in which every row of the block takes part
Block              Some records of a source
BoundedBlock       Some records with bounded entries
DataSource         Private rows and labels
DenseBlock         Records in a C-ordered array
DenseRows          Rows of a two-dimensional array, used in place
FEWEST_BLOCK_ROWS  Rows of the smallest block; a proof depends on it
InParts            A source whose rows lie in several places
SumsOverRows       What can be added up over the parts of a table
FeatureBounds      Public range of every column
MOST_BLOCK_ROWS    Rows of the largest block; a proof depends on it
PackedBlock        Packed records
PackedLayout       Which features the words of a packed row stand for
Part               Rows of one part of a table as a source
PERSON_BLOCK_ROWS  Used rows of the largest block of persons' rows
PersonIndex        Numbers for the ids of persons, batch by batch
Persons            The person of each row, and the shares of a person's rows
PublicBlock        Some records without labels
PublicRows         Records without labels, for relations under which features are public
RecordScaling      What is known of every record: length one, at most one, or bounded entries
AT_MOST_ONE        Scalings after which no record is longer than one
ProvedForScalings  A query that states the scalings that its sensitivity is proved for
Scaled             A source that states the scaling of its records, or a solver that needs one
SignedBounds       Public range of every column, mapped into [-1, 1]
SparseBlock        Records in compressed sparse rows
SparseRows         Rows of a scipy CSR matrix
WHOLE              Share of every row where each row is its own unit
as_source          The source for a validated dense array or CSR matrix
bounded_blocks     All blocks of a source whose records have bounded entries
bits_of_one        The b for which 2**b stands for one in sums of whole numbers
canonical          The same sparse rows with increasing indices, each once
one_place_each     Where each part of a table is added up
persons_of         The persons of rows
record_margins     Inner products of records with several vectors, for predictions
places             Rows in pieces of some size
proved_scalings    The scalings that a query, or type of query, is proved for
scaling_of         The scaling of a source's records, or the one that a solver needs
sum_of_parts       Exact sums of a query over some parts of a table
whole_shares       Shares as whole numbers, rounded down, and the number that stands for one
"""

from hushfit.data.rows._array_blocks import DenseBlock, SparseBlock
from hushfit.data.rows._bounds import FeatureBounds, SignedBounds
from hushfit.data.rows._csr import canonical
from hushfit.data.rows._margins import record_margins
from hushfit.data.rows._packed import PackedBlock, PackedLayout
from hushfit.data.rows._parts import Part, one_place_each, sum_of_parts
from hushfit.data.rows._person_ids import PersonIndex, persons_of
from hushfit.data.rows._persons import WHOLE, Persons, bits_of_one, places, whole_shares
from hushfit.data.rows._protocols import (
    ALL_ROWS,
    FEWEST_BLOCK_ROWS,
    MOST_BLOCK_ROWS,
    PERSON_BLOCK_ROWS,
    Block,
    BoundedBlock,
    DataSource,
    InParts,
    SumsOverRows,
)
from hushfit.data.rows._public_rows import PublicBlock, PublicRows
from hushfit.data.rows._sampling import (
    Coins,
    SecureCoins,
    SeededCoins,
    fixed_size_units,
    poisson_units,
)
from hushfit.data.rows._scaling import (
    AT_MOST_ONE,
    ProvedForScalings,
    RecordScaling,
    Scaled,
    proved_scalings,
    scaling_of,
)
from hushfit.data.rows._source import DenseRows, SparseRows, as_source, bounded_blocks

__all__ = [
    "ALL_ROWS",
    "AT_MOST_ONE",
    "FEWEST_BLOCK_ROWS",
    "MOST_BLOCK_ROWS",
    "PERSON_BLOCK_ROWS",
    "WHOLE",
    "Block",
    "BoundedBlock",
    "Coins",
    "DataSource",
    "DenseBlock",
    "DenseRows",
    "FeatureBounds",
    "InParts",
    "PackedBlock",
    "PackedLayout",
    "Part",
    "PersonIndex",
    "Persons",
    "ProvedForScalings",
    "PublicBlock",
    "PublicRows",
    "RecordScaling",
    "Scaled",
    "SecureCoins",
    "SeededCoins",
    "SignedBounds",
    "SparseBlock",
    "SparseRows",
    "SumsOverRows",
    "as_source",
    "bits_of_one",
    "bounded_blocks",
    "canonical",
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
