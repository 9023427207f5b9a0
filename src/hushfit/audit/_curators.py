"""Curators for attacks: reproducible noise, artificial rows, and no charge to a ledger."""

from hushfit.data import DataSource, SeededCoins
from hushfit.privacy import Relation, SeededSampler
from hushfit.release import Quote, Randomness, Released, unpaid_curator
from hushfit.release.curator import Curator


def seeded_curator(
    source: DataSource,
    quote: Quote,
    relation: Relation,
    seed: int,
    replay: tuple[Released, ...] = (),
) -> Curator:
    """A curator whose noise and batches are determined by a seed."""
    randomness = Randomness(SeededSampler(seed), SeededCoins(seed + 1))
    return unpaid_curator(source, quote, relation, randomness, replay)
