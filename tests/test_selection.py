"""Measures of feature selection are what their definitions say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushfit.errors import InvalidArgument
from hushfit.selection import coverage, ranked, zeroed_counts


def test_coverage_is_the_papers_example():
    """16 of 20 relevant attributes among the first 30 give 0.8."""
    ranking = np.concatenate([np.arange(16), np.arange(20, 34), np.arange(16, 20), np.arange(34, 100)])
    assert coverage(ranking, np.arange(20), k=30) == 0.8


@given(ranking=st.permutations(range(8)), support=st.sets(st.integers(0, 7), min_size=1))
def test_coverage_counts_grows_and_ends_at_one(ranking, support):
    curve = [coverage(ranking, sorted(support), k) for k in range(1, 9)]
    assert curve == [len(support & set(ranking[:k])) / len(support) for k in range(1, 9)]
    assert curve[-1] == 1.0


def test_features_are_ranked_by_size_whatever_the_sign():
    np.testing.assert_array_equal(ranked([0.5, -2.0, 0.0, 1.0]), [1, 3, 0, 2])
    np.testing.assert_array_equal(ranked(np.zeros(3)), [0, 1, 2])


def test_several_outputs_are_ranked_by_the_norm_of_a_column():
    np.testing.assert_array_equal(ranked([[3.0, 0.0, 2.0], [0.0, 0.5, 3.0]]), [2, 0, 1])


@given(pairs=st.lists(st.tuples(st.sampled_from([0.0, -0.0, 0.1, -2.0]), st.sampled_from([0.0, 1.0])), min_size=1))
def test_zeroed_counts_by_definition(pairs):
    correct = sum(1 for estimate, truth in pairs if estimate == 0 and truth == 0)
    incorrect = sum(1 for estimate, truth in pairs if estimate == 0 and truth != 0)
    assert zeroed_counts(*np.array(pairs).T) == (correct, incorrect)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: coverage([0, 1, 2], [0], 0), "k=0"),
        (lambda: coverage([0, 1, 2], [0], 4), "k=4 is not between 1 and the 3"),
        (lambda: coverage([0, 1, 1], [0], 2), "ranking.*different indices"),
        (lambda: coverage([0, 1, 2], [], 2), "support"),
        (lambda: coverage([0, 1, 2], [True, False, True], 2), "support.*flatnonzero"),
        (lambda: zeroed_counts([0.0], [0.0, 1.0]), r"\(1,\) and true_coef \(2,\)"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()
