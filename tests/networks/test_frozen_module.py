"""Networks with public weights as feature maps."""

import math

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402

from hushfit import PrivateLogisticRegression, PublicFeatures, save_model  # noqa: E402
from hushfit.errors import InvalidArgument  # noqa: E402
from hushfit.features import FeatureMap, refuse_if_rows_mix  # noqa: E402
from hushfit.torch import FrozenModule  # noqa: E402


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 6),
    )


@pytest.fixture(scope="module")
def frozen():
    return FrozenModule(network(), (1, 8, 8), physical_batch=16)


def rows(n, seed=0):
    return np.random.default_rng(seed).random((n, 64))


def test_it_is_a_feature_map_in_evaluation_mode(frozen):
    assert isinstance(frozen, FeatureMap)
    refuse_if_rows_mix(frozen)
    module = network().eval()
    X = rows(37)
    with torch.no_grad():
        expected = module(torch.from_numpy(X.astype(np.float32)).reshape(-1, 1, 8, 8)).numpy()
    np.testing.assert_allclose(frozen.transform(X), expected, atol=1e-6)
    np.testing.assert_allclose(frozen.transform_sparse(sparse.csr_array(X)), expected, atol=1e-6)
    assert (frozen.n_inputs, frozen.n_outputs, frozen.row_norm) == (64, 6, math.sqrt(6))
    assert len(frozen.output_names([])) == 6


def test_the_callers_module_is_left_alone(frozen):
    module = network().train()
    made = FrozenModule(module, (1, 8, 8), physical_batch=16)
    assert module.training
    assert all(parameter.requires_grad for parameter in module.parameters())
    before = made.transform(rows(5))
    with torch.no_grad():
        module[-1].weight.zero_()
    assert np.array_equal(made.transform(rows(5)), before)


def test_a_row_has_the_same_features_wherever_it_stands(frozen):
    X = rows(40)
    expected = frozen.transform(X)
    assert np.array_equal(frozen.transform(X[::-1])[::-1], expected)
    assert np.array_equal(frozen.transform(X[7:8])[0], expected[7])


def test_long_rows_are_shortened():
    made = FrozenModule(nn.Linear(4, 3), (4,), row_norm=0.25)
    mapped = made.transform(1e3 * np.random.default_rng(0).random((20, 4)))
    assert np.linalg.norm(mapped.astype(np.float64), axis=1).max() <= 0.25


class Lambda(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))
        self.change = change

    def forward(self, x):
        return self.change(self, x)


def counting(module, x):
    module.seen += 1
    return x * 1.0


FAULTS = {
    "centred": (lambda module, x: x - x.mean(0), "depend on"),
    "batch statistics": (
        lambda module, x: nn.functional.batch_norm(x, None, None, training=True),
        "depend on",
    ),
    "dropout": (lambda module, x: nn.functional.dropout(x, 0.5, True), "draws random numbers"),
    "state": (counting, "changes its state"),
    "two outputs": (lambda module, x: (x, x), "one tensor"),
    "one number": (lambda module, x: x.mean(), "one tensor"),
    "fewer rows": (lambda module, x: x[1:] * 1.0, "63 rows of 64"),
    "failing": (lambda module, x: x @ torch.zeros(3, 3), "failed on random inputs"),
}


@pytest.mark.parametrize(("change", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_module_that_is_not_row_by_row_is_refused(change, reason):
    with pytest.raises(InvalidArgument, match=reason):
        FrozenModule(Lambda(change), (4,))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: FrozenModule(len, (4,)),
        lambda: FrozenModule(nn.Linear(4, 2), 4),
        lambda: FrozenModule(nn.Linear(4, 2), ()),
        lambda: FrozenModule(nn.Linear(4, 2), (4,), physical_batch=0),
        lambda: FrozenModule(nn.Linear(4, 2), (4,), row_norm=0.0),
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InvalidArgument, match=r"Give|should"):
        wrong()


def test_a_module_is_code_and_is_refused_in_files(frozen, tmp_path):
    X, y = rows(60), np.tile([0, 1], 30)
    step = PublicFeatures(frozen, max_row_norm=1.0).fit(X)
    assert step.row_norm_ == 1.0
    fitted = PrivateLogisticRegression(classes=[0, 1], features=frozen).fit(X, y)
    assert fitted.coef_.shape == (1, 6)
    with pytest.raises(InvalidArgument, match=r"Map the rows first .* torch\.save"):
        save_model(fitted, tmp_path / "m.json")
    assert not list(tmp_path.iterdir())
