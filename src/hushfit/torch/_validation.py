"""Checks of a module on public random records, before anything is paid.

The proof of docs/proofs/networks.md assumes that what is computed of an example depends on that
example and the weights alone, bit for bit, wherever it stands in a batch of the fixed size. This is
tried out here, on the machine that will run the fit: with other examples exchanged, also for huge
ones, and in another order. Norms and sums of the engine are compared with plain differentiation of
one example at a time.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hushfit.errors import HushfitError, InvalidArgument
from hushfit.torch._arithmetic import full_precision, one_thread
from hushfit.torch._engines import BookKeeping, Engine, NotBookKept, WrittenOut
from hushfit.torch._groups import GROUP_ROWS, Weighted, regrouped
from hushfit.torch._module_loss import ModuleLoss

_SEED = 20_261_117  # public: the same records for everybody
# Records that are tried in all places of a batch at once.
_REPEATED = 16
_COMPARED = 4
_AGREEMENT = 1e-8
_HUGE = 1e30
_MOVED = 5
# Numbers of examples whose sums in float32 are tried: small ones, and up to a whole group.
_SUMMED = (1, 2, 7, 32, 100, 160, 251, 256, 257, 288, 301, GROUP_ROWS)


class DependsOnPlace(InvalidArgument):
    """What is computed of an example depends on where it stands in a batch."""


@dataclass(frozen=True)
class RecordShape:
    """What is public about a record: shapes and types of its input and its target.

    Parameters
    ----------
    input : tuple of int
    integers : bool
        Whether inputs are whole numbers, as tokens are.
    target : tuple of int
        Empty for one number.
    classes : int or None
        Number of classes, for targets that are classes; None for real targets.
    """

    input: tuple[int, ...]
    integers: bool = False
    target: tuple[int, ...] = ()
    classes: int | None = None


def random_records(model: ModuleLoss, shape: RecordShape, rows: int) -> tuple[Tensor, Tensor]:
    """Public random inputs and targets of the shape of the records."""
    draw = torch.Generator().manual_seed(_SEED)
    if shape.integers:
        tables = [
            layer.num_embeddings
            for layer in model.module.modules()
            if isinstance(layer, nn.Embedding)
        ]
        x = torch.randint(0, min(tables, default=2), (rows, *shape.input), generator=draw)
    else:
        x = torch.randn((rows, *shape.input), generator=draw).to(model.dtype)
        if x.ndim == 4:  # as batches are
            x = x.contiguous(memory_format=torch.channels_last)
    if shape.classes is None:
        y = torch.randn((rows, *shape.target), generator=draw).to(model.dtype)
    else:
        y = torch.randint(0, shape.classes, (rows, *shape.target), generator=draw)
    return x.to(model.device), y.to(model.device)


def refuse_known_layers(module: nn.Module) -> None:
    """Refuse layers that are known to mix examples or to keep state, with a remedy for each."""
    for path, layer in module.named_modules():
        reason = _objection(layer)
        if reason is not None:
            raise InvalidArgument(
                f"Layer {path or 'module'!r} ({type(layer).__name__}) {reason} Nothing was charged."
            )


def _objection(layer: nn.Module) -> str | None:
    if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.training:
        return (
            "computes statistics over a batch, so that one example changes the gradients of all "
            "others. Use nn.GroupNorm, or call eval() on it to freeze its statistics."
        )
    if isinstance(layer, nn.modules.instancenorm._InstanceNorm) and layer.track_running_stats:
        return (
            "keeps statistics of the examples, which no noise covers. Set "
            "track_running_stats=False, or use nn.GroupNorm."
        )
    if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.training and layer.p > 0:
        return (
            "draws random masks, which the proof does not cover, and noise already regularises a "
            "private fit. Set p=0 or remove it."
        )
    if isinstance(layer, nn.Embedding) and layer.max_norm is not None:
        return "changes its weights in every pass. Leave max_norm=None."
    if isinstance(layer, nn.Embedding) and layer.scale_grad_by_freq:
        return "divides gradients by counts over a batch. Set scale_grad_by_freq=False."
    if isinstance(layer, nn.RNNBase):
        return (
            "has no per-example gradients in torch.func. Use convolutions or attention over the "
            "sequence."
        )
    return None


def engine_for(model: ModuleLoss, shape: RecordShape, rows: int) -> Engine:
    """The fastest engine that is right for a module; refuses modules that have none.

    Parameters
    ----------
    model : ModuleLoss
    shape : RecordShape
    rows : int
        Physical batch size.

    Returns
    -------
    Engine
    """
    refuse_known_layers(model.module)
    with one_thread(), _failures_told(model):
        x, y = random_records(model, shape, rows)
        _check_outputs(model, x, y)
        with _attributes_watched(model):  # after a pass, which may have filled a cache
            try:
                return _checked_engine(model, x, y)
            except DependsOnPlace:
                return _checked_engine(model.row_by_row(), x, y)


def _checked_engine(model: ModuleLoss, x: Tensor, y: Tensor) -> Engine:
    _check_rows_apart(lambda x, y: [_detached_losses(model, x, y)], x, y, "losses")
    engine = _first_that_agrees(model, x, y)
    try:
        _check_gradients_apart(engine, x, y)
    except DependsOnPlace:
        # Products of small matrices may round by their place in one engine, and not in the other.
        engine = _written_out(model, x, y)
        _check_gradients_apart(engine, x, y)
    _check_no_memory(model, x, y)
    return engine


def _check_gradients_apart(engine: Engine, x: Tensor, y: Tensor) -> None:
    _check_rows_apart(lambda x, y: _tensors_of(engine, x, y), x, y, "gradients")


def _check_no_memory(model: ModuleLoss, x: Tensor, y: Tensor) -> None:
    """Refuse a module that keeps something of its weights, as spectral normalisation does: its
    state may stand still at some weights, and moves at others.
    """
    start, before = model.weights, [value.clone() for value in model.module.buffers()]
    model.load(1.5 * start + 0.1 * np.cos(np.arange(model.size)))
    _detached_losses(model, x, y)
    model.load(start)
    if not _same(before, list(model.module.buffers())):
        raise InvalidArgument(_keeps_state(model))


_OF_ANY_MODULE = frozenset(vars(nn.Module()))
# How deep attributes are looked into: a list in a dictionary in an object.
_DEPTH = 3


@contextmanager
def _attributes_watched(model: ModuleLoss) -> Iterator[None]:
    """Refuse a module whose attributes change from one pass to the next, as those that count, or
    keep what they have seen, do.
    """
    before = _attributes(model.module)
    yield
    after = _attributes(model.module)
    for where in sorted({*before, *after}):
        if before.get(where) != after.get(where):
            raise InvalidArgument(f"The attribute {where!r} changes. {_keeps_state(model)}")


def _attributes(module: nn.Module) -> dict[str, object]:
    """Marks of the attributes of all layers by their names, but for those that every module has."""
    return {
        f"{path}.{name}".removeprefix("."): _mark(value)
        for path, layer in module.named_modules()
        for name, value in vars(layer).items()
        if name not in _OF_ANY_MODULE
    }


def _mark(value: Any, depth: int = _DEPTH) -> object:
    """What tells whether an attribute was changed, in itself or in what it contains."""
    if isinstance(value, bool | int | float | str | bytes | bytearray):
        return repr(value)
    if isinstance(value, Tensor):
        return _Same(value), value._version
    if isinstance(value, np.ndarray):
        return _Same(value), value.dtype.str, value.tobytes()
    parts = _parts_of(value) if depth > 0 else []
    return _Same(value), tuple(_mark(part, depth - 1) for part in parts)


def _parts_of(value: Any) -> list[Any]:
    """What a container holds, or the attributes of another object."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset | deque):
        return [*value]
    if isinstance(value, nn.Module | type | ModuleType | FunctionType):
        return []
    return [*getattr(value, "__dict__", {}).values()]


