"""Real tables of numbers and labels, for additive models: numbers in [0, 1] of their public ranges,
labels as codes.

Ranges of adult, credit and housing are those that their documentation or common knowledge gives.
Those of bank, covtype, kddcup99 and mq2008 are of the file, treated as public, which favours every
method alike. `features="additive"` was designed on the sets of ``CHOICE``;
docs/algorithms/additive.md says which of the others were used for which choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.datasets import load_breast_cancer

from benchmarks import sets
from hushfit.data.schema import NumericColumn
from hushfit.datasets import ADULT_SCHEMA, load_adult
from hushfit.features import InputColumn

CHOICE = ("adult", "bank", "covtype", "credit", "housing")
CHECK = ("bike", "mq2008", "kddcup99", "noisy", "skewed", "breast")


@dataclass(frozen=True, eq=False)
class Mixed:
    """A table of numbers in [0, 1] and labels.

    ``steps`` are, for each number, how many steps its whole numbers make; None if it may have
    fractions. ``from_zero`` says whether its range starts at zero.
    ``levels`` are the numbers of labels of each column of ``codes``.
    """

    names: list[str]
    numeric: np.ndarray
    steps: list[int | None]
    codes: np.ndarray
    levels: list[int]
    y: np.ndarray
    from_zero: list[bool]

    @property
    def X(self) -> np.ndarray:
        """Numbers, then an indicator for each label."""
        parts = [
            np.eye(count)[codes] for codes, count in zip(self.codes.T, self.levels, strict=True)
        ]
        return np.hstack([self.numeric, *parts])

    @property
    def columns(self) -> list[InputColumn]:
        """The columns of ``X`` as the rule of additive models sees them."""
        numbers = [
            InputColumn(name, steps, from_zero=zero)
            for name, steps, zero in zip(self.names, self.steps, self.from_zero, strict=True)
        ]
        labels = [InputColumn(f"label {k}", 1) for k in range(sum(self.levels))]
        return numbers + labels


def mixed(
    names: Sequence[str],
    numeric: Sequence[np.ndarray],
    ranges: Sequence[tuple[float, float]],
    whole: Sequence[bool],
    labels: Sequence[np.ndarray],
    y: np.ndarray,
) -> Mixed:
    """Numbers clipped to public ranges; labels as codes."""
    unit = [
        (np.clip(v, low, high) - low) / (high - low)
        for v, (low, high) in zip(numeric, ranges, strict=True)
    ]
    steps = [
        round(high - low) if is_whole else None
        for (low, high), is_whole in zip(ranges, whole, strict=True)
    ]
    coded = [np.unique(column, return_inverse=True) for column in labels]
    codes = np.column_stack([c for _, c in coded]) if coded else np.empty((len(y), 0), dtype=int)
    return Mixed(
        list(names),
        np.column_stack(unit),
        steps,
        codes,
        [len(v) for v, _ in coded],
        y.astype(int),
        [low == 0 for low, _ in ranges],
    )


def adult() -> Mixed:
    """The table that comes with the library."""
    X, y = load_adult(return_X_y=True)
    numeric, names, steps, codes, levels, zeros, at = [], [], [], [], [], [], 0
    for column in ADULT_SCHEMA.columns:
        width = len(column.feature_names)
        if isinstance(column, NumericColumn):
            numeric.append(X[:, at])
            names.append(column.name)
            steps.append(round(column.high - column.low))
            zeros.append(column.low == 0)
        else:
            codes.append(X[:, at : at + width].argmax(axis=1))
            levels.append(width)
        at += width
    return Mixed(names, np.column_stack(numeric), steps, np.column_stack(codes), levels, y, zeros)


def _table(path: str, separator: str = ",") -> dict[str, np.ndarray]:
    cells = sets.cells_of(sets.lines_of(sets.folder() / path), separator)
    return dict(zip(cells[0], cells[1:].T, strict=True))


def _of_file(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return low, high if high > low else low + 1.0


def bank() -> Mixed:
    table = _table("bank/bank-full.csv.xz", ";")
    names = ["age", "balance", "day", "duration", "campaign", "pdays", "previous"]
    numeric = [table[name].astype(float) for name in names]
    labels = [column for name, column in table.items() if name not in (*names, "y")]
    whole = [True] * len(names)
    return mixed(names, numeric, [_of_file(v) for v in numeric], whole, labels, table["y"] == "yes")


def covtype() -> Mixed:
    """Class 2 against the rest, a sample of the first 250,000 rows."""
    lines = sets.sampled(sets.lines_of(sets.folder() / "covtype/covtype.data.xz", limit=250_000))
    rows = np.loadtxt(lines, delimiter=",")
    numeric = list(rows[:, :10].T)
    area, soil = rows[:, 10:14].argmax(axis=1), rows[:, 14:54].argmax(axis=1)
    names = [f"number {k}" for k in range(10)]
    ranges = [_of_file(v) for v in numeric]
    return mixed(names, numeric, ranges, [True] * 10, [area, soil], rows[:, -1] == 2)


def credit() -> Mixed:
    table = _table("credit/credit.csv.xz")
    ranges = {"LIMIT_BAL": (0.0, 500_000.0), "AGE": (18.0, 80.0)}
    for name in table:
        if name.startswith("PAY_AMT"):
            ranges[name] = (0.0, 50_000.0)
        elif name.startswith("BILL_AMT"):
            ranges[name] = (0.0, 300_000.0)
        elif name.startswith("PAY_"):
            ranges[name] = (-2.0, 8.0)
    labels = [table[name] for name in ("SEX", "EDUCATION", "MARRIAGE")]
    numeric = [table[name].astype(float) for name in ranges]
    return mixed(
        list(ranges),
        numeric,
        list(ranges.values()),
        [True] * len(ranges),
        labels,
        table["Default"] == "1",
    )


def housing() -> Mixed:
    """Price above 180,000; missing bedrooms are zero."""
    table = _table("housing/housing.csv.xz")
    ranges = {
        "longitude": (-125.0, -114.0),
        "latitude": (32.0, 42.0),
        "housing_median_age": (0.0, 52.0),
        "total_rooms": (0.0, 10_000.0),
        "total_bedrooms": (0.0, 2_000.0),
        "population": (0.0, 5_000.0),
        "households": (0.0, 2_000.0),
        "median_income": (0.0, 15.0),
    }
    numeric = [np.array([float(cell) if cell else 0.0 for cell in table[name]]) for name in ranges]
    price = table["median_house_value"].astype(float)
    return mixed(
        list(ranges),
        numeric,
        list(ranges.values()),
        [False] * len(ranges),
        [table["ocean_proximity"]],
        price > 180_000,
    )


def bike() -> Mixed:
    """More than 200 bikes in an hour."""
    table = _table("bike/hour.csv.xz")
    ranges = {
        "hr": (0.0, 23.0),
        "mnth": (1.0, 12.0),
        "temp": (0.0, 1.0),
        "hum": (0.0, 1.0),
        "windspeed": (0.0, 1.0),
    }
    labels = [
        table[name] for name in ("season", "yr", "holiday", "weekday", "workingday", "weathersit")
    ]
    numeric = [table[name].astype(float) for name in ranges]
    whole = [True, True, False, False, False]
    return mixed(
        list(ranges), numeric, list(ranges.values()), whole, labels, table["cnt"].astype(int) > 200
    )


def kddcup99() -> Mixed:
    """Normal connections against attacks, a sample; long-tailed counts as logarithms."""
    cells = sets.cells_of(sets.sampled(sets.kddcup99_lines()), ",")
    numeric, labels = [], []
    for j, column in enumerate(cells[:, :41].T):
        if j in (1, 2, 3):
            labels.append(column)
            continue
        values = column.astype(float)
        numeric.append(np.log1p(values) if values.max() > 1000 else values)
    names = [f"number {k}" for k in range(len(numeric))]
    ranges = [_of_file(v) for v in numeric]
    whole = [
        high - low <= 1 and set(np.unique(v)) <= {low, high}
        for v, (low, high) in zip(numeric, ranges, strict=True)
    ]
    return mixed(names, numeric, ranges, whole, labels, cells[:, 41] == "normal.")


def mq2008() -> Mixed:
    """Relevant documents against others, as if documents were persons: 46 numbers."""
    rows, relevant = [], []
    for path in sorted((sets.folder() / "letor" / "MQ2008").rglob("S*")):
        if not path.is_file():
            continue
        for line in sets.lines_of(path) if path.suffix else path.read_text().splitlines():
            grade, _, *cells = line.split("#")[0].split()
            rows.append([float(cell.split(":")[1]) for cell in cells])
            relevant.append(int(grade) > 0)
    X = np.array(rows)
    names = [f"number {k}" for k in range(X.shape[1])]
    ranges = [_of_file(v) for v in X.T]
    return mixed(names, list(X.T), ranges, [False] * len(names), [], np.array(relevant))


def noisy(rows: int = 20_000) -> Mixed:
    """Simulated: 74 numbers, of which six matter, three of them linearly."""
    return _simulated(rows, 74, skew=1.0, seed=1)


def skewed(rows: int = 20_000) -> Mixed:
    """Simulated: 24 numbers crowded at the low end of their range, six of which matter."""
    return _simulated(rows, 24, skew=4.0, seed=2)


def _simulated(rows: int, columns: int, skew: float, seed: int) -> Mixed:
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(rows, 1))
    normal = 0.5 * common + np.sqrt(0.75) * rng.normal(size=(rows, columns))
    unit = np.clip((normal + 3.5) / 7, 0, 1) ** skew
    z = normal[:, :6]
    score = 1.2 * z[:, 0] - 0.8 * z[:, 1] + 0.5 * z[:, 2] - 0.8 * z[:, 3] ** 2 + np.sin(2 * z[:, 4])
    score += 0.8 * (z[:, 5] > 0.5)
    y = rng.random(rows) < 1 / (1 + np.exp(-score))
    names = [f"number {k}" for k in range(columns)]
    none, zeros = np.empty((rows, 0), dtype=int), [True] * columns
    return Mixed(names, unit, [None] * columns, none, [], y.astype(int), zeros)


def breast() -> Mixed:
    """Breast cancer of scikit-learn: 569 rows, 30 numbers."""
    X, y = load_breast_cancer(return_X_y=True)
    ranges = [(0.0, 1.25 * float(v.max())) for v in X.T]
    names = [f"number {k}" for k in range(X.shape[1])]
    return mixed(names, list(X.T), ranges, [False] * len(names), [], y)


SETS: dict[str, Callable[[], Mixed]] = {
    f.__name__: f
    for f in (adult, bank, covtype, credit, housing, bike, mq2008, kddcup99, noisy, skewed, breast)
}


@lru_cache(maxsize=2)
def load(name: str) -> Mixed:
    """One table."""
    return SETS[name]()
