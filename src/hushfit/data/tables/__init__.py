"""Tables in files: read in record batches, encoded by a schema, stored compactly. Imported by name,
since it needs pyarrow.

SchemaFile      A schema and the names in it that are not confirmed yet
parse_schema    Read a schema from TOML
read_schema     Read a schema file
schema_hash     SHA-256 of a schema's contents
schema_to_toml  Write a schema as TOML
CodedRows       The rows of one or more tables as a source
RowCodec        Packs rows of a table, and unpacks them into sparse features
codes_of        Position of each cell in the vocabulary
days_of         Cells as numbers of days, NaN for what is no date
target_values   Class numbers, positions of grades or numbers of a target
numbers_of      Cells as floats, NaN for what is missing or unreadable
FORMATS         Formats of table files
STDIN           The name that stands for standard input
Table           One file, or standard input
Watch           Callback with the number of bytes read
find_paths      The files that paths and patterns match, whatever their format
sniffed_form    The form of a text file that its owner has not stated
find_tables     The tables that paths and patterns match
table_batches   Read a table in record batches
"""

from typing import TYPE_CHECKING

from hushfit._on_demand import on_demand

if TYPE_CHECKING:
    from hushfit.data.schema import (
        SchemaFile,
        parse_schema,
        read_schema,
        schema_hash,
        schema_to_toml,
    )
    from hushfit.data.tables._encoded_rows import (
        CodedRows,
        RowCodec,
        codes_of,
        days_of,
        numbers_of,
        target_values,
    )
    from hushfit.data.tables._files import (
        FORMATS,
        STDIN,
        Table,
        Watch,
        find_paths,
        find_tables,
        sniffed_form,
        table_batches,
    )
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "FORMATS",
    "STDIN",
    "CodedRows",
    "RowCodec",
    "SchemaFile",
    "Table",
    "Watch",
    "codes_of",
    "days_of",
    "find_paths",
    "find_tables",
    "numbers_of",
    "parse_schema",
    "read_schema",
    "schema_hash",
    "schema_to_toml",
    "sniffed_form",
    "table_batches",
    "target_values",
]
