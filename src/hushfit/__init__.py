"""Fit models on sensitive rows and release only what a differential-privacy proof allows."""

from typing import TYPE_CHECKING

from hushfit._on_demand import on_demand
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
else:
    __getattr__ = on_demand(__name__)  # importing hushfit loads nothing until it is used

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


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
