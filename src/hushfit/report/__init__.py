"""Reading results: scores on held-out rows, what a budget buys, and a page about a model."""

from hushfit.report._evaluate import CalibrationCell, Evaluation, evaluate_model, scored_batches, table_model
from hushfit.report._page import report_page
from hushfit.report._plan import Forecast, forecast, rows_needed

__all__ = [
    "CalibrationCell",
    "Evaluation",
    "Forecast",
    "evaluate_model",
    "forecast",
    "report_page",
    "rows_needed",
    "scored_batches",
    "table_model",
]
