"""Arguments of other libraries: the error says what there is instead."""

import copy
import pickle

import pytest
from sklearn.base import clone

from hushfit import (
    BoundedScaler,
    PrivateFeatureSelector,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileScaler,
    PrivateRanker,
    PrivateRidge,
    PrivateSearchCV,
)

INSTEAD = [
    (PrivateLogisticRegression, "C", "alpha"),
    (PrivateLogisticRegression, "max_iter", "solver="),
    (PrivateLogisticRegression, "data_norm", "leave it out"),
    (PrivateLogisticRegression, "n_jobs", "HUSHFIT_THREADS"),
    (PrivateLogisticRegression, "accountant", "Use ledger"),
    (PrivateLogisticRegression, "epsilom", "Use epsilon"),
    (PrivateLogisticRegression, "nonsense", "It has epsilon, delta"),
    (PrivateLinearRegression, "bounds_y", "Use target_bounds"),
    (PrivateRidge, "bounds_X", "Use feature_bounds"),
    (PrivateFeatureSelector, "k", "Use n_features_to_select"),
    (PrivateRanker, "lr", "solver="),
    (BoundedScaler, "feature_range", "Use bounds"),
    (PrivateQuantileScaler, "eps", "Use epsilon"),
]


@pytest.mark.parametrize(("kind", "name", "advice"), INSTEAD, ids=lambda part: str(part)[-40:])
def test_an_unknown_argument_is_explained(kind, name, advice):
    with pytest.raises(TypeError) as refusal:
        kind(**{name: 1})
    assert f"{kind.__name__} has no argument {name!r}" in str(refusal.value)
    assert advice in str(refusal.value)


def test_the_arguments_of_a_search_are_explained():
    with pytest.raises(TypeError, match="Use candidates"):
        PrivateSearchCV(PrivateRidge(), param_grid={})


def test_copies_need_no_arguments():
    model = PrivateLogisticRegression(epsilon=2.0, classes=["a", "b"])
    for made in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert made.get_params() == model.get_params()
