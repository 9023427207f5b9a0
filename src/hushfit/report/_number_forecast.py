"""Noise of a regression fit, before a row is read.

There is no rule for R2: how much can be explained depends on the target, which no public number
tells. What is computed is the noise of every release, which is exact, and the number of units below
which noise hides even the mean target.
"""

import warnings
from dataclasses import asdict, dataclass
from typing import Any

from hushfit.errors import InvalidArgument, TooLittleDataWarning
from hushfit.estimators import PrivateLinearRegression, PrivatePoissonRegressor
from hushfit.privacy import Budget
from hushfit.solvers import units_needed
from hushfit.unit import ROW, PrivacyUnit


@dataclass(frozen=True)
class NumberForecast:
    """Noise of a regression fit for a budget.

    Parameters
    ----------
    epsilon, delta : float
    adjacency : str
    releases : tuple of (str, int, float)
        Name, count, and noise multiplier of each kind of release.
    units_needed : int
        Rows, or persons, below which noise hides nearly everything.
    """

    epsilon: float
    delta: float
    adjacency: str
    releases: tuple[tuple[str, int, float], ...]
    units_needed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def number_forecast(
    units: int,
    columns: int,
    epsilon: float,
    delta: float,
    adjacency: str = "replace-one",
    counts: bool = False,
    unit: PrivacyUnit = ROW,
) -> NumberForecast:
    """Noise of a regression fit by the default solver.

    Parameters
    ----------
    units, columns : int
        Number of rows, or of persons if these are protected, and of encoded columns.
    epsilon, delta : float
    adjacency : str, default="replace-one"
    counts : bool, default=False
        Whether a Poisson model is fitted.
    unit : PrivacyUnit, default=ROW

    Returns
    -------
    NumberForecast

    Examples
    --------
    >>> from hushfit.report import number_forecast
    >>> number_forecast(20_000, 10, 1.0, 1e-6).units_needed < 20_000
    True
    """
    if units < 2 or columns < 1:
        raise InvalidArgument(f"{units} {unit.plural}, {columns} columns: a fit needs 2 and 1.")
    kind = PrivatePoissonRegressor if counts else PrivateLinearRegression
    model = kind(epsilon=epsilon, delta=delta, adjacency=adjacency)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooLittleDataWarning)  # the number is stated
        records = model.quote(units, columns, unit.is_person).records()
    return NumberForecast(
        epsilon,
        delta,
        adjacency,
        tuple((r.name, r.count, r.noise_multiplier) for r in records),
        units_needed(Budget(epsilon, delta), columns + 1, counts),
    )
