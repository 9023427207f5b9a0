"""Heart disease in four hospitals (Janosi, Steinbrunn, Pfisterer and Detrano, 1989; UCI, CC BY
4.0): a natural case of several owners.

The rows are not bundled. `load_heart` reads the four files of the UCI page from a folder;
`simulate_heart` simulates patients with the same columns and numbers of rows, for demonstrations
without them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushfit._typing import AnyArray
from hushfit.data.schema import CategoricalColumn, Column, NumericColumn, Schema
from hushfit.errors import InvalidArgument

# Codes as the UCI page explains them. It gives no ranges, so these are round numbers from clinical
# practice, none from the rows; the middle of a range replaces a value that was not measured.
HEART_SCHEMA = Schema(
    columns=(
        NumericColumn("age", low=20, high=90),
        CategoricalColumn("sex", ("female", "male")),
        CategoricalColumn("chest-pain", ("typical", "atypical", "other-pain", "none")),
        NumericColumn("resting-pressure", low=80, high=220, fill=130),
        NumericColumn("cholesterol", low=100, high=600, fill=240),
        CategoricalColumn("fasting-sugar", ("normal", "high")),
        CategoricalColumn("resting-ecg", ("normal", "st-t-wave", "hypertrophy")),
        NumericColumn("max-heart-rate", low=60, high=220, fill=140),
        CategoricalColumn("exercise-angina", ("no", "yes")),
        NumericColumn("st-depression", low=-3, high=7, fill=0),
    ),
    target=CategoricalColumn("disease", ("absent", "present")),
    unit="patient",
)

HOSPITALS: Mapping[str, tuple[str, int]] = {
    "cleveland": ("processed.cleveland.data", 303),
    "budapest": ("processed.hungarian.data", 294),
    "switzerland": ("processed.switzerland.data", 123),
    "long-beach": ("processed.va.data", 200),
}

# Position of each column in a line of the files, and the first code of its vocabulary.
_PLACES = {
    "age": (0, 0),
    "sex": (1, 0),
    "chest-pain": (2, 1),
    "resting-pressure": (3, 0),
    "cholesterol": (4, 0),
    "fasting-sugar": (5, 0),
    "resting-ecg": (6, 0),
    "max-heart-rate": (7, 0),
    "exercise-angina": (8, 0),
    "st-depression": (9, 0),
}


@dataclass(frozen=True, eq=False)
class Heart:
    """The patients of one hospital.

    Attributes
    ----------
    columns : dict of str to array of shape (n,)
        Raw columns: texts for categories ("?" where unknown), numbers with NaN where unknown.
    target : str array of shape (n,)
        "present" or "absent".

    Examples
    --------
    >>> from hushfit.datasets import simulate_heart
    >>> sorted(simulate_heart(seed=0)["cleveland"].columns)[:3]
    ['age', 'chest-pain', 'cholesterol']
    """

    columns: dict[str, AnyArray]
    target: AnyArray

    def rows(self, chosen: AnyArray) -> "Heart":
        """Some of the patients."""
        return Heart(
            {name: column[chosen] for name, column in self.columns.items()}, self.target[chosen]
        )


def load_heart(folder: str | Path) -> dict[str, Heart]:
    """Read the four hospitals from the files of the UCI page.

    Parameters
    ----------
    folder : path
        With ``processed.cleveland.data``, ``processed.hungarian.data``,
        ``processed.switzerland.data`` and ``processed.va.data``.

    Returns
    -------
    dict of str to Heart

    Notes
    -----
    The columns slope, ca and thal are left out: three of the hospitals hardly ever recorded them. A
    cholesterol or pressure of 0 is a value that was not measured.

    References
    ----------
    Janosi, A., Steinbrunn, W., Pfisterer, M. and Detrano, R. (1989). Heart Disease. UCI Machine
    Learning Repository. https://doi.org/10.24432/C52P4X. Licence: CC BY 4.0.

    Examples
    --------
    >>> from hushfit.datasets import load_heart
    >>> load_heart("no-such-folder")
    Traceback (most recent call last):
    hushfit.errors.InvalidArgument: ...
    """
    return {
        hospital: _read(Path(folder) / name, rows) for hospital, (name, rows) in HOSPITALS.items()
    }


def _read(path: Path, rows: int) -> Heart:
    try:
        lines = [line.split(",") for line in path.read_text(encoding="ascii").split()]
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            f"{path} cannot be read ({type(error).__name__}). Give the folder with the four UCI "
            "files."
        ) from None
    if len(lines) != rows or any(len(line) != 14 for line in lines):
        raise InvalidArgument(
            f"{path} does not have {rows} lines of 14 values. Give the file as UCI publishes it."
        )
    values = np.array([[np.nan if cell == "?" else float(cell) for cell in line] for line in lines])
    columns = {column.name: _decoded(column, values) for column in HEART_SCHEMA.columns}
    return Heart(columns, np.where(values[:, 13] > 0, "present", "absent"))


def _decoded(column: Column, values: AnyArray) -> AnyArray:
    place, first = _PLACES[column.name]
    cells = values[:, place]
    if isinstance(column, CategoricalColumn):
        codes = np.where(np.isnan(cells), len(column.categories), cells - first).astype(int)
        return np.asarray(np.array([*column.categories, "?"])[codes])
    positive = isinstance(column, NumericColumn) and column.low > 0
    return np.asarray(np.where((cells == 0) & positive, np.nan, cells))


def simulate_heart(seed: int = 0) -> dict[str, Heart]:
    """Simulate four hospitals with the columns and sizes of the heart-disease data; no patient is
    real.

    Parameters
    ----------
    seed : int, default=0

    Returns
    -------
    dict of str to Heart
        Hospitals differ in how ill their patients are, as real ones do.

    Examples
    --------
    >>> from hushfit.datasets import simulate_heart
    >>> sorted(simulate_heart(seed=0))
    ['budapest', 'cleveland', 'long-beach', 'switzerland']
    """
    rng = np.random.default_rng(seed)
    return {
        hospital: _invented(rng, rows, severity)
        for (hospital, (_, rows)), severity in zip(
            HOSPITALS.items(), (-0.1, -0.4, 1.6, 0.8), strict=True
        )
    }


def _invented(rng: np.random.Generator, rows: int, severity: float) -> Heart:
    """Patients whose columns depend on one latent number each, the severity of their illness."""
    ill = rng.normal(severity, 1.2, rows)

    def number(centre: float, slope: float, spread: float) -> AnyArray:
        return np.round(centre + slope * ill + rng.normal(0, spread, rows), 1)

    def either(bias: float, slope: float, names: tuple[str, str]) -> AnyArray:
        return np.where(rng.logistic(bias + slope * ill) > 0, names[1], names[0])

    pain = np.digitize(ill + rng.normal(0, 0.8, rows), [-1.2, -0.3, 0.4])
    columns = {
        "age": np.clip(number(53, 2.5, 8), 20, 90),
        "sex": either(0.9, 0.5, ("female", "male")),
        "chest-pain": np.array(["typical", "atypical", "other-pain", "none"])[pain],
        "resting-pressure": number(131, 1.5, 17),
        "cholesterol": number(240, 4, 50),
        "fasting-sugar": either(-1.8, 0.2, ("normal", "high")),
        "resting-ecg": rng.choice(["normal", "st-t-wave", "hypertrophy"], rows, p=[0.6, 0.2, 0.2]),
        "max-heart-rate": number(140, -9, 20),
        "exercise-angina": either(-0.6, 1.0, ("no", "yes")),
        "st-depression": np.clip(number(0.8, 0.6, 0.7), -2, 6),
    }
    return Heart(columns, np.where(ill + rng.normal(0, 0.5, rows) > 0, "present", "absent"))
