"""What every feature map promises, and what happens to one that does not keep it."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

from hushfit.errors import InvalidArgument
from hushfit.features import (
    AdditiveMap,
    FeatureMap,
    HashedText,
    ScatteringMap,
    mapped_rows,
    refuse_if_rows_mix,
    shortened,
    stored_map,
)
from hushfit.features import _mapped_rows as module

MAPS = [
    AdditiveMap((4, 0, 1), fills=(0.5, None, None)),
    ScatteringMap((8, 9)),
    ScatteringMap((4, 4), channels=3, scale=1, angles=4, group=5),
    HashedText(columns=2, size=32, ngrams=(1, 2)),
    HashedText(size=64, ngrams=(2, 3), analyser="char_wb", lowercase=False),
]
WORDS = ["fever", "Cough", "no", "pain", "\ud800", "ärztlich", "7"]


def rows(made, n=20, seed=0):
    draw = np.random.default_rng(seed)
    if not made.reads_text:
        return draw.random((n, made.n_inputs))
    texts = [" ".join(draw.choice(WORDS, 5)) for _ in range(n * made.n_inputs)]
    return np.array(texts, dtype=object).reshape(n, made.n_inputs)


def dense(mapped):
    return mapped.toarray() if sparse.issparse(mapped) else mapped


@pytest.mark.parametrize("made", MAPS, ids=repr)
class TestEveryMap:
    def test_it_is_a_feature_map_that_passes_its_trial(self, made):
        assert isinstance(made, FeatureMap)
        refuse_if_rows_mix(made)

    def test_replacing_rows_changes_their_own_outputs_only(self, made):
        X = rows(made)
        before = dense(made.transform(X))
        other = X.copy()
        other[[3, 11]] = rows(made, 2, seed=1)
        changed = (before != dense(made.transform(other))).any(axis=1)
        assert set(np.flatnonzero(changed)) == {3, 11}

    def test_rows_have_the_stated_width_names_and_length(self, made):
        mapped = dense(made.transform(rows(made)))
        assert mapped.shape == (20, made.n_outputs)
        assert len(set(made.output_names([f"x{j}" for j in range(made.n_inputs)]))) == (
            made.n_outputs
        )
        assert np.linalg.norm(mapped, axis=1).max() <= made.row_norm < math.inf

    def test_a_row_without_values_harms_no_other(self, made):
        X = rows(made)
        before = dense(made.transform(X))
        X[5] = None if made.reads_text else np.nan
        after = dense(made.transform(X))
        assert np.array_equal(np.delete(before, 5, 0), np.delete(after, 5, 0))

    def test_it_is_read_back_from_plain_values(self, made):
        again = stored_map(made.to_dict())
        assert type(again) is type(made)
        X = rows(made)
        assert np.array_equal(dense(again.transform(X)), dense(made.transform(X)))

    def test_a_damaged_description_is_refused(self, made):
        described = made.to_dict()
        for damage in ({"kind": "forest"}, {"kind": 3}, {"extra": 1}):
            with pytest.raises(InvalidArgument):
                stored_map({**described, **damage})

    def test_rows_are_mapped_some_at_a_time_without_a_difference(self, made, monkeypatch):
        X = rows(made)
        whole = dense(mapped_rows(made, X))
        monkeypatch.setattr(module, "_ROWS_AT_ONCE", 7)
        assert np.array_equal(dense(mapped_rows(made, X)), whole)
        assert dense(mapped_rows(made, X[:0])).shape == (0, made.n_outputs)


@pytest.mark.parametrize("made", MAPS[:3], ids=repr)
def test_sparse_rows_are_mapped_like_dense_ones(made):
    X = rows(made) * (rows(made, seed=2) < 0.3)
    found = mapped_rows(made, sparse.csr_array(X))
    assert sparse.issparse(found) is made.leaves_sparse(True)
    np.testing.assert_allclose(dense(found), made.transform(X), atol=1e-6)


def test_scattering_is_that_of_kymatio_with_group_normalisation():
    kymatio = pytest.importorskip("kymatio.scattering2d.frontend.numpy_frontend")
    made = ScatteringMap((12, 12), channels=2)
    X = rows(made, 5)
    paths = kymatio.ScatteringNumPy2D(2, (12, 12))(X.reshape(-1, 12, 12))
    groups = paths.reshape(5, 2 * 27, -1)  # three channels of nine patches each
    expected = groups - groups.mean(axis=2, keepdims=True)
    expected /= np.sqrt(groups.var(axis=2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(made.transform(X), expected.reshape(5, -1), atol=2e-4)


def test_the_last_group_of_channels_may_be_smaller():
    made = ScatteringMap((8, 8), scale=1, group=4)  # nine channels
    groups = made.transform(rows(made)).reshape(20, 9, -1)
    for part in (groups[:, :4], groups[:, 4:8], groups[:, 8:]):
        assert np.abs(part.mean(axis=(1, 2))).max() < 1e-5
        assert (part.var(axis=(1, 2)) < 1.0).all()
        assert (part.var(axis=(1, 2)) > 0.9).all()


def test_hashes_are_those_of_scikit_learn():
    cells = ["fever, and Cough", "no fever", "None", 7.5, None, np.nan, pd.NA, pd.NaT]
    texts = np.array(cells, dtype=object)[:, None]
    theirs = HashingVectorizer(n_features=128, ngram_range=(1, 2))
    expected = theirs.transform([*cells[:3], "7.5", "", "", "", ""])
    found = HashedText(size=128, ngrams=(1, 2)).transform(texts)
    assert np.array_equal(found.toarray(), expected.toarray())


def test_columns_of_texts_have_outputs_of_their_own():
    both = np.array([["fever", None], [None, "fever"]], dtype=object)
    found = HashedText(columns=2, size=16).transform(both).toarray()
    assert np.array_equal(found[0, :16], found[1, 16:])
    assert not found[0, 16:].any()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ScatteringMap((28,)),
        lambda: ScatteringMap((28, 28.0)),
        lambda: ScatteringMap("ab"),
        lambda: ScatteringMap((3, 28)),
        lambda: ScatteringMap((8, 8), group=0),
        lambda: HashedText(size=0),
        lambda: HashedText(size=2**30),
        lambda: HashedText(ngrams=(2, 1)),
        lambda: HashedText(ngrams=3),
        lambda: HashedText(analyser="sentence"),
        lambda: HashedText(lowercase="yes"),
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InvalidArgument, match=r"should|smaller"):
        wrong()


def test_texts_in_a_sparse_matrix_are_refused():
    with pytest.raises(InvalidArgument, match="texts are not in a sparse matrix"):
        HashedText().transform_sparse(sparse.csr_array(np.eye(1)))


def test_kymatio_that_is_not_there_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "hushfit.features._wavelets", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'hushfit\[images\]'"):
        ScatteringMap((8, 8)).transform(np.zeros((1, 64)))


@dataclass(frozen=True, eq=False)
class Faulty:
    """The identity on three columns, but for one fault."""

    change: object
    n_inputs: int = 3
    n_outputs: int = 3
    row_norm: float = 2.0
    rotated: bool = False
    kept: bool = True
    reads_text: bool = False

    def leaves_sparse(self, sparse):
        return False

    def transform(self, X):
        return self.change(X)

    def transform_sparse(self, X):
        return self.change(X.toarray())

    def output_names(self, names):
        return list(names)

    def to_dict(self):
        return {}


def in_place(X):
    X *= 0.5
    return X.copy()


def failing(X):
    raise ValueError("the value 42 of Alice")


COINS = np.random.default_rng(0)
FAULTS = {
    "centred": (lambda X: X - X.mean(axis=0), "differently"),
    "scaled by the largest": (lambda X: X / np.nanmax(X), "differently"),
    "sorted": (lambda X: np.sort(X, axis=0), "in another place"),
    "numbered": (lambda X: X + np.arange(len(X))[:, None] / 1e9, "in another place"),
    "random": (lambda X: X + COINS.random(X.shape) / 1e9, "each time"),
    "counted": (lambda X: X / len(X), "when it is alone"),
    "in place": (in_place, "changes the rows"),
    "long": (lambda X: X * 10, "beyond row_norm=2"),
    "not a number": (lambda X: X * np.nan, "length nan"),
    "narrow": (lambda X: X[:, :2], "not floats with 3 columns"),
    "whole numbers": (lambda X: np.zeros(X.shape, int), "not floats"),
    "sparse": (sparse.csr_array, "dense or sparse"),
    "failing": (failing, "failed on random rows"),
}


@pytest.mark.parametrize(("change", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_map_that_is_not_row_by_row_is_refused_with_a_reason(change, reason):
    refuse_if_rows_mix(Faulty(lambda X: X * 1.0))
    with pytest.raises(InvalidArgument, match=reason):
        refuse_if_rows_mix(Faulty(change))


def test_a_mixture_by_missing_values_alone_is_found():
    def fills_with_the_mean(X):
        return np.where(np.isnan(X).any(), X * 0.0, X)

    with pytest.raises(InvalidArgument, match="beside other rows"):
        refuse_if_rows_mix(Faulty(fills_with_the_mean))


def test_an_error_on_private_rows_is_told_without_its_text():
    with pytest.raises(InvalidArgument, match="not shown") as caught:
        mapped_rows(Faulty(failing), np.ones((2, 3)))
    assert "Alice" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_longer_rows_are_shortened_each_by_its_own_length(kind, layout):
    X = np.random.default_rng(0).normal(size=(50, 7)).astype(kind)
    found = shortened(layout(X), 1.5)
    lengths = np.linalg.norm(dense(found).astype(np.float64), axis=1)
    assert found.dtype == kind
    assert lengths.max() <= 1.5
    assert lengths.max() > 1.4999
    short = np.linalg.norm(X, axis=1) < 1.49
    assert np.array_equal(dense(found)[short], X[short])
    assert shortened(X, None) is X
    given = mapped_rows(replace(Faulty(lambda X: X * 1.0), n_inputs=7, n_outputs=7), X, None, 1.5)
    assert np.linalg.norm(given.astype(np.float64), axis=1).max() <= 1.5
