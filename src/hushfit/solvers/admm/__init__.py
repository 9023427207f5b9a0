"""The private ADMM family.

DPSC      ADMM with a perturbed primal step, for any penalty with a prox, convex or not
MPADMM    Model-perturbing ADMM
DPSADMM   Stochastic ADMM on noisy gradients, for a public constraint :math:`A w + B z = c`
SSADMM    Stochastic ADMM on noisy gradients, for any penalty with a prox
DPVRADMM  Variance-reduced stochastic ADMM, for any public constraint and convex penalty
"""

from hushfit.solvers.admm._dpsc import DPSC
from hushfit.solvers.admm._mp_admm import MPADMM
from hushfit.solvers.admm._sadmm import DPSADMM
from hushfit.solvers.admm._ss_admm import SSADMM
from hushfit.solvers.admm._vradmm import DPVRADMM

__all__ = ["DPSADMM", "DPSC", "DPVRADMM", "MPADMM", "SSADMM"]
