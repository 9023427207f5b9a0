"""The algorithms that a run may name. A message can pick one of these and its settings, never any other code."""

from collections.abc import Callable

from hushfit.federated._dp_admm import DPADMM
from hushfit.federated._dvp import DVP
from hushfit.federated._ipp_admm import IPPADMM
from hushfit.federated._m_admm import MADMM
from hushfit.federated._pp_admm import PPADMM
from hushfit.federated._protocol import Algorithm
from hushfit.federated._r_admm import RADMM
from hushfit.federated._shared import SharedSolver

ALGORITHMS: dict[str, Callable[[], Algorithm]] = {
    "shared": SharedSolver,
    "pp-admm": PPADMM,
    "ipp-admm": IPPADMM,
    "dvp": DVP,
    "m-admm": MADMM,
    "r-admm": RADMM,
    "dp-admm": DPADMM,
}
