"""The public description of a table: columns, ranges and categories, and its file. Needs no
pyarrow.

as_objects         A list as an array of objects
label_of           The text by which a cell is compared with categories
listed             The cells of a column as objects
number_of          A cell as a number, NaN for what cannot be read as one
numbers_in         The cells of a column as floats, NaN for those that cannot be read as numbers
CategoricalColumn  A label with a public vocabulary
Column             A column of any kind
CountTarget        A count from 0 to a public cap, as a target
DateColumn         A date with a public range
HashedColumn       A label with too many values to list, hashed to a few features
NumericColumn      A number with a public range
MISSING_VALUE      The name of the indicator of missing values
PenaltyChoice      A penalty by name, for the features of a schema
OTHER              The category of texts that a schema does not list
OrdinalTarget      Ordered grades, as a target
Schema             The public description of a table
TRANSFORMS         Functions of numbers by their names
Target             A column to predict
cells_of           One column of the table as a one-dimensional array
encode             Turn a table into features in [0, 1], one row at a time
LAST_HEADER        The last row that may have the names of the columns
TextForm           Encoding, delimiter and header of a text file or spreadsheet
UTF_8              The usual encoding
UNIT               The name of the unit of privacy among unconfirmed names
SchemaFile         A schema and the names in it that are not confirmed yet
parse_schema       Read a schema from TOML
read_schema        Read a schema file
rounded_outwards   A range with two significant digits around another one
schema_hash        SHA-256 of a schema's contents
schema_to_toml     Write a schema as TOML
with_sorted_classes  The schema with its classes in the order that estimators use
"""

from hushfit.data.schema._cells import (
    MISSING_VALUE,
    as_objects,
    label_of,
    listed,
    number_of,
    numbers_in,
)
from hushfit.data.schema._date_column import DateColumn
from hushfit.data.schema._hashed_column import HashedColumn
from hushfit.data.schema._penalty_choice import PenaltyChoice
from hushfit.data.schema._schema import (
    OTHER,
    TRANSFORMS,
    CategoricalColumn,
    Column,
    CountTarget,
    NumericColumn,
    OrdinalTarget,
    Schema,
    Target,
    cells_of,
    encode,
    with_sorted_classes,
)
from hushfit.data.schema._schema_file import (
    UNIT,
    SchemaFile,
    parse_schema,
    read_schema,
    rounded_outwards,
    schema_hash,
    schema_to_toml,
)
from hushfit.data.schema._text_form import LAST_HEADER, UTF_8, TextForm

__all__ = [
    "LAST_HEADER",
    "MISSING_VALUE",
    "OTHER",
    "TRANSFORMS",
    "UNIT",
    "UTF_8",
    "CategoricalColumn",
    "Column",
    "CountTarget",
    "DateColumn",
    "HashedColumn",
    "NumericColumn",
    "OrdinalTarget",
    "PenaltyChoice",
    "Schema",
    "SchemaFile",
    "Target",
    "TextForm",
    "as_objects",
    "cells_of",
    "encode",
    "label_of",
    "listed",
    "number_of",
    "numbers_in",
    "parse_schema",
    "read_schema",
    "rounded_outwards",
    "schema_hash",
    "schema_to_toml",
    "with_sorted_classes",
]
