"""Planted bugs: plausible privacy bugs, each a small patch of the library, and the checks that must
detect it.

They are outside the package, and are active only inside a ``with`` block.
"""

from ._mutant import Mutant, alarms_of, planted
from .accounting import ACCOUNTING
from .disk_ledger import DISK_LEDGER
from .federated import FEDERATED
from .inference import INFERENCE
from .networks import NETWORKS
from .noise import NOISE
from .parts import PARTS
from .persons import PERSONS
from .queries import QUERIES
from .ranking import RANKING
from .regression import REGRESSION
from .search import SEARCH
from .side_channels import SIDE_CHANNELS
from .solvers import SOLVERS
from .statistics import STATISTICS

MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for theme in (
        QUERIES,
        PARTS,
        PERSONS,
        RANKING,
        REGRESSION,
        INFERENCE,
        STATISTICS,
        NOISE,
        SOLVERS,
        FEDERATED,
        NETWORKS,
        SEARCH,
        ACCOUNTING,
        SIDE_CHANNELS,
        DISK_LEDGER,
    )
    for mutant in theme
}

__all__ = ["MUTANTS", "Mutant", "alarms_of", "planted"]
