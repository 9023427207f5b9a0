"""Reports: scores on held-out rows, expected accuracy for a budget, and a page about a model.

CalibrationCell  Rows with a predicted probability in one range, and their observed frequency
ClassScore       Recall and precision of one class
Confusion        How often each class was taken for each other one
Evaluation       Scores of classes on held-out rows
DeclaredGroups   Groups of rows by a column whose values a schema lists
GroupScore       Noisy scores of one group
HeldOut          Predictions of a model and what held-out rows have
NumberEvaluation Scores of predicted numbers, counts and grades on held-out rows
PrivateScores    Noisy scores of a model on private rows
Scores           What pages and tables show of an evaluation
AccountTotal     What has been spent on the data set of a model
Evidence         What is known about a model beside its file
Point            One point that an evaluator must be told
evaluator_points What an evaluator must be told about a model, by NIST SP 800-226
points_dict      These points as plain JSON values
evaluate_model   Score a model on held-out tables
held_out         Predict the rows of held-out tables, with what they have
private_scores   Release scores of private held-out rows
scored_batches   Predict batch by batch
table_model      Load a model with a schema, which can encode tables
odds_figure      Belief of an attacker before and after a release
posterior        Bounds of an attacker's belief after a release
plan_figure      Expected loss of accuracy against epsilon, both logarithmic, with its range
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
