"""The public description of a table: ranges and vocabularies stated by a person, never read from
the rows.

`encode` uses nothing but the schema and the row at hand, so changing one person changes one row of
the matrix. So the sensitivity proofs are about rows of ``X``, while the guarantee is for people in
the table.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.data.schema._cells import (
    MISSING_VALUE,
    as_objects,
    label_of,
    listed,
    number_of,
    numbers_in,
)
from hushfit.data.schema._checks import refuse_nameless, settle_markers
from hushfit.data.schema._date_column import DateColumn
from hushfit.data.schema._hashed_column import HashedColumn
from hushfit.data.schema._penalty_choice import PenaltyChoice
from hushfit.data.schema._text_form import TextForm
from hushfit.errors import InvalidArgument
from hushfit.features import InputColumn
from hushfit.unit import ROW, PrivacyUnit

__all__ = ["CategoricalColumn", "Column", "NumericColumn", "Schema", "encode"]

OTHER = "<other>"
FEATURES = ("linear", "additive", "centred")
SCALINGS = ("unit", "public")
_MISSING_RULES = ("fill", "indicator")
_MISSING_LABELS = ("other", "indicator")
_WEIGHTS = ("person_weight", "rows_per_person")


def _identity(v: Vector) -> Vector:
    return v


TRANSFORMS: dict[str, Callable[[Vector], Vector]] = {"none": _identity, "log1p": np.log1p}
_INVERSES: dict[str, Callable[[Vector], Vector]] = {"none": _identity, "log1p": np.expm1}


@dataclass(frozen=True)
class NumericColumn:
    """A number with a public range; its encoding is one feature in [0, 1].

    Parameters
    ----------
    name : str
        Name of the column in the table.
    low, high : float
        Public range, known without looking at the rows. Values outside are clipped to it.
    fill : float, optional
        Replaces a missing or unreadable value. `low` when not given.
    transform : {"none", "log1p"}, default="none"
        Applied before scaling to [0, 1]. "log1p" spreads the small values of a long-tailed column
        such as an amount of money; it needs ``low > -1``.
    missing : {"fill", "indicator"}, default="fill"
        What becomes of a missing or unreadable value: it is filled, and with "indicator" a second
        feature, ``name=<missing>``, says so. Whether values may be missing is public.
    integer : bool, default=False
        Whether values are whole numbers: a column of few of them needs fewer knots in an additive
        model.
    missing_values : sequence of str or number, default=()
        Numbers that stand for a missing value, such as -9 or 999. Texts may be listed too; a cell
        that is no number is missing anyway.
    decimal : {".", ","}, default="."
        The decimal mark of cells that are texts. With "," points may group thousands, as in
        1.234,5.

    Examples
    --------
    >>> from hushfit.data.schema import NumericColumn, encode
    >>> import numpy as np
    >>> NumericColumn("age", low=20, high=70, fill=45).encode(
    ...     np.array([20, 45, 99, np.nan])
    ... ).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """

    name: str
    low: float
    high: float
    fill: float | None = None
    transform: str = "none"
    missing: str = "fill"
    integer: bool = False
    missing_values: tuple[str | float, ...] = ()
    decimal: str = "."
    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        refuse_nameless(self.name)
        settle_markers(self)
        if self.decimal not in (".", ","):
            raise InvalidArgument(
                f"column {self.name!r} has decimal={self.decimal!r}. Write '.' or ','."
            )
        for name in ("low", "high", *(() if self.fill is None else ("fill",))):
            _refuse_what_is_no_number(getattr(self, name), f"{name} of column {self.name!r}")
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise InvalidArgument(
                f"column {self.name!r} has the range [{self.low}, {self.high}]. Give finite "
                "numbers with low < high."
            )
        if not isinstance(self.transform, str) or self.transform not in TRANSFORMS:
            raise InvalidArgument(
                f"column {self.name!r} has transform={self.transform!r}. Choose one of "
                f"{', '.join(TRANSFORMS)}."
            )
        if not isinstance(self.missing, str) or self.missing not in _MISSING_RULES:
            raise InvalidArgument(
                f"column {self.name!r} has missing={self.missing!r}. Choose 'fill' or 'indicator'."
            )
        if not isinstance(self.integer, bool):
            raise InvalidArgument(
                f"column {self.name!r} has integer={self.integer!r}. Write true or false."
            )
        if self.transform == "log1p" and self.low <= -1:
            raise InvalidArgument(
                f"column {self.name!r} has low={self.low} and transform='log1p', which needs low > "
                "-1. "
                "Raise low or drop the transform."
            )
        if self.fill is not None and not self.low <= self.fill <= self.high:
            raise InvalidArgument(
                f"column {self.name!r} has fill={self.fill}, outside its range [{self.low}, "
                f"{self.high}]. "
                "Choose a fill inside the range."
            )

    @property
    def feature_names(self) -> list[str]:
        """Name of the feature of this column, and perhaps of the indicator of missing values."""
        has_indicator = self.missing == "indicator"
        return [self.name, f"{self.name}={MISSING_VALUE}"] if has_indicator else [self.name]

    @property
    def inputs(self) -> list[InputColumn]:
        """Its features as an additive model sees them."""
        steps = max(math.floor(self.high) - math.ceil(self.low), 1) if self.integer else None
        number, *indicator = self.feature_names
        return [
            InputColumn(number, steps, from_zero=self.low == 0),
            *(InputColumn(name, 1) for name in indicator),
        ]

    def encode(self, values: AnyArray) -> Matrix:
        """Clip to the public range, transform, and scale to [0, 1].

        Parameters
        ----------
        values : array of shape (n,)
            Numbers, or text to be read as numbers.

        Returns
        -------
        X : array of shape (n,), or (n, 2) with an indicator of missing values
            The encoded column.
        """
        words = self.words(values)
        return np.column_stack(words) if self.missing == "indicator" else words[0]

    @property
    def widths(self) -> tuple[int, ...]:
        """Features of each word: the number, and perhaps the indicator."""
        return (1,) * len(self.feature_names)

    def words(self, values: AnyArray) -> list[AnyArray]:
        """The encoded column as words of a packed row.

        Parameters
        ----------
        values : array of shape (n,)

        Returns
        -------
        list of arrays of shape (n,)
            The scaled number, and perhaps the indicator of missing values.
        """
        v = self.numbers(values)
        is_missing = np.isnan(v)
        share = self.scaled(np.where(is_missing, self.low if self.fill is None else self.fill, v))
        return [share, is_missing.astype(np.float64)][: len(self.widths)]

    def numbers(self, values: AnyArray) -> Vector:
        """Cells as numbers; NaN for those that are missing or no numbers.

        Parameters
        ----------
        values : array of shape (n,)

        Returns
        -------
        array of shape (n,)
        """
        v = numbers_in(values, self.decimal)
        codes = [code for marker in self.missing_values if (code := number_of(marker)) == code]
        return np.where(np.isin(v, codes), np.nan, v) if codes else v

    @property
    def stated(self) -> str:
        """What the schema states about it, in words."""
        fill = "" if self.fill is None else f", missing becomes {self.fill:g}"
        shape = "" if self.transform == "none" else f", {self.transform}"
        whole = ", whole numbers" if self.integer else ""
        missing = ", with an indicator of missing values" if self.missing == "indicator" else ""
        return f"{self.low:g} to {self.high:g}{whole}{shape}{fill}{missing}"

    def scaled(self, values: Vector) -> Vector:
        """Numbers clipped, transformed and scaled to [0, 1].

        Parameters
        ----------
        values : array

        Returns
        -------
        array
        """
        shape = TRANSFORMS[self.transform]
        bottom, top = shape(np.array([self.low, self.high], dtype=np.float64))
        share: Vector = (shape(np.clip(values, self.low, self.high)) - bottom) / (top - bottom)
        return share.clip(0.0, 1.0)  # against rounding: the proofs rely on the interval

    def original(self, shares: Vector) -> Vector:
        """The numbers that `scaled` maps to these.

        Parameters
        ----------
        shares : array of numbers in [0, 1]

        Returns
        -------
        array
        """
        shape, back = TRANSFORMS[self.transform], _INVERSES[self.transform]
        bottom, top = shape(np.array([self.low, self.high], dtype=np.float64))
        return np.asarray(back(bottom + np.asarray(shares) * (top - bottom)))


@dataclass(frozen=True)
class CategoricalColumn:
    """A label with a public vocabulary; its encoding is one indicator per category and one for
    anything else.

    Parameters
    ----------
    name : str
        Name of the column in the table.
    categories : sequence of str
        Public vocabulary, known without looking at the rows. Missing and unlisted values share the
        feature ``name=<other>``.
    missing : {"other", "indicator"}, default="other"
        With "indicator", missing values have a feature of their own, ``name=<missing>``.
    missing_values : sequence of str or number, default=()
        Labels that stand for a missing value, such as "?". Empty cells always do.
    positive : str, optional
        Of a target with two classes, the one that thresholds, intervals, scores and reports speak
        of. None is the last in sorted order. The order of classes and of their probabilities does
        not depend on it.

    Examples
    --------
    >>> from hushfit.data.schema import CategoricalColumn, encode
    >>> import numpy as np
    >>> colour = CategoricalColumn("colour", categories=("red", "blue"))
    >>> colour.encode(np.array(["blue", "mauve"])).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    name: str
    categories: tuple[str, ...]
    missing: str = "other"
    missing_values: tuple[str | float, ...] = ()
    positive: str | None = None
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        refuse_nameless(self.name)
        settle_markers(self)
        if not isinstance(self.missing, str) or self.missing not in _MISSING_LABELS:
            raise InvalidArgument(
                f"column {self.name!r} has missing={self.missing!r}. Choose 'other' or 'indicator'."
            )
        if not isinstance(self.categories, list | tuple) or isinstance(self.categories, str):
            raise InvalidArgument(
                f"column {self.name!r} has categories={self.categories!r}. Give a list of labels."
            )
        categories = tuple(_category(c).strip() for c in self.categories)
        object.__setattr__(
            self, "categories", categories
        )  # a list from JSON or TOML becomes hashable
        if not categories or len(set(categories)) < len(categories) or OTHER in categories:
            raise InvalidArgument(
                f"column {self.name!r} has categories {list(categories)}. Give at least one, each "
                "once; "
                f"{OTHER!r} is added by the encoding."
            )
        if len({label_of(category) for category in categories}) < len(categories):
            raise InvalidArgument(
                f"column {self.name!r} has categories that are the same number, truth value or "
                f"date: {_alike(categories)}. A column "
                "may hold either form, so keep one of them."
            )

        both = [one for one in self.missing_values if label_of(one) in self._places]
        if both:
            raise InvalidArgument(
                f"column {self.name!r} lists {both[0]!r} among its categories and among its "
                "missing values. Keep one."
            )
        if self.positive is not None:
            object.__setattr__(self, "positive", self._listed_positive())

    def _listed_positive(self) -> str:
        """The positive class as it is written among the categories."""
        if len(self.categories) != 2:
            raise InvalidArgument(
                f"column {self.name!r} has positive={self.positive!r}, which is for two classes, "
                f"and it has {len(self.categories)}. Delete it."
            )
        place = self._places.get(label_of(self.positive))
        if place is None:
            raise InvalidArgument(
                f"column {self.name!r} has positive={self.positive!r}, which is not among its "
                f"categories {list(self.categories)}. Name one of them."
            )
        return self.categories[place]

    @cached_property
    def _places(self) -> dict[str | None, int]:
        """Place of each category, by the form in which labels are compared."""
        return {label_of(category): k for k, category in enumerate(self.categories)}

    @property
    def feature_names(self) -> list[str]:
        """One feature per category, one for everything else, and perhaps one for missing values."""
        rest = (OTHER, MISSING_VALUE) if self.missing == "indicator" else (OTHER,)
        return [f"{self.name}={category}" for category in (*self.categories, *rest)]

    @property
    def widths(self) -> tuple[int, ...]:
        """Features of each word: one word says which of the features is 1."""
        return (len(self.feature_names),)

    @property
    def inputs(self) -> list[InputColumn]:
        """Its features as an additive model sees them."""
        return [InputColumn(name, 1) for name in self.feature_names]

    def codes(self, values: AnyArray) -> IntVector:
        """Position of each value in the vocabulary.

        Parameters
        ----------
        values : array of shape (n,)
            Labels; compared as text, without surrounding blanks. Numbers are compared as floats and
            truth values as 1 and 0, for every type of the column, since a single cell can change
            that type.

        Returns
        -------
        codes : int array of shape (n,)
            ``len(categories)`` for unlisted values, and one more for missing ones if these have a
            feature.
        """
        missing = len(self.feature_names) - 1
        gaps = {label_of(marker): missing for marker in ("", None, *self.missing_values)}
        places = gaps | self._places
        return np.array(
            [places.get(label_of(cell), len(self.categories)) for cell in listed(values)],
            dtype=np.int64,
        )

    def words(self, values: AnyArray) -> list[AnyArray]:
        """The encoded column as one word of a packed row.

        Parameters
        ----------
        values : array of shape (n,)

        Returns
        -------
        list of one array of shape (n,)
            `codes`.
        """
        return [self.codes(values)]

    def encode(self, values: AnyArray) -> Matrix:
        """One row of indicators per value: a single 1, the rest 0.

        Parameters
        ----------
        values : array of shape (n,)
            Labels; compared as text, without surrounding blanks.

        Returns
        -------
        X : array of shape (n, n_features)
            The encoded column.
        """
        return np.eye(len(self.feature_names))[self.codes(values)]

    @property
    def stated(self) -> str:
        """What the schema states about it, in words."""
        missing = ", with a feature for missing values" if self.missing == "indicator" else ""
        positive = "" if self.positive is None else f"; the positive class is {self.positive}"
        return ", ".join(self.categories) + missing + positive

    @property
    def positive_place(self) -> int | None:
        """Place of the positive class among two; None if there are more or fewer."""
        if len(self.categories) != 2:
            return None
        named = max(self.categories) if self.positive is None else self.positive
        return self.categories.index(named)


