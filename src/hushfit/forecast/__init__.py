"""What a fit will cost and lose, from public numbers alone; imports no estimator, so it is quick.

Forecast           Expected accuracy and noise for a budget
IntervalForecast   Expected intervals of a fit
forecast           Expected noise and loss of accuracy of a fit
interval_forecast  Expected width of intervals, and how many rows a width takes
named_solvers      Names of all algorithms that have a proof under a relation
rows_needed        Number of rows for a given loss of accuracy
warning_of_few     What to say if a classifier will be near the majority class
"""

from hushfit.forecast._accuracy import (
    Forecast,
    forecast,
    named_solvers,
    rows_needed,
    warning_of_few,
)
from hushfit.forecast._intervals import IntervalForecast, interval_forecast

__all__ = [
    "Forecast",
    "IntervalForecast",
    "forecast",
    "interval_forecast",
    "named_solvers",
    "rows_needed",
    "warning_of_few",
]
