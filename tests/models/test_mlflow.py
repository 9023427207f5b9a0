"""Models come back from MLflow, in its pyfunc flavour, without a pickle."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from hushfit import (
    PrivateFeatureSelector,
    PrivateLogisticRegression,
    PrivatePoissonRegressor,
    PrivateRanker,
    PrivateRidge,
)
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema, encode
from hushfit.errors import InsecureNoiseWarning, InvalidArgument
from hushfit.models import Model
from hushfit.preprocessing import PrivatePipeline, PrivateQuantileScaler, SchemaEncoder

pandas = pytest.importorskip("pandas", reason="pandas is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own dependencies
    pyfunc = pytest.importorskip("mlflow.pyfunc", reason="mlflow is not installed")
    from hushfit.mlflow import save_pyfunc

pytestmark = pytest.mark.filterwarnings("ignore")
RUN = {"epsilon": 5.0, "delta": 1e-5, "random_state": 0}
GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 10, (300, 3))
FRAME = pandas.DataFrame(X, columns=["age", "dose", "weight"])
LABELS = np.where(X[:, 0] > 5, "yes", "no")
NUMBERS = X[:, 0] + X[:, 1]
CLASSES = {"classes": ["no", "yes"]}
SCHEMA = Schema(
    (NumericColumn("age", 0, 10), CategoricalColumn("sex", ("f", "m"))),
    CategoricalColumn("ill", ("no", "yes")),
)
TABLE = pandas.DataFrame({"age": X[:, 0], "sex": np.where(X[:, 1] > 5, "f", "m")})


def fit(estimator, rows=X, y=LABELS, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        return estimator.fit(rows, y, **more)


def with_schema():
    rows = encode(TABLE, SCHEMA)[0]
    return Model(fit(PrivateLogisticRegression(**RUN, **CLASSES), rows), SCHEMA)


def pipeline(*steps):
    return PrivatePipeline([(f"s{k}", step) for k, step in enumerate(steps)], **RUN)


# A model, what it is given, and what it answers without MLflow.
CASES = {
    "classes of arrays": lambda: (fit(PrivateLogisticRegression(**RUN, **CLASSES)), FRAME, X),
    "classes of named columns": lambda: (
        fit(PrivateLogisticRegression(**RUN, **CLASSES), FRAME),
        FRAME,
        FRAME,
    ),
    "numbers": lambda: (
        fit(PrivateRidge(**RUN, target_bounds=(0, 20), feature_bounds=(0, 10)), y=NUMBERS),
        FRAME,
        X,
    ),
    "counts": lambda: (
        fit(PrivatePoissonRegressor(9, **RUN, feature_bounds=(0, 10)), y=NUMBERS // 3),
        FRAME,
        X,
    ),
    "a table": lambda: (with_schema(), TABLE, TABLE),
    "a ranker": lambda: (
        fit(PrivateRanker(**RUN), y=(LABELS == "yes") * 1.0, qid=np.repeat(range(30), 10)),
        FRAME,
        X,
    ),
    "quantiles, then classes": lambda: (
        fit(pipeline(PrivateQuantileScaler(), PrivateLogisticRegression(**CLASSES))),
        FRAME,
        X,
    ),
    "an encoder, then classes": lambda: (
        fit(pipeline(SchemaEncoder(SCHEMA), PrivateLogisticRegression(**CLASSES)), TABLE),
        TABLE,
        TABLE,
    ),
    "a selector": lambda: (fit(PrivateFeatureSelector(2, **RUN, **CLASSES)), FRAME, X),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_mlflow_gives_back_what_was_fitted(case, tmp_path):
    model, given, rows = case()
    fitted = model.estimator if isinstance(model, Model) else model
    save_pyfunc(model, tmp_path / "model")
    again = pyfunc.load_model(str(tmp_path / "model"))
    selects = isinstance(model, PrivateFeatureSelector)
    assert np.array_equal(
        again.predict(given), (model.transform if selects else model.predict)(rows)
    )
    stored = again.metadata.metadata
    assert json.loads(stored["hushfit_guarantee"]) == fitted.privacy_.to_dict()
    assert stored["unit_of_privacy"] == "one row" or "list" in stored["unit_of_privacy"]
    assert not [*Path(tmp_path).rglob("*.pkl")]


def test_a_network_comes_back(tmp_path):
    torch = pytest.importorskip("hushfit.torch", reason="torch is not installed")
    from hushfit.torch.solvers import NetworkSGD

    settings = {"solver": NetworkSGD(2, 1.0), "feature_bounds": (0, 10), **CLASSES}
    model = torch.PrivateMLPClassifier((5,), delta=1e-3, **settings).fit(X, LABELS)
    save_pyfunc(model, tmp_path / "model")
    again = pyfunc.load_model(str(tmp_path / "model"))
    assert np.array_equal(again.predict(FRAME), model.predict(X))


def test_a_changed_file_is_refused(tmp_path):
    save_pyfunc(fit(PrivateLogisticRegression(**RUN, **CLASSES)), tmp_path / "model")
    [file] = Path(tmp_path).rglob("model.hushfit")
    file.write_text(file.read_text().replace("0.", "1.", 1))
    with pytest.raises(InvalidArgument, match="changed after it was written"):
        pyfunc.load_model(str(tmp_path / "model"))
