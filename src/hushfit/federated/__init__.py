"""Several data owners, no pooled rows: each answers with its own noise, pays from its own ledger, and talks with its neighbours."""

from hushfit.federated._agreement import Agreement
from hushfit.federated._algorithms import ALGORITHMS
from hushfit.federated._dp_admm import DPADMM
from hushfit.federated._dvp import DVP
from hushfit.federated._ipp_admm import IPPADMM
from hushfit.federated._m_admm import MADMM
from hushfit.federated._network import Network
from hushfit.federated._owner import Owner, Run
from hushfit.federated._pp_admm import PPADMM
from hushfit.federated._protocol import Algorithm, Conversation, Inbox, Seat
from hushfit.federated._r_admm import RADMM
from hushfit.federated._shared import SharedSolver
from hushfit.federated._simulation import Talk, simulate
from hushfit.federated._together import Together, fit_together

__all__ = [
    "ALGORITHMS",
    "DPADMM",
    "DVP",
    "IPPADMM",
    "MADMM",
    "PPADMM",
    "RADMM",
    "Agreement",
    "Algorithm",
    "Conversation",
    "Inbox",
    "Network",
    "Owner",
    "Run",
    "Seat",
    "SharedSolver",
    "Talk",
    "Together",
    "fit_together",
    "simulate",
]
