"""Federated algorithms.

DPADMM        Consensus ADMM around a common model; in each step every owner takes one noisy
              gradient step
DVP           Dual variable perturbation: in each round every owner perturbs its dual variable and
              sends the minimiser of its subproblem
IPPADMM       As `PPADMM`, but an owner sends nothing while its last message is near the minimum
              of its subproblem
MADMM         As `DVP` with a coupling weight that grows from round to round, so that later
              messages are less noisy and change less
PPADMM        In each round every owner releases the noisy minimiser of its own loss, coupled to
              its neighbours' last messages
RADMM         Rounds in pairs: a noisy minimiser as in `DVP`, then a step along the noisy
              gradient that it reveals
ALGORITHMS    Algorithms by name
SharedSolver  One of the library's solvers, run by all owners on the sum of their noisy answers
"""

from hushfit.federated.algorithms._dp_admm import DPADMM
from hushfit.federated.algorithms._dvp import DVP
from hushfit.federated.algorithms._ipp_admm import IPPADMM
from hushfit.federated.algorithms._m_admm import MADMM
from hushfit.federated.algorithms._pp_admm import PPADMM
from hushfit.federated.algorithms._r_admm import RADMM
from hushfit.federated.algorithms._registry import ALGORITHMS
from hushfit.federated.algorithms._shared import SharedSolver

__all__ = ["ALGORITHMS", "DPADMM", "DVP", "IPPADMM", "MADMM", "PPADMM", "RADMM", "SharedSolver"]
