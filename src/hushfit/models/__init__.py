"""Fitted models as files: JSON that a program of any language can read, and that runs no code when
opened.

load_model           Read a model from a file
model_json           A model as JSON, and its hash
parse_model          Read a model from the bytes of its file
save_model           Write a model to a file
write_whole          Replace a file so that a reader, or a crash, sees the old one or the new one
                     and nothing between
fit_rows             Fit an estimator to packed rows, paying first
with_sorted_classes  The schema with its classes in the order that estimators keep them
Model                A fitted estimator and its papers
PaidReceipt          Which entry of which ledger paid for a model
Provenance           Where a model came from
model_problems       What is wrong between a model file and the ledger that paid for it
"""

from hushfit.models._file import load_model, model_json, parse_model, save_model, write_whole
from hushfit.models._fit_tables import fit_rows, with_sorted_classes
from hushfit.models._model import Model, PaidReceipt, Provenance
from hushfit.models._verify import model_problems

__all__ = [
    "Model",
    "PaidReceipt",
    "Provenance",
    "fit_rows",
    "load_model",
    "model_json",
    "model_problems",
    "parse_model",
    "save_model",
    "with_sorted_classes",
    "write_whole",
]
