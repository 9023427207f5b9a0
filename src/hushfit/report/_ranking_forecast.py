r"""Noise of a ranking fit, before a list is read.

There is no rule for NDCG: how much noise a ranking bears depends on how far apart the documents of
a list are, which no public number tells. What is computed is the noise in a weight, as a multiple
of a typical weight. With documents that differ equally in d directions, and scores with a standard
deviation of one within a list, a list is of length :math:`\sqrt d` in units of a direction, and it
is clipped to a multiple of that: n lists then give a weight a standard deviation of
:math:`s d \sigma / n` times the typical weight. Here :math:`\sigma` is the noise multiplier of all
releases of gradients (or labels) together, and s is 2 where a contribution is exchanged and 1 where
it is removed. Documents that differ in fewer directions than they have columns do better.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from hushfit.errors import InvalidArgument
from hushfit.estimators import PrivateRanker
from hushfit.privacy import Relation, exchanges


@dataclass(frozen=True)
class RankingForecast:
    """Noise of a ranking fit for a budget.

    Parameters
    ----------
    epsilon, delta : float
    relation : str
    releases : tuple of (str, int, float)
        Name, count, and noise multiplier of each kind of release.
    noise : float
        Standard deviation of the noise in a weight, as a multiple of a typical weight.
    units_needed : int
        Lists, or persons, at which it is one: with fewer, a weight is more noise than signal.
    """

    epsilon: float
    delta: float
    relation: str
    releases: tuple[tuple[str, int, float], ...]
    noise: float
    units_needed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def ranking_forecast(
    units: int,
    columns: int,
    epsilon: float,
    delta: float,
    unit: str = "labels",
    adjacency: str = "replace-one",
    per_person: bool = False,
) -> RankingForecast:
    """Expected noise of a ranking fit by the default solver.

    Parameters
    ----------
    units, columns : int
        Number of lists, or of persons if these are protected, and of features.
    epsilon, delta : float
    unit : {"labels", "list", "person"}, default="labels"
        As for `PrivateRanker`.
    adjacency : str, default="replace-one"
        For lists and persons; labels are always replaced.
    per_person : bool, default=False
        Whether units are persons.

    Returns
    -------
    RankingForecast

    Examples
    --------
    >>> from hushfit.report import ranking_forecast
    >>> ranking_forecast(800, 46, 1.0, 1e-4).units_needed < 800
    True
    """
    if units < 2 or columns < 1:
        raise InvalidArgument(
            f"{units} lists or persons, {columns} columns: a fit needs at least 2 and 1."
        )
    ranker = PrivateRanker(epsilon, delta, unit=unit, adjacency=adjacency)
    relation = ranker.relation(per_person)
    records = ranker.quote(units, columns, per_person).records()
    # The releases that the weights are made of: labels, or gradients, whose noise averages out.
    last = records[-1]
    sides = 2.0 if exchanges(relation) else 1.0
    needed = sides * columns * last.noise_multiplier / math.sqrt(last.count)
    return RankingForecast(
        epsilon,
        delta,
        str(Relation.parse(relation)),
        tuple((r.name, r.count, r.noise_multiplier) for r in records),
        needed / units,
        max(2, math.ceil(needed)),
    )
