"""A cost sorted by how its parts can be accounted for. Proof: docs/proofs/composition.md."""

import math
from dataclasses import dataclass

from hushfit.privacy._relation import Relation
from hushfit.privacy.costs import Cost, PureCost, ReleaseCost, entries_of, require_proof


@dataclass(frozen=True)
class NormalForm:
    """Gaussian releases as one mu, the others unchanged; parts that reveal nothing are left out.

    ``paired`` parts have a dominating pair, ``curved`` parts a Renyi curve only. ``lost`` is the
    probability that the guarantee of an otherwise pure release fails.
    """

    mu: float
    pure: tuple[PureCost, ...]
    paired: tuple[ReleaseCost, ...] = ()
    curved: tuple[ReleaseCost, ...] = ()
    lost: float = 0.0

    @property
    def is_gaussian(self) -> bool:
        return not (self.pure or self.paired or self.curved or self.lost)

    @property
    def by_curve(self) -> bool:
        """Whether some part has a Renyi curve but no dominating pair."""
        return bool(self.curved)

    @property
    def reveals_all(self) -> bool:
        """Whether some part has no noise, or next to none."""
        return self.mu == math.inf or any(
            part.reveals_all for part in (*self.pure, *self.paired, *self.curved)
        )


def normal_form(cost: Cost, relation: Relation | str) -> NormalForm:
    """Sort the parts of a cost by what they declare.

    Parts without a proof under the relation are refused.
    """
    relation = Relation.parse(relation)
    require_proof(cost, relation)
    squares: list[float] = []
    log_no_failure: list[float] = []
    pure: list[PureCost] = []
    paired: list[ReleaseCost] = []
    curved: list[ReleaseCost] = []
    for part in entries_of(cost):
        mu, epsilon = part.gaussian_mu(relation), part.pure_epsilon()
        if mu is not None:
            squares.append(part.count * mu * mu)
        elif epsilon is not None:
            log_no_failure.append(part.count * math.log1p(-part.lost))
            pure += [PureCost(epsilon, part.count)] if epsilon > 0 else []
        elif part.paired:
            paired.append(part)
        else:
            curved.append(part)
    total, lost = math.sqrt(math.fsum(squares)), -math.expm1(math.fsum(log_no_failure))
    return NormalForm(total, tuple(pure), tuple(paired), tuple(curved), lost)
