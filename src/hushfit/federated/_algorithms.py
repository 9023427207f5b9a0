"""The algorithms that a run may name. A message can pick one of these and its settings, never any other code."""

from collections.abc import Callable

from hushfit.federated._pp_admm import PPADMM
from hushfit.federated._protocol import Algorithm
from hushfit.federated._shared import SharedSolver

ALGORITHMS: dict[str, Callable[[], Algorithm]] = {
    "shared": SharedSolver,
    "pp-admm": PPADMM,
}
