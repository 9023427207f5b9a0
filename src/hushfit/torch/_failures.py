"""Records on which a module fails, such as one with a label that its loss does not know.

An error in the middle of a fit would tell that such a record is there. It contributes nothing
instead: whether a module fails on a record depends on that record alone. Proof:
docs/proofs/networks.md.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from hushfit.errors import InvalidArgument
from hushfit.torch._engines import Engine
from hushfit.torch._parts import Part
from hushfit.torch._rows import Batch


def parts_of(engine: Engine, batch: Batch) -> Iterator[tuple[slice, list[Part], Tensor]]:
    """Gradients of the examples of a batch, some at a time, and the shares of these."""
    done = 0
    with contextlib.suppress(Exception):  # its text may quote values of records
        for place, parts in engine.parts(batch.x, batch.y):
            yield place, parts, batch.shares[place]
            done = place.stop
        return
    batch = _without_failures(lambda x, y: list(engine.parts(x, y)), batch)
    for place, parts in engine.parts(batch.x, batch.y):
        if place.start >= done:
            yield place, parts, batch.shares[place]


def losses_of(engine: Engine, batch: Batch) -> tuple[Tensor, Tensor]:
    """Losses of the examples of a batch, and their shares."""
    compute = engine.model.losses
    with torch.no_grad():
        with contextlib.suppress(Exception):
            return compute(batch.x, batch.y), batch.shares
        batch = _without_failures(compute, batch)
        return compute(batch.x, batch.y), batch.shares


def _without_failures(compute: Callable[[Tensor, Tensor], object], batch: Batch) -> Batch:
    """The same with zeros, of no share, in place of the examples on which a computation fails.

    Each is tried among zeros, at the size of the batch.
    """
    x, y = torch.zeros_like(batch.x), torch.zeros_like(batch.y)
    if _fails(compute, x, y):
        raise InvalidArgument(
            "The module or its loss failed during the fit on records of zeros, so that the reason "
            "is not in your records; memory may have run out."
        )
    failing = torch.zeros(len(x), dtype=torch.bool)
    for k in range(batch.n_records):
        x[k], y[k] = batch.x[k], batch.y[k]
        failing[k] = _fails(compute, x, y)
        x[k], y[k] = 0, 0
    failing = failing.to(batch.x.device)
    kept = [values.clone() for values in (batch.x, batch.y, batch.shares)]
    for values in kept:
        values[failing] = 0
    return replace(batch, x=kept[0], y=kept[1], shares=kept[2])


def _fails(compute: Callable[[Tensor, Tensor], object], x: Tensor, y: Tensor) -> bool:
    try:
        compute(x, y)
    except Exception:
        return True
    return False
