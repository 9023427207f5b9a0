"""Models of formulas: columns by the schema alone, ranges by interval arithmetic, refusals."""

import numpy as np
import pandas as pd
import patsy
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone

from hushfit import (
    Ledger,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePoissonRegressor,
    PrivateRidge,
)
from hushfit.data.design.formula import FormulaDesign
from hushfit.data.schema import (
    CategoricalColumn,
    CountTarget,
    DateColumn,
    HashedColumn,
    NumericColumn,
    Schema,
)
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.models import load_model, save_model

pytestmark = pytest.mark.usefixtures("quiet_fits")

COLUMNS = (
    NumericColumn("age", 20, 90),
    NumericColumn("pay", 1, 500),
    CategoricalColumn("ward", ("a", "b", "c")),
    CategoricalColumn("sex", ("f", "m")),
    HashedColumn("icd", 4),
    DateColumn("seen", "2020-01-01", "2020-12-31"),
)
TARGETS = {
    "ill": CategoricalColumn("ill", ("no", "yes")),
    "days": NumericColumn("days", -8, 20),
    "visits": CountTarget("visits", 12),
}
KINDS = {
    "ill": PrivateLogisticRegression,
    "days": PrivateLinearRegression,
    "visits": PrivatePoissonRegressor,
}


def schema(target="ill", **more):
    return Schema(COLUMNS, TARGETS[target], **more)


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    age, pay = rng.uniform(20, 90, n), rng.uniform(1, 500, n)
    ward, sex = rng.choice(list("abc"), n), rng.choice(list("fm"), n)
    eta = 0.02 * (age - 55) + 0.5 * (ward == "b") - 0.3 * (sex == "m") * (ward == "c")
    return pd.DataFrame(
        {
            "age": age,
            "pay": pay,
            "ward": ward,
            "sex": sex,
            "ill": np.where(rng.random(n) < expit(eta), "yes", "no"),
            "days": np.clip(4 + 2 * eta + rng.normal(size=n), -8, 20),
            "visits": np.minimum(rng.poisson(np.exp(eta / 2)), 12),
            "id": rng.integers(0, n // 2, n),
        }
    )


FORMULAS = [
    "age * C(ward)",
    "ward:sex",
    "age:ward",
    "ward * sex * age",
    "np.log(pay) + I(age ** 2)",
    "ward + ward:sex",
    "age:pay + ward:age:sex",
    "(age + ward + sex) ** 2",
    'C(ward, Treatment("b")) + np.sqrt(pay)',
]


@pytest.mark.parametrize("right", FORMULAS)
def test_columns_are_those_of_patsy(right):
    rows = table(200)
    design = FormulaDesign(f"ill ~ {right}", schema())
    plain = patsy.dmatrix(right, rows, return_type="dataframe")
    assert sorted(_plain(design.names)) == sorted(_plain(plain.columns[1:]))
    found = design.rows(rows)
    expected = {_plain([name])[0]: plain[name].to_numpy() for name in plain.columns}
    for name, column in zip(_plain(design.names), found.T, strict=True):
        np.testing.assert_allclose(column, expected[name], rtol=1e-9)
    low, high = np.array(design.bounds).T
    assert np.all(found >= low - 1e-9 * np.abs(low))
    assert np.all(found <= high + 1e-9 * np.abs(high))


def _plain(names):
    return [str(name).replace("'", '"').replace(" ", "") for name in names]


EXPRESSIONS = [
    "age",
    "I(age ** 2)",
    "I((age - 50) ** 3)",
    "I(age * pay - age)",
    "log(pay)",
    "I(-age / pay)",
    "log1p(abs(age - 50))",
    "I((age - 55) ** 2 * sqrt(pay))",
    "I(pay ** -1)",
    "I(exp(age / 30) - pay)",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
@given(age=st.floats(20, 90), pay=st.floats(1, 500))
@settings(max_examples=40, deadline=None)
def test_ranges_hold_for_every_value_in_the_ranges_of_the_columns(text, age, pay):
    design = FormulaDesign(f"ill ~ {text}", schema())
    ((low, high),) = design.bounds
    (value,) = design.from_cells({"age": np.array([age]), "pay": np.array([pay])})[0]
    slack = 1e-9 * max(abs(low), abs(high))
    assert low - slack <= value <= high + slack


def test_known_ranges_are_tight():
    bounds = FormulaDesign(
        "ill ~ I((age - 50) ** 4) + log(pay) + poly(age, 2, raw=True)", schema()
    ).bounds
    expected = [(0.0, 2560000.0), (0.0, np.log(500)), (20.0, 90.0), (400.0, 8100.0)]
    assert sorted(bounds) == sorted(expected)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("ill ~ scale(age)", "computed from the rows"),
        ("ill ~ center(age)", "computed from the rows"),
        ("ill ~ bs(age, df=4)", "computed from the rows"),
        ("ill ~ np.mean(age)", "computed from the rows"),
        ("ill ~ age.mean()", "computed from the rows"),
        ("ill ~ poly(age, 2)", "raw=True"),
        ("ill ~ C(age)", "public levels"),
        ("ill ~ log(age - 50)", "begins at -30"),
        ("ill ~ I(1 / (age - 30))", "contains 0"),
        ("ill ~ exp(pay * pay)", "smaller ranges"),
        ("ill ~ age + I(2 * age)", r"follow from others for every row: I\(2 \* age\)"),
        ("ill ~ ward + C(ward)", "follow from others"),
        ("ill ~ 0 + age", "intercept"),
        ("ill ~ nope", "does not describe"),
        ("log(ill) ~ age", "target of the schema"),
        ("days ~ age", "target of the schema"),
        ("age + ward", "no response"),
        ("ill ~ age +", "cannot be read"),
        ("ill ~ .", "cannot be read"),
        ("ill ~ __import__('os').getcwd()", "cannot be read|not known"),
        ("ill ~ I(ward + 1)", "has labels"),
        ("ill ~ icd", "hashed"),
        ("ill ~ C(ward, Treatment('q'))", "not among the levels"),
        ("ill ~ C(ward, Sum)", "not known"),
        ("ill ~ 1", "no column"),
        ("ill ~ sin(age)", "not known"),
        ("ill ~ I(age % 2)", "cannot be read"),
    ],
)
def test_what_reads_the_rows_or_is_not_public_is_refused(formula, said):
    with pytest.raises(InvalidArgument, match=said):
        PrivateLogisticRegression.from_formula(formula, schema())


