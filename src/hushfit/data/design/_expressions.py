"""Expressions of a formula: numbers computed of the cells of one row, and the range that they have
by interval arithmetic over the public ranges of the columns.

An expression is evaluated twice by the same code: with arrays, and with intervals. Only what is
listed here can be written: nothing that looks at more than one row, such as a mean or a quantile.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hushfit.errors import InvalidArgument

# Functions of formulas that are computed from all rows.
READING: Final = frozenset(
    [
        "scale",
        "center",
        "centre",
        "standardize",
        "bs",
        "ns",
        "cr",
        "cs",
        "cc",
        "te",
        "spline",
        "lag",
        "lead",
        "rank",
        "qcut",
        "cut",
        "hashed",
        "minmax",
        "mean",
        "std",
        "median",
        "quantile",
    ]
)


@dataclass(frozen=True)
class Interval:
    """All numbers from low to high."""

    low: float
    high: float

    def _of(self, ends: list[float]) -> "Interval":
        return Interval(min(ends), max(ends))

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def __neg__(self) -> "Interval":
        return Interval(-self.high, -self.low)

    def __sub__(self, other: "Interval") -> "Interval":
        return self + -other

    def __mul__(self, other: "Interval") -> "Interval":
        return self._of([a * b for a in (self.low, self.high) for b in (other.low, other.high)])

    def __truediv__(self, other: "Interval") -> "Interval":
        if other.low <= 0 <= other.high:
            raise _Undefined("a division by a range that contains 0")
        return self * self._of([1 / other.low, 1 / other.high])

    def __abs__(self) -> "Interval":
        least = 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))
        return Interval(least, max(abs(self.low), abs(self.high)))

    def __pow__(self, power: float) -> "Interval":
        whole = float(power).is_integer()
        if self.low < 0 and not whole:
            raise _Undefined("a power of a range that goes below 0")
        if power < 0:
            return Interval(1.0, 1.0) / self**-power
        even = whole and power % 2 == 0
        base = abs(self) if even else self
        return Interval(base.low**power, base.high**power)


class _Undefined(ValueError):
    """An expression has no value somewhere in the ranges of its columns."""


@dataclass(frozen=True)
class _Rising:
    """A function that never decreases, from a least argument on."""

    function: Callable[[Any], Any]
    least: float = -math.inf
    includes_least: bool = True

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, Interval):
            return self.function(value)
        if value.low < self.least or (value.low == self.least and not self.includes_least):
            raise _Undefined(f"a range that begins at {value.low:g}")
        return Interval(float(self.function(value.low)), float(self.function(value.high)))


FUNCTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "I": lambda value: value,
    "log": _Rising(np.log, 0.0, includes_least=False),
    "log2": _Rising(np.log2, 0.0, includes_least=False),
    "log10": _Rising(np.log10, 0.0, includes_least=False),
    "log1p": _Rising(np.log1p, -1.0, includes_least=False),
    "sqrt": _Rising(np.sqrt, 0.0),
    "exp": _Rising(np.exp),
    "abs": abs,
}
_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def evaluated(node: ast.expr, values: Mapping[str, Any], constant: Callable[[float], Any]) -> Any:
    """The value of an expression: with arrays, or with intervals.

    ``constant`` makes a value of a number.
    """
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.Constant):
        return constant(number_in(node))
    if isinstance(node, ast.UnaryOp):
        return -evaluated(node.operand, values, constant)
    if isinstance(node, ast.BinOp):
        left = evaluated(node.left, values, constant)
        if isinstance(node.op, ast.Pow):
            return left ** number_in(node.right)
        return _OPERATORS[type(node.op)](left, evaluated(node.right, values, constant))
    assert isinstance(node, ast.Call)
    return FUNCTIONS[function_name(node)](evaluated(node.args[0], values, constant))


def range_of(node: ast.expr, text: str, ranges: Mapping[str, Interval]) -> Interval:
    """The range of an expression; refuses one that is not defined or finite everywhere."""
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused below
            found: Interval = evaluated(node, ranges, lambda number: Interval(number, number))
    except (_Undefined, OverflowError, ZeroDivisionError) as error:
        raise InvalidArgument(
            f"{text!r} in the formula is not defined for all values in the public ranges of its "
            f"columns ({error}). Give the column a range in the schema where it is, or leave it "
            "out."
        ) from None
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        raise InvalidArgument(
            f"{text!r} in the formula goes from {found.low:g} to {found.high:g} in the public "
            "ranges of its columns. Give smaller ranges in the schema."
        )
    return found


def checked(node: ast.expr, text: str) -> ast.expr:
    """An expression of known parts; refuses any other, and those that read the rows."""
    if isinstance(node, ast.Call):
        name = function_name(node)
        refuse_reading(name, text)
        if name not in FUNCTIONS or len(node.args) != 1 or node.keywords:
            raise InvalidArgument(
                f"{text!r} in the formula is not known. Use + - * / ** and "
                f"{', '.join(sorted(FUNCTIONS))} of one column, poly(column, degree, raw=True), or "
                "C(column)."
            )
        checked(node.args[0], text)
    elif isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow):
            number_in(node.right)
        elif type(node.op) not in _OPERATORS:
            raise _unreadable(text)
        else:
            checked(node.right, text)
        checked(node.left, text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        checked(node.operand, text)
    elif isinstance(node, ast.Constant):
        number_in(node)
    elif not isinstance(node, ast.Name):
        raise _unreadable(text)
    return node


def refuse_reading(name: str, text: str) -> None:
    """Refuse a function that is computed from all rows."""
    if name in READING:
        raise InvalidArgument(
            f"{text!r} in the formula is computed from the rows, so it would leak outside the "
            "guarantee. Write it with public numbers: I((x - 50) / 10) for centring and scaling, "
            "poly(x, 3, raw=True) for a curve."
        )


def function_name(node: ast.Call) -> str:
    """The name of a function, without ``np.`` in front."""
    called = node.func
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def number_in(node: ast.expr) -> float:
    """A number that is written in a formula."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -number_in(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    raise _unreadable(ast.unparse(node))


def parsed(text: str) -> ast.expr:
    """The expression that a text is."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise _unreadable(text) from None


def names_in(node: ast.expr) -> set[str]:
    """The columns that an expression reads."""
    if isinstance(node, ast.Name):
        return {node.id}
    inner = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    return {name for each in inner if isinstance(each, ast.expr) for name in names_in(each)}


def _unreadable(text: str) -> InvalidArgument:
    return InvalidArgument(
        f"{text!r} in the formula cannot be read. Use columns, numbers, + - * / **, and "
        f"{', '.join(sorted(FUNCTIONS))}."
    )
