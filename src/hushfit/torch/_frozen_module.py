"""A network with public weights as a feature map: never trained, one batch size, row by row."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from hushfit._typing import AnyArray
from hushfit.errors import HushfitError, InvalidArgument
from hushfit.features import shortened
from hushfit.torch._validation import refuse_if_examples_mix

_SEED = 20_261_117  # public: the same inputs for everybody


@dataclass(frozen=True, eq=False)
class FrozenModule:
    """The outputs of a module in evaluation mode, as features of a linear model.

    Its weights are public: drawn from a seed, or of a network that was trained on public data. The
    module is copied, set to ``eval()`` and never differentiated. Rows pass through it in batches of
    a fixed size, the last one filled up with zeros. It is tried out on random inputs here, and
    refused if what it computes of an example depends on the others or on chance.

    Parameters
    ----------
    module : nn.Module
        From (n, \\*input_shape) in float32 to one tensor of (n, ...); outputs are flattened.
    input_shape : tuple of int
        Of one example, such as (1, 28, 28). A row of the table has its values, in this order.
    row_norm : float, optional
        Longer rows of outputs are scaled down to this length; the square root of the number of
        outputs if None.
    physical_batch : int, default=64
        Examples that pass through the module at once.

    Examples
    --------
    >>> from torch import nn
    >>> from hushfit.torch import FrozenModule
    >>> FrozenModule(nn.Linear(4, 2), (4,)).n_outputs
    2
    """

    module: nn.Module
    input_shape: tuple[int, ...]
    row_norm: float | None = None
    physical_batch: int = 64
    n_outputs: int = field(init=False)

    rotated: ClassVar[bool] = True
    kept: ClassVar[bool] = True
    reads_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _refuse_settings(self)
        module = copy.deepcopy(self.module).eval().requires_grad_(False)
        object.__setattr__(self, "module", module)
        object.__setattr__(self, "input_shape", tuple(self.input_shape))
        outputs = _tried_out(self)
        object.__setattr__(self, "n_outputs", outputs)
        if self.row_norm is None:
            object.__setattr__(self, "row_norm", math.sqrt(outputs))

    @property
    def n_inputs(self) -> int:
        return math.prod(self.input_shape)

    def leaves_sparse(self, sparse: bool) -> bool:
        return False

    def transform(self, X: AnyArray) -> AnyArray:
        """Map rows, each on its own.

        Parameters
        ----------
        X : array of shape (n, n_inputs)

        Returns
        -------
        float32 array of shape (n, n_outputs)
        """
        mapped = np.empty((len(X), self.n_outputs), np.float32)
        for start in range(0, len(X), self.physical_batch):
            rows = np.asarray(X[start : start + self.physical_batch], np.float32)
            batch = np.zeros((self.physical_batch, self.n_inputs), np.float32)
            batch[: len(rows)] = rows
            outputs = self.outputs(torch.from_numpy(batch.reshape(-1, *self.input_shape)))
            mapped[start : start + len(rows)] = outputs[: len(rows)].numpy()
        return np.asarray(shortened(mapped, self.row_norm))

    def outputs(self, batch: Tensor) -> Tensor:
        """Flattened outputs of a full batch."""
        with torch.no_grad():
            made = self.module(batch)
        if not isinstance(made, Tensor) or not made.is_floating_point() or made.ndim < 2:
            raise InvalidArgument(
                f"{type(self.module).__name__} should make one tensor of floats of shape (n, ...). "
                "Wrap it in a module that does. Nothing was charged."
            )
        return made.flatten(1)

    def transform_sparse(self, X: Any) -> AnyArray:
        """Map the rows of a CSR matrix, as an array."""
        return self.transform(X.toarray())

    def output_names(self, names: Sequence[str]) -> list[str]:
        """Names of the outputs: their numbers."""
        return [f"output{k}" for k in range(self.n_outputs)]

    def to_dict(self) -> dict[str, Any]:
        """Refused: a module is code, and model files hold data only."""
        raise InvalidArgument(
            f"the feature map is a torch module ({type(self.module).__name__}), which is code, and "
            "a model file holds data only. Map the rows first (map.transform(X)), fit and save a "
            "model of the mapped rows, and keep the module beside it with torch.save."
        )


def _refuse_settings(frozen: FrozenModule) -> None:
    shape, norm = frozen.input_shape, frozen.row_norm
    if not isinstance(frozen.module, nn.Module):
        raise InvalidArgument(f"{type(frozen.module).__name__} is no torch.nn.Module. Give one.")
    numbers = (*shape, frozen.physical_batch) if isinstance(shape, Sequence) else ()
    if len(numbers) < 2 or not all(type(n) is int and n >= 1 for n in numbers):
        raise InvalidArgument(
            f"input_shape={shape!r} should be the shape of one example, such as (1, 28, 28), and "
            f"physical_batch={frozen.physical_batch!r} a whole number from 1."
        )
    if norm is not None and not 0 < norm < math.inf:
        raise InvalidArgument(f"row_norm={norm!r} is not a length. Give a positive number.")


def _tried_out(frozen: FrozenModule) -> int:
    """The number of outputs; refuses a module that mixes examples or keeps something of them."""
    draw = torch.Generator().manual_seed(_SEED)
    x = torch.rand((frozen.physical_batch, *frozen.input_shape), generator=draw)
    before = copy.deepcopy(frozen.module.state_dict())
    name = type(frozen.module).__name__
    try:
        made = frozen.outputs(x)
        if len(made) != len(x):
            raise InvalidArgument(f"{name} made {len(made)} rows of {len(x)}. Nothing was charged.")
        refuse_if_examples_mix(frozen.outputs, x)
    except HushfitError:
        raise
    except Exception as error:
        raise InvalidArgument(
            f"{name} failed on random inputs of shape {frozen.input_shape}: {error}. Nothing was "
            "charged. Check input_shape."
        ) from error
    after = frozen.module.state_dict()
    if not all(torch.equal(value, after[key]) for key, value in before.items()):
        raise InvalidArgument(
            f"A pass through {name} changes its state, which would keep something of the rows. "
            "Nothing was charged. Remove that state."
        )
    return int(made.shape[1])
