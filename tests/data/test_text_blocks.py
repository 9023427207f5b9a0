"""Delimited text is cut into blocks of whole rows, and no cell decides how others are read."""

import io
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushfit.data.schema import NumericColumn, Schema
from hushfit.data.tables import RowCodec, Table, _text_blocks, table_batches

ODD = {
    "text": "12a",
    "blank": " ",
    "word": "NA",
    "truth": "true",
    "grouped": "1_0",
    "hexadecimal": "0x10",
    "sign": "+3",
    "huge": "1e400",
}


@pytest.mark.parametrize("size", [3, 7, 64, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blocks_end_where_rows_do(monkeypatch, size, end):
    """Also with line breaks and doubled marks in quoted cells, and marks inside plain ones."""
    rows = ['1,"a\nb"', '2,"c""\n""d"', '3,5" pipe', "4,", '5,"\n"', "6,x"]
    monkeypatch.setattr(_text_blocks, "_BLOCK_BYTES", size)
    monkeypatch.setattr(_text_blocks, "_WIDE_BLOCK_BYTES", size)
    text = (end.join(rows) + end).encode()
    blocks = list(_text_blocks.row_blocks(io.BytesIO(text), ","))
    assert b"".join(blocks) == text
    parser = _text_blocks.BlockParser(["k", "v"], ["k", "v"], {"k"}, ",")
    found = [value for block in blocks for value in parser(block).column("k").to_pylist()]
    assert [float(k) for k in found] == [1, 2, 3, 4, 5, 6]


def _end_by_letters(text, delimiter):
    """Where the last whole row ends, letter by letter."""
    end, quoted, at_start = 0, False, True
    for i, letter in enumerate(text):
        if quoted:
            quoted = letter != '"'
            at_start = not quoted  # a mark right after the closing one goes on with the cell
        elif letter == '"' and at_start:
            quoted = True
        else:
            at_start = letter in {delimiter, "\n", "\r"}
            if letter == "\n" or (letter == "\r" and i + 1 < len(text)):
                end = i + 1
    return end


@settings(max_examples=300)
@given(text=st.text('"\n\r,;a', max_size=30), delimiter=st.sampled_from(",;"))
def test_rows_end_outside_quoted_cells(text, delimiter):
    assert _text_blocks._last_end(text.encode(), delimiter) == _end_by_letters(text, delimiter)


def test_finding_where_rows_end_compiles_nothing():
    """Compiled loops are kept on disk: a quotation mark in some cell would leave a trace there."""
    read = (
        "import io, sys\n"
        "from hushfit.data.tables import _text_blocks\n"
        'text = b\'1,"a\\nb"\\n2,5" pipe\\n3,"c"\\n\'\n'
        "assert b''.join(_text_blocks.row_blocks(io.BytesIO(text), ',')) == text\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", read], check=True)


def test_blocks_of_long_rows_are_larger(monkeypatch):
    monkeypatch.setattr(_text_blocks, "_BLOCK_BYTES", 5000)
    monkeypatch.setattr(_text_blocks, "_WIDE_BLOCK_BYTES", 50_000)
    counts = {}
    for width in (100, 2500):
        text = (b"x" * width + b"\n") * 100
        blocks = list(_text_blocks.row_blocks(io.BytesIO(text), ","))
        assert b"".join(blocks) == text
        counts[width] = [block.count(b"\n") for block in blocks]
    assert counts[2500][:3] == [1, 20, 20]  # the first block shows how long rows are
    assert max(counts[100]) == 50


def test_a_row_that_does_not_end_is_refused(monkeypatch):
    monkeypatch.setattr(_text_blocks, "_BLOCK_BYTES", 16)
    monkeypatch.setattr(_text_blocks, "LONGEST_ROW", 64)
    with pytest.raises(_text_blocks.TooLong):
        list(_text_blocks.row_blocks(io.BytesIO(b'"' + b"x" * 200), ","))


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_cell_changes_no_other_number(tmp_path, monkeypatch, odd):
    """Numbers of a block are the same bits, whatever else is in it or in other blocks."""
    monkeypatch.setattr(_text_blocks, "_BLOCK_BYTES", 64)
    cells = [repr(x) for x in np.random.default_rng(0).random(40)]
    schema = Schema((NumericColumn("a", 0, 1), NumericColumn("b", 0, 1)))

    def packed(column):
        path = tmp_path / "t.csv"
        path.write_text("a,b\n" + "".join(f"{x},{x}\n" for x in column))
        batches = table_batches(Table(str(path), "csv"), ["a", "b"], numbers=["a", "b"])
        return np.concatenate([RowCodec(schema).pack(batch)[0] for batch in batches])

    plain, other = packed(cells), packed([*cells[:17], ODD[odd], *cells[18:]])
    assert np.array_equal(np.delete(plain, 17, axis=0), np.delete(other, 17, axis=0))
    expected = schema.columns[0].encode(np.array([ODD[odd]], dtype=object)).astype(np.float32)
    assert other[17, 0] == expected[0]
