"""Fitted models as files: JSON that any language can read, and that runs no code.

load_model           Read a model from a file
model_json           A model as JSON, and its hash
parse_model          Read a model from the bytes of its file
read_model           Read a model and the verified hash of its contents
save_model           Write a model to a file
write_whole          Replace a file atomically
fit_rows             Fit an estimator to packed rows, paying first
paid_receipt         The payment as a model file states it, and a function that records the file
payment_of           The same of a fitted estimator
Model                A fitted estimator with schema, guarantee, receipt and provenance
PaidReceipt          The ledger entry that paid for a model
Provenance           How and when a model was fitted
restore_names        Give an estimator of a file the names of its columns
NETWORK_FORMAT       Marks the file of a network
is_network           Whether a file is that of a network
PipelineModel        A fitted pipeline, or a fitted selector, with its provenance
is_pipeline          Whether a file is that of a pipeline or selector
RankingModel         A fitted ranker with its schema, receipt and provenance
is_ranker            Whether a file is that of a ranking model
load_ranker          Read a ranking model from a file
ranker_json          A ranking model as JSON, and its hash
save_ranker          Write a ranking model to a file
model_problems       Differences between a model file and the ledger that paid for it
"""

from typing import TYPE_CHECKING

from hushfit._on_demand import on_demand

if TYPE_CHECKING:
    from hushfit._write import write_whole
    from hushfit.models._file import model_json, parse_model, read_model
    from hushfit.models._fit_tables import fit_rows, paid_receipt, payment_of
    from hushfit.models._model import Model, PaidReceipt, Provenance, restore_names
    from hushfit.models._network_file import NETWORK_FORMAT, is_network
    from hushfit.models._pipeline_file import PipelineModel
    from hushfit.models._ranker_file import (
        RankingModel,
        is_ranker,
        load_ranker,
        ranker_json,
        save_ranker,
    )
    from hushfit.models._save import is_pipeline, load_model, save_model
    from hushfit.models._verify import model_problems
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "NETWORK_FORMAT",
    "Model",
    "PaidReceipt",
    "PipelineModel",
    "Provenance",
    "RankingModel",
    "fit_rows",
    "is_network",
    "is_pipeline",
    "is_ranker",
    "load_model",
    "load_ranker",
    "model_json",
    "model_problems",
    "paid_receipt",
    "parse_model",
    "payment_of",
    "ranker_json",
    "read_model",
    "restore_names",
    "save_model",
    "save_ranker",
    "write_whole",
]
