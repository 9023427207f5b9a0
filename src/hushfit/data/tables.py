"""Tables in files: read in record batches, encoded by a schema, kept small. Imported by name, since it needs pyarrow."""

from hushfit.data._coded import CodedRows, RowCodec, codes_of, numbers_of
from hushfit.data._schema_file import SchemaFile, parse_schema, read_schema, schema_hash, schema_to_toml
from hushfit.data._tables import FORMATS, STDIN, Table, find_tables, table_batches

__all__ = [
    "FORMATS",
    "STDIN",
    "CodedRows",
    "RowCodec",
    "SchemaFile",
    "Table",
    "codes_of",
    "find_tables",
    "numbers_of",
    "parse_schema",
    "read_schema",
    "schema_hash",
    "schema_to_toml",
    "table_batches",
]
