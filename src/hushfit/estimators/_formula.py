"""Models of a formula: rows of a table become those of a regression table, by a public schema."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hushfit._typing import AnyArray, Matrix, Vector
from hushfit.data import persons_of
from hushfit.data.schema import CategoricalColumn, CountTarget, NumericColumn, Schema, cells_of
from hushfit.errors import InvalidArgument
from hushfit.estimators._frames import as_frame
from hushfit.estimators._inference import MIDDLE, Inference, Inferring
from hushfit.estimators._marginal_effects import Change, MarginalEffects, Slope, Switch
from hushfit.estimators._persons import column_names
from hushfit.release import Quote

if TYPE_CHECKING:
    from hushfit.data.design.formula import FormulaDesign

# Share of its public range by which a number is moved for its marginal effect.
_STEP = 1e-5


def _gives_probabilities(model: "FormulaModel") -> bool:
    return hasattr(model.estimator, "predict_proba")


class FormulaModel(Inferring, BaseEstimator):
    """A model whose columns are the terms of a formula.

    Made by ``from_formula`` of an estimator. Levels and ranges are those of the schema. A row with
    a label or target that the schema does not list is left out: it counts as the zero record. So is
    one without a number, unless the schema states its ``fill``.

    Parameters
    ----------
    estimator : PrivateLogisticRegression, PrivateLinearRegression or PrivatePoissonRegressor
        Not fitted; with ``inference=True``.
    design : FormulaDesign

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the columns of the design.
    """

    def __init__(self, estimator: Any, design: "FormulaDesign") -> None:
        self.estimator = estimator
        self.design = design

    def fit(self, table: Any, y: None = None) -> "FormulaModel":
        """Fit the model to a table and charge its cost.

        Parameters
        ----------
        table : data frame, Arrow table, or mapping of str to array
            With the columns of the formula, its response, and the ids if the schema names them.
        y : None
            The response is a column of the table.

        Returns
        -------
        self
        """
        if y is not None:
            raise InvalidArgument("the response is a column of the table. Leave y out.")
        schema = self.design.schema
        target: Any = schema.target
        persons = [] if schema.person is None else [schema.person]
        columns = _columns(table, [*self._read, target.name, *persons])
        X, y_, known = self.design.rows(columns), *_responses(target, columns)
        X[~known | self.design.has_gaps(columns)] = np.nan
        groups = None
        if schema.person is not None:
            groups = persons_of(columns[schema.person], len(X), schema.privacy_unit)
        self.estimator_ = clone(self.estimator).fit(self._named(X), y_, groups=groups)
        return self

    @property
    def _read(self) -> list[str]:
        return [column.name for column in self.design.used.columns]

    def _named(self, X: Matrix) -> Any:
        return pa.table(dict(zip(self.design.names, X.T, strict=True)))

    def _rows(self, table: Any) -> Any:
        check_is_fitted(self)
        return self._named(self.design.rows(_columns(table, self._read)))

    def predict(self, table: Any) -> AnyArray:
        """The prediction of each row of a table.

        Parameters
        ----------
        table : data frame, Arrow table, or mapping of str to array

        Returns
        -------
        array of shape (n_rows,)
        """
        return np.asarray(self.estimator_.predict(self._rows(table)))

    @available_if(_gives_probabilities)
    def predict_proba(self, table: Any) -> Matrix:
        """The probability of each class for each row of a table.

        Parameters
        ----------
        table : data frame, Arrow table, or mapping of str to array

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        return np.asarray(self.estimator_.predict_proba(self._rows(table)))

    def quote(self, n_units: int) -> Quote:
        """Cost of a fit; no row is read and nothing is charged.

        Parameters
        ----------
        n_units : int
            Number of rows, or of persons if the schema names their ids.

        Returns
        -------
        Quote
        """
        per_person = self.design.schema.person is not None
        found: Quote = self.estimator.quote(n_units, len(self.design.names), per_person=per_person)
        return found

    @property
    def inference_(self) -> Inference:
        """Estimates with their covariance."""
        check_is_fitted(self)
        found: Inference = self.estimator_.inference_
        return found

    @property
    def privacy_(self) -> Any:
        """The guarantee. Print it."""
        check_is_fitted(self)
        return self.estimator_.privacy_

    @property
    def params_(self) -> dict[str, float]:
        """The coefficients by name, the intercept first."""
        return dict(self.inference_.named)

    def marginal_effects(self, at: Any = None, level: float = 0.95) -> MarginalEffects:
        """How the mean of the response changes with each column of the table, through all terms
        that it is in, averaged over public reference rows.

        Numbers have a slope; of labels it is the change from the reference to each other level.

        Parameters
        ----------
        at : data frame, Arrow table, or mapping of str to array, optional
            Public reference rows: never the private ones. None is one row, in the middle of the
            public ranges, with the reference levels.
        level : float, default=0.95

        Returns
        -------
        MarginalEffects
        """
        design = self.design
        if at is None:
            cells, over = self._middle(), f"{MIDDLE}, with the reference levels"
        else:
            cells = design.cells(_columns(at, self._read))
            over = f"{len(next(iter(cells.values())))} public reference rows"
        return self.inference_.effects_of(self._changes(cells), level, over)

    def _middle(self) -> dict[str, AnyArray]:
        design = self.design
        return {
            name: np.array([design.level_code(name, levels[0])])
            if levels
            else np.array([sum(design.ends(name)) / 2])
            for name, levels in design.variables.items()
        }

    def _changes(self, cells: dict[str, AnyArray]) -> Iterator[tuple[str, Change]]:
        design = self.design
        for name, levels in design.variables.items():
            if not levels:
                yield name, self._slope(name, cells)
            for level in levels[1:]:
                before, after = (
                    design.from_cells(
                        {**cells, name: np.full_like(cells[name], design.level_code(name, one))}
                    )
                    for one in (levels[0], level)
                )
                yield f"{name}: {levels[0]} to {level}", Switch(before, after)

    def _slope(self, name: str, cells: dict[str, AnyArray]) -> Slope:
        low, high = self.design.ends(name)
        half = _STEP * (high - low)
        lower: Vector = np.clip(cells[name] - half, low, high)
        upper: Vector = np.clip(cells[name] + half, low, high)
        moved = self.design.from_cells({**cells, name: upper}) - self.design.from_cells(
            {**cells, name: lower}
        )
        return Slope(self.design.from_cells(cells), moved / (upper - lower)[:, None])


