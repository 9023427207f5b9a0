"""scikit-learn estimators on top of the solvers.

Prepared                        Rows ready to be fitted, and the public half of the fit
PrivateLinearSVC                Linear support vector machine (huberised hinge loss) with a
                                differential-privacy guarantee
PrivateLogisticRegression       Logistic regression with a differential-privacy guarantee
PrivateGraphLogisticRegression  Logistic regression with a graph-guided fused lasso and a
                                differential-privacy guarantee
refusal_of_shape                What to raise for rows of a wrong shape, without cells or sizes
public_classes                  The label set, sorted
PersonSettings                  The settings of an estimator that say what the rows of one person
                                weigh
ProtectsPersons                 An estimator whose ``fit`` takes ``groups``
column_names                    Names of the columns of a frame or mapping
features_of                     Rows without the column of ids
persons_in                      The persons of a fit with the settings of an estimator
refuse_unused_settings          Refuse weights for the rows of a person where there are no ids
split_groups                    The features, and whose row each is
Fit                             Result of a private fit
private_fit                     Fit one model
PrivateRanker                   Learning to rank with a differential-privacy guarantee
mean_ndcg                       Mean NDCG over lists at several depths
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
from hushfit.estimators._linear import refusal_of_shape
from hushfit.estimators._persons import (
    PersonSettings,
    ProtectsPersons,
    column_names,
    features_of,
    persons_in,
    refuse_unused_settings,
    split_groups,
)
from hushfit.estimators._private_fit import Fit, private_fit
from hushfit.estimators._ranker import PrivateRanker, mean_ndcg
from hushfit.estimators._regressors import PrivateElasticNet, PrivateLasso
from hushfit.estimators._selector import PrivateFeatureSelector

__all__ = [
    "Fit",
    "PersonSettings",
    "Prepared",
    "PrivateElasticNet",
    "PrivateFeatureSelector",
    "PrivateGraphLogisticRegression",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateRanker",
    "ProtectsPersons",
    "column_names",
    "features_of",
    "mean_ndcg",
    "persons_in",
    "private_fit",
    "public_classes",
    "refusal_of_shape",
    "refuse_unused_settings",
    "split_groups",
]
