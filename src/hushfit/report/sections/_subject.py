"""What a model is and what it predicts, in words."""

from hushfit.data.schema import CountTarget, OrdinalTarget
from hushfit.estimators import PredictionRanges
from hushfit.features import AdditiveMap
from hushfit.models import Model

_KINDS = {
    "PrivateLogisticRegression": "Logistic regression",
    "PrivateLinearSVC": "Linear support vector machine",
    "PrivateLinearRegression": "Linear regression",
    "PrivateRidge": "Ridge regression",
    "PrivateLasso": "Lasso",
    "PrivateElasticNet": "Elastic net",
    "PrivateHuberRegressor": "Robust (Huber) regression",
    "PrivatePoissonRegressor": "Poisson regression",
}


def kind_in_words(model: Model) -> str:
    """What kind of model it is."""
    kind = _KINDS[type(model.estimator).__name__]
    additive = isinstance(model.estimator.feature_map_, AdditiveMap)
    return f"Additive {kind.lower()}" if additive else kind


def target_name(model: Model) -> str:
    """The name of what is predicted."""
    return (
        "the target"
        if model.schema is None or model.schema.target is None
        else model.schema.target.name
    )


def lead(model: Model) -> str:
    """What is predicted, in a sentence."""
    if model.predicts_classes:
        return f"Classes: {', '.join(map(str, model.classes))}."
    target = None if model.schema is None else model.schema.target
    if isinstance(target, OrdinalTarget):
        return f"Grades: {' < '.join(target.categories)}."
    low, high = PredictionRanges.of(model.estimator).target
    what = "Counts" if isinstance(target, CountTarget) else "Numbers"
    return f"{what} from {low:g} to {high:g}; predictions never leave this range."
