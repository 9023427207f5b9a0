"""How wide the intervals of a fit will be, before a row is read.

What is assumed: the column that is asked about has the standard deviation ``spread`` and is not
correlated with others; for classes the second one has about 28 % of the rows, for counts the mean
is a fifth of the largest one, for numbers residuals have a standard deviation of a tenth of the
range. Rare classes, correlated columns and smaller means give wider intervals; state the mean that
you expect.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from scipy.special import ndtri

from hushfit.errors import InvalidArgument
from hushfit.losses import LeastSquares, Logistic, Loss, Poisson
from hushfit.penalties import Zero
from hushfit.privacy import Budget, Relation
from hushfit.problem import Problem
from hushfit.release import RecordScaling
from hushfit.solvers.inference import least_units, noise_over_sampling, sampling_deviation
from hushfit.unit import ROW, PrivacyUnit

_MOST_UNITS: Final = 10**12


@dataclass(frozen=True)
class IntervalForecast:
    """Expected intervals of a fit with ``inference=True``.

    Parameters
    ----------
    epsilon, delta : float
    adjacency : str
    width : float or None
        From the lower to the upper end: log-odds, logarithms of rate ratios, or standard deviations
        of the residuals, per unit of the column. None if the fit would be refused.
    over_plain : float or None
        The same over that of a fit without privacy.
    units_needed : int
        Rows, or persons, below which a fit is refused; with a stated mean, one that states it too.
    units_for_width : int or None
        Rows, or persons, for the wished width; None if none was given.

    Examples
    --------
    >>> from hushfit.forecast import interval_forecast
    >>> interval_forecast(20_000, 10, 1.0, 1e-6).units_needed < 20_000
    True
    """

    epsilon: float
    delta: float
    adjacency: str
    width: float | None
    over_plain: float | None
    units_needed: int
    units_for_width: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def interval_forecast(
    units: int,
    columns: int,
    epsilon: float,
    delta: float,
    adjacency: str = "replace-one",
    model: str = "logistic",
    wished: float | None = None,
    spread: float = 0.5,
    level: float = 0.95,
    most_count: float = 10.0,
    unit: PrivacyUnit = ROW,
    robust: bool = False,
    expected_mean: float | None = None,
) -> IntervalForecast:
    """Expected width of the interval of a coefficient, and how many units a width takes.

    Parameters
    ----------
    units, columns : int
        Number of rows, or of persons if these are protected, and of columns: a label counts as one
        column for each level but the first.
    epsilon, delta : float
    adjacency : str, default="replace-one"
    model : {"logistic", "linear", "poisson"}, default="logistic"
    wished : float, optional
        Width to find the number of units for.
    spread : float, default=0.5
        Standard deviation of the column, in its units; 0.5 is an indicator of half of the rows.
    level : float, default=0.95
    most_count : float, default=10.0
        Largest count, for Poisson models.
    unit : PrivacyUnit, default=ROW
    robust : bool, default=False
        Whether the covariance is to hold for models that are wrong.
    expected_mean : float, optional
        Mean response that you expect from what is public: the share of a class, or the mean count.

    Returns
    -------
    IntervalForecast

    Examples
    --------
    >>> from hushfit.forecast import interval_forecast
    >>> interval_forecast(20_000, 10, 1.0, 1e-6, wished=0.2).units_for_width > 20_000
    False
    """
    for name, value in (("wished", wished), ("spread", spread)):
        if value is not None and not 0 < value < math.inf:
            raise InvalidArgument(f"{name}={value!r} is not a positive number. Give one.")
    if units < 2 or columns < 1:
        raise InvalidArgument(f"{units} {unit.plural}, {columns} columns: a fit needs 2 and 1.")
    losses: dict[str, Loss] = {
        "logistic": Logistic(),
        "linear": LeastSquares(),
        "poisson": Poisson(most_count),
    }
    if model not in losses:
        raise InvalidArgument(f"model={model!r} has no intervals. Use one of {', '.join(losses)}.")
    relation, budget = Relation.parse(adjacency), Budget(epsilon, delta)
    ends = 2 * float(ndtri((1 + level) / 2)) / spread

    def problem(count: int) -> Problem:
        scaling = RecordScaling.BOUNDED
        shape = (count, columns, relation)
        return Problem(losses[model], Zero(), *shape, scaling=scaling, privacy_unit=unit)

    def ratio(count: int) -> float:
        return math.sqrt(1 + noise_over_sampling(problem(count), budget, robust, expected_mean))

    def width(count: int) -> float:
        return ends * sampling_deviation(problem(count), expected_mean) * ratio(count)

    needed = least_units(problem(units), budget, expected_mean)
    return IntervalForecast(
        epsilon,
        delta,
        adjacency,
        width(units) if units >= needed else None,
        ratio(units) if units >= needed else None,
        needed,
        None if wished is None else _fewest(lambda count: width(count) <= wished, needed),
    )


def _fewest(is_enough: Any, low: int) -> int:
    """The smallest number from low on that is enough, by bisection."""
    if is_enough(low):
        return low
    high = low
    while not is_enough(high):
        low, high = high, 2 * high
        if high > _MOST_UNITS:
            raise InvalidArgument("No number of rows gives so narrow an interval. Ask for a wider.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