def formula_model(kind: Any, formula: str, schema: Any, settings: dict[str, Any]) -> FormulaModel:
    """A model of a formula, not fitted; ``kind`` is the class of its estimator."""
    try:
        from hushfit.data.design.formula import FormulaDesign
    except ModuleNotFoundError:
        raise InvalidArgument(
            "formulaic is not installed. Install it with: pip install 'hushfit[formula]'"
        ) from None
    if not isinstance(schema, Schema):
        raise InvalidArgument(
            f"schema is {type(schema).__name__}. Give a hushfit.data.schema.Schema: "
            "read_schema('schema.toml').schema, or Schema(...)."
        )
    if "inference" not in kind().get_params():
        raise InvalidArgument(
            f"{kind.__name__} has no intervals. Use PrivateLogisticRegression, "
            "PrivateLinearRegression or PrivatePoissonRegressor."
        )
    design = FormulaDesign(formula, schema)
    design = FormulaDesign(formula, design.used)
    unit = schema.privacy_unit
    persons = {"person_weight": unit.weighting, "rows_per_person": schema.rows_per_person}
    known = {"feature_bounds", "nonfinite", "classes", "pos_label", "target_bounds", "max_count"}
    known |= set(persons)
    given = sorted(known & set(settings))
    if given:
        raise InvalidArgument(
            f"{', '.join(given)} of a formula come from the schema. Leave them out."
        )
    own = {
        "feature_bounds": design.bounds,
        "nonfinite": "zero",
        "inference": True,
        **(persons if schema.person is not None else {}),
        **_of_target(kind, schema.target),
    }
    return FormulaModel(kind(**own, **settings), design)


def _of_target(kind: Any, target: Any) -> dict[str, Any]:
    """What the schema says about the response, as settings of an estimator."""
    found: dict[str, Any] = {}
    if isinstance(target, CategoricalColumn):
        found = {"classes": sorted(target.categories), "pos_label": target.positive}
    elif isinstance(target, CountTarget):
        found = {"max_count": target.high}
    elif isinstance(target, NumericColumn):
        found = {"target_bounds": (target.low, target.high)}
    if not found or not set(found) <= set(kind().get_params()):
        raise InvalidArgument(
            f"{kind.__name__} is not for the target {target.name!r}, which the schema describes as "
            f"{target.kind}. Use PrivateLogisticRegression for categorical, "
            "PrivateLinearRegression for numeric, PrivatePoissonRegressor for count."
        )
    return found


def _responses(target: Any, columns: dict[str, AnyArray]) -> tuple[AnyArray, AnyArray]:
    """The responses, and whether each is one; others are replaced by a public one."""
    cells = columns[target.name]
    if isinstance(target, CategoricalColumn):
        codes = target.codes(cells)
        known = codes < len(target.categories)
        return np.array(target.categories)[np.where(known, codes, 0)], known
    numeric = target.numbers if isinstance(target, CountTarget) else target
    numbers = numeric.numbers(cells)
    known = np.isfinite(numbers)
    return np.where(known, numbers, target.low), known


def _columns(table: Any, names: list[str]) -> dict[str, AnyArray]:
    """Some columns of a table of any library."""
    frame = as_frame(table)
    there = set(column_names(frame))
    missing = [name for name in names if name not in there]
    if missing:
        raise InvalidArgument(
            f"the table has no column {missing[0]!r}, which the formula, or the schema for its "
            "persons, needs. Give a data frame, an Arrow table or a mapping with it."
        )
    return {name: cells_of({name: frame[name]}, name) for name in names}
