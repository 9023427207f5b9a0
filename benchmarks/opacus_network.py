"""Sums of clipped gradients with Opacus; ``benchmarks.networks`` runs it with the interpreter of
Opacus's venv, and asks for one pass at a time, so that both are measured in turn.

Reads names of networks and modes from its input, one pair a line; prints the seconds of the
processor that one pass took.
"""

import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from opacus import PrivacyEngine
from torch import nn

BATCH = 320


def modules() -> dict[str, Callable[[], nn.Module]]:
    """The networks of the benchmark, from a file without other imports."""
    spec = importlib.util.spec_from_file_location(
        "network_modules", Path(__file__).with_name("network_modules.py")
    )
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found.NETWORKS


@cache
def one_pass(network: str, mode: str) -> Callable[[], None]:
    """A function that computes one sum of clipped gradients."""
    torch.manual_seed(0)
    x, y = torch.randn(BATCH, 1, 28, 28), torch.randint(0, 10, (BATCH,))
    module = modules()[network]()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH)
    found = PrivacyEngine().make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=loader,
        noise_multiplier=0.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
        criterion=nn.CrossEntropyLoss(),
    )
    private, optimizer = found[0], found[1]
    criterion = found[2] if mode == "ghost" else nn.CrossEntropyLoss()

    def work() -> None:
        optimizer.zero_grad()
        criterion(private(x), y).backward()
        if mode != "ghost":
            optimizer.clip_and_accumulate()

    return work


def main() -> None:
    """Answer until the input ends."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for line in sys.stdin:
        work = one_pass(*line.split())
        start = time.process_time()
        work()
        print(time.process_time() - start, flush=True)


if __name__ == "__main__":
    main()
