"""The public half of a ranking fit: everything about it that is not private."""

from dataclasses import dataclass
from typing import Final

from hushfit._typing import Vector
from hushfit.data.lists import Documents as Documents
from hushfit.errors import InvalidArgument
from hushfit.kernels import lists as kernels
from hushfit.privacy import Relation
from hushfit.unit import LIST, PrivacyUnit

LISTWISE: Final = {
    "listnet": kernels.LISTNET,
    "listmle": kernels.LISTMLE,
    "bayesrank": kernels.BAYESRANK,
}
"""Listwise losses by name, as compiled code knows them."""
TARGETS: Final = {"all": kernels.ALL, "one-hot": kernels.ONE_HOT, "simplex": kernels.SIMPLEX}
"""What BayesRank takes from the grades of a list, by name."""


@dataclass(frozen=True)
class ListwiseLoss:
    """The loss of one list, a function of the scores and grades of its documents.

    Parameters
    ----------
    name : {"listnet", "listmle", "bayesrank"}
        Cross-entropy between grades and scores as distributions over the top document; minus the
        log-likelihood of the order by grades; minus the expected NDCG of the top documents.
    depth : {1, 2}, default=1
        Number of top documents of BayesRank.
    target : {"simplex", "all", "one-hot"}, default="simplex"
        What BayesRank takes from the grades: gains that add up to one, gains as NDCG counts them,
        or the first of the most relevant documents alone.
    """

    name: str
    depth: int = 1
    target: str = "simplex"

    def __post_init__(self) -> None:
        if self.name not in LISTWISE:
            raise InvalidArgument(f"loss={self.name!r} is not known. Use one of {list(LISTWISE)}.")
        if self.depth not in (1, 2):
            raise InvalidArgument(f"depth={self.depth!r} is not 1 or 2, which BayesRank supports.")
        if self.target not in TARGETS:
            raise InvalidArgument(f"target={self.target!r} is not one of {list(TARGETS)}.")

    @property
    def codes(self) -> tuple[int, int, int]:
        """Loss, depth and target, as compiled code takes them."""
        return LISTWISE[self.name], self.depth, TARGETS[self.target]


@dataclass(frozen=True, eq=False)
class RankingProblem:
    """Minimise the mean loss over the lists.

    Parameters
    ----------
    loss : ListwiseLoss
    n_units : int
        Number of lists, or of persons; public.
    n_features : int
    relation : Relation or str
    hidden : int, default=0
        Hidden units of the scorer; 0 for a linear one.
    privacy_unit : PrivacyUnit, default=LIST
    documents : Documents or None
        The documents, where only grades are private; None where documents are private too.
    shares : array or None
        What each list weighs, where documents are public and lists belong to persons.
    """

    loss: ListwiseLoss
    n_units: int
    n_features: int
    relation: Relation
    hidden: int = 0
    privacy_unit: PrivacyUnit = LIST
    documents: Documents | None = None
    shares: Vector | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", Relation.parse(self.relation))

    @property
    def public_documents(self) -> Documents:
        """The documents, where they are public."""
        if self.documents is None:
            raise InvalidArgument(
                "The documents of this problem are private, and they are needed as public ones. "
                "Use unit='labels', or another solver."
            )
        return self.documents

    @property
    def n_weights(self) -> int:
        """Length of the weights: of the columns, or of both layers of a network."""
        if self.hidden == 0:
            return self.n_features
        return (self.n_features + 2) * self.hidden

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        return (self.n_weights,)

    @property
    def constraint(self) -> None:
        """None: ranking problems have no constraint."""
        return None

    @property
    def rows_per_unit(self) -> int:
        """Largest number of lists that one unit contributes."""
        return self.privacy_unit.rows_per_person
