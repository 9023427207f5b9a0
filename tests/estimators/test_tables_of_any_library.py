"""Tables of any library are fitted directly: pandas, polars, Arrow, DuckDB give the same model."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hushfit import PrivateLinearRegression, PrivateLogisticRegression, load_model, save_model
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.errors import InvalidArgument
from hushfit.preprocessing import PrivatePipeline, SchemaEncoder

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

GENERATOR = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": GENERATOR.integers(20, 80, 500),
        "dose": np.where(GENERATOR.random(500) < 0.2, np.nan, GENERATOR.uniform(0, 5, 500)),
        "smokes": GENERATOR.random(500) < 0.3,
        "who": GENERATOR.integers(0, 200, 500),
        "ill": GENERATOR.integers(0, 2, 500),
    }
)
BOUNDS = ([20, 0, 0], [80, 5, 1])


def duckdb_relation(frame):
    return pytest.importorskip("duckdb").from_arrow(pa.Table.from_pandas(frame))


LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy polars": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": pa.Table.from_pandas,
    "reader": lambda frame: pa.Table.from_pandas(frame).to_reader(),
    "duckdb": duckdb_relation,
}


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_every_library_gives_the_same_model(library):
    settings = {"feature_bounds": BOUNDS, "classes": [0, 1], "random_state": 0}
    X = FRAME[["age", "dose", "smokes"]].to_numpy(dtype=float)
    expected = PrivateLogisticRegression(**settings).fit(X, FRAME["ill"], groups=FRAME["who"])
    found = PrivateLogisticRegression(**settings).fit(library(FRAME), "ill", groups="who")
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.feature_names_in_.tolist() == ["age", "dose", "smokes"]
    rows = library(FRAME.drop(columns="ill"))
    np.testing.assert_array_equal(found.predict_proba(rows), expected.predict_proba(X))


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_regressors_and_encoders_take_them_too(library):
    model = PrivateLinearRegression(
        target_bounds=(0, 5), feature_bounds=([20, 0], [80, 1]), random_state=0
    )
    whole = FRAME[["age", "smokes", "dose"]].fillna({"dose": 1.0}).astype({"smokes": float})
    found = model.fit(library(whole), "dose")
    assert found.coef_.shape == (2,)
    schema = Schema((NumericColumn("age", 0, 100), CategoricalColumn("smokes", ("0", "1"))))
    encoder = SchemaEncoder(schema).fit(library(FRAME))
    encoded = encoder.transform(library(FRAME))
    np.testing.assert_array_equal(encoded, SchemaEncoder(schema).fit_transform(FRAME))


def test_a_name_that_is_no_column_is_refused():
    with pytest.raises(InvalidArgument, match="y='sick' names a column"):
        PrivateLogisticRegression(classes=[0, 1]).fit(FRAME, "sick")
    with pytest.raises(InvalidArgument, match="y='ill' names a column"):
        PrivateLogisticRegression(classes=[0, 1]).fit(FRAME.to_numpy(), "ill")


@pytest.mark.parametrize("library", [LIBRARIES["pandas"], pl.from_pandas, pa.Table.from_pandas])
def test_dates_are_refused_with_the_remedy(library):
    dates = pd.to_datetime("2020-01-01") + pd.to_timedelta(FRAME["age"], unit="D")
    frame = library(pd.DataFrame({"age": FRAME["age"], "when": dates, "ill": FRAME["ill"]}))
    with pytest.raises(InvalidArgument, match=r"in 'when'\. Make numbers"):
        PrivateLogisticRegression(classes=[0, 1], feature_bounds=(0, 100)).fit(frame, "ill")


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_pipelines_and_model_files_take_raw_tables(library, tmp_path):
    """Of texts and gaps, with the names of target and ids: as in a file."""
    raw = FRAME.assign(sex=np.where(FRAME["age"] % 2, "f", "m"))
    schema = Schema((NumericColumn("age", 20, 80), CategoricalColumn("sex", ("f", "m"))))

    def pipeline():
        steps = [
            ("encode", SchemaEncoder(schema)),
            ("model", PrivateLogisticRegression(classes=[0, 1])),
        ]
        return PrivatePipeline(steps, epsilon=1.0, delta=1e-5, random_state=0)

    expected = pipeline().fit(raw.drop(columns="who"), raw["ill"], groups=raw["who"])
    found = pipeline().fit(library(raw), "ill", groups="who")
    np.testing.assert_array_equal(found["model"].coef_, expected["model"].coef_)
    np.testing.assert_array_equal(found.predict(library(raw)), expected.predict(raw))
    save_model(found, tmp_path / "pipeline.json")
    stored = load_model(tmp_path / "pipeline.json").estimator
    np.testing.assert_array_equal(stored.predict(library(raw)), expected.predict(raw))
