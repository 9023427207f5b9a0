"""Preprocessing and pipelines with ``groups``: every step protects the same persons, or none."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import cross_validate
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from hushfit import Ledger, PrivateFeatureSelector, PrivateLogisticRegression
from hushfit.data.schema import CategoricalColumn, Schema
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.preprocessing import (
    BoundedScaler,
    PrivatePipeline,
    PrivateQuantileScaler,
    SchemaEncoder,
    pipeline_guarantee,
)
from hushfit.privacy import compose
from hushfit.unit import AccountUnit, PrivacyUnit

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
over_frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
pytestmark = pytest.mark.usefixtures("quiet_fits")


def visits(frame=pd.DataFrame, persons=400, most=4, seed=0):
    """A table of persons with one to ``most`` rows each, and their labels."""
    rng = np.random.default_rng(seed)
    person = rng.permutation(np.repeat(np.arange(persons), rng.integers(1, most + 1, persons)))
    a, b = rng.normal(size=(2, len(person)))
    texts = rng.choice(["red", "green", "blue"], size=len(person))
    ids = [f"p{one:03}" for one in person]
    table = frame({"a": a, "patient_id": ids, "b": 50 + 10 * b, "colour": texts})
    return table, (a + 0.5 * rng.normal(size=len(a)) > 0).astype(int)


def model(**settings):
    return PrivateLogisticRegression(classes=[0, 1], **settings)


# Scalers


def test_quantiles_of_persons_do_not_move_with_the_rows_of_one():
    """Nine persons of ten have one row in [0, 1]; the others have fifty rows near 1000 each."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.random(900), 1000 + rng.random(5000)])[:, None]
    ids = np.concatenate([np.arange(900), 900 + np.repeat(np.arange(100), 50)])
    terms = {"epsilon": 20.0, "quantiles": (0.0, 0.8), "random_state": 0}
    by_rows = PrivateQuantileScaler(**terms).fit(X)
    by_persons = PrivateQuantileScaler(**terms).fit(X, groups=ids)
    assert by_rows.high_[0] > 900
    assert 0.7 < by_persons.high_[0] < 1.1
    assert by_persons.privacy_.unit == PrivacyUnit.person()
    assert "the number of persons, 1000" in by_persons.privacy_.public


def test_copies_of_a_row_under_one_id_leave_the_quantiles():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    scaler = PrivateQuantileScaler(epsilon=5.0, random_state=0)
    once = scaler.fit(X, groups=np.arange(500)).low_.copy()
    scaler.fit(np.repeat(X, 3, axis=0), groups=np.repeat(np.arange(500), 3))
    np.testing.assert_allclose(scaler.low_, once, rtol=1e-9)


