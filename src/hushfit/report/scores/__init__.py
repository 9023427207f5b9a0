"""Scores of models on held-out rows, exact and released with noise.

CalibrationCell    Rows with a predicted probability in one range, and their observed frequency
ClassScore         Recall and precision of one class
Confusion          How often each class was taken for each other one
Evaluation         Scores of classes on held-out rows
NumberEvaluation   Scores of predicted numbers, counts and grades on held-out rows
AnyEvaluation      Either of the two
Scores             What pages and tables show of an evaluation
DeclaredGroups     Groups of rows by a column whose values a schema lists
HeldOut            Predictions of a model and what held-out rows have
evaluate_model     Score a model on held-out tables
held_out           Predict the rows of held-out tables, with what they have
scored_batches     Predict batch by batch
table_model        Load a model with a schema, which can encode tables
GroupScore         Noisy scores of one group
PrivateScores      Noisy scores of a model on private rows
private_scores     Release scores of private held-out rows
"""

from hushfit.report.scores._class_scores import CalibrationCell, ClassScore, Confusion, Evaluation
from hushfit.report.scores._evaluate import (
    AnyEvaluation,
    DeclaredGroups,
    HeldOut,
    Scores,
    evaluate_model,
    held_out,
    scored_batches,
    table_model,
)
from hushfit.report.scores._number_scores import NumberEvaluation
from hushfit.report.scores._private_scores import GroupScore, PrivateScores, private_scores

__all__ = [
    "AnyEvaluation",
    "CalibrationCell",
    "ClassScore",
    "Confusion",
    "DeclaredGroups",
    "Evaluation",
    "GroupScore",
    "HeldOut",
    "NumberEvaluation",
    "PrivateScores",
    "Scores",
    "evaluate_model",
    "held_out",
    "private_scores",
    "scored_batches",
    "table_model",
]
