"""Descriptions: what they release, what they cost, and what they refuse.

False alarms: seeds are fixed; the check of the noise rejects at level 1e-6.
"""

import math

import numpy as np
import pandas as pd
import pytest
from _tables import PERSONS, SCHEMA, visits
from scipy import stats

from hushfit import Budget, Ledger, statistics
from hushfit.data import as_source
from hushfit.data.schema import CategoricalColumn, CountTarget, NumericColumn, Schema
from hushfit.errors import (
    BudgetExceeded,
    InsecureNoiseWarning,
    InvalidArgument,
    TooFewRows,
    UnsupportedRelation,
)
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import RECORD_RELATIONS, Relation
from hushfit.problem import Problem
from hushfit.release import GroupMoments, Randomness, Terms
from hushfit.statistics import _survey, describe, quote, survey_of, table_columns

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
over_relations = pytest.mark.parametrize("relation", list(RECORD_RELATIONS), ids=str)
over_groups = pytest.mark.parametrize("by", [None, "sex"])


def named(found, column, name, group=None):
    return next(
        one for one in found.estimates if (one.column, one.name, one.group) == (column, name, group)
    )


def test_without_noise_statistics_are_those_of_the_table():
    table = visits()
    found = describe(table, SCHEMA, epsilon=math.inf)
    age, ward = pd.Series(table["age"]), pd.Series(table["ward"])
    assert named(found, "age", "mean").value == pytest.approx(age.mean())
    assert named(found, "age", "median").value == age.median()
    assert named(found, "age", "mean").known == pytest.approx(age.count())
    median = np.median(table["income"])
    assert named(found, "income", "median").value == pytest.approx(median, rel=0.02)
    known = ward[ward != ""]
    for label in "ABC":
        share = named(found, "ward", f"share of {label}").value
        assert share == pytest.approx((known == label).mean())
    other = named(found, "ward", "share of <other>").value
    assert other == pytest.approx((known == "elsewhere").mean())
    assert {one.column for one in found.estimates} == {
        "age", "income", "ward", "sex", "readmitted"
    }  # fmt: skip


def test_groups_and_their_differences_are_those_of_the_table():
    table = visits()
    found = describe(table, SCHEMA, epsilon=math.inf, by="sex", columns=["age", "readmitted"])
    frame = pd.DataFrame(table)
    means = frame.groupby("sex")["age"].mean()
    shares = (frame["readmitted"] == "yes").groupby(frame["sex"]).mean()
    for group in "FM":
        assert named(found, "age", "mean", group).value == pytest.approx(means[group])
        share = named(found, "readmitted", "share of yes", group).value
        assert share == pytest.approx(shares[group])
    apart = named(found, "age", "difference of means", "F - M")
    assert apart.value == pytest.approx(means["F"] - means["M"])
    welch = stats.ttest_ind(
        frame["age"][frame["sex"] == "F"],
        frame["age"][frame["sex"] == "M"],
        equal_var=False,
        nan_policy="omit",
    ).confidence_interval()
    assert (apart.low, apart.high) == pytest.approx(tuple(welch), abs=0.01)


def test_persons_count_once_and_their_intervals_are_conservative():
    table = visits()
    found = describe(table, PERSONS, epsilon=math.inf, columns=["age"], quantiles=())
    frame = pd.DataFrame(table)
    share = 1 / frame.groupby("patient")["patient"].transform("size")
    known = frame["age"].notna()
    wanted = (share * frame["age"])[known].sum() / share[known].sum()
    one = named(found, "age", "mean")
    assert one.value == pytest.approx(wanted)
    assert one.conservative
    assert found.units == frame["patient"].nunique()
    by_person = frame.groupby("patient")["age"].mean().std() / math.sqrt(found.units)
    assert one.sampling_error > by_person


