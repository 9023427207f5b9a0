"""Fitted models as files: JSON that a program of any language can read, and that runs no code when opened."""

from hushfit.models._file import load_model, model_json, parse_model, save_model
from hushfit.models._model import Model, PaidReceipt, Provenance

__all__ = ["Model", "PaidReceipt", "Provenance", "load_model", "model_json", "parse_model", "save_model"]
