"""Rows that a verb writes: text, Parquet or Arrow, by the ending of the file's name."""

import bz2
import gzip
import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushfit._typing import AnyArray
from hushfit._write import replaced
from hushfit.errors import InvalidArgument

STDOUT: Final = "-"
_DELIMITERS: Final = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}
_BINARY: Final = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}
_PACKED: Final[Mapping[str, Callable[..., Any]]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# Formats that a name may promise and that are not written: a file under such a name would not open.
_UNWRITTEN: Final = (".xlsx", ".xlsm", ".xls", ".ods", ".json", ".html", ".pdf", ".zst", ".zip")
# What spreadsheets read as the start of a formula, unless the whole cell is a number.
_FORMULA = re.compile(r"\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SMALLEST_ROUNDED, _LARGEST_ROUNDED = 1e-14, 1e16

Columns = Sequence[Any]


def holds_rows(output: str) -> bool:
    """Whether the ending of a file's name is that of rows."""
    name = Path(output)
    ending = (name.with_suffix("") if name.suffix.lower() in _PACKED else name).suffix.lower()
    return ending in _DELIMITERS or ending in _BINARY


@dataclass(frozen=True)
class RowForm:
    """How rows are written.

    Parameters
    ----------
    delimiter : str
        Of text.
    decimal : {".", ","}, default="."
        Decimal mark of numbers in text.
    raw : bool, default=False
        Whether text has labels as they are, also those that a spreadsheet would run as a formula.
    binary : {"parquet", "arrow"}, optional
        None for text.
    packing : str, optional
        The ending of compressed text, such as ".gz".
    """

    delimiter: str = ","
    decimal: str = "."
    raw: bool = False
    binary: str | None = None
    packing: str | None = None

    @classmethod
    def of(cls, output: str, decimal: str = ".", raw: bool = False) -> "RowForm":
        """By the ending of a file's name; text if it has none that is known.

        Raises
        ------
        InvalidArgument
            If the name promises a format that is not written.
        """
        name = Path(output)
        packing = name.suffix.lower() if name.suffix.lower() in _PACKED else None
        ending = (name if packing is None else name.with_suffix("")).suffix.lower()
        if ending in _UNWRITTEN:
            raise InvalidArgument(
                f"{output} would not be a {ending} file. Rows are written as .csv, .tsv, .parquet "
                "or .arrow; spreadsheets open .csv."
            )
        binary = _BINARY.get(ending)
        if binary is None:
            usual = _DELIMITERS.get(ending, ",")
            delimiter = ";" if (usual, decimal) == (",", ",") else usual
            return cls(delimiter, decimal, raw, packing=packing)
        if packing is not None or decimal != "." or raw:
            raise InvalidArgument(
                f"{output} is a {binary} file: it is compressed by itself, and has typed numbers "
                "and labels as they are. Leave out --decimal, --raw and further endings."
            )
        return cls(binary=binary)

    def texts(self, cells: Any) -> Any:
        """Labels, or cells that are copied, as they are written. In text, missing ones are empty,
        and each different one is made safe once.
        """
        import pyarrow as pa

        found = cells if isinstance(cells, pa.Array | pa.ChunkedArray) else pa.array(cells)
        found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        if self.binary is not None:
            is_coded = pa.types.is_dictionary(found.type)
            return found.dictionary_decode() if is_coded else found
        safe = str if self.raw else without_formula
        coded = found if pa.types.is_dictionary(found.type) else found.dictionary_encode()
        texts = ["" if cell is None else safe(cell) for cell in coded.dictionary.to_pylist()]
        return pa.array([*texts, ""]).take(coded.indices.fill_null(len(texts)))

    def line(self, names: Iterable[str]) -> str:
        """The header of text."""
        import pyarrow as pa

        return self.lines([pa.array([name]) for name in names])

    def lines(self, columns: Columns) -> str:
        """Rows of text, with quotation marks around the cells that need them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = [
            self._quoted(one) if pa.types.is_string(one.type) else self._written(one)
            for one in columns
        ]
        joined = pc.binary_join_element_wise(*cells, self.delimiter).to_pylist()
        return "".join(f"{line}\n" for line in joined)

    def _written(self, numbers: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = numbers.cast(pa.string())
        return texts if self.decimal == "." else pc.replace_substring(texts, ".", self.decimal)

    def _quoted(self, texts: Any) -> Any:
        import pyarrow.compute as pc

        marked = pc.match_substring_regex(texts, f'[{self.delimiter}"\r\n]')
        if not pc.any(marked).as_py():
            return texts
        inside = pc.replace_substring(texts, '"', '""')
        return pc.if_else(marked, pc.binary_join_element_wise('"', inside, '"', ""), texts)


def write_rows(
    output: str,
    form: RowForm,
    names: Sequence[str],
    batches: Iterable[Columns],
    say: Callable[[str], None],
) -> None:
    """Write rows to a file, which is replaced as a whole, or to standard output.

    Parameters
    ----------
    output : str
        "-" is standard output.
    form : RowForm
    names : sequence of str
    batches : iterable of sequences of pyarrow.Array
        One array for each name.
    say : callable
        Writes text to standard output.
    """
    if output == STDOUT:
        for piece in _pieces(form, names, batches):
            say(piece)
        return
    with replaced(Path(output)) as file:
        if form.binary is not None:
            _write_binary(file, form.binary, names, batches)
        elif form.packing is None:
            file.writelines(piece.encode() for piece in _pieces(form, names, batches))
        else:
            with _PACKED[form.packing](file, "wb") as packed:
                packed.writelines(piece.encode() for piece in _pieces(form, names, batches))


def _pieces(form: RowForm, names: Sequence[str], batches: Iterable[Columns]) -> Iterator[str]:
    yield form.line(names)
    yield from map(form.lines, batches)


def _write_binary(file: Any, format: str, names: Sequence[str], batches: Iterable[Columns]) -> None:
    """The types are those of the first batch; without any, columns have no type."""
    import pyarrow as pa
    import pyarrow.parquet

    parts = (pa.record_batch(list(columns), names=list(names)) for columns in batches)
    first = next(parts, pa.record_batch([pa.nulls(0) for _ in names], names=list(names)))
    make = pa.parquet.ParquetWriter if format == "parquet" else pa.ipc.new_file
    with make(file, first.schema) as writer:
        for batch in chain([first], parts):
            if batch.schema != first.schema:
                raise InvalidArgument(
                    "a column that is kept has another type in another table. Write .csv, or "
                    "predict each table by itself."
                )
            writer.write_batch(batch)


def without_formula(label: Any) -> str:
    """A label as a cell that no spreadsheet runs: with an apostrophe in front if it looks like a
    formula; numbers unchanged.
    """
    text = str(label)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def rounded(values: AnyArray, digits: int) -> AnyArray:
    """Numbers rounded to so many significant digits: the shortest text of each has no more.

    Those that no power of ten scales exactly stay as they are.
    """
    size = np.abs(values)
    usual = (size > _SMALLEST_ROUNDED) & (size < _LARGEST_ROUNDED)
    power = np.floor(np.log10(np.where(usual, size, 1.0))) + 1 - digits
    up, down = 10.0 ** np.maximum(-power, 0), 10.0 ** np.maximum(power, 0)
    return np.where(usual, np.round(values * up / down) * down / up, values)
