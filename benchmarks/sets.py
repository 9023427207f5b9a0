"""Real tables as features in [0, 1] and labels in {0, 1}.

Apart from ``adult``, which comes with the library, and ``simulated`` they are read from the folder
named by ``HUSHFIT_BENCH_DATA``. Their numeric ranges are those of the file, treated as public: this
is optimistic for every method alike, the non-private one included. The intercept and the scaling of
rows to unit norm are part of the fit.
"""

import gzip
import lzma
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks._report import ROOT
from hushfit.datasets import load_adult, load_ipums_br, make_sparse_classification

Table: TypeAlias = tuple[np.ndarray, np.ndarray]

CLASSES = (0, 1)
SAMPLE = 100_000  # rows sampled from the two large sets
SAMPLE_SEED = 1


def folder() -> Path:
    """Folder of the tables, which may not exist."""
    return Path(os.environ.get("HUSHFIT_BENCH_DATA", ROOT.parent / "shared" / "data"))


def scaled(values: np.ndarray) -> np.ndarray:
    """Columns shifted and scaled to [0, 1]; a constant column becomes 0."""
    low, high = values.min(axis=0), values.max(axis=0)
    return (values - low) / np.where(high > low, high - low, 1.0)


def indicators(labels: np.ndarray) -> np.ndarray:
    """One column per distinct label."""
    vocabulary, codes = np.unique(labels, return_inverse=True)
    return np.eye(len(vocabulary))[codes]


def lines_of(path: Path, limit: int | None = None) -> list[str]:
    """Lines of a compressed text file, the empty ones left out."""
    opened = gzip.open if path.suffix == ".gz" else lzma.open
    with opened(path, "rt") as file:
        head = (
            file if limit is None else (line for line, _ in zip(file, range(limit), strict=False))
        )
        return [line.strip() for line in head if line.strip()]


def sampled(lines: list[str]) -> list[str]:
    """A fixed random selection of rows (the generator is the one the published tables used)."""
    order = np.random.RandomState(SAMPLE_SEED).permutation(len(lines))
    return [lines[i] for i in order[:SAMPLE]]


def cells_of(lines: list[str], separator: str) -> np.ndarray:
    return np.array([line.replace('"', "").split(separator) for line in lines])


def libsvm(paths: list[Path], width: int) -> Table:
    """Sparse text files, joined."""
    parts = []
    for path in paths:
        with lzma.open(path) as file:
            parts.append(load_svmlight_file(file, n_features=width))
    X = np.vstack([part[0].toarray() for part in parts])
    return X, (np.concatenate([part[1] for part in parts]) > 0).astype(int)


def adult() -> Table:
    """The table that comes with the library, with documented ranges."""
    return load_adult(return_X_y=True)


def a9a() -> Table:
    """ADULT in LIBSVM's 123 binary features; training and test part."""
    return libsvm([folder() / "a9a" / name for name in ("a9a.xz", "a9a.t.xz")], width=123)


def w8a() -> Table:
    return libsvm([folder() / "w8a" / "w8a.xz"], width=300)


def mushrooms() -> Table:
    cells = cells_of(lines_of(folder() / "mushrooms" / "agaricus-lepiota.data.xz"), ",")
    return np.hstack([indicators(column) for column in cells[:, 1:].T]), (
        cells[:, 0] == "p"
    ).astype(int)


def bank() -> Table:
    numeric = {"age", "balance", "day", "duration", "campaign", "pdays", "previous"}
    head, *cells = cells_of(lines_of(folder() / "bank" / "bank-full.csv.xz"), ";")
    columns = np.array(cells).T
    parts = [
        scaled(column.astype(float))[:, None] if name in numeric else indicators(column)
        for name, column in zip(head[:-1], columns[:-1], strict=True)
    ]
    return np.hstack(parts), (columns[-1] == "yes").astype(int)


def covtype() -> Table:
    """Class 2 against the rest, a sample of the first 250,000 rows."""
    lines = sampled(lines_of(folder() / "covtype" / "covtype.data.xz", limit=250_000))
    rows = np.loadtxt(lines, delimiter=",")
    return scaled(rows[:, :-1]), (rows[:, -1] == 2).astype(int)


def kddcup99() -> Table:
    """Normal connections against attacks, a sample; long-tailed counts as logarithms."""
    return connections(sampled(kddcup99_lines()))


def kddcup99_lines() -> list[str]:
    return lines_of(folder() / "kddcup99" / "kddcup.data_10_percent.gz")


def connections(lines: list[str]) -> Table:
    """Lines of KDD Cup 99 as features and labels."""
    cells = cells_of(lines, ",")
    parts = []
    for j, column in enumerate(cells[:, :41].T):
        if j in (1, 2, 3):
            parts.append(indicators(column))
            continue
        values = column.astype(float)
        parts.append(scaled(np.log1p(values) if values.max() > 1000 else values)[:, None])
    return np.hstack(parts), (cells[:, 41] == "normal.").astype(int)


def ipums_br() -> Table:
    """The census extract of the source texts, for those who have its file."""
    X, y = load_ipums_br(folder() / "ipums_br" / "IPUMS-BR.dat")
    return scaled(X), y


def simulated() -> Table:
    """Correlated rows of which 20 columns in 100 matter, unscaled."""
    made = make_sparse_classification("correlated", random_state=SAMPLE_SEED)
    return made.X, (made.y > 0).astype(int)


SETS: dict[str, Callable[[], Table]] = {
    f.__name__: f
    for f in (adult, a9a, bank, mushrooms, w8a, covtype, kddcup99, ipums_br, simulated)
}


@lru_cache(maxsize=1)
def load(name: str) -> Table:
    """Features and labels of one set."""
    return SETS[name]()


def missing(name: str) -> str:
    """Why a set cannot be loaded, or nothing."""
    if name in ("adult", "simulated") or (folder() / name).is_dir():
        return ""
    return (
        f"{name} skipped: no folder {name!r} in the data folder; set HUSHFIT_BENCH_DATA to "
        "where it is"
    )
