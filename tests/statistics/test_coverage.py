"""Intervals cover, row by row and through the curator.

Seeds are fixed, so these tests raise no false alarms by chance; with other seeds the check of one
interval would fail with a probability of 1e-3.
"""

import numpy as np
import pytest
from scipy import stats

from hushfit.data import as_source
from hushfit.data.rows import Persons
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.privacy import RECORD_RELATIONS, Budget
from hushfit.release import Randomness, Terms
from hushfit.statistics import Description, survey_of
from hushfit.statistics._survey import answered
from hushfit.unit import PrivacyUnit

REPEATS, N = 250, 1500
SCHEMA = Schema(
    (
        NumericColumn("x", 0.0, 10.0),
        CategoricalColumn("label", ("yes", "no")),
        CategoricalColumn("group", ("a", "b")),
    )
)
TRUE = {
    "mean": 1.0 - np.exp(-10.0),  # of an exponential distribution, clipped at 10
    "median": np.log(2.0),
    "share of yes": 0.05,
    "difference of means": 0.0,
    "difference of shares of yes": 0.0,
}


def table(rng):
    x = np.where(rng.random(N) < 0.1, np.nan, rng.exponential(size=N))
    yes = np.where(rng.random(N) < 0.05, 0.0, 1.0)
    return {"x": x, "label": yes, "group": (rng.random(N) < 0.4).astype(float)}


@pytest.mark.parametrize("relation", list(RECORD_RELATIONS), ids=str)
@pytest.mark.parametrize("by", [None, "group"])
def test_intervals_cover_as_often_as_they_say(relation, by):
    survey = survey_of(SCHEMA, ["x", "label"], by, () if by else (0.5,))
    budget = Budget(2.0, 1e-6)
    offer = survey.quote(N, budget, relation)
    covered = {}
    for seed in range(REPEATS):
        cells = survey.cells(table(np.random.default_rng(seed)))
        source = as_source(cells, np.zeros(N), fit_intercept=False)
        terms = Terms(budget, "test", Randomness.of(seed), warn=False)
        answers = answered(survey, source, offer, relation, terms)
        for one in Description(answers, (0.5,)).estimates:
            if one.name in TRUE:
                inside = one.low <= TRUE[one.name] <= one.high
                covered.setdefault((one.name, one.group), []).append(inside)
    fewest, most = stats.binom.ppf([5e-4, 1 - 5e-4], REPEATS, 0.95)
    for (name, _), inside in covered.items():
        assert len(inside) == REPEATS
        assert fewest <= sum(inside) <= (REPEATS if name == "median" else most), name


def test_intervals_of_persons_cover_at_least_as_often():
    """Persons have one to five rows that are alike; the truth is the mean of persons."""
    survey, budget = survey_of(SCHEMA, ["x"], None, ()), Budget(2.0, 1e-6)
    relation, persons, unit = RECORD_RELATIONS[0], N // 3, PrivacyUnit.person()
    offer = survey.quote(persons, budget, relation)
    covered = []
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        codes = np.repeat(np.arange(persons), rng.integers(1, 6, persons))
        x = rng.exponential(size=persons)[codes] * rng.uniform(0.5, 1.5, len(codes))
        cells = survey.cells({"x": x})
        of = Persons(codes, persons, unit)
        source = as_source(cells, np.zeros(len(x)), fit_intercept=False, persons=of)
        terms = Terms(budget, "test", Randomness.of(seed), warn=False)
        (one,) = Description(answered(survey, source, offer, relation, terms), ()).estimates
        covered.append(one.low <= 1.0 <= one.high)
    assert sum(covered) >= stats.binom.ppf(1e-3, REPEATS, 0.95)
