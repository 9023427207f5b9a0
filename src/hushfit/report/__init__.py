"""Reports: scores on held-out rows, expected accuracy for a budget, and a page about a model.

CalibrationCell  Rows with a predicted probability in one range, and their observed frequency
Evaluation       Scores on held-out rows
evaluate_model   Score a model on held-out tables
scored_batches   Predict batch by batch
table_model      Load a model with a schema, which can encode tables
plan_figure      Expected loss of accuracy against epsilon, both logarithmic, with its range
Forecast         Expected accuracy and noise for a budget
forecast         Expected noise and loss of accuracy of a fit
rows_needed      Number of rows for a given loss of accuracy
RankingForecast  Noise of a ranking fit for a budget
ranking_forecast Expected noise of a ranking fit by the default solver
network_page     Write a page about a network
ranking_page     Write a page about a ranking model
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
from hushfit.report._network_page import network_page
from hushfit.report._ranking_forecast import RankingForecast, ranking_forecast
from hushfit.report._ranking_page import ranking_page
from hushfit.report._report_page import report_page

__all__ = [
    "CalibrationCell",
    "Evaluation",
    "Forecast",
    "RankingForecast",
    "evaluate_model",
    "forecast",
    "network_page",
    "plan_figure",
    "ranking_forecast",
    "ranking_page",
    "report_page",
    "rows_needed",
    "scored_batches",
    "table_model",
]
