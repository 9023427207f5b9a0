"""scikit-learn skins over the solvers."""

from hushfit.estimators._classifiers import PrivateLinearSVC, PrivateLogisticRegression

__all__ = ["PrivateLinearSVC", "PrivateLogisticRegression"]