def exact_answers(survey, cells, relation):
    source = as_source(cells, np.zeros(len(cells)), fit_intercept=False)
    shape = len(cells), cells.shape[1]
    problem = Problem(Logistic(), Zero(), *shape, relation, False)
    by = None if survey.by is None else 0
    columns = tuple(range(1, 1 + len(survey.means)))
    moments = GroupMoments(problem, columns, by, len(survey.groups))
    counts = _survey._histograms(survey)
    return [(query(source, None), query.sensitivity(relation)) for query in (moments, counts)]


@over_relations
@over_groups
def test_no_row_moves_what_is_released_further_than_the_noise_covers(relation, by):
    """Rows at the corners of their ranges, in other groups, with gaps, or with nothing at all."""
    rng, base = np.random.default_rng(0), visits(6)
    survey = survey_of(SCHEMA, ["age", "income", "ward"], by)
    choices = {
        "age": [-9.0, 0.0, 50.0, 100.0, 1e9, np.nan],
        "income": [0.0, 30.0, 1000.0, np.inf, np.nan],
        "ward": ["A", "C", "else", ""],
        "sex": ["F", "M", "?"],
    }
    nobody = {"age": np.nan, "income": np.nan, "ward": "", "sex": ""}
    largest = np.zeros(2)
    for _ in range(150):
        tables = []
        for k in range(2):
            table = {name: cells.astype(object) for name, cells in base.items()}
            row = {name: own[rng.integers(len(own))] for name, own in choices.items()}
            if k and relation is Relation.ADD_REMOVE:
                row = nobody
            for name, cell in row.items():
                table[name][0] = cell
            cells = survey.cells(table_columns(table, survey))
            if k and relation is Relation.ADD_REMOVE:
                cells[0] = np.nan  # who is not there is in no bin, not even in that of gaps
            tables.append(exact_answers(survey, cells, relation))
        for at, ((one, bound), (other, _)) in enumerate(zip(*tables, strict=True)):
            moved = np.linalg.norm(one - other)
            assert moved <= bound
            largest[at] = max(largest[at], moved / bound)
    assert np.all(largest > 0.8)


def test_each_row_is_encoded_by_itself():
    table, survey = visits(50), survey_of(SCHEMA, None, "sex")
    before = survey.cells(table_columns(table, survey))
    for name, cell in {"age": 3.0, "income": 1e9, "ward": "C", "sex": "?"}.items():
        changed = {key: cells.copy() for key, cells in table.items()}
        changed[name] = changed[name].astype(object)
        changed[name][7] = cell
        after = survey.cells(table_columns(changed, survey))
        rows = np.flatnonzero(~np.isclose(before, after, equal_nan=True).all(axis=1))
        assert set(rows) <= {7}
    assert np.nanmax(np.abs(before[:, 1:3])) <= 1.0


@over_relations
def test_noise_has_the_stated_size(relation):
    """A chi-squared test at level 1e-6 in both directions: half the noise is far outside."""
    table, survey = visits(600), survey_of(SCHEMA, ["age", "sex"])
    cells = survey.cells(table_columns(table, survey))
    source = as_source(cells, np.zeros(600), fit_intercept=False)
    offer = survey.quote(600, Budget(1.0, 1e-6), relation)
    (sums, _), (counts, _) = exact_answers(survey, cells, relation)
    drawn = [[], []]
    for seed in range(12):
        terms = Terms(Budget(1.0, 1e-6), "test", Randomness.of(seed), warn=False)
        found = _survey.answered(survey, source, offer, relation, terms)
        totals = found.totals
        drawn[0].append((totals.sums[0, 0] - sums[0]) / totals.sum_noise)
        drawn[0].append((totals.known[0, 0] - sums[2] / math.sqrt(0.75)) / totals.known_noise)
        noisy = np.concatenate([one.ravel() for one in found.counts])
        drawn[1].extend((noisy - counts) / found.count_noise)
    for values in drawn:
        square = float(np.sum(np.square(values)))
        assert 5e-7 < stats.chi2.cdf(square, len(values)) < 1 - 5e-7
    each = found.totals.sum_noise * 2 / (offer.multipliers["means"] * 4)
    assert each == pytest.approx(1.0 if relation is Relation.REPLACE_ONE else 0.5**0.5, rel=1e-6)


