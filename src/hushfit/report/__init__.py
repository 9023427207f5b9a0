"""Reports: scores on held-out rows, expected accuracy for a budget, and a page about a model.

scores/          Scores of models on held-out rows, exact and released with noise
sections/        What pages are made of: sections, tables and figures
AccountTotal     What has been spent on the data set of a model
Evidence         What is known about a model beside its file
Point            One point that an evaluator must be told
evaluator_points What an evaluator must be told about a model, by NIST SP 800-226
points_dict      These points as plain JSON values
NumberForecast   Noise of a regression fit for a budget
number_forecast  Noise of a regression fit by the default solver
RankingForecast  Noise of a ranking fit for a budget
ranking_forecast Expected noise of a ranking fit by the default solver
description_page Write a page about the statistics of a table
model_card       Write a card about a model, in Markdown
network_card     Write a card about a network
ranking_card     Write a card about a ranking model
network_page     Write a page about a network
ranking_page     Write a page about a ranking model
report_page      Write a page about a model
"""

from hushfit.report._card import model_card, network_card, ranking_card
from hushfit.report._description_page import description_page
from hushfit.report._evaluator_points import (
    AccountTotal,
    Evidence,
    Point,
    evaluator_points,
    points_dict,
)
from hushfit.report._network_page import network_page
from hushfit.report._number_forecast import NumberForecast, number_forecast
from hushfit.report._ranking_forecast import RankingForecast, ranking_forecast
from hushfit.report._ranking_page import ranking_page
from hushfit.report._report_page import report_page
from hushfit.report.scores import (
    CalibrationCell,
    ClassScore,
    Confusion,
    DeclaredGroups,
    Evaluation,
    GroupScore,
    HeldOut,
    NumberEvaluation,
    PrivateScores,
    Scores,
    evaluate_model,
    held_out,
    private_scores,
    scored_batches,
    table_model,
)
from hushfit.report.sections import odds_figure, plan_figure, posterior

__all__ = [
    "AccountTotal",
    "CalibrationCell",
    "ClassScore",
    "Confusion",
    "DeclaredGroups",
    "Evaluation",
    "Evidence",
    "GroupScore",
    "HeldOut",
    "NumberEvaluation",
    "NumberForecast",
    "Point",
    "PrivateScores",
    "RankingForecast",
    "Scores",
    "description_page",
    "evaluate_model",
    "evaluator_points",
    "held_out",
    "model_card",
    "network_card",
    "network_page",
    "number_forecast",
    "odds_figure",
    "plan_figure",
    "points_dict",
    "posterior",
    "private_scores",
    "ranking_card",
    "ranking_forecast",
    "ranking_page",
    "report_page",
    "scored_batches",
    "table_model",
]
