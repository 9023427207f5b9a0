"""scikit-learn estimators on top of the solvers.

Prepared                        Rows ready to be fitted, and the public half of the fit
PrivateLinearSVC                Linear support vector machine (huberised hinge loss) with a
                                differential-privacy guarantee
PrivateLogisticRegression       Logistic regression with a differential-privacy guarantee
PrivateGraphLogisticRegression  Logistic regression with a graph-guided fused lasso and a
                                differential-privacy guarantee
public_classes                  The label set, sorted
Fit                             Result of a private fit
private_fit                     Fit one model
PrivateElasticNet               Linear regression with L1 and squared penalties and a
                                differential-privacy guarantee
PrivateLasso                    Linear regression with an L1 penalty and a differential-privacy
                                guarantee
PrivateFeatureSelector          Keep the columns with the largest coefficients of a private
                                logistic regression
"""

from hushfit.estimators._classifiers import Prepared, PrivateLinearSVC, PrivateLogisticRegression
from hushfit.estimators._graph import PrivateGraphLogisticRegression
from hushfit.estimators._labels import public_classes
from hushfit.estimators._private_fit import Fit, private_fit
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
