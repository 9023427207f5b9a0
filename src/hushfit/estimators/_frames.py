"""Tables of any library as rows: what has an Arrow stream is taken as it is."""

from collections import Counter
from typing import Any

import numpy as np

from hushfit.errors import InvalidArgument
from hushfit.estimators._missing import with_plain_gaps
from hushfit.estimators._persons import column_names, without_column


def as_frame(X: Any) -> Any:
    """Rows that scikit-learn can read: a frame, or another object with an Arrow stream (a DuckDB
    relation, an Arrow table or reader, an ADBC result) as a frame of the library that is there.

    Pandas and polars frames, arrays and matrices are returned as they are; a lazy polars frame is
    computed.
    """
    if hasattr(X, "collect_schema") and not hasattr(X, "__arrow_c_stream__"):
        return X.collect()
    if isinstance(X, np.ndarray) or not hasattr(X, "__arrow_c_stream__") or hasattr(X, "iloc"):
        return X
    if type(X).__module__.split(".")[0] == "polars":
        return X
    import pyarrow as pa

    table = pa.table(X)
    for place, column in enumerate(table.schema):
        if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
            kind = pa.int8() if pa.types.is_boolean(column.type) else pa.float64()
            table = table.set_column(place, column.name, table.column(place).cast(kind))
    return ArrowFrame(table)


class ArrowFrame:
    """The columns of an Arrow table under the names that frames have for them.

    Parameters
    ----------
    table : pyarrow.Table
    """

    def __init__(self, table: Any) -> None:
        self.table = table
        self.columns = list(table.column_names)
        self.shape = table.shape

    def __len__(self) -> int:
        return int(self.shape[0])

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, names: Any) -> Any:
        if isinstance(names, str):
            return self.table.column(names)
        return ArrowFrame(self.table.select(names))


def unwrapped(X: Any) -> Any:
    """Rows as scikit-learn reads them and the names of their columns."""
    return X.table if isinstance(X, ArrowFrame) else with_plain_gaps(X)


def refuse_dates(X: Any) -> None:
    """Refuse columns of dates, moments and durations, which some libraries turn into numbers
    without a word.
    """
    found = [str(name) for name in _dated_columns(X)]
    if found:
        raise InvalidArgument(
            f"X has dates or durations, in {', '.join(map(repr, found))}. Make numbers of them "
            "first, such as days since a public date, or encode them (DateColumn in a "
            "SchemaEncoder of hushfit.preprocessing)."
        )


def text_columns(X: Any) -> list[str]:
    """Names of the columns of a frame or Arrow table whose type is not one of numbers."""
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        import pyarrow as pa

        texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
        return [field.name for field in X.schema if any(is_one(field.type) for is_one in texts)]
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return []
    kinds = zip(X.columns, X.dtypes, strict=True)
    return [str(name) for name, kind in kinds if _is_text(kind)]


def refuse_duplicate_names(X: Any) -> None:
    """Refuse a table with two columns of one name."""
    framed = column_names(X) if hasattr(X, "dtypes") else []
    names = getattr(X, "column_names", framed)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InvalidArgument(
            f"X has more than one column named {twice[0]!r}. Give every column a name of its own."
        )


def _dated_columns(X: Any) -> list[Any]:
    if isinstance(X, np.ndarray):
        return ["the array"] if X.dtype.kind in "mM" else []
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        import pyarrow as pa

        return [field.name for field in X.schema if pa.types.is_temporal(field.type)]
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return []
    return [name for name, kind in zip(X.columns, X.dtypes, strict=True) if _is_temporal(kind)]


def _is_temporal(kind: Any) -> bool:
    """Whether a type of polars or pandas is one of dates or durations."""
    return bool(kind.is_temporal() if hasattr(kind, "is_temporal") else kind.kind in "mM")


def _is_text(kind: Any) -> bool:
    """Whether a type of polars or pandas may be one of texts."""
    if hasattr(kind, "is_numeric"):
        return not (kind.is_numeric() or str(kind) == "Boolean")
    return bool(kind.kind in "OUS")


def labels_of(X: Any, y: Any) -> tuple[Any, Any]:
    """The rows as a frame, and the labels: as given, or the column that a text names."""
    return column_taken(as_frame(X), y, "y", "label for each row")


def column_taken(X: Any, given: Any, argument: str, holds: str) -> tuple[Any, Any]:
    """The rows without the column that a text names, and its cells; both as they are if it is no
    text.
    """
    if not isinstance(given, str):
        return X, given
    if column_names(X).count(given) != 1:
        raise InvalidArgument(
            f"{argument}={given!r} names a column, but X has none of that name, or several. Give a "
            f"data frame with it, or an array with one {holds}."
        )
    return without_column(X, given), X[given]
