"""Fit models on sensitive rows and release only what a differential-privacy proof allows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hushfit._version import __version__

if TYPE_CHECKING:
    from hushfit.estimators import (
        PrivateElasticNet,
        PrivateFeatureSelector,
        PrivateGraphLogisticRegression,
        PrivateLasso,
        PrivateLinearSVC,
        PrivateLogisticRegression,
    )
    from hushfit.models import load_model, save_model
    from hushfit.privacy import Budget, Guarantee, Ledger, Relation

# Where each public name lives. Importing hushfit loads none of them until it is asked for.
_HOMES = {
    "Budget": "hushfit.privacy",
    "Guarantee": "hushfit.privacy",
    "Ledger": "hushfit.privacy",
    "PrivateElasticNet": "hushfit.estimators",
    "PrivateFeatureSelector": "hushfit.estimators",
    "PrivateGraphLogisticRegression": "hushfit.estimators",
    "PrivateLasso": "hushfit.estimators",
    "PrivateLinearSVC": "hushfit.estimators",
    "PrivateLogisticRegression": "hushfit.estimators",
    "Relation": "hushfit.privacy",
    "load_model": "hushfit.models",
    "save_model": "hushfit.models",
}

__all__ = [
    "Budget",
    "Guarantee",
    "Ledger",
    "PrivateElasticNet",
    "PrivateFeatureSelector",
    "PrivateGraphLogisticRegression",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "Relation",
    "__version__",
    "load_model",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hushfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
