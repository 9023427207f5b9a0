"""Fits with ``groups``: one person with all of their rows is protected, and nothing tells how many
rows there are.
"""

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from hushfit import (
    Ledger,
    PrivateElasticNet,
    PrivateFeatureSelector,
    PrivateGraphLogisticRegression,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
)
from hushfit.data import persons_of
from hushfit.errors import HushfitError, InvalidArgument, LedgerError
from hushfit.unit import AccountUnit, PrivacyUnit

TERMS = {"delta": 1e-4, "random_state": 0}
LABELS = {"classes": [-1.0, 1.0], **TERMS}
TARGETS = {"target_bounds": (-1, 1), **TERMS}
ESTIMATORS = {
    "logistic": PrivateLogisticRegression(**LABELS),
    "svc": PrivateLinearSVC(penalty="l1", alpha=1e-3, **LABELS),
    "batches": PrivateLogisticRegression(solver="dp-sgd", **LABELS),
    "public graph": PrivateGraphLogisticRegression(graph=[(0, 1)], **LABELS),
    "private graph": PrivateGraphLogisticRegression(**LABELS),
    "lasso": PrivateLasso(**TARGETS),
    "elastic net": PrivateElasticNet(**TARGETS),
    "ranking": PrivateFeatureSelector(2, **LABELS),
    "sparse selection": PrivateFeatureSelector(**LABELS),
}
over_estimators = pytest.mark.parametrize("name", ESTIMATORS)
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
over_frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
pytestmark = pytest.mark.usefixtures("quiet_fits")


def estimator(name="logistic", **settings):
    return sklearn.clone(ESTIMATORS[name]).set_params(**settings)


def visits(persons=80, most=6, seed=0):
    """Rows of persons with one to ``most`` rows each, their labels, and texts as ids."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(persons), rng.integers(1, most + 1, size=persons))
    person = rng.permutation(person)
    X = rng.normal(size=(persons, 4))[person] + rng.normal(size=(len(person), 4))
    y = np.where(X[:, 0] + rng.normal(size=len(X)) > 0, 1.0, -1.0)
    return X, y, np.array([f"p{number:03}" for number in person])


def learnt(model):
    """What a fit has released."""
    if isinstance(model, PrivateFeatureSelector):
        return model.scores_
    return np.append(model.coef_, model.intercept_)


# The guarantee


@over_estimators
def test_the_guarantee_is_for_persons_and_says_how_rows_are_put_together(name):
    X, y, ids = visits()
    model = estimator(name, rows_per_person=7)
    model.fit(X, y, groups=pd.Series(ids, name="patient_id"))
    assert model.privacy_.unit == PrivacyUnit.person("mean", 7, "patient_id")
    text = " ".join(str(model.privacy_).split())
    for part in (
        "replacing all rows of one person",
        "The unit of privacy is one person: persons by column 'patient_id'",
        "rows of a person with k rows weigh 1/k each; the first 7 rows of a person are used",
        "Taken as public: the number of persons, 80;",
    ):
        assert part in text
    assert "number of rows" not in text.replace("the number of rows is not)", "")


def test_weights_with_a_cap_are_stated_too():
    X, y, ids = visits()
    model = estimator(person_weight="cap", rows_per_person=3).fit(X, y, groups=ids)
    text = " ".join(str(model.privacy_).split())
    assert "persons by the ids given" in text
    assert "weigh 1/max(k, 3) each" in text


def with_copies(X, y, ids, copies):
    return np.repeat(X, copies, axis=0), np.repeat(y, copies), np.repeat(ids, copies)


def traces(model, table, capfd):
    """Everything public about a fit: its guarantee, messages, and the shapes it stores."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*table)
    shapes = {
        key: (np.shape(value), type(value))
        for key, value in vars(model).items()
        if key != "privacy_"
    }
    printed = capfd.readouterr()
    return (
        model.privacy_.to_json(),
        str(model.privacy_),
        repr(model),
        shapes,
        [str(one.message) for one in caught],
        printed.out + printed.err,
        getattr(model, "n_iter_", None),
    )


@over_estimators
def test_nothing_public_depends_on_the_number_of_rows(name, capfd):
    """Not even where rows are above the bound: a warning would tell that somebody has as many."""
    model = estimator(name, rows_per_person=8)
    if "verbose" in model.get_params():
        model.set_params(verbose=1)
    first, second = (traces(model, with_copies(*visits(), copies), capfd) for copies in (1, 9))
    assert first == second


