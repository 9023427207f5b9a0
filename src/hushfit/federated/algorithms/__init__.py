"""The algorithms that several owners can run together.

DPADMM        Each step every owner moves along its noisy gradient, held by a common model that all
              of them agree on
DVP           Each round every owner adds noise to its dual variable and says the minimiser that
              this leads to
IPPADMM       As `PPADMM`, but an owner whose last word is still near the minimum of its subproblem
              is silent
MADMM         As `DVP` with a pull that grows from round to round, which makes later words less
              noisy and slower to move
PPADMM        Each round every owner releases the noisy minimiser of its own loss, pulled towards
              its neighbours' last words
RADMM         Rounds in pairs: a noisy minimiser as in `DVP`, then a step along the gradient that
              it gave away
ALGORITHMS    Algorithms by the name that a run gives them
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
