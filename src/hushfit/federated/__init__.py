"""Federated fits: several data owners, no pooled rows. Each adds its own noise, pays from its own
ledger, and exchanges messages with its neighbours.

algorithms/   The algorithms that several owners can run together
deployment/   Real runs over a network, without the transport
Agreement     A public description of the table and the model, in plain JSON values
unpacked      The inverse of `packed`
Network       Owners and the edges along which they send each other messages
Owner         One owner of rows in a run
Run           Name and algorithm of a run
Algorithm     A federated algorithm
Conversation  Generator that runs an owner's part of an algorithm
Inbox         Messages of the neighbours, by owner
Seat          What an owner knows before the first message, all public
Talk          Weights and messages of a run
simulate      Run owners in this process; messages follow the edges of their network
Together      A model that several owners fitted
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
