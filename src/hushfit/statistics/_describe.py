"""Descriptions of tables with a schema."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hushfit._typing import AnyArray, Vector
from hushfit.data import Persons, persons_of
from hushfit.data.schema import (
    CategoricalColumn,
    CountTarget,
    NumericColumn,
    OrdinalTarget,
    Schema,
    cells_of,
)
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget, Relation, require_records
from hushfit.release import Quote, Randomness, Terms
from hushfit.statistics._description import Description, require_level, require_shares
from hushfit.statistics._survey import Survey, released, with_missing

QUARTILES = (0.25, 0.5, 0.75)


def survey_of(
    schema: Schema,
    columns: Sequence[str] | None = None,
    by: str | None = None,
    quantiles: Sequence[float] = QUARTILES,
    complete: bool = False,
) -> Survey:
    """The statistics of the columns of a schema.

    Parameters
    ----------
    schema : Schema
    columns : sequence of str, optional
        Which columns; without them all numbers and labels, the target too.
    by : str, optional
        A column of labels: everything is asked for each of its categories.
    quantiles : sequence of float, default=(0.25, 0.5, 0.75)
        Empty for means and shares alone.
    complete : bool, default=False
        Whether it is public that no cell is missing.

    Returns
    -------
    Survey
    """
    require_shares(tuple(quantiles))
    known = _described(schema)
    if columns is None:
        asked = [name for name, column in known.items() if column is not None and name != by]
    else:
        asked = list(dict.fromkeys(columns))
    found = [_wanted(known, name) for name in asked]
    numbers = tuple(one for one in found if isinstance(one, NumericColumn))
    labels = tuple(one for one in found if isinstance(one, CategoricalColumn))
    return Survey(
        numbers,
        numbers if len(tuple(quantiles)) else (),
        labels,
        None if by is None else _grouping(known, by),
        complete,
    )


def _described(schema: Schema) -> dict[str, NumericColumn | CategoricalColumn | None]:
    """The columns of a schema by name; None for those of another kind."""
    targets = () if schema.target is None else (schema.target,)
    found: dict[str, NumericColumn | CategoricalColumn | None] = {}
    for column in (*schema.columns, *targets):
        if isinstance(column, CountTarget):
            found[column.name] = NumericColumn(column.name, column.low, column.high, integer=True)
        elif isinstance(column, OrdinalTarget):
            found[column.name] = with_missing(column.labels)
        elif isinstance(column, CategoricalColumn):
            found[column.name] = with_missing(column)
        else:
            found[column.name] = column if isinstance(column, NumericColumn) else None
    return found


def _wanted(
    known: Mapping[str, NumericColumn | CategoricalColumn | None], name: str
) -> NumericColumn | CategoricalColumn:
    if name not in known:
        raise InvalidArgument(
            f"the schema has no column {name!r}. Name one of {', '.join(known)}, or add it with "
            "its public range or labels."
        )
    column = known[name]
    if column is None:
        raise InvalidArgument(
            f"column {name!r} is a date or a hashed label, which have no statistics here. Describe "
            "it in the schema as numbers with a range or as labels, or leave it out."
        )
    return column


def _grouping(
    known: Mapping[str, NumericColumn | CategoricalColumn | None], by: str
) -> CategoricalColumn:
    column = _wanted(known, by)
    if not isinstance(column, CategoricalColumn):
        raise InvalidArgument(
            f"by={by!r} is a column of numbers. Group by a column of labels, whose categories the "
            "schema lists."
        )
    return column


def table_columns(table: Any, survey: Survey) -> dict[str, Vector]:
    """The columns that a survey reads, as numbers or codes of labels; each cell by itself.

    Parameters
    ----------
    table : mapping of str to array, or data frame
    survey : Survey

    Returns
    -------
    dict of str to array
    """
    found: dict[str, Vector] = {}
    for column in survey.columns:
        cells = cells_of(table, column.name)
        found[column.name] = (
            column.numbers(cells) if isinstance(column, NumericColumn) else _codes(column, cells)
        )
    if len({len(one) for one in found.values()}) > 1:
        raise InvalidArgument(
            "the columns have different lengths. Give one value per row in every column."
        )
    return found


def _codes(column: CategoricalColumn, cells: AnyArray) -> Vector:
    """Codes of labels; texts, numbers and truth values once for each different one."""
    if cells.dtype.kind not in "biufUS":  # others need not have an order
        return column.codes(cells).astype(np.float64)
    different, place = np.unique(cells, return_inverse=True)
    return column.codes(different)[place].astype(np.float64)


def describe(
    table: Any,
    schema: Schema,
    epsilon: float,
    delta: float = 1e-6,
    *,
    columns: Sequence[str] | None = None,
    by: str | None = None,
    quantiles: Sequence[float] = QUARTILES,
    level: float = 0.95,
    simultaneous: bool = False,
    complete: bool = False,
    adjacency: str = "replace-one",
    ledger: Any = None,
    random_state: Any = None,
) -> Description:
    """Means, quantiles and shares of labels of a table, with intervals, for one budget.

    Parameters
    ----------
    table : mapping of str to array, or data frame
    schema : Schema
        Public ranges and labels. If it names a column of ids of persons, the unit of privacy is one
        person with all of their rows, and every person counts once.
    epsilon, delta : float
        Budget of everything together.
    columns : sequence of str, optional
        Which columns; without them all numbers and labels of the schema, the target too.
    by : str, optional
        A column of labels: everything is given for each of its categories and, if there are two, as
        a difference.
    quantiles : sequence of float, default=(0.25, 0.5, 0.75)
        Empty for means and shares alone, which then have less noise.
    level : float, default=0.95
    simultaneous : bool, default=False
        Whether all intervals together cover with probability ``level``.
    complete : bool, default=False
        Whether it is public that no cell is missing: the means have less noise then. A cell that is
        missing all the same counts as the middle of its range.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    ledger : Ledger, optional
        Charged before the rows are used.
    random_state : None or int, default=None
        None is the only secure setting.

    Returns
    -------
    Description

    Raises
    ------
    TooFewRows
        If noise would hide what is asked. Nothing is spent; the message says how many rows are
        needed.

    Examples
    --------
    >>> from hushfit.statistics import describe
    >>> from hushfit.data.schema import NumericColumn, Schema
    >>> schema = Schema((NumericColumn("age", 0, 100),))
    >>> found = describe({"age": [20.0, 60.0] * 500}, schema, epsilon=float("inf"))
    >>> [one.name for one in found.estimates]
    ['mean', 'quantile 0.25', 'median', 'quantile 0.75']
    >>> round(found.estimates[0].value, 9)
    40.0
    """
    terms = Terms(Budget(epsilon, delta), "describe", Randomness.of(random_state), ledger)
    survey = survey_of(schema, columns, by, quantiles, complete)
    found = table_columns(table, survey)
    persons = None
    if schema.person is not None:
        n_rows = len(next(iter(found.values())))
        persons = persons_of(cells_of(table, schema.person), n_rows, schema.privacy_unit)
    shown = tuple(quantiles), level, simultaneous
    return describe_columns(found, survey, persons, adjacency, terms, *shown)


def describe_columns(
    found: Mapping[str, Vector],
    survey: Survey,
    persons: Persons | None,
    adjacency: str,
    terms: Terms,
    shares: tuple[float, ...],
    level: float = 0.95,
    simultaneous: bool = False,
) -> Description:
    """The same for columns that were read and encoded already.

    Parameters
    ----------
    found : mapping of str to array
        As `table_columns` gives them.
    survey : Survey
    persons : Persons or None
    adjacency : str
    terms : Terms
    shares : tuple of float
        The quantiles to show.
    level : float, default=0.95
    simultaneous : bool, default=False

    Returns
    -------
    Description
    """
    require_level(level)
    answers = released(survey, survey.cells(found), persons, _relation(adjacency), terms)
    return Description(answers, shares, level, simultaneous)


def quote(
    schema: Schema,
    n_units: int,
    epsilon: float,
    delta: float = 1e-6,
    *,
    columns: Sequence[str] | None = None,
    by: str | None = None,
    quantiles: Sequence[float] = QUARTILES,
    adjacency: str = "replace-one",
) -> Quote:
    """Cost of a description, from public numbers: no row is read and nothing is charged.

    Parameters
    ----------
    schema : Schema
    n_units : int
        Number of rows, or of persons.
    epsilon, delta : float
    columns, by, quantiles, adjacency
        As for `describe`.

    Returns
    -------
    Quote

    Raises
    ------
    TooFewRows
        If `describe` would refuse so few rows.

    Examples
    --------
    >>> from hushfit.data.schema import NumericColumn, Schema
    >>> from hushfit.statistics import quote
    >>> schema = Schema((NumericColumn("age", 0, 100),))
    >>> offer = quote(schema, n_units=5000, epsilon=0.5)
    >>> type(offer).__name__
    'Quote'
    """
    survey, relation = survey_of(schema, columns, by, quantiles), _relation(adjacency)
    made = survey.quote(n_units, Budget(epsilon, delta), relation)
    survey.require_units(n_units, made, relation, schema.privacy_unit)
    return made


def _relation(adjacency: str) -> Relation:
    relation = Relation.parse(adjacency)
    require_records(relation)
    return relation
