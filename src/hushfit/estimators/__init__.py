"""scikit-learn skins over the solvers."""

from hushfit.estimators._classifiers import Prepared, PrivateLinearSVC, PrivateLogisticRegression
from hushfit.estimators._fit import noise_and_coins
from hushfit.estimators._graph import PrivateGraphLogisticRegression
from hushfit.estimators._regressors import PrivateElasticNet, PrivateLasso
from hushfit.estimators._selector import PrivateFeatureSelector

__all__ = [
    "Prepared",
    "PrivateElasticNet",
    "PrivateFeatureSelector",
    "PrivateGraphLogisticRegression",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "noise_and_coins",
]