@dataclass(frozen=True)
class CountTarget:
    """A count from 0 to a public cap, for Poisson regression. A target, never a feature.

    Parameters
    ----------
    name : str
        Name of the column in the table.
    high : float
        The cap: larger counts are clipped to it. Known without looking at the rows; noise grows
        with it.

    Examples
    --------
    >>> from hushfit.data.schema import CountTarget
    >>> CountTarget("visits", high=20).low
    0.0
    """

    name: str
    high: float
    kind: ClassVar[str] = "count"

    def __post_init__(self) -> None:
        refuse_nameless(self.name)
        _refuse_what_is_no_number(self.high, f"high of the target {self.name!r}")
        if not 0 < self.high < math.inf:
            raise InvalidArgument(
                f"the target {self.name!r} has high={self.high}. Give the largest count that a "
                "row may have, a finite number above 0."
            )

    @property
    def low(self) -> float:
        """Counts start at zero."""
        return 0.0

    @property
    def numbers(self) -> NumericColumn:
        """The counts as numbers."""
        return NumericColumn(self.name, self.low, self.high)

    @property
    def stated(self) -> str:
        """What the schema states about it, in words."""
        return f"0 to {self.high:g}"


@dataclass(frozen=True)
class OrdinalTarget:
    """Ordered grades: a model predicts their position, and with it the nearest grade. A target,
    never a feature.

    Parameters
    ----------
    name : str
        Name of the column in the table.
    categories : sequence of str
        The grades, from the lowest to the highest. Neighbours count as equally far apart.

    Examples
    --------
    >>> from hushfit.data.schema import OrdinalTarget
    >>> OrdinalTarget("pain", ("none", "some", "strong")).nearest([0.2, 1.7]).tolist()
    ['none', 'strong']
    """

    name: str
    categories: tuple[str, ...]
    kind: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", self.labels.categories)
        if len(self.categories) < 2:
            raise InvalidArgument(
                f"the target {self.name!r} has one grade. Give at least two, from the lowest to "
                "the highest."
            )

    @property
    def labels(self) -> CategoricalColumn:
        """The grades as labels; refuses what cannot be."""
        return CategoricalColumn(self.name, self.categories)

    @property
    def low(self) -> float:
        """Position of the lowest grade."""
        return 0.0

    @property
    def high(self) -> float:
        """Position of the highest grade."""
        return float(len(self.categories) - 1)

    @property
    def stated(self) -> str:
        """What the schema states about it, in words."""
        return " < ".join(self.categories)

    def nearest(self, positions: Any) -> AnyArray:
        """The grade next to each position.

        Parameters
        ----------
        positions : array of shape (n,)

        Returns
        -------
        array of str
        """
        places = np.rint(np.clip(positions, self.low, self.high)).astype(np.int64)
        return np.asarray(np.array(self.categories)[places])