def test_one_ledger_is_charged_once_for_everything():
    ledger = Ledger(1.0, 1e-5)
    found = describe(visits(), SCHEMA, epsilon=0.8, ledger=ledger, random_state=0)
    (entry,) = ledger.entries
    assert (entry.label, found.guarantee.epsilon) == ("describe", 0.8)
    assert [one.name for one in found.guarantee.releases] == ["means", "counts"]
    assert found.answers.receipt == entry
    with pytest.raises(BudgetExceeded):
        describe(visits(), SCHEMA, epsilon=0.9, ledger=ledger, random_state=0)
    assert len(ledger.entries) == 1


REFUSED = {
    "no such column": ({"columns": ["agee"]}, "no column 'agee'.*age, income"),
    "a hashed column": ({"columns": ["street"]}, "'street' is a date or a hashed label"),
    "groups of numbers": ({"by": "age"}, "by='age' is a column of numbers"),
    "groups that are not there": ({"by": "x"}, "no column 'x'"),
    "by among the columns": ({"by": "sex", "columns": ["sex"]}, "also among the columns"),
    "a quantile of 2": ({"quantiles": (0.5, 2)}, "quantile 2 is not between"),
    "a level of 95": ({"level": 95}, "level=95 is not between"),
    "epsilon below zero": ({"epsilon": -1}, "epsilon=-1"),
    "epsilon too small": ({"epsilon": 0.001}, "mostly noise.*At least"),
    "a relation of labels": ({"adjacency": "label"}, "label"),
    "no columns": ({"columns": []}, "no column is asked"),
    "a delta of 2": ({"delta": 2}, "delta=2"),
}


@pytest.mark.parametrize(("asked", "said"), REFUSED.values(), ids=REFUSED)
def test_refusals_cost_nothing(asked, said):
    ledger = Ledger(10.0, 1e-4)
    with pytest.raises((InvalidArgument, UnsupportedRelation), match=said):
        describe(visits(400), SCHEMA, **{"epsilon": 1.0, "ledger": ledger, **asked})
    assert not ledger.entries


def test_a_table_without_a_column_is_refused():
    table = visits()
    del table["age"]
    with pytest.raises(InvalidArgument, match="the table has no column 'age'"):
        describe(table, SCHEMA, epsilon=1.0)
    table["age"] = np.zeros(3)
    with pytest.raises(InvalidArgument, match="different lengths"):
        describe(table, SCHEMA, epsilon=1.0)


def test_too_few_rows_are_told_how_many_are_needed():
    with pytest.raises(TooFewRows, match=r"At least (\d+) rows") as refused:
        quote(SCHEMA, 100, epsilon=0.5)
    needed = max(map(int, str(refused.value).split("At least ")[1].split()[:1]))
    with pytest.raises(TooFewRows):
        quote(SCHEMA, needed - 1, epsilon=0.5)
    survey, relation = survey_of(SCHEMA), Relation.REPLACE_ONE
    offer = survey.quote(needed, Budget(0.5, 1e-6), relation)
    least = survey.least_units(offer, relation)
    assert quote(SCHEMA, max(least.values()), epsilon=0.5).multipliers == offer.multipliers


def test_another_level_costs_nothing_and_all_together_are_wider():
    found = describe(visits(), SCHEMA, epsilon=1.0, random_state=0)
    wider, together = found.at(level=0.99), found.at(simultaneous=True)
    for one, more, most in zip(found.estimates, wider.estimates, together.estimates, strict=True):
        assert one.value == pytest.approx(more.value, abs=1.0) or one.of is not None
        assert more.low <= one.low <= one.high <= more.high
        assert most.low <= one.low <= one.high <= most.high
    each = together.estimates[0].level
    assert 1 - each == pytest.approx(0.05 / len(found.estimates))


