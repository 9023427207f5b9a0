"""Several data owners, no pooled rows: each answers with its own noise, pays from its own ledger,
and talks with its neighbours.

algorithms/   The algorithms that several owners can run together
deployment/   Real runs over a network, without the transport
Agreement     A public description of the table and the model, in plain JSON values
unpacked      The inverse of `packed`
Network       Owners and the edges along which they send each other messages
Owner         One owner of rows in a run
Run           What the owners are about to do together
Algorithm     One way for owners to fit a model together
Conversation  The generator that an owner's part of an algorithm is
Inbox         The words of the neighbours, by owner
Seat          An owner's place at the table
Talk          What came of a run
simulate      Hold a run among owners in this process, along the edges of their network only
Together      A model that several owners made
fit_together  Fit one model on the rows of several owners, all in this process
"""

from hushfit.federated._agreement import Agreement
from hushfit.federated._journal import unpacked
from hushfit.federated._network import Network
from hushfit.federated._owner import Owner, Run
from hushfit.federated._protocol import Algorithm, Conversation, Inbox, Seat
from hushfit.federated._simulation import Talk, simulate
from hushfit.federated._together import Together, fit_together
from hushfit.federated.algorithms import (
    ALGORITHMS,
    DPADMM,
    DVP,
    IPPADMM,
    MADMM,
    PPADMM,
    RADMM,
    SharedSolver,
)

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
    "unpacked",
]
