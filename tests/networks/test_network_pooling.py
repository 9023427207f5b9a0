"""Max pooling by compiled loops, and before ReLU: the same bits as torch."""

import copy
import math

import pytest
import torch
from torch import nn

from hushfit.torch._pooling import compiled_pooling, pool_first


def both(module, images):
    """Outputs, and gradients with respect to the images, of a random combination of them."""
    images = images.clone(memory_format=torch.preserve_format).requires_grad_()
    found = module(images)
    slopes = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    return found.detach(), torch.autograd.grad(found, images, slopes.to(found.dtype))[0]


def assert_same_bits(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def images_of(shape, dtype=torch.float32):
    """Images with many equal numbers, infinite ones and some that are none."""
    images = torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    images.view(-1)[::37] = math.inf
    images.view(-1)[5::41] = math.nan
    images.view(-1)[6::41] = math.nan
    return images.contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(3, 1, 4, 4), (2, 6, 24, 8), (1, 16, 2, 2), (2, 3, 5, 6)])
@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.MaxPool2d(2, 1), nn.MaxPool2d(3)])
def test_compiled_pooling_has_the_bits_of_torch(pool, shape, dtype):
    if min(shape[2:]) < pool.kernel_size:
        pool = nn.MaxPool2d(2)
    for images in (images_of(shape, dtype), images_of(shape, dtype).contiguous()):
        theirs = both(pool, images)
        with compiled_pooling(pool):
            ours = both(pool, images)
        assert_same_bits(ours, theirs)
        assert "forward" not in vars(pool)


def test_pooling_before_relu_has_the_same_gradients():
    chain = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Tanh())
    swapped = copy.deepcopy(chain)
    pool_first(swapped)
    assert [type(layer) for layer in swapped[:4]] == [nn.MaxPool2d, nn.ReLU] * 2
    images = torch.nan_to_num(images_of((4, 3, 8, 8)), nan=0.0, posinf=5.0)
    assert_same_bits(both(swapped, images), both(chain, images))


def test_a_chain_that_somebody_listens_to_stays_as_it_is():
    chain = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))
    chain[0].register_forward_hook(lambda *_: None)
    pool_first(chain)
    assert type(chain[0]) is nn.ReLU
