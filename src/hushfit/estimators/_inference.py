"""Coefficients with standard errors, intervals and tests that cover sampling and noise:
docs/algorithms/inference.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, norm, qmc

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument, NoIntervals, TooFewRows
from hushfit.estimators._private_fit import Fit
from hushfit.penalties import Penalty
from hushfit.privacy import Budget, Guarantee, Relation, labels_only
from hushfit.problem import Problem
from hushfit.solvers.inference import COVARIANCES, ScoreSteps, least_units

# Noise of the curvature over its smallest eigenvalue: up to the first intervals cover as stated, up
# to the second they are wider than they need be, above there are none.
_GOOD, _USABLE = 1.0, 2.0
_DRAWS = 4096


class Parts(NamedTuple):
    """Covariance of the coefficients: what is there without privacy, and what noise adds."""

    sampling: Matrix
    noise: Matrix

    @property
    def total(self) -> Matrix:
        return self.sampling + self.noise


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
    cov_type : {"model", "robust"}
        The kind that is used unless another is asked for.
    noise_ratio : float
        Noise of the curvature over its smallest eigenvalue.
    guarantee : Guarantee
    title : str
    """

    names: Sequence[str]
    params: Vector
    covariances: Mapping[str, Parts]
    cov_type: str
    noise_ratio: float
    guarantee: Guarantee
    title: str

    @property
    def verdict(self) -> str:
        """``"good"``, ``"conservative"``, or ``"none"`` if noise hides the curvature."""
        if self.noise_ratio <= _GOOD:
            return "good"
        return "conservative" if self.noise_ratio <= _USABLE else "none"

    def cov_params(self, cov_type: str | None = None) -> Matrix:
        """Covariance matrix of the coefficients.

        Parameters
        ----------
        cov_type : {"model", "robust"}, optional

        Returns
        -------
        array of shape (p, p)
        """
        return self._parts(cov_type).total

    def _parts(self, cov_type: str | None) -> Parts:
        if self.verdict == "none":
            raise NoIntervals(
                f"Noise hides the curvature of the model (ratio {self.noise_ratio:.3g}, at most "
                f"{_USABLE:g}), so there are no standard errors. Use more rows, a larger epsilon, "
                "or fewer or less collinear columns; the coefficients stay as they are."
            )
        kind = self.cov_type if cov_type is None else cov_type
        if kind not in self.covariances:
            raise InvalidArgument(f"cov_type={kind!r} is not one of {sorted(self.covariances)}.")
        return self.covariances[kind]

    @cached_property
    def bse(self) -> Vector:
        """Standard errors of the coefficients."""
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
        """Confidence intervals of the coefficients.

        Parameters
        ----------
        level : float, default=0.95
        simultaneous : bool, default=False
            Whether all intervals hold together with this probability.
        cov_type : {"model", "robust"}, optional

        Returns
        -------
        array of shape (p, 2)
        """
        if not 0 < level < 1:
            raise InvalidArgument(f"level={level!r} is outside (0, 1). Give 0.95, for instance.")
        total = self.cov_params(cov_type)
        deviations = np.sqrt(np.diag(total))
        quantile = norm.ppf((1 + level) / 2)
        if simultaneous:
            correlation = total / np.outer(deviations, deviations)
            draws = qmc.MultivariateNormalQMC(np.zeros(len(total)), correlation, rng=0)
            quantile = float(np.quantile(np.abs(draws.random(_DRAWS)).max(axis=1), level))
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
        estimate = rows @ self.params
        deviations = np.sqrt(np.einsum("ij,jk,ik->i", rows, self.cov_params(), rows))
        reach = norm.ppf((1 + level) / 2) * deviations
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
        rows = self._combinations(C)
        apart = rows @ self.params - value
        covariance = rows @ self.cov_params() @ rows.T
        df = int(np.linalg.matrix_rank(covariance))
        if df < len(rows):
            raise InvalidArgument(
                f"C has {len(rows)} rows of rank {df}. Leave out those that follow from others."
            )
        statistic = float(apart @ np.linalg.solve(covariance, apart))
        return WaldTest(statistic, df, float(chi2.sf(statistic, df)))

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
        if self.verdict == "none":
            rows = [
                [name, f"{value:.4g}"] for name, value in zip(self.names, self.params, strict=True)
            ]
            return "\n".join([self.title, *_table(["", "coef"], rows), *self._footer(level)])
        parts, ends = self._parts(None), self.conf_int(level)
        head = ["", "coef", "std err", "sampling", "noise", "z", "P>|z|", f"[{(1 - level) / 2:.3f}"]
        head.append(f"{(1 + level) / 2:.3f}]")
        sampling, noise = (np.sqrt(np.diag(part)) for part in parts)
        columns = self.params, self.bse, sampling, noise, self.zvalues, self.pvalues, *ends.T
        rows = [
            [name, *(f"{value:.4g}" for value in values)]
            for name, *values in zip(self.names, *columns, strict=True)
        ]
        return "\n".join([self.title, *_table(head, rows), *self._footer(level)])

    def _footer(self, level: float) -> list[str]:
        said = {
            "good": f"Intervals of {level:.0%} cover sampling and noise.",
            "conservative": "Noise is large: intervals are wider than they need be.",
            "none": "Noise hides the curvature of the model: there are no standard errors.",
        }[self.verdict]
        budget = self.guarantee
        return [
            said,
            f"Covariance: {self.cov_type}. Noise over curvature: {self.noise_ratio:.2g}. Rows with "
            "unusual features weigh less.",
            f"epsilon={budget.epsilon:g}, delta={budget.delta:g}, {budget.relation}, one "
            f"{budget.unit.kind}.",
        ]

    def __str__(self) -> str:
        return self.summary()


class Inferring:
    """The results of a fit with ``inference=True``, on the estimator itself."""

    inference: bool = False  # of classes that do not take it
    cov_type: str = COVARIANCES[0]

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

    def summary(self, level: float = 0.95) -> str:
        """The table of coefficients with their errors, tests and intervals."""
        return self.inference_.summary(level)

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


def inference_of(
    fit: Fit,
    problem: Problem,
    in_units: Callable[[Vector], Vector],
    names: Sequence[str],
    cov_type: str,
    title: str,
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
    one = found[COVARIANCES[0]]
    return Inference(
        ("(intercept)", *names),
        L @ one.w + origin,
        {
            kind: Parts(L @ each.sampling @ L.T, L @ each.noise @ L.T)
            for kind, each in found.items()
        },
        cov_type,
        one.noise_ratio,
        fit.guarantee,
        title,
    )


def require_feasible(problem: Problem, budget: Budget) -> None:
    """Refuse a fit whose intervals noise would hide, from public numbers and before any charge."""
    needed = least_units(problem, budget)
    if problem.n_units < needed:
        unit = problem.privacy_unit
        raise TooFewRows(
            f"{problem.n_units} {unit.plural} are too few for intervals of "
            f"{problem.dimension} coefficients at epsilon={budget.epsilon:g} and "
            f"delta={budget.delta:g}: about {needed} are needed. Nothing was charged. Use a larger "
            "epsilon, fewer columns, or inference=False."
        )


def check_cov_type(cov_type: str) -> None:
    if cov_type not in COVARIANCES:
        raise InvalidArgument(f"cov_type={cov_type!r} is not one of {COVARIANCES}.")


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
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