@dataclass(frozen=True, eq=False)
class _Same:
    """An object, equal to itself alone. It is kept, so that no other can take its place."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


def _keeps_state(model: ModuleLoss) -> str:
    return (
        f"A pass through {type(model.module).__name__} changes its state (a buffer, a parameter, "
        "or an attribute), and what it keeps of the examples would get no noise. Nothing was "
        "charged. Remove that state."
    )


def sums_repeat(engine: Engine, shape: RecordShape, rows: int) -> bool:
    """Whether sums in float32 over up to a whole group of examples have the same bits wherever
    these stand, also if they come from several batches.
    """
    with one_thread():
        return full_precision(engine.model.device) and _sums_repeat(engine, shape, rows)


def _sums_repeat(engine: Engine, shape: RecordShape, rows: int) -> bool:
    x, y = random_records(engine.model, shape, rows)
    first, *others = (_all_sums(engine, x, y, before) for before in (0, _MOVED, rows // 2))
    return all(_same(first, other) for other in others)


def _all_sums(engine: Engine, x: Tensor, y: Tensor, before: int) -> list[Tensor]:
    """Sums over several numbers of examples behind some others."""
    chunks = _behind(engine, x, y, before)
    return [_rounded_sum(engine, chunks, before, count) for count in _SUMMED]


def _behind(engine: Engine, x: Tensor, y: Tensor, before: int) -> list[Weighted]:
    """Gradients of as many examples as a group may have, behind some others."""
    rows, weights = len(x), torch.linspace(0.5, 1.5, len(x), dtype=torch.float64, device=x.device)
    order = (torch.arange(-(-(before + GROUP_ROWS) // rows) * rows) - before) % rows
    return [
        Weighted(parts, weights[chosen[place]])
        for chosen in order.to(x.device).split(rows)
        for place, parts in engine.parts(x[chosen], y[chosen])
    ]


def _rounded_sum(engine: Engine, chunks: list[Weighted], before: int, count: int) -> Tensor:
    """Sum over so many examples behind the first ones."""
    *_, group = regrouped(chunks, [before, before + count] if before else [count])
    total = torch.zeros(engine.model.size, dtype=torch.float32)
    group.write_rounded(engine.model.views(total), 1.0)
    return total


def _first_that_agrees(model: ModuleLoss, x: Tensor, y: Tensor) -> Engine:
    for engine in (BookKeeping(model), BookKeeping(model, guarded=True)):
        try:
            if _agrees(engine, x, y):
                return engine
        except (NotBookKept, RuntimeError):  # torch refuses to differentiate overwritten outputs
            continue
    return _written_out(model, x, y)


def _written_out(model: ModuleLoss, x: Tensor, y: Tensor) -> WrittenOut:
    written_out = WrittenOut(model)
    if not _agrees(written_out, x, y):
        raise InvalidArgument(
            f"The per-example gradients of {type(model.module).__name__} could not be confirmed on "
            "random records. Nothing was charged. Use layers of torch.nn, each once."
        )
    return written_out


@contextmanager
def _failures_told(model: ModuleLoss) -> Iterator[None]:
    """Report errors of the module itself, which happened on random records and so are public."""
    before = _state(model)
    try:
        yield
    except HushfitError:
        raise
    except Exception as error:
        raise InvalidArgument(
            f"{type(model.module).__name__} or its loss failed on random records of the shape of "
            f"yours: {error}. Nothing was charged. Check the shapes of inputs, outputs and "
            "targets. A module may not differentiate in its forward pass."
        ) from error
    if not _same(before, _state(model)):
        raise InvalidArgument(_keeps_state(model))


def _state(model: ModuleLoss) -> list[Tensor]:
    return [value.detach().clone() for value in model.module.state_dict().values()]


def _same(one: list[Tensor], other: list[Tensor]) -> bool:
    return len(one) == len(other) and all(
        torch.equal(a, b) or (a.shape == b.shape and torch.equal(_known(a), _known(b)))
        for a, b in zip(one, other, strict=True)
    )


def one_tensor(module: nn.Module, outputs: Any) -> Tensor:
    """The outputs of a module; refuses several."""
    if not isinstance(outputs, Tensor):
        raise InvalidArgument(
            f"{type(module).__name__} has several outputs ({type(outputs).__name__}). Nothing was "
            "charged. Wrap it in a module that returns one tensor."
        )
    return outputs


def _check_outputs(model: ModuleLoss, x: Tensor, y: Tensor) -> None:
    with torch.no_grad():
        outputs = one_tensor(model.module, model.module(x))
        losses = model.loss(outputs, y)
    if not isinstance(losses, Tensor) or losses.shape != (len(x),):
        got = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise InvalidArgument(
            f"The loss of a batch of {len(x)} examples has the shape {got}; it should have one "
            "value for each example. Use reduction='none'."
        )
    if not bool(torch.isfinite(losses).all()):
        raise InvalidArgument(
            "The loss of random records is not finite at the first weights. Initialise the module "
            "with smaller weights."
        )


def _detached_losses(model: ModuleLoss, x: Tensor, y: Tensor) -> Tensor:
    with torch.no_grad():
        return model.losses(x, y)


def _tensors_of(engine: Engine, x: Tensor, y: Tensor) -> list[Tensor]:
    """Everything that an engine computes of each example, in the order of the examples."""
    columns: list[Tensor] = []
    for place, parts in engine.parts(x, y):
        found = [values for part in parts for values in part.tensors()]
        if place == slice(0, len(x)):
            return found
        if place.start == 0:
            columns = [values.new_empty((len(x), *values.shape[1:])) for values in found]
        for column, values in zip(columns, found, strict=True):
            column[place] = values
    return columns


_Compute = Callable[[Tensor, Tensor], list[Tensor]]


def _check_rows_apart(compute: _Compute, x: Tensor, y: Tensor, what: str) -> None:
    """Refuse a computation in which an example changes what is computed of another."""
    rows = len(x)
    expected = compute(x, y)
    if not _same(expected, compute(x, y)):
        raise InvalidArgument(
            f"The {what} of the same records differ from one pass to the next: the module draws "
            "random numbers, or keeps state. Nothing was charged. Remove what draws or keeps them."
        )
    draw = torch.Generator().manual_seed(_SEED + 1)
    order = torch.randperm(rows, generator=draw).to(x.device)
    found = compute(x[order], y[order])
    if not all(_same([one[order]], [other]) for one, other in zip(expected, found, strict=True)):
        raise DependsOnPlace(_mixed(what, "its place in the batch"))
    for i in order[:_REPEATED].tolist():
        # One record in every place: values that differ in few places only are found so.
        found = compute(x[i : i + 1].expand_as(x).contiguous(), y[i : i + 1].expand_as(y))
        if any(not torch.equal(one, one[:1].expand_as(one)) for one in map(_known, found)):
            raise DependsOnPlace(_mixed(what, "its place in the batch"))
    others = torch.zeros(rows, dtype=torch.bool)
    others[torch.randperm(rows, generator=draw)[: rows // 2]] = True
    others = others.to(x.device)
    for exchanged in _exchanged(x, others):
        found = compute(exchanged, y)
        kept = [
            _same([one[~others]], [other[~others]])
            for one, other in zip(expected, found, strict=True)
        ]
        if not all(kept):
            raise InvalidArgument(_mixed(what, "the other examples of its batch"))


def _known(values: Tensor) -> Tensor:
    return values.nan_to_num() if values.is_floating_point() else values


def refuse_if_examples_mix(outputs: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """Refuse features of an example that depend on other examples, on its place or on chance."""
    with one_thread():
        _check_rows_apart(lambda x, _: [outputs(x)], x, torch.zeros(len(x)), "features")


def _exchanged(x: Tensor, others: Tensor) -> Iterator[Tensor]:
    rolled = x.roll(1, 0)
    factors = (1,) if not x.is_floating_point() else (1.0, 0.0, _HUGE)
    for factor in factors:
        exchanged = x.clone()
        exchanged[others] = (rolled * factor)[others]
        yield exchanged


def _mixed(what: str, other: str) -> str:
    return (
        f"The {what} of an example depend on {other}, and the privacy proof needs that they depend "
        "on the example alone. Nothing was charged. Remove layers that mix examples (batch "
        "statistics, sorting, centring); if there are none, try another physical_batch, such as "
        "64, or weights in float64."
    )


def _agrees(engine: Engine, x: Tensor, y: Tensor) -> bool:
    """Whether norms and a weighted sum equal those of one example at a time, in float64."""
    model = engine.model.copied(torch.float64)
    x = x[:_COMPARED].double() if x.is_floating_point() else x[:_COMPARED]
    y = y[:_COMPARED].double() if y.is_floating_point() else y[:_COMPARED]
    rows = torch.stack([_gradient_of_one(model, x[i : i + 1], y[i : i + 1]) for i in range(len(x))])
    weights = torch.linspace(0.5, 1.5, len(x), dtype=torch.float64, device=x.device)
    norms, total = torch.zeros_like(weights), torch.zeros_like(rows[0])
    views = model.views(total)
    for place, parts in engine.on(model).parts(x, y):
        norms[place] += torch.stack([part.squared_norms() for part in parts]).sum(0)
        for part in parts:
            part.add_to(views, weights[place])
    scale = float(rows.norm()) + math.ulp(1.0)
    return (
        float((norms.sqrt() - rows.norm(dim=1)).abs().max()) <= _AGREEMENT * scale
        and float((total - weights @ rows).norm()) <= _AGREEMENT * scale
    )


def _gradient_of_one(model: ModuleLoss, x: Tensor, y: Tensor) -> Tensor:
    with torch.enable_grad():
        found = torch.autograd.grad(
            model.losses(x, y).sum(),
            list(model.trained.values()),
            allow_unused=True,
            materialize_grads=True,
        )
    return torch.cat([one.flatten() for one in found])
