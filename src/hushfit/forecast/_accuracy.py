r"""Expected accuracy and noise for a budget, before a row is read.

The rule for accuracy: with ``x = s * sqrt(d) / (n * mu)``, the noise on a mean of unit vectors in d
columns (s is 2 for replace-one, 1 for add-remove and where labels alone are private; mu is the
Gaussian parameter of epsilon and delta), the default solver loses about ``0.24 * x**0.69`` of
accuracy against a fit without privacy. It was fitted to 61 measurements on eight tables (6,500 to
80,000 rows, 33 to 301 columns, epsilon .05 to 1.6); nine in ten of them are within a factor of 2.7
of it. docs/cli.md has the table. Under "label" it was not fitted but checked, on Adult, bank and
covtype: 18 measured losses are .07 to 1.06 times the rule, so it errs on the safe side.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from hushfit.errors import HushfitError, InvalidArgument
from hushfit.losses import Logistic, Softmax
from hushfit.penalties import penalty_from_name
from hushfit.privacy import (
    Budget,
    Relation,
    calibrate,
    labels_only,
    usable,
)
from hushfit.problem import Problem
from hushfit.solvers import SOLVERS, noise_on_mean, solver_from
from hushfit.unit import ROW, PrivacyUnit

SIZE: Final = 0.24
POWER: Final = 0.69
FACTOR: Final = 2.7
_WORST: Final = 0.5  # loss of guessing
# A loss that is told before anything is spent, and one that most people would accept.
_LARGE_LOSS: Final = 0.05
_SMALL_LOSS: Final = 0.02


@dataclass(frozen=True)
class Noise:
    """The releases of one algorithm and their noise multipliers.

    Parameters
    ----------
    solver : str
    releases : tuple of (str, int, float)
        Name, count, and noise multiplier of each kind of release.
    refused : str
        Why the algorithm cannot be used; empty if it can.
    """

    solver: str
    releases: tuple[tuple[str, int, float], ...]
    refused: str = ""


@dataclass(frozen=True)
class Forecast:
    """Expected accuracy and noise for a budget.

    Parameters
    ----------
    epsilon, delta : float
    loss, loss_low, loss_high : float
        Accuracy lost against a fit without privacy: expected, and the range of nine cases in ten.
    noise : tuple of Noise
        One for each algorithm.

    Examples
    --------
    >>> from hushfit.forecast import forecast
    >>> plan = forecast(rows=50_000, columns=100, epsilon=1.0, delta=1e-6, adjacency="label")
    >>> plan.noise[0].solver, plan.loss_low < plan.loss < plan.loss_high
    ('auto', True)
    """

    epsilon: float
    delta: float
    loss: float
    loss_low: float
    loss_high: float
    noise: tuple[Noise, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def forecast(
    rows: int,
    columns: int,
    epsilon: float,
    delta: float,
    adjacency: str = "replace-one",
    penalty: str | None = None,
    unit: PrivacyUnit = ROW,
    solvers: Sequence[str] = ("auto",),
    classes: int = 2,
) -> Forecast:
    """Expected noise and loss of accuracy of a fit.

    Parameters
    ----------
    rows, columns : int
        Number of rows, or of persons if these are protected, and of encoded columns; every category
        is a column.
    epsilon, delta : float
    adjacency : str, default="replace-one"
    penalty : str, optional
    unit : PrivacyUnit, default=ROW
    solvers : sequence of str, default=("auto",)
        Algorithms whose noise to compute: names of `hushfit.solvers.SOLVERS`, or "auto".
    classes : int, default=2

    Returns
    -------
    Forecast

    Examples
    --------
    >>> from hushfit.forecast import forecast
    >>> plan = forecast(rows=50_000, columns=100, epsilon=1.0, delta=1e-6, adjacency="label")
    >>> round(100 * plan.loss, 2)  # points of accuracy
    0.18
    """
    relation, budget = Relation.parse(adjacency), Budget(epsilon, delta)
    _refuse_small(rows, columns, classes)
    loss = _loss(noise_on_mean(rows, columns + 1, budget, relation))
    penalised = penalty_from_name(penalty, 1e-4, 0.5)
    outputs = 1 if classes == 2 else classes
    problem = Problem(
        Logistic() if classes == 2 else Softmax(classes),
        penalised,
        rows,
        columns,
        relation,
        outputs=outputs,
        privacy_unit=unit,
    )
    return Forecast(
        epsilon,
        delta,
        loss,
        loss / FACTOR,
        min(loss * FACTOR, _WORST),
        tuple(_noise_of(name, problem, budget) for name in solvers),
    )


def named_solvers(adjacency: str) -> list[str]:
    """Names of all algorithms that have a proof under a relation.

    Parameters
    ----------
    adjacency : str

    Returns
    -------
    list of str
    """
    # Where labels alone are private, no other algorithm has a proof.
    if labels_only(Relation.parse(adjacency)):
        return ["one-release"]
    return [name for name in SOLVERS if name not in ("exact", "one-release")]


def warning_of_few(
    units: int,
    columns: int,
    epsilon: float,
    delta: float,
    adjacency: str = "replace-one",
    unit: PrivacyUnit = ROW,
) -> str:
    """What to say, before anything is spent, if a classifier will be near the majority class.

    Parameters
    ----------
    units, columns : int
        Number of rows, or of persons if these are protected, and of encoded columns.
    epsilon, delta : float
    adjacency : str, default="replace-one"
    unit : PrivacyUnit, default=ROW

    Returns
    -------
    str
        From public numbers alone; empty if there is nothing to say.
    """
    relation, budget = Relation.parse(adjacency), Budget(epsilon, delta)
    loss = _loss(noise_on_mean(units, columns + 1, budget, relation))
    if loss < _LARGE_LOSS:
        return ""
    low, high = 100 * loss / FACTOR, 100 * min(loss * FACTOR, _WORST)
    wanted, *_ = rows_needed(_SMALL_LOSS, columns, epsilon, delta, adjacency)
    return (
        f"{units:,} {unit.plural} are few for {columns:,} encoded columns at epsilon={epsilon:g}: "
        f"the model is expected to lose about {100 * loss:.0f} points of accuracy ({low:.0f} to "
        f"{high:.0f} in nine cases of ten), so it may be no better than always naming the most "
        f"frequent class. To lose {100 * _SMALL_LOSS:.0f} points takes about {wanted:,} "
        f"{unit.plural}. Fewer columns or a larger epsilon help too."
    )


def rows_needed(
    loss: float, columns: int, epsilon: float, delta: float, adjacency: str = "replace-one"
) -> tuple[int, int, int]:
    """Number of rows, or of persons if these are protected, for a given loss of accuracy.

    Parameters
    ----------
    loss : float
        Accuracy that may be lost, such as 0.01.
    columns : int
    epsilon, delta : float
    adjacency : str, default="replace-one"

    Returns
    -------
    expected, low, high : int
        By the rule, and by its range of nine cases in ten.

    Examples
    --------
    >>> from hushfit.forecast import rows_needed
    >>> rows_needed(0.01, columns=100, epsilon=1.0, delta=1e-6)
    (8498, 2015, 35848)
    """
    if not 0 < loss < _WORST:
        raise InvalidArgument(
            f"loss={loss:g} is outside (0, 0.5). Give the accuracy that may be lost, such as 0.01."
        )
    relation, budget = Relation.parse(adjacency), Budget(epsilon, delta)
    _refuse_small(2, columns)
    one = noise_on_mean(1, columns + 1, budget, relation)

    def rows(target: float) -> int:
        return max(2, math.ceil(one / math.pow(target / SIZE, 1 / POWER)))

    return rows(loss), rows(loss * FACTOR), rows(loss / FACTOR)


def _refuse_small(rows: int, columns: int, classes: int = 2) -> None:
    if classes < 2:
        raise InvalidArgument(f"classes={classes}: there are at least 2 to choose from.")
    if rows < 2 or columns < 1:
        raise InvalidArgument(
            f"rows={rows}, columns={columns}: a fit needs at least 2 rows (or persons) and 1 "
            "column."
        )


def _loss(noise: float) -> float:
    return min(SIZE * math.pow(noise, POWER), _WORST)


def _noise_of(name: str, problem: Problem, budget: Budget) -> Noise:
    """Plan and calibrate one algorithm; this needs no rows."""
    n = problem.n_units
    try:
        plan = solver_from(name, problem, budget).plan(problem)
        strength = calibrate(
            lambda mu: plan.cost(plan.multipliers(mu, n), n), usable(budget)[0], problem.relation
        )
        records = plan.records(plan.multipliers(strength, n))
    except HushfitError as error:
        return Noise(name, (), str(error).split(".")[0])
    return Noise(name, tuple((r.name, r.count, r.noise_multiplier) for r in records))
