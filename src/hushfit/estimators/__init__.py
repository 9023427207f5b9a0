"""scikit-learn skins over the solvers."""

from hushfit.estimators._classifiers import Prepared, PrivateLinearSVC, PrivateLogisticRegression
from hushfit.estimators._fit import Fit, private_fit
from hushfit.estimators._graph import PrivateGraphLogisticRegression
from hushfit.estimators._labels import public_classes
from hushfit.estimators._regressors import PrivateElasticNet, PrivateLasso
from hushfit.estimators._selector import PrivateFeatureSelector

__all__ = [
    "Fit",
    "Prepared",
    "PrivateElasticNet",
    "PrivateFeatureSelector",
    "PrivateGraphLogisticRegression",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "private_fit",
    "public_classes",
]