def test_tables_texts_and_plain_values():
    found = describe(visits(), SCHEMA, epsilon=1.0, by="sex", random_state=0)
    frame = pd.DataFrame(found.table())
    assert len(frame) == len(found.estimates)
    text = found.summary()
    assert "4000 rows; intervals of 95% cover sampling and noise" in text
    assert "difference of means" in text
    assert "epsilon=1" in text
    plain = found.to_dict()
    assert plain["estimates"][0]["column"] == "age"
    assert {one["group"] for one in plain["histograms"]} == {"F", "M"}
    assert found.estimates[0].guarantee is found.guarantee
    assert "GroupMoments" not in repr(found.estimates[0])


def test_counts_as_targets_are_whole_numbers():
    schema = Schema((NumericColumn("x", 0, 1),), target=CountTarget("stays", 20))
    table = {"x": np.zeros(2000), "stays": np.random.default_rng(0).poisson(3, 2000)}
    found = describe(table, schema, epsilon=math.inf, columns=["stays"])
    assert named(found, "stays", "median").value == np.median(table["stays"])


def test_a_statement_that_no_cell_is_missing_lowers_the_noise_and_is_public():
    table = {"x": np.full(3000, 9.0)}
    schema = Schema((NumericColumn("x", 0, 10),))
    asked = {"epsilon": 1.0, "quantiles": (), "random_state": 1}
    plain = describe(table, schema, **asked)
    stated = describe(table, schema, complete=True, **asked)
    ratio = plain.estimates[0].noise_error / stated.estimates[0].noise_error
    assert ratio == pytest.approx(math.sqrt(1 + 0.8**2 / 0.75), rel=0.02)
    assert "that no cell is missing" in stated.guarantee.public
    assert stated.estimates[0].known == 3000


def test_more_groups_than_bins_get_a_coarser_grid():
    schema = Schema(
        (NumericColumn("x", 0.0, 1.0), CategoricalColumn("g", tuple(map(str, range(10)))))
    )
    assert survey_of(schema, ["x"], "g").grids["x"].leaves == 64
    many = Schema((*schema.columns, CategoricalColumn("h", tuple(map(str, range(200))))))
    with pytest.raises(InvalidArgument, match="200 categories; at most 64"):
        survey_of(many, ["x"], "h")
    with pytest.raises(InvalidArgument, match="column 'h' has 2020 counts"):
        survey_of(many, ["h"], "g")


