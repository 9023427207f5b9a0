"""scikit-learn skins over the solvers."""

from hushfit.estimators._classifiers import PrivateLinearSVC, PrivateLogisticRegression
from hushfit.estimators._graph import PrivateGraphLogisticRegression

__all__ = [
    "PrivateGraphLogisticRegression",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
]
