"""Files of ranking models read back as they were written, and no others are read."""

import json

import numpy as np
import pytest

from hushfit import PrivateRanker
from hushfit.errors import InvalidArgument
from hushfit.estimators import ChainedMaps, LayerMap, QuadraticMap
from hushfit.models import RankingModel, is_ranker, load_ranker, save_ranker
from hushfit.report import ranking_page

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")


def fitted(**settings):
    rng = np.random.default_rng(0)
    X, sizes = rng.random((200, 3)), np.full(40, 5)
    y = (X[:, 0] > 0.7).astype(float)
    model = PrivateRanker(**{"delta": 1e-2, "random_state": 0, **settings})
    return model.fit(X, y, group=sizes), X


@pytest.mark.parametrize(
    "settings",
    [{}, {"epsilon": np.inf}, {"unit": "list"}, {"scorer": "mlp", "hidden": 4}],
    ids=str,
)
def test_a_ranker_reads_back(tmp_path, settings):
    model, X = fitted(**settings)
    path = tmp_path / "ranker.json"
    save_ranker(model, path)
    assert is_ranker(path)
    read = load_ranker(path)
    np.testing.assert_array_equal(read.estimator.predict(X), model.predict(X))
    assert read.guarantee == model.privacy_
    assert read.estimator.get_params()["unit"] == model.unit
    page = ranking_page(read)
    assert "What is protected" in page


MAPS = {
    "layer": LayerMap(np.arange(12.0).reshape(3, 4) / 12, activation="relu"),
    "cosine": LayerMap(np.ones((3, 2)), [0.0, 1.0], "cosine"),
    "quadratic": QuadraticMap(),
    "chain": ChainedMaps([LayerMap(np.eye(3), activation="tanh"), QuadraticMap()]),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_feature_map_that_is_data_is_in_the_file(tmp_path, name):
    model, X = fitted(scorer=MAPS[name])
    save_ranker(model, tmp_path / "ranker.json")
    read = load_ranker(tmp_path / "ranker.json")
    np.testing.assert_array_equal(read.estimator.predict(X), model.predict(X))
    assert [list(order) for order in read.estimator.rank(X)] == [list(o) for o in model.rank(X)]
    assert "feature 1" in ranking_page(read)
    with pytest.raises(InvalidArgument, match="has its own scorer"):
        load_ranker(tmp_path / "ranker.json", scorer=MAPS[name])


SCORERS = {
    "linear": {},
    "bounded": {"feature_bounds": (0.2, 0.8)},
    "network": {"scorer": "mlp", "hidden": 4},
    **{name: {"scorer": one} for name, one in MAPS.items()},
}


@pytest.mark.parametrize("settings", SCORERS.values(), ids=SCORERS)
def test_a_graph_scores_documents_alike(tmp_path, settings):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from hushfit.models.onnx import export_onnx

    model, X = fitted(unit="list", **settings)
    path = tmp_path / "ranker.onnx"
    export_onnx(RankingModel(model), path)
    rows = np.vstack([2 * X[:20] - 0.5, [[np.nan, 0.5, 0.5]]]).astype(np.float32)
    [scores] = runtime.InferenceSession(str(path)).run(["scores"], {"X": rows})
    expected = model.predict(rows.astype(float))
    assert np.allclose(scores[:, 0], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    stated = {prop.key: prop.value for prop in onnx.load(path).metadata_props}
    assert json.loads(stated["guarantee"]) == model.privacy_.to_dict()


def test_a_map_that_is_code_has_no_graph(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    from hushfit.models.onnx import export_onnx

    with pytest.raises(InvalidArgument, match="no form in ONNX"):
        export_onnx(RankingModel(fitted(scorer=np.square)[0]), tmp_path / "ranker.onnx")


def test_a_feature_map_that_is_code_is_given_again(tmp_path):
    model, X = fitted(scorer=np.square)
    path = tmp_path / "ranker.json"
    with pytest.raises(InvalidArgument, match=r"is code.*LayerMap.*without_map"):
        save_ranker(model, path)
    assert not path.exists()
    save_ranker(model, path, without_map=True)
    with pytest.raises(InvalidArgument, match=r"load_ranker\(path, scorer=map\)"):
        load_ranker(path)
    read = load_ranker(path, scorer=np.square)
    np.testing.assert_array_equal(read.estimator.predict(X), model.predict(X))
    with pytest.raises(InvalidArgument, match="Give the map that it was fitted with"):
        load_ranker(path, scorer=lambda X: X[:, :1]).estimator.predict(X)
    with pytest.raises(InvalidArgument, match="not a fitted ranker"):
        save_ranker(PrivateRanker(), path)


@pytest.mark.parametrize(
    "scorer",
    [
        {"kind": "layer", "weights": [[1.0]], "offsets": [0.0], "activation": "relu"},
        {"kind": "layer", "weights": [[1, 2], [3]], "offsets": [0.0], "activation": "relu"},
        {"kind": "layer", "weights": [], "offsets": [], "activation": "linear"},
        {"kind": "layer", "weights": [["x"]] * 3, "offsets": [0.0], "activation": "relu"},
        {"kind": "chain", "maps": []},
        {"kind": "chain", "maps": [{"kind": "chain", "maps": [{"kind": "quadratic"}]}]},
        {"kind": "quadratic", "module": "os"},
        {"kind": "numpy.square"},
        ["quadratic"],
        "forest",
    ],
)
def test_other_feature_maps_in_a_file_are_refused(tmp_path, scorer):
    from hushfit.models._file import _digest

    path = tmp_path / "ranker.json"
    save_ranker(fitted(scorer=QuadraticMap())[0], path)
    contents = json.loads(path.read_text())
    contents["settings"]["scorer"] = scorer
    contents.pop("hash")
    path.write_text(json.dumps({**contents, "hash": _digest(contents)}))
    with pytest.raises(InvalidArgument):
        load_ranker(path)


def test_maps_that_make_no_sense_are_refused():
    for wrong in (
        lambda: LayerMap(np.zeros(3)),
        lambda: LayerMap([[np.nan]]),
        lambda: LayerMap(np.eye(2), [1.0]),
        lambda: LayerMap(np.eye(2), activation="step"),
        lambda: ChainedMaps([np.square]),
        lambda: LayerMap(np.eye(2)).width(3),
    ):
        with pytest.raises(InvalidArgument):
            wrong()


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["weights"].append(1.0),
        lambda c: c["settings"].update(scorer="forest"),
        lambda c: c.pop("schema"),
        lambda c: c.update(version=2),
        lambda c: c.update(weights="all"),
        lambda c: c["guarantee"].update(epsilon=0.1),
    ],
)
@pytest.mark.parametrize("rehashed", [False, True])
def test_a_changed_file_is_refused(tmp_path, change, rehashed):
    from hushfit.models._file import _digest

    path = tmp_path / "ranker.json"
    save_ranker(fitted()[0], path)
    contents = json.loads(path.read_text())
    change(contents)
    if rehashed:
        contents.pop("hash")
        contents["hash"] = _digest(contents)
    path.write_text(json.dumps(contents))
    if rehashed and contents["guarantee"]["epsilon"] == 0.1:
        assert load_ranker(path).guarantee.epsilon == 0.1  # a hash is no signature
        return
    with pytest.raises(InvalidArgument):
        load_ranker(path)


def test_other_files_are_no_rankers(tmp_path):
    path = tmp_path / "other.json"
    assert not is_ranker(path)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        load_ranker(path)
    path.write_text("{}")
    assert not is_ranker(path)
    with pytest.raises(InvalidArgument, match="not the file of a ranking model"):
        load_ranker(path)
