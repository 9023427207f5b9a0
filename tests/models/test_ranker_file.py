"""Files of ranking models read back as they were written, and no others are read."""

import json

import numpy as np
import pytest

from hushfit import PrivateRanker
from hushfit.errors import InvalidArgument
from hushfit.models import is_ranker, load_ranker, save_ranker
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


def test_a_feature_map_is_not_saved(tmp_path):
    model, _ = fitted(scorer=lambda X: X)
    with pytest.raises(InvalidArgument, match="A feature map is code"):
        save_ranker(model, tmp_path / "ranker.json")
    with pytest.raises(InvalidArgument, match="not a fitted ranker"):
        save_ranker(PrivateRanker(), tmp_path / "ranker.json")


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
