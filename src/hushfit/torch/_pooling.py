"""Max pooling of windows of two by two by compiled loops, and before ReLU instead of after it.

Both give the same bits as torch: the largest number is exact, and of equal ones the first gets the
slope. Torch's own loops take several times as long for images of few channels.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hushfit.kernels.networks import pool_maxima, unpool


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)


def _last(images: Tensor) -> Any:
    """The memory of images, with the channels as the last axis."""
    return images.detach().permute(0, 2, 3, 1).numpy()


class _Maxima(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        maxima, places = (
            _like(images, images.shape[2] // 2, images.shape[3] // 2, dtype)
            for dtype in (images.dtype, torch.uint8)
        )
        pool_maxima(_last(images), _last(maxima), _last(places))
        ctx.places = places
        return maxima

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> Tensor:
        found = _like(slopes, 2 * slopes.shape[2], 2 * slopes.shape[3], slopes.dtype)
        slopes = slopes.contiguous(memory_format=torch.channels_last)
        unpool(_last(slopes), _last(ctx.places), _last(found))
        return found


def _like(images: Tensor, height: int, width: int, dtype: torch.dtype) -> Tensor:
    """Memory for as many images of another size."""
    size = (*images.shape[:2], height, width)
    return torch.empty(size, dtype=dtype, memory_format=torch.channels_last)


def _covered(layer: nn.Module) -> bool:
    """Whether a layer is a max pooling of windows of two by two, side by side."""
    return (
        type(layer) is nn.MaxPool2d
        and _pair(layer.kernel_size) == _pair(layer.stride) == (2, 2)
        and _pair(layer.padding) == (0, 0)
        and _pair(layer.dilation) == (1, 1)
        and not layer.ceil_mode
        and not layer.return_indices
    )


def _compiled_forward(layer: Any, images: Tensor) -> Tensor:
    if (
        images.ndim != 4
        or images.shape[2] % 2
        or images.shape[3] % 2
        or images.device.type != "cpu"
        or images.dtype not in (torch.float32, torch.float64)
        or not images.is_contiguous(memory_format=torch.channels_last)
    ):
        return F.max_pool2d(images, layer.kernel_size, layer.stride)
    found: Tensor = _Maxima.apply(images)
    return found


@contextmanager
def compiled_pooling(module: nn.Module) -> Iterator[None]:
    """Let the max pooling layers of a module run compiled loops; not for `torch.func`."""
    layers = [layer for layer in module.modules() if _covered(layer)]
    for layer in layers:
        layer.forward = lambda images, layer=layer: _compiled_forward(layer, images)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def pool_first(module: nn.Module) -> None:
    """Swap ReLU and a max pooling that follows it, in place: a smaller image is then cut at zero.

    The largest number of a window stays the largest, and where it is not positive no slope passes
    either way.
    """
    for chain in module.modules():
        if type(chain) is nn.Sequential:
            for i in range(len(chain) - 1):
                first, second = chain[i], chain[i + 1]
                if type(first) is nn.ReLU and type(second) is nn.MaxPool2d and _silent(chain):
                    chain[i], chain[i + 1] = second, first


def _silent(chain: nn.Sequential) -> bool:
    """Whether nothing is told what the layers compute."""
    return not any(
        layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks for layer in chain
    )
