"""Algorithms that a run may name. A message can select one of these and its settings, never any
other code.
"""

from collections.abc import Callable

from hushfit.federated._protocol import Algorithm
from hushfit.federated.algorithms._dp_admm import DPADMM
from hushfit.federated.algorithms._dvp import DVP
from hushfit.federated.algorithms._ipp_admm import IPPADMM
from hushfit.federated.algorithms._m_admm import MADMM
from hushfit.federated.algorithms._pp_admm import PPADMM
from hushfit.federated.algorithms._r_admm import RADMM
from hushfit.federated.algorithms._shared import SharedSolver

ALGORITHMS: dict[str, Callable[[], Algorithm]] = {
    "shared": SharedSolver,
    "pp-admm": PPADMM,
    "ipp-admm": IPPADMM,
    "dvp": DVP,
    "m-admm": MADMM,
    "r-admm": RADMM,
    "dp-admm": DPADMM,
}