class TestSingle:
    """Functions of arrays."""

    x = np.random.default_rng(0).normal(50, 10, 5000)
    by = np.random.default_rng(1).choice(np.array(["a", "b"]), 5000)
    yes = (np.random.default_rng(2).random(5000) < 0.3).astype(int)

    def test_values_without_noise(self):
        asked, x = {"epsilon": math.inf}, self.x
        assert statistics.mean(x, (0, 100), **asked).value == pytest.approx(x.mean())
        assert statistics.median(x, (0, 100), **asked).value == pytest.approx(
            np.median(x), abs=100 / 512
        )
        first, last = statistics.quantile(x, [0.1, 0.9], (0, 100), **asked)
        assert (first.of, last.of) == (0.1, 0.9)
        assert statistics.proportion(self.yes, **asked).value == pytest.approx(self.yes.mean())
        apart = statistics.mean_difference(x, self.by, ("a", "b"), (0, 100), **asked)
        wanted = x[self.by == "a"].mean() - x[self.by == "b"].mean()
        assert apart.value == pytest.approx(wanted)
        shares = statistics.proportion_difference(self.yes, self.by, ("b", "a"), **asked)
        wanted = self.yes[self.by == "b"].mean() - self.yes[self.by == "a"].mean()
        assert shares.value == pytest.approx(wanted)
        assert shares.group == "b - a"

    def test_histograms_are_those_of_numpy(self):
        found = statistics.histogram(self.x, 10, (0, 100), math.inf)
        wanted = np.histogram(self.x, 10, (0, 100))[0] / len(self.x)
        np.testing.assert_allclose([one.value for one in found], wanted, atol=1e-12)
        assert found[3].of == "30 to 40"

    def test_counts_of_labels(self):
        found = statistics.counts(self.by, ["a", "c"], math.inf)
        assert [one.of for one in found] == ["a", "c", "<other>"]
        assert found[0].value == pytest.approx((self.by == "a").mean())

    def test_persons_by_ids(self):
        ids = pd.Series(np.arange(5000) // 4, name="patient")
        found = statistics.mean(self.x, (0, 100), 1.0, groups=ids, random_state=0)
        assert found.guarantee.unit.column == "patient"
        assert found.guarantee.unit.is_person
        with pytest.raises(InvalidArgument, match="no groups were given"):
            statistics.mean(self.x, (0, 100), 1.0, rows_per_person=3)

    def test_the_ledger_knows_the_name(self):
        ledger = Ledger(3.0, 1e-5)
        with pytest.warns(InsecureNoiseWarning):
            statistics.median(self.x, (0, 100), 1.0, ledger=ledger, random_state=0)
        assert [one.label for one in ledger.entries] == ["quantile"]

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda x: statistics.mean(x, None, 1.0), "bounds=None is not a pair"),
            (lambda x: statistics.mean(x, (5,), 1.0), "is not a pair"),
            (lambda x: statistics.mean(x, (9, 1), 1.0), r"range \[9.0, 1.0\]"),
            (lambda x: statistics.mean(x.astype(str), (0, 1), 1.0), "which has no mean"),
            (lambda x: statistics.median(pd.Series(["a"] * 9), (0, 1), 1.0), "no mean|mostly"),
            (lambda x: statistics.mean(x[:50], (0, 1), 0.1), "At least"),
            (lambda x: statistics.histogram(x, 0, (0, 1), 1.0), "bins=0 is not"),
            (lambda x: statistics.histogram(x, 2000, (0, 1), 1.0), "2002 counts"),
            (lambda x: statistics.counts(x, "ab", 1.0), "is one text"),
            (lambda x: statistics.quantile(x, 0, (0, 1), 1.0), "quantile 0 is not"),
            (lambda x: statistics.mean(x, (0, 1), 1.0, groups=[1, 2]), "as many ids"),
        ],
    )
    def test_bad_input_is_refused(self, call, said):
        with pytest.raises(InvalidArgument, match=said):
            call(self.x)


@over_groups
def test_a_description_is_a_function_of_what_was_released(by, monkeypatch):
    """With one answer for all tables of a size nothing of the rows is left in the result."""

    def release(self, name, query):
        return np.linspace(1.0, 2.0, query.size)

    monkeypatch.setattr("hushfit.release.curator.Curator.release", release)
    one, other = (
        describe(visits(seed=seed), SCHEMA, epsilon=1.0, by=by, random_state=0) for seed in (0, 1)
    )
    assert one.to_dict() == other.to_dict()
    assert one.summary() == other.summary()


def test_nothing_is_read_before_it_is_paid(monkeypatch):
    class Refusing(Ledger):
        def charge(self, *given, **more):
            raise BudgetExceeded("no")

    def release(self, name, query):
        raise AssertionError("released without payment")

    monkeypatch.setattr("hushfit.release.curator.Curator.release", release)
    with pytest.raises(BudgetExceeded):
        describe(visits(), SCHEMA, epsilon=1.0, ledger=Refusing(3.0, 1e-5))


def test_no_value_is_told_by_a_warning_of_arithmetic():
    """Warnings are errors here."""
    cells = [1e308, -1e308, np.inf, -np.inf, np.nan, 1e-320, 0.0]
    table = {"x": np.tile(cells, 300), "s": np.tile(["F", "M", ""], 700)}
    schema = Schema((NumericColumn("x", 0.0, 1e-3), CategoricalColumn("s", ("F", "M"))))
    found = describe(table, schema, epsilon=math.inf, by="s", columns=["x"])
    assert named(found, "x", "mean", "F").value == pytest.approx(2 / 6 * 1e-3)
    with pytest.raises(InvalidArgument, match="whose width floats do not divide by"):
        describe(table, Schema((NumericColumn("x", -1e308, 1e307),)), epsilon=1.0)
