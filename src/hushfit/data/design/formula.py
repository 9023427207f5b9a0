"""The columns of a regression table from a formula, such as ``readmitted ~ age + C(ward)``. This is
the only module that imports formulaic, which reads the algebra of terms; it never sees a row.

Levels and ranges come from the schema. Numbers of a term are computed of each row by itself, and
their ranges by interval arithmetic.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product
from typing import Any

import numpy as np
from formulaic import Formula
from formulaic.errors import FormulaicError

from hushfit._typing import AnyArray, BoolVector, Matrix, Vector
from hushfit.data.design._coding import Coding, codings
from hushfit.data.design._expressions import (
    Interval,
    checked,
    evaluated,
    function_name,
    names_in,
    number_in,
    parsed,
    range_of,
    refuse_reading,
)
from hushfit.data.schema import (
    MISSING_VALUE,
    CategoricalColumn,
    DateColumn,
    HashedColumn,
    NumericColumn,
    Schema,
    encode,
)
from hushfit.errors import InvalidArgument

# Rows at which columns are compared, for each of them; drawn from the public ranges.
_TRIALS = 50
_REDUNDANT = 1e-9


@dataclass(frozen=True, eq=False)
class _Numbers:
    """A number of a term: an expression, and its range."""

    text: str
    node: ast.expr
    range: Interval

    def values(self, cells: Mapping[str, AnyArray]) -> Vector:
        return np.asarray(evaluated(self.node, cells, float), dtype=np.float64)


@dataclass(frozen=True)
class _Labels:
    """A label of a term: a column of the schema, and the level that others are compared with."""

    text: str
    column: str
    levels: tuple[str, ...]
    reference: str


@dataclass(frozen=True, eq=False)
class _Column:
    """A product of numbers and indicators of levels."""

    name: str
    numbers: tuple[_Numbers, ...]
    levels: tuple[tuple[str, int], ...]

    @property
    def range(self) -> Interval:
        indicator = [Interval(0.0, 1.0)] if self.levels else []
        return reduce(lambda a, b: a * b, [*(one.range for one in self.numbers), *indicator])

    def values(self, cells: Mapping[str, AnyArray], count: int) -> Vector:
        found = np.ones(count)
        for one in self.numbers:
            found = found * one.values(cells)
        for column, level in self.levels:
            codes = cells[column]
            found = found * np.where(codes < 0, np.nan, codes == level)
        return found


@dataclass(frozen=True)
class FormulaDesign:
    """The columns that a formula names.

    Parameters
    ----------
    formula : str
        ``target ~ terms``: columns, ``a:b`` and ``a * b`` for interactions, ``C(ward)`` for labels,
        ``I(age ** 2)``, ``log(pay)`` and ``poly(age, 3, raw=True)`` for numbers.
    schema : Schema
        With the target, and the range or levels of every column of the formula.

    Examples
    --------
    >>> from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
    >>> columns = (NumericColumn("age", 20, 90), CategoricalColumn("ward", ("a", "b")))
    >>> schema = Schema(columns, CategoricalColumn("ill", ("no", "yes")))
    >>> design = FormulaDesign("ill ~ I((age - 50) / 10) * ward", schema)
    >>> design.names
    ['I((age - 50) / 10)', 'ward[T.b]', 'I((age - 50) / 10):ward[T.b]']
    >>> design.bounds
    [(-3.0, 4.0), (0.0, 1.0), (-3.0, 4.0)]
    """

    formula: str
    schema: Schema

    def __post_init__(self) -> None:
        if self.schema.target is None:
            raise InvalidArgument(
                f"the formula {self.formula!r} needs the kind and range of {self._sides[0]!r}, and "
                "the schema has no target. Give one: Schema(columns, target), or [target] in its "
                "file."
            )
        target = self.schema.target.name
        if self._sides[0] != target:
            raise InvalidArgument(
                f"the formula {self.formula!r} is about {self._sides[0]!r}, and the target of the "
                f"schema is {target!r}. Write '{target} ~ ...', or name it as [target] in the "
                "schema."
            )
        if not self._columns:
            raise InvalidArgument(f"the formula {self.formula!r} has no column. Name one.")
        constant = [one.name for one in self._columns if one.range.low == one.range.high]
        redundant = constant or self._redundant()
        if redundant:
            raise InvalidArgument(
                f"in the formula {self.formula!r} these columns follow from others for every row: "
                f"{', '.join(redundant)}. Leave them out: their coefficients are not determined."
            )

    @property
    def names(self) -> list[str]:
        return [one.name for one in self._columns]

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [(one.range.low, one.range.high) for one in self._columns]

    @cached_property
    def used(self) -> Schema:
        """The schema with the columns that the formula reads, and no other."""
        read = {one.column for one in self._factors.values() if isinstance(one, _Labels)}
        for one in self._factors.values():
            read |= set() if isinstance(one, _Labels) else names_in(one[0].node)
        return replace(
            self.schema, columns=tuple(one for one in self.schema.columns if one.name in read)
        )

    @property
    def variables(self) -> dict[str, tuple[str, ...]]:
        """The columns that are read: the levels of each, the reference first; none of numbers."""
        references = {
            one.column: one.reference for one in self._factors.values() if isinstance(one, _Labels)
        }
        found: dict[str, tuple[str, ...]] = {}
        for column in self.used.columns:
            levels = _levels(column) if isinstance(column, CategoricalColumn) else ()
            first = references.get(column.name)
            others = tuple(level for level in levels if level != first)
            found[column.name] = others if first is None else (first, *others)
        return found

    def rows(self, table: Any) -> Matrix:
        return self.from_cells(self.cells(table))

    def from_encoded(self, X: Any) -> Matrix:
        return self.from_cells(self._decoded(X, self.schema))

    def cells(self, table: Any) -> dict[str, AnyArray]:
        """The columns that are read, of the rows of a table: numbers in their range, and codes of
        levels, -1 for a label that is not listed.

        Parameters
        ----------
        table : mapping of str to array

        Returns
        -------
        dict of str to array
        """
        return self._decoded(encode(table, self.used)[0], self.used)

    def has_gaps(self, table: Any) -> BoolVector:
        """Which rows of a table lack a number that the formula reads and no ``fill`` replaces.

        Parameters
        ----------
        table : mapping of str to array

        Returns
        -------
        array of shape (n,)
        """
        gaps = [
            np.isnan(column.numbers(table[column.name]))
            for column in self.used.columns
            if isinstance(column, NumericColumn) and column.fill is None
        ]
        return np.any(gaps, axis=0) if gaps else np.zeros(1, dtype=np.bool_)

    def from_cells(self, cells: Mapping[str, AnyArray]) -> Matrix:
        """The columns of rows whose `cells` are known.

        Parameters
        ----------
        cells : mapping of str to array

        Returns
        -------
        array of shape (n, n_columns)
        """
        count = len(next(iter(cells.values())))
        return np.column_stack([one.values(cells, count) for one in self._columns])

    def level_code(self, name: str, level: str) -> int:
        """The code of a level of a column that is read.

        Parameters
        ----------
        name, level : str

        Returns
        -------
        int
        """
        (column,) = (one for one in self.used.columns if one.name == name)
        assert isinstance(column, CategoricalColumn)
        return _levels(column).index(level)

    def ends(self, name: str) -> tuple[float, float]:
        """The public range of a number that is read.

        Parameters
        ----------
        name : str

        Returns
        -------
        (float, float)
        """
        found = self._ranges[name]
        return found.low, found.high

    def _decoded(self, X: Any, schema: Schema) -> dict[str, AnyArray]:
        """Numbers and codes of levels from encoded rows."""
        dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        at, found, read = 0, {}, {one.name for one in self.used.columns}
        for column in schema.columns:
            own = dense[:, at : at + len(column.feature_names)]
            at += len(column.feature_names)
            if column.name in read:
                found[column.name] = _decoded(column, own)
        return found

    @cached_property
    def _sides(self) -> tuple[str, list[Any]]:
        """The response, and the terms."""
        try:
            read = Formula(self.formula)
        except (FormulaicError, SyntaxError, TypeError, ValueError, AttributeError):
            raise InvalidArgument(
                f"the formula {self.formula!r} cannot be read. Write 'target ~ a + b', with a:b or "
                "a * b for interactions."
            ) from None
        left = getattr(read, "lhs", None)
        if left is None or len(list(left)) != 1:
            raise InvalidArgument(
                f"the formula {self.formula!r} has no response. Write 'target ~ a + b'."
            )
        terms = list(read.rhs)
        if "1" not in map(str, terms):
            raise InvalidArgument(
                f"the formula {self.formula!r} takes the intercept away. Intervals need one: leave "
                "out '0 +' and '- 1'."
            )
        return str(next(iter(left))), [term for term in terms if str(term) != "1"]

    @cached_property
    def _factors(self) -> dict[str, "_Labels | list[_Numbers]"]:
        """What stands in the terms, by its text."""
        texts = dict.fromkeys(factor.expr for term in self._sides[1] for factor in term.factors)
        return {text: self._factor(text) for text in texts}

    def _factor(self, text: str) -> "_Labels | list[_Numbers]":
        known = {column.name: column for column in self.schema.columns}
        if text in known:
            node: ast.expr = ast.Name(text)
        else:
            node = parsed(text)
        name = function_name(node) if isinstance(node, ast.Call) else ""
        refuse_reading(name, text)
        if isinstance(node, ast.Call) and name == "C":
            return self._labels(text, node, known)
        for read in sorted(names_in(node)):
            _refuse_unknown(read, known)
        column = known[node.id] if isinstance(node, ast.Name) else None
        if isinstance(column, CategoricalColumn):
            levels = _levels(column)
            return _Labels(text, column.name, levels, levels[0])
        if isinstance(node, ast.Call) and name == "poly":
            return self._powers(text, node)
        for read in sorted(names_in(node)):
            if isinstance(known[read], CategoricalColumn):
                raise InvalidArgument(
                    f"{text!r} in the formula computes with {read!r}, which has labels. Write "
                    f"C({read}), or describe it as numeric."
                )
        return [self._number(text, checked(node, text))]

    def _number(self, text: str, node: ast.expr) -> _Numbers:
        return _Numbers(text, node, range_of(node, text, self._ranges))

    def _powers(self, text: str, node: ast.Call) -> list[_Numbers]:
        """The powers of a polynomial in a column."""
        raw = any(
            word.arg == "raw" and isinstance(word.value, ast.Constant) and word.value.value is True
            for word in node.keywords
        )
        if not raw:
            raise InvalidArgument(
                f"{text!r} in the formula has polynomials that are orthogonal over the rows, so it "
                "would leak outside the guarantee. Add raw=True."
            )
        degree = number_in(node.args[1]) if len(node.args) == 2 else 0.0
        if degree < 1 or not degree.is_integer():
            raise InvalidArgument(f"{text!r} in the formula needs a degree of 1 or more.")
        base = checked(node.args[0], text)
        return [
            self._number(f"{text}[{k}]", ast.BinOp(base, ast.Pow(), ast.Constant(k)))
            for k in range(1, int(degree) + 1)
        ]

    def _labels(self, text: str, node: ast.Call, known: Mapping[str, Any]) -> _Labels:
        """``C(column)``, or with another reference, ``C(column, Treatment("b"))``."""
        if not node.args or not isinstance(node.args[0], ast.Name):
            raise InvalidArgument(f"{text!r} in the formula is not C(column). Name a column.")
        name = node.args[0].id
        _refuse_unknown(name, known)
        column = known[name]
        if not isinstance(column, CategoricalColumn):
            raise InvalidArgument(
                f"{text!r} in the formula needs public levels, and the schema describes {name!r} "
                f"as {column.kind}. Describe it as categorical, with its categories."
            )
        levels, chosen = _levels(column), [*node.args[1:], *(word.value for word in node.keywords)]
        reference = levels[0] if not chosen else _reference(chosen, text)
        if reference not in levels:
            raise InvalidArgument(
                f"{text!r} in the formula compares with {reference!r}, which is not among the "
                f"levels of the schema: {', '.join(levels)}."
            )
        return _Labels(text, name, levels, reference)

    @cached_property
    def _ranges(self) -> dict[str, Interval]:
        """Public ranges of the numbers."""
        found = {}
        for column in self.schema.columns:
            if isinstance(column, NumericColumn):
                found[column.name] = Interval(float(column.low), float(column.high))
            elif isinstance(column, DateColumn):
                first, last = column.ends
                found[column.name] = Interval(0.0, float(last - first))
        return found

    @cached_property
    def _columns(self) -> tuple[_Column, ...]:
        split = [self._split(term) for term in self._sides[1]]
        keys = [(frozenset(one.text for one in numbers), labels) for numbers, labels in split]
        blocks = codings([(numbers, [one.text for one in labels]) for numbers, labels in keys])
        return tuple(
            column
            for term, found in zip(self._sides[1], blocks, strict=True)
            for block in found
            for column in self._block(term, block)
        )

    def _split(self, term: Any) -> tuple[list[Any], list[_Labels]]:
        """The numbers and the labels of a term."""
        factors = [self._factors[factor.expr] for factor in term.factors]
        labels = [one for one in factors if isinstance(one, _Labels)]
        return [one[0] for one in factors if not isinstance(one, _Labels)], labels

    def _block(self, term: Any, coding: Coding) -> Iterator[_Column]:
        """The columns of one coding of a term."""
        coded = dict(coding)
        choices: list[list[tuple[str, Any]]] = []
        for factor in term.factors:
            found = self._factors[factor.expr]
            if not isinstance(found, _Labels):
                choices.append([(one.text, one) for one in found])
            elif found.text in coded:
                choices.append(list(_coded_levels(found, coded[found.text])))
        # The last factor varies slowest, as in patsy and formulaic.
        for chosen in product(*reversed(choices)):
            parts = [one for _, one in reversed(chosen)]
            yield _Column(
                ":".join(name for name, _ in reversed(chosen)),
                tuple(one for one in parts if isinstance(one, _Numbers)),
                tuple(one for one in parts if isinstance(one, tuple)),
            )

    def _redundant(self) -> list[str]:
        """Columns that follow from the ones before, at random rows of the public ranges."""
        rng = np.random.default_rng(0)
        count = _TRIALS * (len(self._columns) + 1)
        cells = {
            name: rng.integers(len(levels), size=count)
            if levels
            else rng.uniform(*self.ends(name), size=count)
            for name, levels in self.variables.items()
        }
        X = np.column_stack([np.ones(count), self.from_cells(cells)])
        _, R = np.linalg.qr(X / np.linalg.norm(X, axis=0).clip(min=1e-300))
        small = np.abs(np.diag(R))[1:] < _REDUNDANT
        return [name for name, is_small in zip(self.names, small, strict=True) if is_small]


def _coded_levels(labels: _Labels, full: bool) -> Iterator[tuple[str, tuple[str, int]]]:
    """Indicators of all levels, or of all but the reference, with their names."""
    for code, level in enumerate(labels.levels):
        if full:
            yield f"{labels.text}[{level}]", (labels.column, code)
        elif level != labels.reference:
            yield f"{labels.text}[T.{level}]", (labels.column, code)


def _levels(column: CategoricalColumn) -> tuple[str, ...]:
    missing = (MISSING_VALUE,) if column.missing == "indicator" else ()
    return (*column.categories, *missing)


def _decoded(column: Any, own: Matrix) -> AnyArray:
    """The numbers, or codes of levels, of an encoded column."""
    if isinstance(column, NumericColumn):
        return column.original(own[:, 0])
    if isinstance(column, DateColumn):
        first, last = column.ends
        return np.where(own[:, 1] > 0, np.nan, own[:, 0] * (last - first))
    listed = len(column.categories)
    codes = own.argmax(axis=1)
    # After the categories come all other labels, and perhaps missing ones.
    return np.where(codes < listed, codes, np.where(codes == listed, -1, listed))


def _reference(chosen: list[ast.expr], text: str) -> str:
    """The level in ``Treatment("b")``, ``contr.treatment(base="b")`` or the like."""
    if len(chosen) == 1 and isinstance(chosen[0], ast.Call):
        call = chosen[0]
        inner = [*call.args, *(word.value for word in call.keywords)]
        if function_name(call).lower() == "treatment" and len(inner) == 1:
            (level,) = inner
            if isinstance(level, ast.Constant) and isinstance(level.value, str):
                return level.value
    raise InvalidArgument(
        f"{text!r} in the formula has a coding that is not known. Use C(column), or "
        'C(column, Treatment("level")) for another reference.'
    )


def _refuse_unknown(name: str, known: Mapping[str, Any]) -> None:
    if name not in known:
        raise InvalidArgument(
            f"the formula names {name!r}, which the schema does not describe. Add it with its "
            f"public range or levels; known are {', '.join(known)}."
        )
    column = known[name]
    if isinstance(column, HashedColumn):
        raise InvalidArgument(
            f"the formula names {name!r}, which is hashed: its levels are not listed. List its "
            "categories in the schema."
        )
    if isinstance(column, DateColumn) and column.parts[0] != "since":
        raise InvalidArgument(
            f"the formula names {name!r}, a date without 'since' as its first part. Add it: the "
            "number of days is what a formula takes."
        )
