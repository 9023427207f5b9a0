"""Names of the audits of networks, which `hushfit.audit.networks` runs: known without torch."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

NETWORK_ATTACKS = (
    "network dp-sgd",
    "network dp-sgd, sampled",
    "network dp-sgd, person",
    "network dp-adam",
    "network bls, sampled",
)
ONE_RUN_NETWORK = "one run, network"
NETWORK_CHECKS = (
    "modules that mix examples",
    "sensitivity of network gradient",
    "sensitivity of network gradient, persons",
    "sensitivity of network decreases",
    "order of network records",
    "price of a network's line search",
    "noise on network gradient",
    "noise drawn ahead",
    "checkpoint of a network",
)
LEFT_OUT = "networks are left out: they need `pip install hushfit[torch]`"


def networks_installed() -> bool:
    """Whether networks can be audited here."""
    return all(find_spec(name) is not None for name in ("torch", "safetensors"))


def network_audits() -> Any:
    """The module `hushfit.audit.networks`; needs torch."""
    return import_module("hushfit.audit.networks")


def network_check(name: str) -> Callable[[int], Any]:
    """A check of networks, which imports torch when it is run."""

    def run(seed: int) -> Any:
        return network_audits().network_checks()[name](seed)

    return run
