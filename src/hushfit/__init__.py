"""Fit models on sensitive rows and release only what a differential-privacy proof allows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hushfit._version import __version__

if TYPE_CHECKING:
    from hushfit.estimators import (
        PrivateElasticNet,
        PrivateFeatureSelector,
        PrivateGraphLogisticRegression,
        PrivateHuberRegressor,
        PrivateLasso,
        PrivateLinearRegression,
        PrivateLinearSVC,
        PrivateLogisticRegression,
        PrivatePoissonRegressor,
        PrivateRanker,
        PrivateRidge,
    )
    from hushfit.model_selection import PrivateSearchCV
    from hushfit.models import load_model, save_model
    from hushfit.preprocessing import (
        BoundedScaler,
        PrivatePipeline,
        PrivateQuantileScaler,
        PublicFeatures,
        SchemaEncoder,
        pipeline_guarantee,
    )
    from hushfit.privacy import Budget, Guarantee, Ledger, Relation

# The module of each public name. Importing hushfit loads none of them until it is used.
_MODULE_OF_NAME = {
    "BoundedScaler": "hushfit.preprocessing",
    "Budget": "hushfit.privacy",
    "Guarantee": "hushfit.privacy",
    "Ledger": "hushfit.privacy",
    "PrivateElasticNet": "hushfit.estimators",
    "PrivateRidge": "hushfit.estimators",
    "PrivatePoissonRegressor": "hushfit.estimators",
    "PrivateLinearRegression": "hushfit.estimators",
    "PrivateHuberRegressor": "hushfit.estimators",
    "PrivateFeatureSelector": "hushfit.estimators",
    "PrivateGraphLogisticRegression": "hushfit.estimators",
    "PrivateLasso": "hushfit.estimators",
    "PrivateLinearSVC": "hushfit.estimators",
    "PrivateLogisticRegression": "hushfit.estimators",
    "PrivatePipeline": "hushfit.preprocessing",
    "PrivateQuantileScaler": "hushfit.preprocessing",
    "PrivateRanker": "hushfit.estimators",
    "PrivateSearchCV": "hushfit.model_selection",
    "PublicFeatures": "hushfit.preprocessing",
    "Relation": "hushfit.privacy",
    "SchemaEncoder": "hushfit.preprocessing",
    "load_model": "hushfit.models",
    "pipeline_guarantee": "hushfit.preprocessing",
    "save_model": "hushfit.models",
}

__all__ = [
    "BoundedScaler",
    "Budget",
    "Guarantee",
    "Ledger",
    "PrivateElasticNet",
    "PrivateFeatureSelector",
    "PrivateGraphLogisticRegression",
    "PrivateHuberRegressor",
    "PrivateLasso",
    "PrivateLinearRegression",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivatePipeline",
    "PrivatePoissonRegressor",
    "PrivateQuantileScaler",
    "PrivateRanker",
    "PrivateRidge",
    "PrivateSearchCV",
    "PublicFeatures",
    "Relation",
    "SchemaEncoder",
    "__version__",
    "load_model",
    "pipeline_guarantee",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF_NAME:
        return getattr(import_module(_MODULE_OF_NAME[name]), name)
    raise AttributeError(f"module 'hushfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF_NAME})
