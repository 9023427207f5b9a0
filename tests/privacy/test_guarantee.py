"""The guarantee as text and as JSON."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushfit import _version
from hushfit.errors import InvalidArgument
from hushfit.privacy import (
    RECORD_RELATIONS,
    GaussianCost,
    Guarantee,
    PureCost,
    Relation,
    ReleaseRecord,
    compose,
    epsilon_of,
)
from hushfit.unit import LIST, ROW, PrivacyUnit

FULL = Guarantee(
    1.25,
    1e-6,
    "replace-one",
    public=("the number of rows, 30162", "feature ranges"),
    releases=(
        ReleaseRecord("moment", "SecondMoment", 1, 12.5, share=0.1),
        ReleaseRecord("gradient", "ClippedGradient", 40, 31.0, "Poisson batches at rate 0.05", 0.9),
    ),
    cost=compose([GaussianCost(12.5), GaussianCost(31.0, 40)]),
    secure=True,
    notes=("Delta exceeds 1/n.",),
)

texts = st.text(max_size=12)
releases = st.builds(
    ReleaseRecord,
    texts,
    texts,
    st.integers(1, 99),
    st.floats(0, 1e9) | st.just(math.inf),
    texts,
    st.floats(0.01, 1),
)
guarantees = st.builds(
    Guarantee,
    st.floats(0, 1e12) | st.just(math.inf),
    st.floats(1e-300, 0.999),
    st.sampled_from(RECORD_RELATIONS),
    unit=st.sampled_from([ROW, PrivacyUnit.person(column="id"), PrivacyUnit.person("cap", 3)]),
    public=st.lists(texts, max_size=3).map(tuple),
    releases=st.lists(releases, max_size=3).map(tuple),
    cost=st.sampled_from([FULL.cost, GaussianCost(0.0), PureCost(math.inf, 3), compose([])]),
    secure=st.booleans(),
    version=texts,
    notes=st.lists(texts, max_size=2).map(tuple),
)


@given(guarantees)
def test_json_round_trip_is_exact(guarantee):
    text = guarantee.to_json()
    assert Guarantee.from_json(text) == guarantee
    constants = []
    json.loads(text, parse_constant=constants.append)
    assert constants == []


def flat(guarantee):
    return " ".join(str(guarantee).split())


def test_text_says_everything():
    words = flat(FULL)
    for part in (
        "epsilon=1.25",
        "delta=1e-06",
        "replacing one record by any other",
        "replace-one",
        "The unit of privacy is one row",
        "if a person has several rows, the guarantee for the person is weaker",
        "names a column of ids (groups= or --person) protects persons",
        "30162",
        "feature ranges",
        "ClippedGradient",
        "40 times",
        "Poisson batches at rate 0.05",
        "31 times the sensitivity",
        "0.1 of the budget",
        "secure=True",
        "Delta exceeds 1/n.",
        f"hushfit {_version.__version__}",
    ):
        assert part in words, part
    assert max(map(len, str(FULL).splitlines())) <= 96


def test_text_names_the_other_relation():
    assert "adding or removing one record" in flat(replace(FULL, relation=Relation.ADD_REMOVE))


def test_insecure_noise_is_explained():
    words = flat(replace(FULL, secure=False))
    assert "secure=False" in words
    assert "whoever knows the seed can remove it" in words


def test_no_privacy_is_said_first():
    guarantee = replace(FULL, epsilon=math.inf)
    assert guarantee.nonprivate
    assert not FULL.nonprivate
    assert str(guarantee).startswith("NOT PRIVATE")
    assert "Differentially private" not in flat(guarantee)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_no_label_makes_a_row_a_person(epsilon):
    """Older files call a row what its owner called it; nothing checked that."""
    data = {**replace(FULL, epsilon=epsilon).to_dict(), "unit": "one patient"}
    words = flat(Guarantee.from_dict(data))
    assert "one row" in words
    assert "patient" not in words


def test_a_guarantee_for_persons_says_how_rows_were_put_together():
    words = flat(replace(FULL, unit=PrivacyUnit.person("cap", 3, "patient_nbr")))
    for part in (
        "replacing all rows of one person by any other admissible rows",
        "The unit of privacy is one person",
        "column 'patient_nbr'",
        "1/max(k, 3)",
        "the first 1000 rows of a person are used",
        "a row without an id is its own person",
        "the number of persons is public, the number of rows is not",
    ):
        assert part in words, part
    assert "one row" not in words
    assert "groups=" not in words


def test_a_guarantee_for_lists_says_how_rankings_protect_persons():
    words = flat(replace(FULL, unit=LIST))
    assert "The unit of privacy is one list" in words
    assert "a fit with the ids of persons (unit='person') protects persons" in words
    assert "groups=" not in words


def test_a_unit_is_not_a_text():
    with pytest.raises(InvalidArgument, match="is not a PrivacyUnit"):
        replace(FULL, unit="one patient")


def test_html_is_escaped():
    html = replace(FULL, unit=PrivacyUnit.person(column="<b>row</b>"))._repr_html_()
    assert "&lt;b&gt;row" in html
    assert "<b>" not in html


def edited(**changes):
    data = FULL.to_dict() | changes
    return json.dumps({key: value for key, value in data.items() if value is not ...})


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[" * 100_000,
        '{"epsilon": ' + "9" * 5000 + "}",
        FULL.to_json().replace("{", '{"epsilon": 0.1, ', 1),
        "[]",
        edited(extra=1),
        edited(epsilon=...),
        edited(epsilon="large"),
        edited(epsilon=-1),
        edited(epsilon=math.inf),
        edited(delta=math.nan),
        edited(delta=0),
        edited(relation="both"),
        edited(public="n"),
        edited(public=[1]),
        edited(secure="yes"),
        edited(cost={"kind": "unknown"}),
        edited(releases=[{"name": "x"}]),
        edited(releases=[FULL.to_dict()["releases"][0] | {"count": 0}]),
        edited(version=1),
    ],
)
def test_reading_is_strict(text):
    with pytest.raises(InvalidArgument):
        Guarantee.from_json(text)


def test_arguments_are_checked():
    with pytest.raises(InvalidArgument, match="ReleaseRecord"):
        replace(FULL, releases=("gradient",))
    with pytest.raises(InvalidArgument, match="not a cost"):
        replace(FULL, cost=1.0)
    with pytest.raises(InvalidArgument, match="share"):
        ReleaseRecord("a", "b", 1, 1.0, share=0.0)


def test_one_unit_of_a_group_is_the_guarantee_itself():
    alone = FULL.for_group(1)
    assert (alone.epsilon, alone.delta) == (FULL.epsilon, FULL.delta)
    assert str(alone) == "for any one row: epsilon 1.25 at delta 1e-06"
    assert FULL.for_group(1, epsilon=FULL.epsilon).delta == FULL.delta


def test_a_group_of_a_gaussian_plan_has_the_closed_form():
    mu = math.sqrt(1 / 12.5**2 + 40 / 31.0**2)
    for size in (5, 20):
        exact = epsilon_of(GaussianCost(1 / (size * mu)), FULL.delta, FULL.relation)
        # the reserve for discrete noise is counted once, whatever the size
        assert FULL.for_group(size).epsilon == pytest.approx(exact, rel=3e-5)
        assert FULL.for_group(size).epsilon >= exact
        stated = FULL.for_group(size, epsilon=exact).delta
        assert stated == pytest.approx(FULL.delta, rel=1e-3)
        assert stated >= FULL.delta


def test_a_group_says_of_whom_it_speaks():
    persons = replace(FULL, unit=PrivacyUnit.person(column="id"), cost=GaussianCost(4.0))
    assert str(persons.for_group(5)) == "for any 5 persons together: epsilon 6.312 at delta 1e-06"
    assert str(FULL.for_group(2, delta=1e-9)).startswith("for any 2 rows together: epsilon ")


def test_groups_grow():
    found = [FULL.for_group(size).epsilon for size in (1, 2, 3, 10)]
    assert found == sorted(found)
    deltas = [FULL.for_group(size, epsilon=3.0).delta for size in (1, 2, 3, 10)]
    assert deltas == sorted(deltas)


def test_where_only_epsilon_and_delta_are_proved_delta_grows_as_well():
    """A filter proves its budget, and the cost is what one fit happened to spend."""
    filtered = replace(FULL, epsilon=1.0, adaptive=True)
    assert filtered.for_group(2).epsilon == math.inf
    assert "nothing is promised at delta 1e-06" in str(filtered.for_group(2))
    needed = FULL.delta * (1 + math.e)
    assert filtered.for_group(2, epsilon=2.0).delta == pytest.approx(needed, rel=1e-6)
    assert filtered.for_group(2, delta=1.01 * needed).epsilon == pytest.approx(2.0, rel=1e-6)
    empty = replace(FULL, epsilon=1.0, cost=compose([]))
    assert empty.for_group(2, epsilon=2.0).delta == pytest.approx(needed, rel=1e-6)


def test_no_privacy_for_one_is_none_for_a_group():
    assert replace(FULL, epsilon=math.inf).for_group(3).epsilon == math.inf


@pytest.mark.parametrize(
    "arguments", [{"size": 0}, {"size": 2.5}, {"size": 2, "delta": 0}, {"size": 2, "epsilon": -1}]
)
def test_groups_without_sense_are_refused(arguments):
    with pytest.raises(InvalidArgument):
        FULL.for_group(**arguments)
    with pytest.raises(InvalidArgument, match="both"):
        FULL.for_group(2, delta=1e-6, epsilon=1.0)


def test_files_from_before_filters_were_marked_can_be_read():
    data = FULL.to_dict()
    del data["adaptive"]
    assert Guarantee.from_dict(data) == FULL
