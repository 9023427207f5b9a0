"""Intervals cover, row by row and through the curator.

Seeds are fixed, so these tests raise no false alarms by chance; with other seeds the check of one
interval would fail with a probability of 1e-3.
"""

import numpy as np
import pytest
from scipy import stats

from hushfit.data import as_source
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.privacy import RECORD_RELATIONS, Budget
from hushfit.release import Randomness, Terms
from hushfit.statistics import Description, survey_of
from hushfit.statistics._survey import answered

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
