"""Two ways to compute per-example gradients: by book-keeping, and by vmap.

Book-keeping (ghost clipping in one pass): a forward pass keeps the input of each layer, a backward
pass gives the gradient of each layer's output, and both together are the per-example gradients of
the layer, for a linear layer without ever writing them out. It is for layers of known types that
are called once. Everything else is left to `torch.func`. Proof: docs/proofs/networks.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from hushfit.kernels.networks import copy_windows
from hushfit.torch._module_loss import ModuleLoss
from hushfit.torch._parts import Lookup, Outer, Part, Whole
from hushfit.torch._pooling import compiled_pooling

# Examples whose gradients `vmap` writes out at once, at most.
VMAP_ROWS = 32
# Numbers of per-example gradients that are in memory at once, if few enough examples make do.
WRITTEN_AT_ONCE = 2**27
# Examples whose patches a convolution writes out at once: few enough for the cache.
PATCHED_ROWS = 32
# Numbers of float32 in 64 bytes, the lines in which processors read memory.
_ALIGNED = 16


class Engine(Protocol):
    """Computes the per-example gradients of a module at its current weights."""

    @property
    def model(self) -> ModuleLoss: ...

    def parts(self, x: Tensor, y: Tensor) -> Iterator[tuple[slice, list[Part]]]:
        """Gradients of all examples: some examples at a time, those of all layers together."""

    def on(self, model: ModuleLoss) -> "Engine":
        """The same engine for another copy of the module."""


class NotBookKept(Exception):
    """Book-keeping does not cover this module; another engine may."""


def _parts_of_linear(m: Any, names: dict[str, str], a: Tensor, g: Tensor) -> list[Part]:
    weight, bias = names.get("weight"), names.get("bias")
    if a.ndim == 2:
        return [Outer(weight, bias, a, g)]
    a, g = a.flatten(1, -2), g.flatten(1, -2)
    parts: list[Part] = [] if weight is None else [Whole(weight, torch.bmm(g.mT, a))]
    return parts if bias is None else [*parts, Whole(bias, g.sum(1))]


def _parts_of_convolution(m: Any, names: dict[str, str], a: Tensor, g: Tensor) -> list[Part]:
    if a.ndim != 4:
        raise NotBookKept("a convolution of one image")
    parts: list[Part] = []
    if "weight" in names:
        parts.append(_kernel_gradients(m, names["weight"], a, g))
    if "bias" in names:
        parts.append(Whole(names["bias"], g.flatten(2).sum(2)))
    return parts


def _kernel_gradients(m: Any, name: str, a: Tensor, g: Tensor) -> Whole:
    """Slopes times patches, some examples at a time: the product is over the places of the output.
    Patches are ordered by height, width and channel.
    """
    outputs, patch, places = m.out_channels // m.groups, m.weight[0].numel(), g[0, 0].numel()
    shape: tuple[int, ...] = (m.out_channels, *m.kernel_size, m.in_channels // m.groups)
    axes, chunk = (0, 2, 3, 1), min(len(a), PATCHED_ROWS)
    mode = "constant" if m.padding_mode == "zeros" else m.padding_mode
    windows = _windows(m, F.pad(a, m._reversed_padding_repeated_twice, mode))
    one_channel = m.in_channels == 1
    if one_channel:  # patches by places: a copy along the rows of an image has longer runs
        windows, shape, axes = windows.permute(0, 1, 4, 5, 6, 2, 3), (*shape[1:], outputs), _LAST
        height = _even(patch, outputs)
        patches = a.new_empty(chunk, height, places)
        patches[:, patch:] = 0
        products = a.new_empty(len(a), height, outputs)
    else:
        patches = _aligned(a, chunk * m.groups, places, patch)
        products = _aligned(a, len(a) * m.groups, outputs, patch)
    for start in range(0, len(a), chunk):
        rows = slice(start, start + chunk)
        slopes = _slopes(g[rows], m.groups)
        copied = patches[: len(slopes)]
        _copy(windows[rows], copied)
        left, right = (copied, slopes.mT) if one_channel else (slopes, copied)
        torch.bmm(left, right, out=products[start * m.groups :][: len(slopes)])
    return Whole(name, products[:, : patch if one_channel else None].reshape(len(a), *shape), axes)


# Axes of a kernel whose outputs come last.
_LAST = (2, 3, 1, 0)


def _even(height: int, width: int) -> int:
    """The next height at which matrices of this width, one behind the other, all begin at a
    multiple of 64 bytes.
    """
    return next(h for h in range(height, height + _ALIGNED) if h * width % _ALIGNED == 0)


def _slopes(g: Tensor, groups: int) -> Tensor:
    """Slopes as matrices of outputs by places, for each example and group."""
    outputs, places = g.shape[1] // groups, g[0, 0].numel()
    last = g.permute(0, 2, 3, 1)
    if groups == 1 and last.is_contiguous() and outputs * places % _ALIGNED == 0:
        return last.reshape(len(g), places, outputs).mT
    found = _aligned(g, len(g) * groups, outputs, places)
    found.view(len(g), groups, outputs, *g.shape[2:]).copy_(g.unflatten(1, (groups, -1)))
    return found


def _aligned(like: Tensor, count: int, height: int, width: int) -> Tensor:
    """Memory for so many matrices, each from a multiple of 64 bytes on: some libraries round a
    product in ways that depend on its address.
    """
    size = height * width
    memory = like.new_empty(count, size + -size % _ALIGNED)
    return memory[:, :size].view(count, height, width)


def _copy(windows: Tensor, matrices: Tensor) -> None:
    """Copy the numbers of windows to the beginnings of matrices, one for each row and group."""
    sizes, strides = windows.shape, windows.stride()
    if windows.device.type != "cpu":
        matrices[:, : windows[0, 0].numel() // matrices.shape[2]].view(sizes).copy_(windows)
        return
    end = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    memory = windows.as_strided((end,), (1,)).numpy()
    rows = matrices.as_strided((len(matrices), matrices[0].numel()), (matrices.stride(0), 1))
    copy_windows(memory, tuple(sizes), strides, rows.numpy())


def _windows(m: Any, a: Tensor) -> Tensor:
    """What each place of a convolution's output is computed from, without a copy: of shape (rows,
    groups, height and width of the output, height and width of the kernel, channels).
    """
    (down, right), (dy, dx), (ky, kx) = m.stride, m.dilation, m.kernel_size
    channels = m.in_channels // m.groups
    rows, _, height, width = a.shape
    row, channel, y, x = a.stride()
    high, wide = 1 + (height - 1 - dy * (ky - 1)) // down, 1 + (width - 1 - dx * (kx - 1)) // right
    return a.as_strided(
        (rows, m.groups, high, wide, ky, kx, channels),
        (row, channels * channel, down * y, right * x, dy * y, dx * x, channel),
        a.storage_offset(),
    )


def _parts_of_group_norm(m: Any, names: dict[str, str], a: Tensor, g: Tensor) -> list[Part]:
    normal = F.group_norm(a, m.num_groups, eps=m.eps)
    over = list(range(2, a.ndim))
    return _scale_and_shift(names, normal, g, over)


def _parts_of_layer_norm(m: Any, names: dict[str, str], a: Tensor, g: Tensor) -> list[Part]:
    normal = F.layer_norm(a, m.normalized_shape, eps=m.eps)
    over = list(range(1, a.ndim - len(m.normalized_shape)))
    return _scale_and_shift(names, normal, g, over)


def _scale_and_shift(
    names: dict[str, str], normal: Tensor, g: Tensor, over: list[int]
) -> list[Part]:
    parts: list[Part] = []
    for own, values in (("weight", g * normal), ("bias", g)):
        if own in names:
            parts.append(Whole(names[own], values.sum(over) if over else values))
    return parts


def _parts_of_embedding(m: Any, names: dict[str, str], a: Tensor, g: Tensor) -> list[Part]:
    places, slopes = a.flatten(1), g.reshape(len(g), -1, g.shape[-1])
    if m.padding_idx is not None:
        slopes = slopes.masked_fill((places == m.padding_idx)[:, :, None], 0)
    return [Lookup.of(names["weight"], places, slopes)]


_Rule = Callable[[Any, dict[str, str], Tensor, Tensor], list[Part]]
# Exact types only: a subclass may compute something else.
_RULES: dict[type[nn.Module], _Rule] = {
    nn.Linear: _parts_of_linear,
    nn.Conv2d: _parts_of_convolution,
    nn.GroupNorm: _parts_of_group_norm,
    nn.LayerNorm: _parts_of_layer_norm,
    nn.Embedding: _parts_of_embedding,
}


def _layers(model: ModuleLoss) -> dict[nn.Module, dict[str, str]]:
    """Layers with fitted parameters, and the full names of these; refuses unknown types."""
    layers = {
        layer: {
            own: f"{path}.{own}" if path else own
            for own, parameter in layer.named_parameters(recurse=False)
            if parameter.requires_grad
        }
        for path, layer in model.module.named_modules()
    }
    layers = {layer: names for layer, names in layers.items() if names}
    for layer in layers:
        if type(layer) not in _RULES:
            raise NotBookKept(type(layer).__name__)
    return layers


@dataclass(frozen=True, eq=False)
class BookKeeping:
    """One forward and one backward pass; only for layers of known types, each called once.

    Parameters
    ----------
    model : ModuleLoss
    guarded : bool, default=False
        Give copies of outputs to the next layer, which may overwrite them.
    """

    model: ModuleLoss
    guarded: bool = False

    def parts(self, x: Tensor, y: Tensor) -> Iterator[tuple[slice, list[Part]]]:
        layers = _layers(self.model)
        kept: list[tuple[nn.Module, Tensor, Tensor]] = []

        def keep(layer: nn.Module, given: Any, output: Tensor) -> Tensor:
            if not output.requires_grad:  # a first layer: nothing before it needs a gradient
                output = output.detach().requires_grad_()
            kept.append((layer, given[0].detach(), output))
            return output.clone() if self.guarded else output

        hooks = [layer.register_forward_hook(keep) for layer in layers]
        trained = list(self.model.trained.values())
        try:
            # Gradients are wanted of outputs of layers, not of parameters.
            for parameter in trained:
                parameter.requires_grad_(False)
            with torch.enable_grad(), compiled_pooling(self.model.module):
                losses = self.model.losses(x, y)
                if sorted(map(id, layers)) != sorted(id(layer) for layer, _, _ in kept):
                    raise NotBookKept("a layer that is not called exactly once")
                slopes = torch.autograd.grad(
                    losses.sum(),
                    [output for _, _, output in kept],
                    allow_unused=True,
                    materialize_grads=True,
                )
        finally:
            for hook in hooks:
                hook.remove()
            for parameter in trained:
                parameter.requires_grad_(True)
        parts = [
            part
            for (layer, given, _), slope in zip(kept, slopes, strict=True)
            for part in _RULES[type(layer)](layer, layers[layer], given, slope)
        ]
        yield slice(0, len(x)), parts

    def on(self, model: ModuleLoss) -> "BookKeeping":
        return BookKeeping(model, self.guarded)


def numbers_kept(model: ModuleLoss, x: Tensor, y: Tensor) -> int:
    """Numbers that the gradients of one example take up, as the fastest engine stores them."""
    try:
        [(_, parts)] = BookKeeping(model.copied(), guarded=True).parts(x, y)
    except Exception:  # told where engines are chosen
        return model.size
    return sum(values.numel() for part in parts for values in part.tensors()) // len(x)


@dataclass(frozen=True, eq=False)
class WrittenOut:
    """Gradients of some examples at a time, by `torch.func.vmap`: for any module, and slower.

    Parameters
    ----------
    model : ModuleLoss
    """

    model: ModuleLoss

    @property
    def rows(self) -> int:
        """Examples at a time: a power of two, fewer for a large module."""
        return min(VMAP_ROWS, 1 << max(0, (WRITTEN_AT_ONCE // self.model.size).bit_length() - 1))

    def parts(self, x: Tensor, y: Tensor) -> Iterator[tuple[slice, list[Part]]]:
        weights = {name: one.detach() for name, one in self.model.trained.items()}
        others = {
            name: one.detach()
            for name, one in (
                *self.model.module.named_parameters(),
                *self.model.module.named_buffers(),
            )
            if name not in weights
        }

        def loss_of_one(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            outputs = functional_call(self.model.module, {**weights, **others}, (x[None],))
            return self.model.loss(outputs, y[None]).sum()

        gradients = vmap(grad(loss_of_one), in_dims=(None, 0, 0))
        for start in range(0, len(x), self.rows):
            place = slice(start, min(start + self.rows, len(x)))
            found = gradients(weights, x[place], y[place])
            yield place, [Whole(name, values.detach()) for name, values in found.items()]

    def on(self, model: ModuleLoss) -> "WrittenOut":
        return WrittenOut(model)
