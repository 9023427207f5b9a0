"""Coefficients with standard errors, intervals and tests that cover sampling and noise:
docs/algorithms/inference.md.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh
from scipy.stats import chi2, norm, qmc

from hushfit._typing import BoolVector, Matrix, Vector
from hushfit.data import FeatureBounds
from hushfit.errors import InvalidArgument, NoIntervals, TooFewRows
from hushfit.estimators._marginal_effects import Change, MarginalEffects, column_slopes
from hushfit.estimators._private_fit import Fit
from hushfit.penalties import Penalty
from hushfit.privacy import Budget, Guarantee, Relation, labels_only
from hushfit.problem import Problem
from hushfit.solvers.inference import COVARIANCES, ScoreSteps, least_units

# Noise of the curvature over its smallest eigenvalue that is resolved, up to which intervals cover
# as stated; above they are wider than they need be.
_GOOD = 1.0
# Variance that is allowed for what the last step leaves out, over that of the noise of the scores,
# up to which intervals are not much wider than they need be.
_MOST_ALLOWED = 1.0
# Share of what the releases say nothing about in the variance of a combination of coefficients,
# above which it has no interval.
_HIDDEN = 0.5
# Root mean square change of the margins in the last step, above which there are no intervals: the
# steps have not settled. It is about 1 for classes that a column separates, at most about .5 else.
_LONGEST = 0.75
_DRAWS = 4096
# Smaller probabilities of a test are only said to be so.
_LEAST_SHOWN = 1e-4
# Another name of "robust" where units are persons: their scores are added up.
CLUSTER = "cluster"
INTERCEPT = "(intercept)"
MIDDLE = "the middle of the public ranges"
_REMEDY = "Use more rows, a larger epsilon, or fewer or less collinear columns."
_UNDETERMINED = "collinear columns and levels without rows"
# Columns with at least this share of the largest entry of the weakest direction are named.
_NAMED = 0.4


class Parts(NamedTuple):
    """Covariance of the coefficients: what is there without privacy, what noise adds, and what
    the releases say nothing about.
    """

    sampling: Matrix
    noise: Matrix
    unknown: Matrix

    @property
    def total(self) -> Matrix:
        return self.sampling + self.noise + self.unknown

    def hides(self, rows: Matrix) -> BoolVector:
        """Whether combinations of the coefficients are mostly unknown."""
        unknown, total = (_squares(rows, part) for part in (self.unknown, self.total))
        return np.asarray(unknown > _HIDDEN * total)

    def deviations(self, rows: Matrix) -> Vector:
        """Standard errors of combinations of the coefficients, infinite if they are hidden."""
        return np.where(self.hides(rows), np.inf, np.sqrt(_squares(rows, self.total)))


def _squares(rows: Matrix, covariance: Matrix) -> Vector:
    """The variance of each combination."""
    return np.asarray(np.einsum("ij,jk,ik->i", rows, covariance, rows))


class Line(NamedTuple):
    """One coefficient: its standard error and its parts, test and interval."""

    name: str
    coef: float
    std_err: float
    sampling: float
    noise: float
    z: float
    pvalue: float
    low: float
    high: float

    @property
    def shown(self) -> tuple[float, ...]:
        """The numbers of the line; a coefficient without an error has no z either."""
        z = self.z if math.isfinite(self.std_err) else math.nan
        return (*self[1:5], z, *self[6:])


class WaldTest(NamedTuple):
    """A test that linear combinations of the coefficients have stated values."""

    statistic: float
    df: int
    pvalue: float

    def __str__(self) -> str:
        return f"Wald test: chi2({self.df}) = {self.statistic:.4g}, P = {self.pvalue:.4g}"


@dataclass(frozen=True, eq=False)
class Inference:
    """Estimates and their covariance; all of it is released.

    Standard errors cover both sampling and the noise of the releases. Quantiles are those of the
    normal distribution: the variance of the noise is known.

    Parameters
    ----------
    names : sequence of str
        The intercept is the first.
    params : array
        Coefficients in the units of the caller.
    covariances : mapping of str to Parts
        For each kind of covariance.
    cov_type : {"model", "robust", "cluster"}
        The kind that is used unless another is asked for.
    noise_ratio : float
        Noise of the curvature over its smallest eigenvalue that it does not hide; infinite if it
        hides all.
    guarantee : Guarantee
    title : str
    link : {"identity", "logit", "log"}
        What the mean of the response is a function of.
    middle : array
        Middle of the public range of every column.
    weakest : sequence of str
        Columns that make up the direction about which the releases say least.
    last_step : float
        Root mean square change of the margins in the last step.
    even_weights : bool, default=False
        Whether all rows weigh the same.
    allowance : float, default=0.0
        Variance that is allowed for what the last step leaves out, over that of the noise.
    """

    names: Sequence[str]
    params: Vector
    covariances: Mapping[str, Parts]
    cov_type: str
    noise_ratio: float
    guarantee: Guarantee
    title: str
    link: str
    middle: Vector
    weakest: Sequence[str]
    last_step: float
    even_weights: bool = False
    allowance: float = 0.0

    @property
    def verdict(self) -> str:
        """``"good"``, ``"conservative"``, or ``"none"`` if there are no standard errors."""
        if self._obstacle:
            return "none"
        good = self.noise_ratio <= _GOOD and self.allowance <= _MOST_ALLOWED
        return "good" if good else "conservative"

    @cached_property
    def hidden(self) -> BoolVector:
        """Which coefficients have no interval of their own, because noise hides them."""
        return self.covariances[self.cov_type].hides(np.eye(len(self.params)))

    @property
    def _obstacle(self) -> str:
        """Why there are no standard errors; empty if there are."""
        if self.hidden[1:].all() or math.isinf(self.noise_ratio):
            return (
                "noise hides the curvature of the model. Least is known about "
                f"{', '.join(self.weakest)}. {_REMEDY}"
            )
        if self.last_step > _LONGEST:
            return (
                f"the last step still changed margins by {self.last_step:.2g} (at most "
                f"{_LONGEST:g}), as it does where columns nearly separate the classes, or a class "
                "has hardly any rows, and no finite coefficients fit. Leave out the column that "
                "decides the response, or wait for rows of both classes."
            )
        return ""

    def cov_params(self, cov_type: str | None = None) -> Matrix:
        """Covariance matrix of the coefficients; variances of hidden ones are infinite, and their
        covariances are not numbers.

        Parameters
        ----------
        cov_type : {"model", "robust", "cluster"}, optional

        Returns
        -------
        array of shape (p, p)
        """
        parts = self._parts(cov_type)
        hidden = parts.hides(np.eye(len(self.params)))
        found = np.where(hidden | hidden[:, None], np.nan, parts.total)
        found[hidden, hidden] = np.inf
        return np.asarray(found)

    def _parts(self, cov_type: str | None) -> Parts:
        if self._obstacle:
            raise NoIntervals(
                f"There are no standard errors: {self._obstacle} The coefficients stay as they are."
            )
        kind = self.cov_type if cov_type is None else cov_type
        if kind not in self.covariances:
            raise InvalidArgument(f"cov_type={kind!r} is not one of {sorted(self.covariances)}.")
        return self.covariances[kind]

    @cached_property
    def bse(self) -> Vector:
        """Standard errors of the coefficients, infinite for hidden ones."""
        return np.sqrt(np.diag(self.cov_params()))

    @cached_property
    def zvalues(self) -> Vector:
        """Coefficients over their standard errors."""
        return self.params / self.bse

    @cached_property
    def pvalues(self) -> Vector:
        """Two-sided tests that a coefficient is zero."""
        return np.asarray(2 * norm.sf(np.abs(self.zvalues)))

    def conf_int(
        self, level: float = 0.95, simultaneous: bool = False, cov_type: str | None = None
    ) -> Matrix:
        """Confidence intervals of the coefficients; those of hidden ones have no ends.

        Parameters
        ----------
        level : float, default=0.95
        simultaneous : bool, default=False
            Whether all intervals hold together with this probability.
        cov_type : {"model", "robust", "cluster"}, optional

        Returns
        -------
        array of shape (p, 2)
        """
        quantile = _quantile(level)
        total = self.cov_params(cov_type)
        deviations = np.sqrt(np.diag(total))
        if simultaneous:
            seen = np.isfinite(deviations)
            correlation = total[np.ix_(seen, seen)] / np.outer(deviations[seen], deviations[seen])
            quantile = _largest_of_normals(correlation, level)
        reach = quantile * deviations
        return np.column_stack([self.params - reach, self.params + reach])

    def contrast(self, C: Any, level: float = 0.95) -> Matrix:
        """Estimate, standard error and interval of linear combinations of the coefficients.

        Parameters
        ----------
        C : array of shape (p,) or (k, p)
            One combination in each row, in the order of ``names``.
        level : float, default=0.95

        Returns
        -------
        array of shape (k, 4)
            Estimate, standard error, lower and upper end of the interval.
        """
        rows = self._combinations(C)
        estimate, deviations = rows @ self.params, self._parts(None).deviations(rows)
        reach = _quantile(level) * deviations
        return np.column_stack([estimate, deviations, estimate - reach, estimate + reach])

    def wald_test(self, C: Any, value: Any = 0.0) -> WaldTest:
        """Test that linear combinations of the coefficients have stated values.

        Parameters
        ----------
        C : array of shape (p,) or (k, p)
        value : float or array of shape (k,), default=0.0

        Returns
        -------
        WaldTest
        """
        rows, parts = self._combinations(C), self._parts(None)
        apart = rows @ self.params - value
        covariance = rows @ parts.total @ rows.T
        df = int(np.linalg.matrix_rank(covariance))
        if df < len(rows):
            raise InvalidArgument(
                f"C has {len(rows)} rows of rank {df}. Leave out those that follow from others."
            )
        shares = eigvalsh(rows @ parts.unknown @ rows.T, covariance)
        if shares[-1] > _HIDDEN:
            raise NoIntervals(
                f"C has combinations that noise hides. Leave out {', '.join(self._hidden_names)}, "
                "or test another combination of them."
            )
        statistic = float(apart @ np.linalg.solve(covariance, apart))
        return WaldTest(statistic, df, float(chi2.sf(statistic, df)))

    @property
    def _hidden_names(self) -> list[str]:
        return [name for name, is_hidden in zip(self.names, self.hidden, strict=True) if is_hidden]

    def marginal_effects(self, at: Any = None, level: float = 0.95) -> MarginalEffects:
        """How the mean of the response changes with each column, averaged over reference rows.

        Computed from the released coefficients and their covariance (delta method). Reference rows
        are public: no private row is averaged over.

        Parameters
        ----------
        at : array of shape (k, n_columns), optional
            Public reference rows, in the units of the columns. None is one row, in the middle of
            the public range of every column.
        level : float, default=0.95

        Returns
        -------
        MarginalEffects
        """
        rows = self.middle[None] if at is None else self._reference_rows(at)
        over = MIDDLE if at is None else f"{len(rows)} public reference rows"
        return self.effects_of(zip(self.names[1:], column_slopes(rows), strict=True), level, over)

    def effects_of(
        self, changes: Iterable[tuple[str, Change]], level: float, over: str
    ) -> MarginalEffects:
        """The marginal effects of some changes of public reference rows.

        Parameters
        ----------
        changes : iterable of (str, Change)
        level : float
        over : str
            What is averaged over, in words.

        Returns
        -------
        MarginalEffects
        """
        errors, interval = self._parts(None).deviations, (level, _quantile(level))
        return MarginalEffects.of(changes, self.params, errors, self.link, interval, over)

    def _reference_rows(self, at: Any) -> Matrix:
        rows = np.atleast_2d(np.asarray(at, dtype=float))
        wanted = len(self.names) - 1
        if rows.ndim != 2 or rows.shape[1] != wanted or not np.isfinite(rows).all():
            raise InvalidArgument(
                f"at has shape {rows.shape}. Give public reference rows of finite numbers, "
                f"{wanted} in each: one for each of {', '.join(self.names[1:])}."
            )
        return rows

    def _combinations(self, C: Any) -> Matrix:
        rows = np.atleast_2d(np.asarray(C, dtype=float))
        if rows.ndim != 2 or rows.shape[1] != len(self.params) or not np.isfinite(rows).all():
            raise InvalidArgument(
                f"C has shape {rows.shape}. Give finite numbers, {len(self.params)} in each row: "
                f"one for each of {', '.join(self.names)}."
            )
        return rows

    def summary(self, level: float = 0.95) -> str:
        """The table that statisticians know, as text.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        str
        """
        lines = self.lines(level)
        if not lines:
            head = ["", "coef"]
            rows = [[name, f"{value:.4g}"] for name, value in self.named]
        else:
            head = ["", "coef", "std err", "sampling", "noise", "z", "P>|z|"]
            head += [f"[{(1 - level) / 2:.3f}", f"{(1 + level) / 2:.3f}]"]
            rows = [_cells(line) for line in lines]
        return "\n".join([self.title, *text_table(head, rows), self.said(level), *self._footer()])

    @property
    def named(self) -> list[tuple[str, float]]:
        """The coefficients with their names, the intercept first."""
        return list(zip(self.names, self.params.tolist(), strict=True))

    def lines(self, level: float = 0.95) -> list[Line]:
        """The lines of the table, the intercept first; none without standard errors.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        list of Line
        """
        if self.verdict == "none":
            return []
        found, ends = self._parts(None), self.conf_int(level)
        parts = [
            np.sqrt(np.where(self.hidden, np.inf, np.diag(part)))
            for part in (found.sampling, found.noise + found.unknown)
        ]
        columns = self.params, self.bse, *parts, self.zvalues, self.pvalues, *ends.T
        return [
            Line(name, *map(float, values))
            for name, *values in zip(self.names, *columns, strict=True)
        ]

    def said(self, level: float = 0.95) -> str:
        """What the intervals are worth, in a sentence.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        str
        """
        said = {
            "good": f"Intervals of {level:.0%} cover sampling and noise.",
            "conservative": "Conservative: noise is large, and intervals are wider than they need "
            "be.",
            "none": f"None: there are no standard errors, because {self._obstacle}",
        }[self.verdict]
        if self.verdict == "none" or not self.hidden.any():
            return said
        why = (
            f"rows say nothing about them, as it is with {_UNDETERMINED}. Leave some out."
            if math.isinf(self.guarantee.epsilon)
            else f"noise hides what rows say there, as it does for {_UNDETERMINED}. {_REMEDY}"
        )
        return f"{said} None for {', '.join(self._hidden_names)}: {why}"

    @property
    def weighting(self) -> str:
        """How much rows weigh, in a sentence."""
        if self.even_weights:
            return "All rows weigh the same."
        return "Rows with unusual features weigh less."

    def _footer(self) -> list[str]:
        budget = self.guarantee
        return [
            f"Covariance: {self.cov_type}. Noise over curvature: {self.noise_ratio:.2g}. "
            f"{self.weighting}",
            f"epsilon={budget.epsilon:g}, delta={budget.delta:g}, {budget.relation}, one "
            f"{budget.unit.kind}.",
        ]

    def __str__(self) -> str:
        return self.summary()


class Inferring:
    """The results of a fit with ``inference=True``, on the estimator itself."""

    inference: bool = False  # of classes that do not take it
    cov_type: str = COVARIANCES[0]
    even_weights: bool = False
    expected_mean: float | None = None
    link: ClassVar[str] = "identity"

    @property
    def towards_(self) -> float:
        """1 if ``coef_`` points to what intervals are about, and -1 if away from it."""
        return 1.0

    @classmethod
    def from_formula(cls, formula: str, schema: Any, **settings: Any) -> Any:
        """A model of a formula, with intervals; it needs ``hushfit[formula]``.

        Parameters
        ----------
        formula : str
            Such as ``"readmitted ~ age + C(ward)"``. Whatever would have to be computed from the
            rows, such as spline knots or a mean, is refused.
        schema : Schema
            Public ranges and levels of the columns, and of the response; with ``person``, whose
            rows they are.
        **settings
            Those of the estimator: ``epsilon``, ``delta``, ``cov_type``, ``ledger`` and others.

        Returns
        -------
        FormulaModel
            Not fitted; fit it to a table: ``model.fit(table)``.
        """
        from hushfit.estimators._formula import formula_model

        return formula_model(cls, formula, schema, settings)

    @property
    def inference_(self) -> Inference:
        """Estimates with their covariance; only after a fit with ``inference=True``."""
        found: Inference | None = vars(self).get("_inference")
        if found is None:
            raise AttributeError(
                f"this {type(self).__name__} has no intervals. Fit it with inference=True."
            )
        return found

    def keep_inference(self, found: Inference | None) -> None:
        """Take over the inference of a fit, and nothing of an earlier one."""
        vars(self).pop("_inference", None)
        if found is not None:
            self._inference = found

    @property
    def bse_(self) -> Vector:
        """Standard errors of the intercept and the coefficients."""
        return self.inference_.bse

    @property
    def pvalues_(self) -> Vector:
        """Two-sided tests that the intercept and each coefficient are zero."""
        return self.inference_.pvalues

    def conf_int(
        self, level: float = 0.95, simultaneous: bool = False, cov_type: str | None = None
    ) -> Matrix:
        """Confidence intervals of the intercept and the coefficients: `Inference.conf_int`."""
        return self.inference_.conf_int(level, simultaneous, cov_type)

    def cov_params(self, cov_type: str | None = None) -> Matrix:
        """Covariance of the intercept and the coefficients: `Inference.cov_params`."""
        return self.inference_.cov_params(cov_type)

    def contrast(self, C: Any, level: float = 0.95) -> Matrix:
        """Linear combinations with their errors and intervals: `Inference.contrast`."""
        return self.inference_.contrast(C, level)

    def wald_test(self, C: Any, value: Any = 0.0) -> WaldTest:
        """Test of linear combinations: `Inference.wald_test`."""
        return self.inference_.wald_test(C, value)

    def marginal_effects(self, at: Any = None, level: float = 0.95) -> MarginalEffects:
        """How the mean changes with each column: `Inference.marginal_effects`."""
        return self.inference_.marginal_effects(at, level)

    def summary(self, level: float = 0.95) -> str:
        """The table of coefficients with their errors, tests and intervals."""
        return self.inference_.summary(level)

    @property
    def _rule_of_gaps(self) -> str:
        """What becomes of missing values in a fit: a filled one would bias coefficients."""
        given: str = vars(self)["nonfinite"]
        return "zero" if self.inference and given == "fill" else given

    def _score_steps(self) -> ScoreSteps:
        """The solver: unless the model is said to hold, with weights that are as even as noise
        allows, or altogether even.
        """
        return ScoreSteps(
            robust=self.cov_type != COVARIANCES[0], even_weights=bool(self.even_weights)
        )

    def _require_plain(self, linear: bool, penalty: Penalty | None = None) -> None:
        """Refuse settings under which coefficients have no intervals."""
        check_cov_type(self.cov_type)
        given: Any = self
        wrong = {
            "fit_intercept": not given.fit_intercept,
            "features": not linear,
            "feature_bounds": given.feature_bounds is None,
            "solver": given.solver != "auto",
            "penalty": penalty is not None and penalty.ridge != 0,
            "adjacency": labels_only(Relation.parse(given.adjacency)),
        }
        named = [name for name, is_wrong in wrong.items() if is_wrong]
        if named:
            raise InvalidArgument(
                "inference=True needs the public ranges of the columns (feature_bounds), an "
                "intercept, linear features, no penalty, solver='auto' and a relation that "
                f"protects rows or persons. Change {', '.join(named)}."
            )


class About(NamedTuple):
    """What is public about a fit beside its problem."""

    names: Sequence[str]
    cov_type: str
    title: str
    link: str
    middle: Vector


def inference_of(
    fit: Fit,
    problem: Problem,
    in_units: Callable[[Vector], Vector],
    about: About,
) -> Inference:
    """The inference of a fit by `ScoreSteps`.

    ``in_units`` maps weights of records to the intercept and the coefficients in the units of the
    caller; it is affine.
    """
    solver = fit.solver
    assert isinstance(solver, ScoreSteps)
    origin = in_units(np.zeros(problem.dimension))
    L = np.column_stack([in_units(row) - origin for row in np.eye(problem.dimension)])
    multipliers = {made.name: made.noise_multiplier for made in fit.guarantee.releases}
    found = {
        kind: solver.covariance(problem, fit.transcript, multipliers, kind) for kind in COVARIANCES
    }
    if problem.privacy_unit.is_person:
        found[CLUSTER] = found["robust"]
    one, names = found[COVARIANCES[0]], (INTERCEPT, *about.names)
    return Inference(
        names,
        L @ one.w + origin,
        {
            kind: Parts(*(_mapped(L, part) for part in (each.sampling, each.noise, each.unknown)))
            for kind, each in found.items()
        },
        about.cov_type,
        one.noise_ratio,
        fit.guarantee,
        about.title,
        about.link,
        about.middle,
        _largest(one.weakest, names),
        one.last_step,
        solver.even_weights,
        one.allowance,
    )


def _mapped(L: Matrix, covariance: Matrix) -> Matrix:
    """Covariance after a linear map. Variances that are zero may be negative by rounding."""
    found = L @ covariance @ L.T
    np.fill_diagonal(found, np.maximum(np.diag(found), 0.0))
    return found


def _largest(direction: Vector, names: Sequence[str]) -> tuple[str, ...]:
    """Names of the largest entries of a direction of record weights, whose intercept is last."""
    sizes = np.abs(np.roll(direction, 1))
    large = sizes >= _NAMED * sizes.max()
    return tuple(name for name, is_large in zip(names, large, strict=True) if is_large)


def middle_of(feature_bounds: Any, n_features: int) -> Vector:
    """The middle of the public range of every column."""
    bounds = FeatureBounds.parse(feature_bounds, n_features)
    return np.asarray(bounds.low + (bounds.high - bounds.low) / 2)


def require_feasible(
    problem: Problem,
    budget: Budget,
    cov_type: str = COVARIANCES[0],
    expected_mean: float | None = None,
) -> None:
    """Refuse a fit whose intervals noise would hide, or whose rows have no clusters, from public
    numbers and before any charge.
    """
    if cov_type == CLUSTER and not problem.privacy_unit.is_person:
        raise InvalidArgument(
            f"cov_type={CLUSTER!r} is for persons with several rows, and units are single rows. "
            "Nothing was charged. Give groups=, or use cov_type='robust'."
        )
    needed = least_units(problem, budget, expected_mean)
    if problem.n_units < needed:
        unit = problem.privacy_unit
        stated = "" if expected_mean is None else f" of a response with the mean {expected_mean:g}"
        raise TooFewRows(
            f"{problem.n_units} {unit.plural} are too few for intervals of "
            f"{problem.dimension} coefficients{stated} at epsilon={budget.epsilon:g} and "
            f"delta={budget.delta:g}: about {needed} are needed. Nothing was charged. Use a larger "
            "epsilon, fewer columns, or a fit without inference."
        )


def _quantile(level: float) -> float:
    if not 0 < level < 1:
        raise InvalidArgument(f"level={level!r} is outside (0, 1). Give 0.95, for instance.")
    return float(norm.ppf((1 + level) / 2))


def _largest_of_normals(correlation: Matrix, level: float) -> float:
    """Quantile of the largest size among normal variables."""
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return float(np.quantile(np.abs(_normal_draws(len(values)) @ root.T).max(axis=1), level))


@lru_cache(maxsize=8)
def _normal_draws(p: int) -> Matrix:
    """Points that are spread as independent normal variables are."""
    return np.asarray(qmc.MultivariateNormalQMC(np.zeros(p), rng=0).random(_DRAWS))


def _cells(line: Line) -> list[str]:
    *before, pvalue, low, high = line.shown
    test = f"{pvalue:.4f}" if pvalue >= _LEAST_SHOWN else f"<{_LEAST_SHOWN:.4f}"
    return [line.name, *map(_written, before), test, _written(low), _written(high)]


def _written(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"


def check_cov_type(cov_type: str) -> None:
    known = (*COVARIANCES, CLUSTER)
    if cov_type not in known:
        raise InvalidArgument(f"cov_type={cov_type!r} is not one of {known}.")


def text_table(head: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[j]) for row in [head, *rows]) for j in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if j == 0 else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in [head, *rows]
    ]
    rule = "-" * len(lines[0])
    return [rule, lines[0], rule, *lines[1:], rule]
