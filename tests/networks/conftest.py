"""Settings of the tests of networks."""

import pytest
import torch


@pytest.fixture(autouse=True)
def single_thread():
    """Small tensors gain nothing from threads, which wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
