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

from hushfit.torch._module_loss import ModuleLoss
from hushfit.torch._parts import Lookup, Outer, Part, Whole

# Examples whose gradients `vmap` writes out at once.
VMAP_ROWS = 32
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
    """Slopes times patches, some examples at a time."""
    channels, axes = m.in_channels // m.groups, (0, 2, 3, 1)
    shape: tuple[int, ...] = (m.out_channels, *m.kernel_size, channels)
    sizes = m.out_channels // m.groups, m.weight[0].numel()
    if m.in_channels == 1:
        shape, axes, sizes = (*m.kernel_size, channels, m.out_channels), (2, 3, 1, 0), sizes[::-1]
    products = _aligned(g, len(a) * m.groups, *sizes)
    mode = "constant" if m.padding_mode == "zeros" else m.padding_mode
    a = F.pad(a, m._reversed_padding_repeated_twice, mode)
    for start in range(0, len(a), PATCHED_ROWS):
        rows = slice(start, start + PATCHED_ROWS)
        left, right = _factors(m, a[rows], g[rows])
        torch.bmm(left, right, out=products[start * m.groups :][: len(left)])
    return Whole(name, products.reshape(len(a), *shape), axes)


def _factors(m: Any, a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Slopes, and patches of the images ordered by height, width and channel, for each example and
    group: the product is over the places of the output. For images of one channel both are
    transposed and exchanged.
    """
    windows, places = _windows(m, a), g[0, 0].numel()
    slopes = _matrices(g.unflatten(1, (m.groups, -1)), m.out_channels // m.groups, places)
    patch = m.weight[0].numel()
    if m.in_channels == 1:  # a copy along the rows of an image has longer runs
        return _matrices(windows.permute(0, 1, 4, 5, 6, 2, 3), patch, places), slopes.mT
    return slopes, _matrices(windows, places, patch)


def _aligned(like: Tensor, count: int, height: int, width: int) -> Tensor:
    """Memory for so many matrices, each from a multiple of 64 bytes on: some libraries round a
    product in ways that depend on its address.
    """
    size = height * width
    memory = like.new_empty(count, size + -size % _ALIGNED)
    return memory[:, :size].view(count, height, width)


def _matrices(values: Tensor, height: int, width: int) -> Tensor:
    """The same numbers as matrices, each from a multiple of 64 bytes on."""
    count = values.numel() // (height * width)
    if height * width % _ALIGNED == 0:
        return values.reshape(count, height, width)
    found = _aligned(values, count, height, width)
    found.view(values.shape).copy_(values)
    return found


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
            with torch.enable_grad():
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


@dataclass(frozen=True, eq=False)
class WrittenOut:
    """Gradients of some examples at a time, by `torch.func.vmap`: for any module, and slower.

    Parameters
    ----------
    model : ModuleLoss
    rows : int, default=VMAP_ROWS
        Examples at a time.
    """

    model: ModuleLoss
    rows: int = VMAP_ROWS

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
        return WrittenOut(model, self.rows)
