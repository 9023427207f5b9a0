"""The Adult census table: 48,842 people from the 1994 Current Population Survey (Becker and Kohavi,
1996; CC BY 4.0).

The attribution is in ``adult.txt`` next to the data, the choice of ranges in
``docs/adr/0003-bundled-adult.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, overload

import numpy as np

from hushfit._typing import AnyArray, IntVector, Matrix
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema, encode
from hushfit.errors import InvalidArgument

UNKNOWN = "?"
TRAIN_ROWS = 32_561

# Vocabularies as printed in the documentation of the UCI data set, in its order. Ranges: age is
# top-coded at 90 and hours has two digits in the survey; education-num numbers the 16 levels of
# schooling; capital-gain has five digits, 99999 being the top code. No bound of capital-loss is
# documented, so it gets a round one. fnlwgt is left out: it is the number of people of the
# population that a row stands for, a property of the sampling plan and not of the person.
ADULT_SCHEMA = Schema(
    columns=(
        NumericColumn("age", low=17, high=90),
        CategoricalColumn(
            "workclass",
            (
                *(
                    "Private",
                    "Self-emp-not-inc",
                    "Self-emp-inc",
                    "Federal-gov",
                    "Local-gov",
                    "State-gov",
                ),
                *("Without-pay", "Never-worked"),
            ),
        ),
        CategoricalColumn(
            "education",
            (
                *(
                    "Bachelors",
                    "Some-college",
                    "11th",
                    "HS-grad",
                    "Prof-school",
                    "Assoc-acdm",
                    "Assoc-voc",
                    "9th",
                ),
                *(
                    "7th-8th",
                    "12th",
                    "Masters",
                    "1st-4th",
                    "10th",
                    "Doctorate",
                    "5th-6th",
                    "Preschool",
                ),
            ),
        ),
        NumericColumn("education-num", low=1, high=16),
        CategoricalColumn(
            "marital-status",
            (
                *(
                    "Married-civ-spouse",
                    "Divorced",
                    "Never-married",
                    "Separated",
                    "Widowed",
                    "Married-spouse-absent",
                ),
                "Married-AF-spouse",
            ),
        ),
        CategoricalColumn(
            "occupation",
            (
                *(
                    "Tech-support",
                    "Craft-repair",
                    "Other-service",
                    "Sales",
                    "Exec-managerial",
                    "Prof-specialty",
                ),
                *(
                    "Handlers-cleaners",
                    "Machine-op-inspct",
                    "Adm-clerical",
                    "Farming-fishing",
                    "Transport-moving",
                ),
                *("Priv-house-serv", "Protective-serv", "Armed-Forces"),
            ),
        ),
        CategoricalColumn(
            "relationship",
            ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
        ),
        CategoricalColumn(
            "race", ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")
        ),
        CategoricalColumn("sex", ("Female", "Male")),
        NumericColumn("capital-gain", low=0, high=99_999, transform="log1p"),
        NumericColumn("capital-loss", low=0, high=5_000, transform="log1p"),
        NumericColumn("hours-per-week", low=1, high=99),
        CategoricalColumn(
            "native-country",
            (
                *("United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany"),
                *(
                    "Outlying-US(Guam-USVI-etc)",
                    "India",
                    "Japan",
                    "Greece",
                    "South",
                    "China",
                    "Cuba",
                    "Iran",
                ),
                *(
                    "Honduras",
                    "Philippines",
                    "Italy",
                    "Poland",
                    "Jamaica",
                    "Vietnam",
                    "Mexico",
                    "Portugal",
                    "Ireland",
                ),
                *(
                    "France",
                    "Dominican-Republic",
                    "Laos",
                    "Ecuador",
                    "Taiwan",
                    "Haiti",
                    "Columbia",
                    "Hungary",
                ),
                *(
                    "Guatemala",
                    "Nicaragua",
                    "Scotland",
                    "Thailand",
                    "Yugoslavia",
                    "El-Salvador",
                    "Trinadad&Tobago",
                    "Peru",
                ),
                *("Hong", "Holand-Netherlands"),
            ),
        ),
    ),
    target=CategoricalColumn("income", ("<=50K", ">50K")),
    unit="person",
)


@dataclass(frozen=True, eq=False)
class Adult:
    """The Adult census table, raw and encoded.

    Attributes
    ----------
    columns : dict of str to array of shape (n,)
        Raw columns under their UCI names: texts for categories ("?" where unknown), integers for
        numbers.
    target : str array of shape (n,)
        Income class, "<=50K" or ">50K".
    schema : Schema
        Public ranges and vocabularies.
    X : array of shape (n, n_features)
        `columns` encoded with `schema`: every entry in [0, 1].
    y : int array of shape (n,)
        1 for an income above 50,000 dollars, else 0.
    feature_names : list of str
        Names of the columns of `X`.

    Examples
    --------
    >>> from hushfit.datasets import load_adult
    >>> adult = load_adult(split="test")
    >>> adult.X.shape, sorted(set(adult.target))
    ((16281, 112), [np.str_('<=50K'), np.str_('>50K')])
    """

    columns: dict[str, AnyArray]
    target: AnyArray
    schema: Schema
    X: Matrix
    y: IntVector
    feature_names: list[str]

    def to_frame(self) -> Any:
        """The raw table as a pandas frame.

        Returns
        -------
        frame : pandas.DataFrame
            The columns and, last, the target ``income``. Needs pandas
            (``pip install hushfit[frames]``).
        """
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise InvalidArgument(
                "pandas is not installed. Install it with: pip install 'hushfit[frames]'"
            ) from None

        return pd.DataFrame({**self.columns, "income": self.target})


@overload
def load_adult(*, split: str = ..., return_X_y: Literal[False] = ...) -> Adult: ...
@overload
def load_adult(*, split: str = ..., return_X_y: Literal[True]) -> tuple[Matrix, IntVector]: ...
def load_adult(*, split: str = "all", return_X_y: bool = False) -> Adult | tuple[Matrix, IntVector]:
    """Load the Adult census table that comes with the library.

    Parameters
    ----------
    split : {"all", "train", "test"}, default="all"
        The rows of the UCI file ``adult.data`` (train, 32,561), of ``adult.test`` (test, 16,281),
        or both, in this order.
    return_X_y : bool, default=False
        If True, return ``(X, y)`` instead of an `Adult`.

    Returns
    -------
    adult : Adult
        Raw columns, schema and encoded features.
    (X, y) : tuple
        If `return_X_y` is True.

    Notes
    -----
    The sampling weight ``fnlwgt`` is left out: it describes the survey, not the person, and no
    model of a person should use it. Ranges and vocabularies come from the documentation, never from
    the rows.

    References
    ----------
    Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5XW20. Licence: CC BY 4.0.

    Examples
    --------
    >>> from hushfit.datasets import load_adult
    >>> adult = load_adult()
    >>> adult.X.shape, int(adult.y.sum())
    ((48842, 112), 11687)
    """
    parts = {"all": slice(None), "train": slice(TRAIN_ROWS), "test": slice(TRAIN_ROWS, None)}
    if split not in parts:
        raise InvalidArgument(
            f"split={split!r} is not a part of Adult. Choose one of {', '.join(parts)}."
        )
    with (
        files(__package__).joinpath("adult.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        coded = {name: stored[name][parts[split]] for name in stored.files}
    y = coded.pop("income").astype(np.int64)
    columns = _decode(coded)
    X, feature_names = encode(columns, ADULT_SCHEMA)
    if return_X_y:
        return X, y
    return Adult(columns, np.array(["<=50K", ">50K"])[y], ADULT_SCHEMA, X, y, feature_names)


def _decode(coded: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Texts for category codes, plain integers for numbers."""
    return {
        column.name: np.array([*column.categories, UNKNOWN])[coded[column.name]]
        if isinstance(column, CategoricalColumn)
        else coded[column.name].astype(np.int64)
        for column in ADULT_SCHEMA.columns
    }
