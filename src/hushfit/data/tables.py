"""Tables in files: read in record batches, encoded by a schema, kept small. Imported by name, since it needs pyarrow."""

from hushfit.data._coded import CodedRows, RowCodec, codes_of, numbers_of
from hushfit.data._tables import FORMATS, STDIN, Table, find_tables, table_batches

__all__ = [
    "FORMATS",
    "STDIN",
    "CodedRows",
    "RowCodec",
    "Table",
    "codes_of",
    "find_tables",
    "numbers_of",
    "table_batches",
]
