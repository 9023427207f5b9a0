"""What the proof of docs/proofs/networks.md needs of torch: one thread, and products in full
precision.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_FULL = ("none", "ieee")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread.

    Threads share the elements of a tensor out among them, and compute those that are left over at
    the end of a share by other instructions, with other last bits: what is computed of an example
    would depend on its place. A batch has a multiple of 32 examples, so one thread leaves nothing
    over.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def full_precision(device: torch.device) -> bool:
    """Whether products of float32 are computed in float32, and not with fewer digits."""
    backend = torch.backends.mkldnn
    settings = (backend.fp32_precision, backend.matmul.fp32_precision, backend.conv.fp32_precision)
    return (
        device.type == "cpu"
        and torch.get_float32_matmul_precision() == "highest"
        and all(setting in _FULL for setting in settings)
    )
