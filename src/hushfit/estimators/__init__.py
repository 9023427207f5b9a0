"""scikit-learn skins over the solvers."""

from hushfit.estimators._classifiers import PrivateLinearSVC, PrivateLogisticRegression
from hushfit.estimators._graph import PrivateGraphLogisticRegression
from hushfit.estimators._regressors import PrivateElasticNet, PrivateLasso
from hushfit.estimators._selector import PrivateFeatureSelector

__all__ = [
    "PrivateElasticNet",
    "PrivateFeatureSelector",
    "PrivateGraphLogisticRegression",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
]