@pytest.mark.parametrize("target", TARGETS)
def test_without_noise_coefficients_are_those_of_statsmodels(target):
    rows = table()
    right = "age * C(ward) + sex"
    settings = {"epsilon": np.inf, "cov_type": "robust"}
    model = KINDS[target].from_formula(f"{target} ~ {right}", schema(target), **settings)
    model.fit(rows)
    own = rows.assign(ill=(rows["ill"] == "yes").astype(int))
    fit = {"ill": smf.logit, "days": smf.ols, "visits": smf.poisson}[target]
    plain = fit(f"{target} ~ {right}", own).fit(cov_type="HC0", **_quiet(target))
    if target == "visits":  # the clipped count has another mean
        assert set(_plain(plain.params.index[1:])) == set(_plain(list(model.params_)[1:]))
        return
    names = {"(intercept)": "Intercept"}
    found = pd.Series(
        model.inference_.params, [names.get(name, name) for name in model.inference_.names]
    )
    errors = pd.Series(model.bse_, found.index)
    np.testing.assert_allclose(found[plain.params.index], plain.params, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(errors[plain.params.index], plain.bse, rtol=1e-5)


def _quiet(target):
    return {} if target == "days" else {"disp": 0, "tol": 1e-12, "maxiter": 200}


def test_tables_of_every_library_give_the_same_fit():
    rows = table()
    tables = [
        rows,
        pa.Table.from_pandas(rows),
        pl.from_pandas(rows),
        {name: rows[name].to_numpy() for name in rows},
    ]
    make = PrivateLogisticRegression.from_formula
    models = [
        make("ill ~ age + C(ward)", schema(), epsilon=2.0, random_state=0).fit(each)
        for each in tables
    ]
    assert {"(intercept)", "age", "C(ward)[T.b]", "C(ward)[T.c]"} == set(models[0].params_)
    for model, each in zip(models, tables, strict=True):
        assert model.summary() == models[0].summary()
        np.testing.assert_array_equal(model.predict(each), models[0].predict(rows))
    probabilities = models[0].predict_proba(rows)
    assert probabilities.shape == (len(rows), 2)
    assert clone(models[0]).design.formula == "ill ~ age + C(ward)"


def test_a_label_or_response_that_is_not_listed_leaves_its_row_out():
    rows = table()
    make = PrivateLogisticRegression.from_formula
    plain = make("ill ~ age + ward", schema(), epsilon=np.inf).fit(rows)
    odd = pd.concat([rows, rows.iloc[:50].assign(ward="z"), rows.iloc[:50].assign(ill="?")])
    more = make("ill ~ age + ward", schema(), epsilon=np.inf).fit(odd)
    np.testing.assert_allclose(more.inference_.params, plain.inference_.params, rtol=1e-9)
    assert np.isfinite(more.predict_proba(odd)).all()


@pytest.mark.parametrize("mark", [np.nan, "unknown"])
def test_a_row_without_a_number_is_left_out_unless_the_schema_fills_it(mark):
    rows = table().astype({"age": object})
    make, formula = PrivateLogisticRegression.from_formula, "ill ~ age + ward"
    plain = make(formula, schema(), epsilon=np.inf).fit(rows[80:])
    rows.iloc[:80, 0] = mark
    rows["pay"] = np.nan  # the formula does not read it
    more = make(formula, schema(), epsilon=np.inf).fit(rows)
    np.testing.assert_allclose(more.inference_.params, plain.inference_.params, rtol=1e-9)
    filled = Schema((NumericColumn("age", 20, 90, fill=40), *COLUMNS[1:]), TARGETS["ill"])
    stated = make(formula, filled, epsilon=np.inf).fit(rows)
    own = make(formula, schema(), epsilon=np.inf).fit(rows.replace({"age": {mark: 40}}))
    np.testing.assert_allclose(stated.inference_.params, own.inference_.params, rtol=1e-9)


def test_persons_of_the_schema_are_protected_and_are_clusters():
    rows = table()
    protected = schema(person="id", person_weight="mean")
    model = PrivateLogisticRegression.from_formula(
        "ill ~ age", protected, epsilon=2.0, random_state=0
    )
    model.fit(rows)
    assert model.privacy_.unit.kind == "person"
    assert model.privacy_.unit.column == "id"
    assert model.quote(1500).plan is not None


def test_refusals_come_before_the_charge():
    rows, ledger = table(200), Ledger(epsilon=5.0, delta=1e-5)
    make = PrivateLogisticRegression.from_formula
    model = make("ill ~ age + ward", schema(), epsilon=0.5, ledger=ledger)
    with pytest.raises(TooFewRows, match="are needed"):
        model.fit(rows)
    with pytest.raises(InvalidArgument, match="no column 'ward'"):
        model.fit(rows.drop(columns="ward"))
    assert not ledger.entries
    with pytest.raises(InvalidArgument, match="come from the schema"):
        make("ill ~ age", schema(), feature_bounds=(0, 1))
    with pytest.raises(InvalidArgument, match="not for the target"):
        PrivateLinearRegression.from_formula("ill ~ age", schema())
    with pytest.raises(InvalidArgument, match="no intervals"):
        PrivateRidge.from_formula("days ~ age", schema("days"))
    with pytest.raises(InvalidArgument, match=r"Schema\(\.\.\.\)"):
        make("ill ~ age", {"age": (0, 1)})


def test_a_model_of_a_formula_comes_back_from_a_file(tmp_path):
    rows = table()
    formula = "ill ~ I((age - 55) / 10) * C(ward) + log(pay)"
    model = PrivateLogisticRegression.from_formula(formula, schema(), epsilon=3.0, random_state=0)
    model.fit(rows)
    save_model(model, tmp_path / "m.json")
    read = load_model(tmp_path / "m.json")
    assert read.estimator.summary() == model.summary()
    assert read.design.formula == formula
    np.testing.assert_array_equal(read.predict(rows), model.predict(rows))
    np.testing.assert_allclose(read.predict_proba(rows), model.predict_proba(rows))


def test_marginal_effects_go_through_all_terms_of_a_column():
    """Without noise, of a curve: the derivative at public rows, by hand."""
    rows = table()
    formula = "days ~ I(age ** 2) + age * sex"
    model = PrivateLinearRegression.from_formula(formula, schema("days"), epsilon=np.inf).fit(rows)
    b = model.params_
    public = {"age": np.array([30.0, 50.0]), "sex": np.array(["f", "m"])}
    found = model.marginal_effects(public)
    slopes = 2 * b["I(age ** 2)"] * 40 + b["age"] + 0.5 * b["age:sex[T.m]"]
    change = b["sex[T.m]"] + 40 * b["age:sex[T.m]"]
    assert found.names == ["age", "sex: f to m"]
    np.testing.assert_allclose(found.effects[:, 0], [slopes, change], rtol=1e-6)
    gradient = np.array([0, 80, 1, 0, 0.5])
    names = list(b)
    order = [
        names.index(n) for n in ("(intercept)", "I(age ** 2)", "age", "sex[T.m]", "age:sex[T.m]")
    ]
    V = model.cov_params()[np.ix_(order, order)]
    assert found.effects[0, 1] == pytest.approx(np.sqrt(gradient @ V @ gradient), rel=1e-5)
    assert "2 public reference rows" in str(found)
    middle = model.marginal_effects()
    assert middle.effects[0, 0] == pytest.approx(2 * b["I(age ** 2)"] * 55 + b["age"], rel=1e-6)


def test_dates_are_numbers_of_days():
    design = FormulaDesign("ill ~ seen", schema())
    assert design.bounds == [(0.0, 365.0)]
    rows = design.rows({"seen": ["2020-01-11", ""]})
    assert rows[0, 0] == pytest.approx(10.0)
    assert np.isnan(rows[1, 0])