@over_frames
@pytest.mark.parametrize(
    "scaler",
    [BoundedScaler((-100, 100)), PrivateQuantileScaler(epsilon=5.0, random_state=0)],
    ids=["public", "private"],
)
def test_a_scaler_leaves_the_column_of_ids_out(frame, scaler):
    table, _ = visits(frame)
    table = table[["a", "patient_id", "b"]]
    scaler = sklearn.clone(scaler)
    scaled = np.asarray(scaler.fit_transform(table, groups="patient_id"))
    assert list(scaler.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(np.asarray(scaler.transform(table[["a", "b"]])), scaled)


def test_a_public_range_ignores_who_the_rows_are_of():
    X = np.random.default_rng(0).normal(size=(20, 2))
    scaler = BoundedScaler((-3, 3))
    plain = scaler.fit_transform(X)
    np.testing.assert_array_equal(scaler.fit(X, groups=np.zeros(20)).transform(X), plain)
    with pytest.raises(InvalidArgument, match="one id for each row"):
        scaler.fit(X, groups=np.zeros(19))


# Encoders


def texts_of_persons():
    """Two hundred persons have "common"; one person has "own" in five hundred rows."""
    ids = np.concatenate([np.arange(200), np.full(500, 777)])
    return {"text": ["common"] * 200 + ["own"] * 500, "patient_id": ids}


def test_a_text_that_one_person_has_is_not_named_however_many_rows_have_it():
    table = texts_of_persons()
    encoder = SchemaEncoder(discover=["text"], epsilon=2.0, random_state=0)
    assert "own" in encoder.fit(table).schema_.columns[0].categories
    encoder.fit(table, groups="patient_id")
    assert encoder.schema_.columns[0].categories == ("common",)
    assert encoder.privacy_.unit == PrivacyUnit.person(column="patient_id")
    assert "1/sqrt(j)" in str(encoder.privacy_)
    assert encoder.n_features_in_ == 1
    np.testing.assert_array_equal(
        encoder.transform(table), encoder.transform({"text": table["text"]})
    )


def test_an_encoder_of_persons_pays_its_quote():
    table = texts_of_persons()
    ledger = Ledger(5.0, 1e-3, unit=AccountUnit("person", "patient_id"))
    encoder = SchemaEncoder(
        discover=["text"], epsilon=2.0, random_state=0, rows_per_person=10, ledger=ledger
    ).fit(table, groups="patient_id")
    assert ledger.total_cost == encoder.quote(201, 1, per_person=True).cost
    assert encoder.privacy_.unit.rows_per_person == 10


def test_the_column_of_ids_is_not_encoded():
    table = texts_of_persons()
    ledger = Ledger(5.0, 1e-3)
    listed = Schema((CategoricalColumn("patient_id", ("1", "2")),))
    for wrong in ({"discover": ["patient_id"]}, {"schema": listed, "discover": ["text"]}):
        with pytest.raises(InvalidArgument, match="'patient_id' has the ids of persons, and is"):
            SchemaEncoder(**wrong, ledger=ledger).fit(table, groups="patient_id")
    with pytest.raises(InvalidArgument, match="one id for each row"):
        SchemaEncoder(discover=["text"], ledger=ledger).fit(table, groups=[1, 2])
    uneven = {"text": ["a"] * 5, "other": ["b"] * 6}
    with pytest.raises(TooFewRows, match="there are 3 persons"):
        SchemaEncoder(discover=["text", "other"], ledger=ledger).fit(
            uneven, groups=[1, 1, 2, 2, 3, 3]
        )
    assert ledger.entries == ()


def test_a_public_schema_needs_nobody():
    table = texts_of_persons()
    encoder = SchemaEncoder(Schema((CategoricalColumn("text", ("common",)),)))
    encoder.fit(table, groups="patient_id")
    assert encoder.privacy_ is None
    assert encoder.n_features_in_ == 1


# Pipelines


def in_columns(**settings):
    """Private parts inside a column transformer and a feature union."""
    numbers = FeatureUnion([("scale", PrivateQuantileScaler(**settings))])
    return ColumnTransformer(
        [
            ("numbers", numbers, ["a", "b"]),
            ("texts", SchemaEncoder(discover=["colour"], **settings), ["colour"]),
        ],
        sparse_threshold=0,
    )


def pipeline(steps=None, **settings):
    steps = steps or [("prepare", in_columns()), ("model", model())]
    return PrivatePipeline(steps, **{"epsilon": 5.0, "delta": 1e-4, "random_state": 0, **settings})


def numbers(table):
    return table[["a", "b"]]


@over_frames
def test_every_part_of_a_pipeline_protects_the_same_persons(frame):
    table, y = visits(frame)
    ledger = Ledger(6.0, 1e-3, unit=AccountUnit("person", "patient_id"))
    fitted = pipeline(ledger=ledger).fit(table, y, groups="patient_id")
    unit = PrivacyUnit.person(column="patient_id")
    columns = fitted["prepare"].transformers_
    parts = [columns[0][1].transformer_list[0][1], columns[1][1], fitted["model"]]
    assert [part.privacy_.unit for part in parts] == [unit] * 3
    assert fitted.privacy_.unit == unit == fitted.person_unit("patient_id")
    assert [entry.unit for entry in ledger.entries] == [unit] * 3
    assert fitted.privacy_.cost == compose(part.privacy_.cost for part in parts)
    public = fitted.privacy_.public
    assert [text for text in public if "number of persons" in text] == [
        "the number of persons, 400"
    ]
    # The setting of scikit-learn that routes them is as before.
    assert not sklearn.get_config()["enable_metadata_routing"]
    # Rows to predict may still have the column of ids, or not.
    without = table[["a", "b", "colour"]]
    np.testing.assert_array_equal(fitted.predict_proba(table), fitted.predict_proba(without))
    assert fitted.score(table, y) == fitted.score(without, y) > 0.7


def test_a_guarantee_of_a_pipeline_does_not_depend_on_the_number_of_rows():
    table, y = visits()
    twice = pd.concat([table, table], ignore_index=True)
    texts = [
        pipeline().fit(rows, labels, groups="patient_id").privacy_.to_json()
        for rows, labels in ((table, y), (twice, np.concatenate([y, y])))
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "head",
    [Normalizer(), FunctionTransformer(), BoundedScaler((-100, 100)), "passthrough"],
    ids=str,
)
def test_steps_without_state_get_no_ids(head):
    table, y = visits()
    table = table[["a", "patient_id", "b"]]
    fitted = pipeline([("head", head), ("model", model())]).fit(table, y, groups="patient_id")
    assert fitted.privacy_.unit.is_person
    np.testing.assert_array_equal(fitted.predict(table), fitted.predict(numbers(table)))


def test_a_pipeline_of_steps_of_one_person_each_is_that_of_rows():
    table, y = visits()
    plain = pipeline().fit(table.drop(columns="patient_id"), y)
    steps = [("prepare", in_columns(rows_per_person=1)), ("model", model(rows_per_person=1))]
    persons = pipeline(steps).fit(table.drop(columns="patient_id"), y, groups=np.arange(len(y)))
    np.testing.assert_array_equal(persons["model"].coef_, plain["model"].coef_)


def test_pipelines_and_selectors_inside_a_pipeline_get_the_persons_too():
    table, y = visits()
    inner = PrivatePipeline([("scale", PrivateQuantileScaler())])
    steps = [
        ("inner", inner),
        ("select", PrivateFeatureSelector(1, classes=[0, 1])),
        ("model", model()),
    ]
    fitted = pipeline(steps).fit(numbers(table), y, groups=table["patient_id"])
    assert [part.privacy_.unit for _, part in fitted.steps] == [fitted.privacy_.unit] * 3
    assert fitted["inner"]["scale"].privacy_.unit == fitted.privacy_.unit
    assert fitted.privacy_.unit.column == "patient_id"


def test_a_pipeline_of_public_parts_has_the_unit_as_well():
    table, y = visits()
    schema = Schema((CategoricalColumn("colour", ("red", "green")),))
    fitted = pipeline([("encode", SchemaEncoder(schema))]).fit(table, y, groups="patient_id")
    assert fitted.privacy_.unit == PrivacyUnit.person(column="patient_id")
    assert fitted.transform(table).shape == (len(y), 3)


class OfRows(TransformerMixin, BaseEstimator):
    """A step that pays, and knows nothing of persons."""

    def __init__(self, epsilon=1, delta=1e-6, adjacency="replace-one", ledger=None, random_state=0):
        self.epsilon, self.delta, self.adjacency = epsilon, delta, adjacency
        self.ledger, self.random_state = ledger, random_state

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


WRONG = {
    "steps with other weights": (
        [("scale", PrivateQuantileScaler(rows_per_person=5)), ("model", model())],
        "'scale' protects one person .*first 5 rows.*and 'model' protects one person .*1000 rows",
    ),
    "steps with other rules": (
        [
            ("scale", PrivateQuantileScaler()),
            ("model", model(person_weight="cap", rows_per_person=3)),
        ],
        "different privacy units",
    ),
    "a step of rows": (
        [("own", OfRows()), ("model", model())],
        r"'own' \(OfRows\) takes no groups",
    ),
}


@pytest.mark.parametrize(("steps", "message"), WRONG.values(), ids=WRONG)
def test_steps_with_different_units_are_refused_and_nothing_is_spent(steps, message):
    table, y = visits()
    ledger = Ledger(10.0, 1e-3)
    with pytest.raises(InvalidArgument, match=message):
        pipeline(steps, ledger=ledger).fit(numbers(table), y, groups=table["patient_id"])
    assert ledger.entries == ()


@pytest.mark.parametrize(
    "groups",
    [lambda ids: ids[:-1], lambda ids: ["p"] * len(ids), lambda ids: "patient"],
    ids=["one too few", "all equal", "no column"],
)
def test_ids_are_checked_before_the_first_step_pays(groups):
    table, y = visits()
    ledger = Ledger(10.0, 1e-3)
    with pytest.raises(InvalidArgument):
        pipeline(ledger=ledger).fit(table, y, groups=groups(table["patient_id"].to_numpy()))
    with pytest.raises(InvalidArgument, match="X still has the column 'patient_id'"):
        pipeline(ledger=ledger).fit(table, y, groups=table["patient_id"])
    assert ledger.entries == ()


def test_weights_of_persons_without_ids_are_refused_before_the_first_step_pays():
    table, y = visits()
    ledger = Ledger(10.0, 1e-3)
    nested = PrivatePipeline([("scale", PrivateQuantileScaler(rows_per_person=2))])
    for steps in (
        [("scale", PrivateQuantileScaler()), ("model", model(rows_per_person=2))],
        [("select", PrivateFeatureSelector(1, classes=[0, 1])), ("nested", nested)],
    ):
        with pytest.raises(InvalidArgument, match="no groups were given"):
            pipeline(steps, ledger=ledger).fit(numbers(table), y)
    assert ledger.entries == ()


def test_parts_charged_separately_compose_only_for_the_same_unit():
    table, y = visits()
    ids = table["patient_id"]
    plain = Pipeline(
        [
            ("scale", PrivateQuantileScaler(delta=1e-4, random_state=0)),
            ("model", model(delta=1e-4, random_state=0)),
        ]
    )
    plain.fit(numbers(table), y, scale__groups=ids, model__groups=ids)
    assert pipeline_guarantee(plain).unit == PrivacyUnit.person(column="patient_id")
    plain.fit(numbers(table), y, model__groups=ids)
    with pytest.raises(InvalidArgument, match="'scale' protects one row, and 'model' protects one"):
        pipeline_guarantee(plain)


@pytest.mark.parametrize("routing", [True, False], ids=["routed", "plain"])
def test_a_pipeline_is_cross_validated_with_its_ids(routing):
    table, y = visits(persons=150)
    with sklearn.config_context(enable_metadata_routing=routing):
        whole = pipeline(steps=[("scale", PrivateQuantileScaler()), ("model", model())])
        if routing:
            whole.set_fit_request(groups=True)
        params = {"groups": table["patient_id"]}
        found = cross_validate(whole, numbers(table), y, params=params, cv=2, return_estimator=True)
    assert all(fitted.privacy_.unit.column == "patient_id" for fitted in found["estimator"])


def test_a_pipeline_inside_a_plain_one_is_given_its_ids():
    table, y = visits(persons=150)
    with sklearn.config_context(enable_metadata_routing=True):
        terms = {"delta": 1e-4, "random_state": 0}
        whole = Pipeline(
            [
                (
                    "head",
                    pipeline([("scale", PrivateQuantileScaler())]).set_fit_request(groups=True),
                ),
                ("model", model(**terms).set_fit_request(groups=True)),
            ]
        ).fit(numbers(table), y, groups=table["patient_id"])
        assert len(whole.predict(numbers(table))) == len(y)
    assert whole["head"].privacy_.unit == whole["model"].privacy_.unit
    assert whole["model"].privacy_.unit.column == "patient_id"


def test_other_metadata_is_still_refused():
    table, y = visits()
    with pytest.raises(InvalidArgument, match="takes no sample_weight"):
        pipeline().fit(table, y, groups="patient_id", sample_weight=np.ones(len(y)))


def test_without_privacy_the_steps_still_weigh_persons():
    table, y = visits()
    fitted = pipeline(epsilon=math.inf).fit(table, y, groups="patient_id")
    assert fitted.privacy_.nonprivate
    assert fitted.privacy_.unit.is_person
