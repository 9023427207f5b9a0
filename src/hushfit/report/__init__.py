"""Reading results: scores on held-out rows, what a budget buys, and a page about a model.

CalibrationCell  Rows whose predicted probability falls into one range, and how often it came true
Evaluation       Scores on held-out rows
evaluate_model   Score a model on held-out tables
scored_batches   Predict batch by batch
table_model      Load a model that knows how to encode tables
plan_figure      Expected loss of accuracy against epsilon, both logarithmic, with its range
Forecast         What to expect of a budget
forecast         What a fit would add in noise and lose in accuracy
rows_needed      How many rows bring the loss of accuracy down to a target
report_page      Write a page about a model
"""

from hushfit.report._evaluate import (
    CalibrationCell,
    Evaluation,
    evaluate_model,
    scored_batches,
    table_model,
)
from hushfit.report._figures import plan_figure
from hushfit.report._forecast import Forecast, forecast, rows_needed
from hushfit.report._report_page import report_page

__all__ = [
    "CalibrationCell",
    "Evaluation",
    "Forecast",
    "evaluate_model",
    "forecast",
    "plan_figure",
    "report_page",
    "rows_needed",
    "scored_batches",
    "table_model",
]