@over_estimators
def test_a_quote_for_persons_is_what_a_fit_pays(name):
    X, y, ids = visits()
    ledger = Ledger(10.0, 1e-3, unit="person")
    model = estimator(name, ledger=ledger).fit(X, y, groups=ids)
    assert model.quote(80, 4, per_person=True).cost == ledger.total_cost
    assert ledger.entries[0].unit == model.privacy_.unit


# Weights


@over_estimators
def test_every_row_its_own_person_is_the_fit_of_rows_to_the_last_bit(name):
    X, y, _ = visits()
    rows = learnt(estimator(name).fit(X, y))
    alone = estimator(name, rows_per_person=1).fit(X, y, groups=np.arange(len(X)))
    np.testing.assert_array_equal(learnt(alone), rows)


def test_a_seed_draws_the_same_batches_of_persons_again():
    X, y, ids = visits()
    first, second = (learnt(estimator("batches").fit(X, y, groups=ids)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_larger_bound_adds_only_its_room_for_rounding():
    X, y, _ = visits()
    rows = estimator(solver="ss-admm").fit(X, y)
    persons = estimator(solver="ss-admm").fit(X, y, groups=np.arange(len(X)))
    np.testing.assert_allclose(learnt(persons), learnt(rows), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("copies", [2, 3, 5])
@pytest.mark.parametrize("name", ["logistic", "svc", "lasso", "ranking"])
def test_copies_of_a_row_under_one_id_count_as_the_row(name, copies):
    X, y, _ = visits()
    once = estimator(name, rows_per_person=5).fit(X, y, groups=np.arange(len(X)))
    many = estimator(name, rows_per_person=5).fit(*with_copies(X, y, np.arange(len(X)), copies))
    np.testing.assert_allclose(learnt(many), learnt(once), rtol=1e-5, atol=1e-6)


def test_with_a_cap_a_person_with_few_rows_counts_less():
    """Without noise the fit is that of rows with these weights: two of three rows at 1/2, or one
    row at 1/2, leave the same minimum as whole rows of one person each.
    """
    X, y, _ = visits()
    settings = {"epsilon": math.inf, "penalty": None, "solver": "auto"}
    whole = estimator(**settings).fit(X, y, groups=np.arange(len(X)))
    half = estimator(person_weight="cap", rows_per_person=2, **settings)
    half.fit(X, y, groups=np.arange(len(X)))
    np.testing.assert_allclose(learnt(half), learnt(whole), rtol=1e-3, atol=1e-4)
    # Where some rows count once and others half, the minimum is another one.
    ids = np.where(np.arange(len(X)) < 40, np.arange(len(X)) // 2, np.arange(len(X)))
    mixed = estimator(person_weight="cap", rows_per_person=2, **settings).fit(X, y, groups=ids)
    mean = estimator(**settings).fit(X, y, groups=ids)
    assert np.abs(learnt(mixed) - learnt(mean)).max() > 0.01


def test_rows_above_the_bound_are_not_used():
    X, y, ids = visits(most=6)
    place = pd.Series(ids).groupby(ids).cumcount().to_numpy()
    kept = place < 2
    assert not kept.all()
    model = estimator(rows_per_person=2)
    some = learnt(model.fit(X[kept], y[kept], groups=ids[kept]))
    np.testing.assert_array_equal(learnt(model.fit(X, y, groups=ids)), some)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(["logistic", "lasso", "ranking"]))
def test_neither_the_order_of_rows_nor_the_names_of_persons_matter(seed, name):
    X, y, ids = visits(persons=40)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    other_names = {one: f"{number}-{one}" for number, one in enumerate(rng.permutation(ids))}
    renamed = np.array([other_names[one] for one in ids])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = learnt(estimator(name).fit(X, y, groups=ids))
        second = learnt(estimator(name).fit(X[order], y[order], groups=renamed[order]))
    np.testing.assert_array_equal(second, first)


def test_sparse_rows_of_persons_are_fitted_as_dense_ones():
    X, y, ids = visits()
    X = X * (np.random.default_rng(1).random(X.shape) < 0.5)
    dense = learnt(estimator().fit(X, y, groups=ids))
    np.testing.assert_allclose(
        learnt(estimator().fit(sparse.csr_array(X), y, groups=ids)), dense, rtol=1e-6, atol=1e-9
    )


# Data frames


def as_frame(frame, X, ids):
    return frame({"a": X[:, 0], "b": X[:, 1], "patient_id": ids, "c": X[:, 2], "d": X[:, 3]})


@over_frames
@pytest.mark.parametrize("name", ["logistic", "lasso", "ranking", "private graph"])
def test_a_column_of_ids_is_named_and_is_no_feature(name, frame):
    X, y, ids = visits()
    table = as_frame(frame, X, ids)
    features = table[["a", "b", "c", "d"]]
    model = estimator(name).fit(table, y, groups="patient_id")
    assert model.privacy_.unit.column == "patient_id"
    assert list(model.feature_names_in_) == ["a", "b", "c", "d"]
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(
        learnt(model), learnt(estimator(name).fit(X, y, groups=ids.tolist()))
    )
    # Rows to predict may still have the column, or not.
    use = model.transform if name == "ranking" else model.predict
    np.testing.assert_array_equal(np.asarray(use(table)), np.asarray(use(features)))


@over_frames
def test_a_series_names_its_column(frame):
    X, y, ids = visits()
    table = as_frame(frame, X, ids)
    model = estimator().fit(table[["a", "b", "c", "d"]], y, groups=table["patient_id"])
    assert model.privacy_.unit.column == "patient_id"
    assert len(model.predict(table)) == len(X)
    assert estimator().fit(X, y, groups=pd.Series(ids)).privacy_.unit.column is None
    assert estimator().fit(X, y, groups=pl.Series(ids)).privacy_.unit.column is None
    assert estimator().fit(X, y, groups=pd.Series(ids, name=3)).privacy_.unit.column is None


def test_ids_in_another_order_than_the_rows_are_refused():
    """By position, the ids of other rows would be taken."""
    X, y, ids = visits()
    table, ledger = as_frame(pd.DataFrame, X, ids), Ledger(10.0, 1e-3, unit="person")
    with pytest.raises(InvalidArgument, match="index is not that of X"):
        estimator(ledger=ledger).fit(table[["a", "b"]], y, groups=table["patient_id"].iloc[::-1])
    assert ledger.entries == ()


def test_another_column_than_that_of_the_ids_is_still_refused_when_predicting():
    X, y, ids = visits()
    table = as_frame(pd.DataFrame, X, ids)
    model = estimator().fit(table, y, groups="patient_id")
    with pytest.raises(ValueError, match="unseen at fit time:\n- further"):
        model.predict(table.assign(further=1.0))


# Missing ids


def with_gaps(kind, numbers, missing):
    """The same ids, some missing, in several types."""
    if kind == "None":
        return np.array(
            [None if gone else f"p{one}" for one, gone in zip(numbers, missing, strict=True)],
            dtype=object,
        )
    if kind == "float NaN":
        return np.where(missing, np.nan, numbers.astype(float))
    if kind == "NaN among texts":
        return pd.Series(numbers).astype(str).where(~missing, np.nan).to_numpy(dtype=object)
    if kind == "NaT":
        days = np.datetime64("2020-01-01") + numbers.astype("timedelta64[D]")
        return np.where(missing, np.datetime64("NaT", "D"), days)
    if kind == "pd.NA among texts":
        return pd.Series([f"p{one}" for one in numbers], dtype=object).where(~missing, pd.NA)
    if kind == "pd.NA":
        return pd.Series(numbers, dtype="Int64").where(~missing, pd.NA)
    return pl.Series(numbers).scatter(np.flatnonzero(missing), None)


@pytest.mark.parametrize(
    "kind",
    ["None", "float NaN", "NaN among texts", "NaT", "pd.NA", "pd.NA among texts", "polars null"],
)
def test_a_row_without_an_id_is_its_own_person(kind):
    X, y, ids = visits()
    numbers = np.unique(ids, return_inverse=True)[1]
    missing = np.random.default_rng(3).random(len(X)) < 0.2
    model = estimator().fit(X, y, groups=with_gaps(kind, numbers, missing))
    alone = np.where(missing, 1000 + np.arange(len(X)), numbers)
    np.testing.assert_array_equal(learnt(model), learnt(estimator().fit(X, y, groups=alone)))
    assert f"the number of persons, {len(np.unique(alone))}" in model.privacy_.public


def test_large_whole_numbers_are_not_mistaken_for_each_other():
    """Two persons whose ids are one float."""
    X, y, _ = visits()
    ids = np.where(np.arange(len(X)) % 2, 2**53, 2**53 + 1)
    assert "the number of persons, 2" in estimator().fit(X, y, groups=ids).privacy_.public


# Refusals, before anything is paid

N_ROWS = len(visits()[0])
CELL = float(visits()[0][0, 0])
WRONG = {
    "one id too few": {"groups": lambda ids: ids[:-1]},
    "one id too many": {"groups": lambda ids: [*ids, "p"]},
    "no ids": {"groups": lambda ids: []},
    "two columns of ids": {"groups": lambda ids: np.column_stack([ids, ids])},
    "a frame of ids": {"groups": lambda ids: pd.DataFrame({"id": ids})},
    "a mapping": {"groups": lambda ids: {"id": ids}},
    "a number": {"groups": lambda ids: 3},
    "one for all": {"groups": lambda ids: np.array(7)},
    "a name, but no names": {"groups": lambda ids: "patient_id"},
    "all ids equal": {"groups": lambda ids: ["p"] * len(ids)},
    "ids that are no ids": {"groups": lambda ids: [{} for _ in ids]},
    "labels too few": {"y": lambda y: y[:-1]},
    "two columns of labels": {"y": lambda y: np.c_[y, y]},
    "a frame of labels": {"y": lambda y: pd.DataFrame({"a": y, "b": y})},
    "labels of different lengths": {"y": lambda y: [[1.0], *y[1:]]},
    "one label": {"y": lambda y: 1.0},
    "one feature in one dimension": {"X": lambda X: X[:, 0]},
    "a list in one dimension": {"X": lambda X: X[:, 0].tolist()},
    "three dimensions": {"X": lambda X: X[:, :, None]},
    "rows of different lengths": {"X": lambda X: [[1.0], *X[1:].tolist()]},
    "no features": {"X": lambda X: X[:, :0]},
    "one value": {"X": lambda X: np.array(CELL)},
    "texts for features": {"X": lambda X: np.full(X.shape, "a secret")},
    "no rows used": {"rows_per_person": 0},
    "half a row": {"rows_per_person": 2.5},
    "a truth value": {"rows_per_person": True},
    "beyond the proof": {"rows_per_person": 10**6 + 1},
    "unknown weights": {"person_weight": "median"},
    "a cap of nothing": {"person_weight": "cap"},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("name", ["logistic", "lasso", "ranking"])
def test_what_makes_no_persons_is_refused_and_nothing_is_spent(name, wrong):
    wrong = dict(wrong)
    X, y, ids = visits()
    X, y = wrong.pop("X", np.array)(X), wrong.pop("y", np.array)(y)
    groups = wrong.pop("groups", np.array)(ids)
    ledger = Ledger(10.0, 1e-3)
    # Three dimensions are refused by scikit-learn, which tells their number only.
    with pytest.raises(ValueError) as refused:
        estimator(name, ledger=ledger, **wrong).fit(X, y, groups=groups)
    assert ledger.entries == ()
    assert isinstance(refused.value, InvalidArgument) or "with dim 3" in str(refused.value)
    # The number of rows is private, and numbers near it tell it too.
    told = [str(N_ROWS + more) for more in (-1, 0, 1)]
    told += [f"{CELL:.4f}"[:-1], "a secret"]
    assert not any(number in str(refused.value) for number in told)


@pytest.mark.parametrize("given", [{"rows_per_person": 3}, {"person_weight": "cap"}], ids=repr)
@over_estimators
def test_weights_of_persons_without_ids_are_refused(name, given):
    X, y, _ = visits()
    ledger = Ledger(10.0, 1e-3)
    with pytest.raises(InvalidArgument, match="no groups were given: the guarantee would protect"):
        estimator(name, ledger=ledger, **given).fit(X, y)
    assert ledger.entries == ()


def test_sample_weights_are_refused_with_ids_too():
    X, y, ids = visits()
    ledger = Ledger(10.0, 1e-3)
    with pytest.raises(InvalidArgument, match="sample_weight is refused"):
        estimator(ledger=ledger).fit(X, y, groups=ids, sample_weight=np.ones(len(X)))
    assert ledger.entries == ()


def test_a_column_that_is_missing_twice_there_or_a_feature_too_is_refused():
    X, y, ids = visits()
    table = as_frame(pd.DataFrame, X, ids)
    with pytest.raises(InvalidArgument, match="groups='patient' names a column, but X has none"):
        estimator().fit(table, y, groups="patient")
    twice = pd.concat([table, table[["patient_id"]]], axis=1)
    with pytest.raises(InvalidArgument, match="but X has 2 of that name"):
        estimator().fit(twice, y, groups="patient_id")
    with pytest.raises(InvalidArgument, match="X still has the column 'patient_id' of the ids"):
        estimator().fit(table, y, groups=table["patient_id"])


def test_an_account_of_persons_refuses_a_fit_of_rows_and_ids_of_others():
    X, y, ids = visits()
    ledger = Ledger(10.0, 1e-3, unit=AccountUnit("person", "patient_id"))
    model = estimator(ledger=ledger)
    with pytest.raises(LedgerError, match="for one row, but the account protects one person"):
        model.fit(X, y)
    with pytest.raises(LedgerError, match="persons by column 'doctor_id'"):
        model.fit(X, y, groups=pd.Series(ids, name="doctor_id"))
    assert ledger.entries == ()
    model.fit(X, y, groups=pd.Series(ids, name="patient_id"))
    assert len(ledger.entries) == 1


def test_persons_that_were_put_together_otherwise_are_refused():
    X, y, ids = visits()
    persons = persons_of(ids, len(X), PrivacyUnit.person("mean", 5))
    # Another number of rows, or other settings.
    with pytest.raises(InvalidArgument, match="one id for each row"):
        estimator(rows_per_person=5).fit(X[1:], y[1:], groups=persons)
    with pytest.raises(InvalidArgument, match="PrivateLogisticRegression would protect one person"):
        estimator().fit(X, y, groups=persons)
    same = estimator(rows_per_person=5)
    np.testing.assert_array_equal(
        learnt(same.fit(X, y, groups=persons)), learnt(same.fit(X, y, groups=ids))
    )


@pytest.mark.parametrize("solver", ["nsgd", "dp-vradmm", "objective", "rsgd-ar"])
def test_a_solver_protects_persons_or_refuses_before_it_pays(solver):
    X, y, ids = visits()
    ledger = Ledger(10.0, 1e-3)
    model = estimator(ledger=ledger, solver=solver, penalty="l2", alpha=0.1)
    try:
        model.fit(X, y, groups=ids)
    except HushfitError:
        assert ledger.entries == ()
    else:
        assert model.privacy_.unit.is_person
        assert ledger.total_cost == model.privacy_.cost


# Metadata routing


def test_groups_reach_a_step_of_a_plain_pipeline_by_its_name():
    X, y, ids = visits()
    pipeline = Pipeline([("scale", Normalizer()), ("model", estimator())])
    pipeline.fit(X, y, model__groups=ids)
    assert pipeline["model"].privacy_.unit.is_person


@over_estimators
def test_groups_are_routed_as_metadata(name):
    X, y, ids = visits()
    with sklearn.config_context(enable_metadata_routing=True):
        model = estimator(name).set_fit_request(groups=True)
        pipeline = Pipeline([("scale", Normalizer()), ("model", model)]).fit(X, y, groups=ids)
        assert pipeline["model"].privacy_.unit.is_person
        unset = Pipeline([("scale", Normalizer()), ("model", estimator(name))])
        with pytest.raises(UnsetMetadataPassedError, match="groups"):
            unset.fit(X, y, groups=ids)


@pytest.mark.parametrize("routing", [True, False], ids=["routed", "plain"])
def test_cross_validation_gives_each_fold_its_ids(routing):
    X, y, ids = visits(persons=60)
    folds = GroupKFold(3)
    with sklearn.config_context(enable_metadata_routing=routing):
        model = estimator().set_fit_request(groups=True) if routing else estimator()
        cv = folds if routing else list(folds.split(X, y, ids))
        found = cross_validate(model, X, y, params={"groups": ids}, cv=cv, return_estimator=True)
    for fitted in found["estimator"]:
        assert fitted.privacy_.unit.is_person
        assert "the number of persons, 40" in fitted.privacy_.public