Column: TypeAlias = NumericColumn | CategoricalColumn | DateColumn | HashedColumn
KINDS: dict[str, type[Column]] = {
    c.kind: c for c in (NumericColumn, CategoricalColumn, DateColumn, HashedColumn)
}
Target: TypeAlias = NumericColumn | CategoricalColumn | CountTarget | OrdinalTarget
TARGET_KINDS: dict[str, type[Any]] = {
    c.kind: c for c in (CategoricalColumn, NumericColumn, CountTarget, OrdinalTarget)
}
# What every kind must state, and how it is called.
_STATED: dict[str, tuple[tuple[str, ...], str]] = {
    "numeric": (("low", "high"), "public range"),
    "date": (("low", "high"), "public range of dates"),
    "hashed": ((), ""),
    "categorical": (("categories",), "public vocabulary"),
    "count": (("high",), "public cap"),
    "ordinal": (("categories",), "grades"),
}


@dataclass(frozen=True)
class Schema:
    """The public description of a table.

    Parameters
    ----------
    columns : sequence of NumericColumn, CategoricalColumn, DateColumn or HashedColumn
        The columns to learn from, in the order of their features. Columns of the table that are not
        listed are ignored.
    target : CategoricalColumn, NumericColumn, CountTarget or OrdinalTarget, optional
        The column to predict: its `categories` are the public classes or grades, or its range
        bounds the response.
    unit : str, default="row"
        What one row stands for, such as "person" or "hospital stay": a label that is not checked.
        Without ``person`` the guarantee protects one row, whatever the label; for a person with
        several rows it is weaker.
    person : str, optional
        The column of ids of persons: rows with the same id are protected together. It is never a
        feature.
    person_weight : {"mean", "cap"}, optional
        How the rows of a person are weighted, "mean" if not given: see `PrivacyUnit.person`.
    rows_per_person : int, optional
        See `PrivacyUnit.person`.
    features : {"linear", "additive", "centred"}, default="linear"
        What a model is linear in: the encoded columns, piecewise linear functions of the numeric
        ones, or the numeric ones centred in their range.
    file : TextForm
        Encoding and delimiter of text files.
    penalty : PenaltyChoice, optional
        The penalty that ``hushfit fit`` uses unless its options say otherwise.
    scaling : {"unit", "public"}, default="unit"
        What a classifier divides rows by: each by its own length, or all by the largest length that
        the ranges allow, so that coefficients are log-odds.

    Examples
    --------
    >>> from hushfit.data.schema import Schema
    >>> schema = Schema.from_dict(
    ...     {
    ...         "unit": "person",
    ...         "target": {
    ...             "name": "income",
    ...             "kind": "categorical",
    ...             "categories": ["<=50K", ">50K"],
    ...         },
    ...         "columns": {"age": {"kind": "numeric", "low": 17, "high": 90}},
    ...     }
    ... )
    >>> schema.feature_names
    ['age']
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    columns: tuple[Column, ...]
    target: Target | None = None
    unit: str = "row"
    person: str | None = None
    person_weight: str | None = None
    rows_per_person: int | None = None
    features: str = "linear"
    file: TextForm = TextForm()
    penalty: PenaltyChoice | None = None
    scaling: str = "unit"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not isinstance(self.features, str) or self.features not in FEATURES:
            raise InvalidArgument(
                f"the schema has features={self.features!r}. Choose 'linear', 'additive' or "
                "'centred'."
            )
        if not isinstance(self.scaling, str) or self.scaling not in SCALINGS:
            raise InvalidArgument(
                f"the schema has scaling={self.scaling!r}. Choose 'unit' or 'public'."
            )
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise InvalidArgument(
                f"the schema has unit={self.unit!r}. Say what one row stands for, such as 'person'."
            )
        names = [column.name for column in self.columns]
        if not names or len(set(names)) < len(names):
            raise InvalidArgument(
                f"the schema lists the columns {names}. Give at least one, each once."
            )
        if self.target is not None and self.target.name in names:
            raise InvalidArgument(
                f"the target {self.target.name!r} is also among the columns to learn from. Drop it "
                "from one of them."
            )
        if isinstance(self.target, NumericColumn):
            _refuse_settings_of_features(self.target)
        _refuse_settings_of_targets(self.columns)
        self._check_person(names)
        self.privacy_unit  # noqa: B018  # refuses weights that do not exist

    def _check_person(self, names: Sequence[str]) -> None:
        if self.person is None:
            given = {key: getattr(self, key) for key in _WEIGHTS if getattr(self, key) is not None}
            if given:
                raise InvalidArgument(
                    f"{' and '.join(given)} can be given for persons only, but no column of ids is "
                    "named. Name it (person in the schema, --person on the command line), or leave "
                    f"{' and '.join(given)} out."
                )
            return
        refuse_nameless(self.person)
        if self.target is not None and self.person == self.target.name:
            raise InvalidArgument(
                f"the target {self.person!r} is also named as the column of ids of persons. Name "
                "the column that says whose row it is, or none."
            )
        if self.person in names:
            raise InvalidArgument(
                f"the id column {self.person!r} is also among the columns to learn from: a weight "
                "for single persons' ids is no model. Drop it from the columns."
            )

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """Whom a fit with this schema protects: one row, or one person."""
        if self.person is None:
            return ROW
        weight = "mean" if self.person_weight is None else self.person_weight
        return PrivacyUnit.person(weight, self.rows_per_person, self.person)

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded features, in order."""
        return [feature for column in self.columns for feature in column.feature_names]

    @property
    def longest(self) -> float:
        """The largest length of a row of encoded features with the intercept's 1: of a number, or
        of all features of a label, at most one counts.
        """
        return math.sqrt(1 + sum(len(column.widths) for column in self.columns))

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the features of each column, for penalties of groups."""
        ends = np.cumsum([len(column.feature_names) for column in self.columns]).tolist()
        return tuple(tuple(range(a, b)) for a, b in zip([0, *ends], ends, strict=False))

    @property
    def inputs(self) -> list[InputColumn]:
        """The encoded features as an additive model sees them."""
        return [made for column in self.columns for made in column.inputs]

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, texts and numbers, as in a JSON or TOML file.

        Returns
        -------
        description : dict
            Has the keys ``unit``, those of persons and ``target`` (if given) and ``columns``.
            Defaults are left out.
        """
        target = (
            {}
            if self.target is None
            else {"target": {"name": self.target.name, **_settings(self.target)}}
        )
        persons = {key: getattr(self, key) for key in ("person", *_WEIGHTS)}
        return {
            "unit": self.unit,
            **({} if self.features == "linear" else {"features": self.features}),
            **({} if self.scaling == "unit" else {"scaling": self.scaling}),
            **{key: value for key, value in persons.items() if value is not None},
            **({"file": stated} if (stated := self.file.to_dict()) else {}),
            **({} if self.penalty is None else {"penalty": self.penalty.to_dict()}),
            **target,
            "columns": {column.name: _settings(column) for column in self.columns},
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "Schema":
        """Read what `to_dict` writes.

        Parameters
        ----------
        description : dict
            As parsed from a JSON or TOML file.

        Returns
        -------
        schema : Schema
            The schema it describes.
        """
        tables = ("file", "penalty", "target", "columns")
        known = ("unit", "features", "scaling", "person", *_WEIGHTS, *tables)
        _refuse_unknown_keys(_table(description, "the schema"), known, "the schema")
        listed = _table(description.get("columns", {}), "columns")
        columns = tuple(_column(name, settings) for name, settings in listed.items())
        target = (
            None
            if "target" not in description
            else _target(_table(description["target"], "target"))
        )
        persons = {key: description.get(key) for key in ("person", *_WEIGHTS)}
        return cls(
            columns,
            target,
            description.get("unit", "row"),
            **persons,
            features=description.get("features", "linear"),
            file=TextForm.from_dict(description.get("file", {})),
            penalty=(
                PenaltyChoice.from_dict(description["penalty"])
                if "penalty" in description
                else None
            ),
            scaling=description.get("scaling", "unit"),
        )


def encode(columns: Mapping[str, Any], schema: Schema) -> tuple[Matrix, list[str]]:
    """Turn a table into features in [0, 1], one row at a time.

    Parameters
    ----------
    columns : mapping of str to array of shape (n,)
        The table: a dictionary of arrays or lists, or a pandas or polars frame. Columns not in the
        schema are ignored.
    schema : Schema
        Ranges and vocabularies.

    Returns
    -------
    X : array of shape (n, n_features)
        Every entry is in [0, 1].
    feature_names : list of str
        Names of the columns of ``X``.

    Notes
    -----
    A row of ``X`` is a function of the schema and the same row of the table. Nothing is learnt from
    the rows.

    Examples
    --------
    >>> schema = Schema(
    ...     (NumericColumn("age", 0, 100), CategoricalColumn("sex", ("Female", "Male")))
    ... )
    >>> encode({"age": [50, 120], "sex": ["Male", "?"]}, schema)[0].tolist()
    [[0.5, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]]
    """
    parts = [column.encode(cells_of(columns, column.name)) for column in schema.columns]
    lengths = {column.name: len(part) for column, part in zip(schema.columns, parts, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InvalidArgument(
            f"the columns have different lengths: {lengths}. Give one value per row in every "
            "column."
        )
    return np.column_stack(parts), schema.feature_names


def cells_of(columns: Mapping[str, Any], name: str) -> AnyArray:
    """One column of the table as a one-dimensional array."""
    if name not in columns:
        raise InvalidArgument(
            f"the table has no column {name!r}, which the schema lists. Add it or drop it from the "
            "schema."
        )
    cells = columns[name]
    # numpy would turn the 1.0 of a mixed list into text because of another row.
    cells = as_objects(cells) if isinstance(cells, list | tuple) else np.asarray(cells)
    if cells.ndim != 1:
        raise InvalidArgument(f"column {name!r} has shape {cells.shape}. Give one value per row.")
    return cells


def _category(value: Any) -> str:
    """A category as it is written, in a file of texts, numbers and truth values."""
    if isinstance(value, float):
        return OTHER if np.isnan(value) else str(int(value)) if value.is_integer() else str(value)
    return OTHER if value is None else str(value)


def _settings(column: Column | Target) -> dict[str, Any]:
    """A column as plain values, without its name and its defaults."""
    values = {f.name: getattr(column, f.name) for f in fields(column) if f.name != "name"}
    defaults = {f.name: f.default for f in fields(column)}
    given = {k: v for k, v in values.items() if defaults[k] is MISSING or v != defaults[k]}
    return {
        "kind": column.kind,
        **{k: list(v) if isinstance(v, tuple) else v for k, v in given.items()},
    }


def _column(name: str, settings: Mapping[str, Any], kinds: Mapping[str, type[Any]] = KINDS) -> Any:
    """A column, or a target, from its plain values."""
    kind = _table(settings, f"column {name!r}").get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise InvalidArgument(
            f"column {name!r} has kind={kind!r}. Choose one of {', '.join(kinds)}."
        )
    given = {k: v for k, v in settings.items() if k != "kind"}
    _refuse_unknown_keys(
        given, [f.name for f in fields(kinds[kind]) if f.name != "name"], f"column {name!r}"
    )
    needed, what = _STATED[kind]
    if not set(needed) <= given.keys():
        raise InvalidArgument(
            f"column {name!r} has no {what}. Write {' and '.join(needed)} as you know them "
            "without looking at the rows (other values are clipped, or share one feature), or "
            "drop the column."
        )
    return kinds[kind](name=name, **given)


def _target(settings: Mapping[str, Any]) -> Target:
    """The column to predict, which carries its name among its plain values."""
    if "name" not in settings:
        raise InvalidArgument("the schema's target has no name. Write name = ... under [target].")
    own = {k: v for k, v in settings.items() if k != "name"}
    found: Target = _column(settings["name"], own, TARGET_KINDS)
    return found


def _refuse_settings_of_features(target: NumericColumn) -> None:
    """A target that is missing is not filled: its row is left out."""
    given = [key for key in ("fill", "transform", "missing") if key in _settings(target)]
    if given:
        raise InvalidArgument(
            f"the target {target.name!r} has {' and '.join(given)}, which are for features: a row "
            "without a target is not used, and targets are not transformed. Delete them."
        )


def _refuse_settings_of_targets(columns: Sequence[Column]) -> None:
    """A feature has no positive class."""
    for column in columns:
        if isinstance(column, CategoricalColumn) and column.positive is not None:
            raise InvalidArgument(
                f"column {column.name!r} has positive={column.positive!r}, which is for the "
                "target. Delete it."
            )


def _table(value: Any, where: str) -> Mapping[str, Any]:
    """A table of keys and values, as TOML calls it."""
    if not isinstance(value, Mapping):
        raise InvalidArgument(
            f"{where} should be a table of keys and values, got {type(value).__name__}."
        )
    return value


def _alike(categories: Sequence[str]) -> str:
    """The first two categories that compare equal."""
    first: dict[str | None, str] = {}
    for category in categories:
        other = first.setdefault(label_of(category), category)
        if other != category:
            return f"{other!r} and {category!r}"
    return ""


def _refuse_what_is_no_number(value: Any, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InvalidArgument(f"{what} is {value!r}. Give a number.")
    try:
        float(value)
    except OverflowError:
        raise InvalidArgument(f"{what} is too large. Give a number below 1e308.") from None


def _refuse_unknown_keys(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """A misspelt key must not be ignored silently: it may be a bound."""
    unknown = sorted(map(str, set(given) - set(known)))
    if unknown:
        raise InvalidArgument(
            f"{where} has the unknown keys {unknown}. Known keys are {', '.join(known)}."
        )


def with_sorted_classes(schema: Schema) -> Schema:
    """The schema with its classes in the order that estimators use; grades keep their own."""
    if schema.target is None:
        raise InvalidArgument("the schema needs a [target]: the column to predict. Add it.")
    if not isinstance(schema.target, CategoricalColumn):
        return schema
    return replace(
        schema, target=replace(schema.target, categories=tuple(sorted(schema.target.categories)))
    )
