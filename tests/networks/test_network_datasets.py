"""Records and labels in one dataset, as torch has them."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hushfit.errors import InvalidArgument
from hushfit.torch import PrivateNeuralClassifier

generator = np.random.default_rng(0)
X = generator.normal(size=(200, 6)).astype(np.float32)
y = (X[:, 0] > 0).astype(np.int64)
PAIRS = TensorDataset(torch.tensor(X), torch.tensor(y))


def classifier(module=None):
    torch.manual_seed(0)
    return PrivateNeuralClassifier(
        module or nn.Linear(6, 2), epsilon=3.0, delta=1e-4, classes=[0, 1], random_state=0
    )


class Named(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, place):
        return {"image": X[place], "label": y[place]}


@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
def test_a_dataset_of_tensors_is_its_records_and_labels():
    own, apart = classifier().fit(PAIRS), classifier().fit(X, y)
    np.testing.assert_array_equal(own.predict_proba(X), apart.predict_proba(X))


@pytest.mark.parametrize("given", [Named(), DataLoader(PAIRS)], ids=["dataset", "loader"])
def test_another_dataset_is_refused_with_the_remedy(given):
    with pytest.raises(InvalidArgument, match="fit_private"):
        classifier().fit(given)


def test_images_with_the_channels_last_get_a_hint():
    module = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(72, 2))
    with pytest.raises(InvalidArgument, match=r"transpose\(0, 3, 1, 2\)"):
        classifier(module).fit(np.zeros((20, 8, 8, 3)), y[:20])
    with pytest.raises(InvalidArgument) as refusal:
        classifier(module).fit(np.zeros((20, 4, 8, 8)), y[:20])
    assert "transpose" not in str(refusal.value)
