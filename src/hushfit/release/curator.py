"""The curator: the only object that holds both rows and noise, and the only way to release answers.
Proof: docs/proofs/noise.md and composition.md.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from threading import Lock
from typing import NoReturn

from hushfit._typing import Vector
from hushfit.data import (
    Coins,
    DataSource,
    PublicRows,
    RecordScaling,
    proved_scalings,
    scaling_of,
)
from hushfit.errors import InvalidArgument, OutOfMemory, UndeclaredRelease
from hushfit.privacy import Filter, Relation, Sampler, labels_only, refuse_other_unit
from hushfit.release.door import Released
from hushfit.release.mechanism import Entropy
from hushfit.release.mechanisms import AdaptiveRun, Priced
from hushfit.release.plan import Plan, Planned
from hushfit.release.query import Query, require_relation


class Curator:
    """Holds the rows and answers only queries that the plan declared, with the noise that was
    charged for.

    Parameters
    ----------
    source : DataSource
        The private rows. No other object needs them from here on.
    plan : Plan
    multipliers : mapping from release name to noise multiplier
        As given by ``plan.multipliers``; 0 means no noise, for fits that claim no privacy.
    relation : Relation or str
    sampler : Sampler
    coins : Coins
        Secret random bits for sampled batches.
    epsilon_reserve : float, default=inf
        Part of the budget that covers the difference between discrete and continuous noise.
    replay : iterable of Released, default=()
        Answers already released by an interrupted run of the same plan; they are returned again
        instead of new ones.
    keep : callable, optional
        Called with each new answer before it is returned, for instance to write it to disk.
    made : mapping from release name to int, optional
        Releases that an interrupted run of the same plan has made; the plan has so many fewer left.
    remember : bool, default=True
        Whether to keep the answers in ``transcript``; those of networks would fill the memory.
    """

    def __init__(
        self,
        source: DataSource,
        plan: Plan,
        multipliers: Mapping[str, float],
        relation: Relation | str,
        sampler: Sampler,
        coins: Coins,
        epsilon_reserve: float = math.inf,
        replay: Iterable[Released] = (),
        keep: Callable[[Released], None] | None = None,
        made: Mapping[str, int] | None = None,
        remember: bool = True,
    ) -> None:
        relation = Relation.parse(relation)
        for part in plan.parts:
            require_relation(part.query, relation)
        if labels_only(relation):
            refuse_other_unit(relation, source.privacy_unit)
        self.__source = source
        self._proved = {part.name: proved_scalings(part.query) for part in plan.parts}
        self._parts: dict[str, Planned] = {part.name: part for part in plan.parts}
        self._left = {part.name: part.count - (made or {}).get(part.name, 0) for part in plan.parts}
        self._multipliers = dict(multipliers)
        self._filters = _filters_of(plan, self._multipliers, relation)
        self._entropy = Entropy(relation, sampler, coins, epsilon_reserve)
        self._replay = list(replay)
        self._keep = keep
        self._remember = remember
        self._lock = Lock()
        self.relation = relation
        self.transcript: list[Released] = []

    @cached_property
    def _scaling(self) -> RecordScaling:
        return scaling_of(self.__source)

    @cached_property
    def public_rows(self) -> PublicRows | None:
        """The features of all rows, without labels, where the relation takes them as public."""
        # Only here, and only under these relations, do features leave the source.
        return self.__source.public_rows() if labels_only(self.relation) else None

    def noise_multiplier(self, name: str) -> float:
        """Noise multiplier (noise scale over sensitivity) of releases under this name; public."""
        return self._multipliers[name]

    def affords(self, name: str, query: Priced) -> bool:
        """Whether an adaptive run has budget left for this release; public, as it depends on costs
        alone.
        """
        return self._left[name] > 0 and (
            name not in self._filters or self._filters[name].affords(query.cost)
        )

    def release(self, name: str, query: Query) -> Vector:
        """Answer a declared query with noise.

        Raises
        ------
        UndeclaredRelease
            If the plan has no release of that name left, or declared another kind of query. Nothing
            is computed.
        BudgetExceeded
            If it would bring an adaptive run over its cost. Nothing is computed.
        """
        with self._lock:
            self._take(name, query)
        fresh = not self._replay
        answer = self._noisy(name, query) if fresh else self._replayed(name, query)
        answer.setflags(
            write=False
        )  # a solver that wrote into its answer would change the transcript
        released = Released(name, answer, query)
        if fresh and self._keep is not None:
            self._keep(released)
        if self._remember:
            self.transcript.append(released)
        return answer

    def _take(self, name: str, query: Query) -> None:
        if name not in self._parts:
            raise UndeclaredRelease(_refusal(f"declares no release named {name!r}"))
        declared = self._parts[name]
        if type(query) is not declared.query:  # a subclass could have another sensitivity
            raise UndeclaredRelease(
                _refusal(
                    f"declares {name!r} as {declared.query.__name__}, not as {type(query).__name__}"
                )
            )
        if self._left[name] < 1:
            raise UndeclaredRelease(
                _refusal(f"declares {declared.count} releases of {name!r}, and all have been made")
            )
        objection = declared.sampling.objection(query, self.relation)
        if objection is not None:
            raise UndeclaredRelease(_refusal(f"declares {name!r} {objection}"))
        if name in self._filters and isinstance(query, Priced):
            self._filters[name].charge(query.cost)
        self._left[name] -= 1

    def _replayed(self, name: str, query: Query) -> Vector:
        released = self._replay.pop(0)
        fits = len(released.answer) == query.size or not self._parts[name].sampling.sized
        if released.name != name or not fits:
            raise InvalidArgument(
                f"The checkpoint has a release of {released.name!r} where the solver requests "
                f"{name!r}: it belongs to another fit. Delete it or use the settings of that fit."
            )
        return released.answer

    def _noisy(self, name: str, query: Query) -> Vector:
        n_units, unit = self.__source.n_units, self.__source.privacy_unit
        assumed = query.problem
        if assumed is not None and (assumed.n_units, assumed.privacy_unit) != (n_units, unit):
            raise UndeclaredRelease(
                _refusal(
                    f"is for {n_units} {unit.plural} and protects {unit}, but this query assumes "
                    f"{assumed.n_units} and protects {assumed.privacy_unit}"
                )
            )
        if self._scaling not in self._proved[name]:
            raise UndeclaredRelease(
                _refusal(f"is for {self._scaling.value}, which this query has no proof for")
            )
        multiplier, sampling = self._multipliers[name], self._parts[name].sampling
        try:
            return sampling.answer(query, self.__source, multiplier, self._entropy)
        except MemoryError:  # its text may have a number of rows, which persons keep private
            raise OutOfMemory(
                "Memory ran out while an answer was computed, which was not released. What was "
                "paid for is spent. Allow the process more memory, or set HUSHFIT_THREADS=1, and "
                "fit again, which pays again."
            ) from None

    def __repr__(self) -> str:
        return f"Curator(relation={self.relation.value!r}, left={self._left})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A curator cannot be copied or pickled: a copy could release everything twice."
        )


def _filters_of(
    plan: Plan, multipliers: Mapping[str, float], relation: Relation
) -> dict[str, Filter]:
    """One privacy filter for each adaptive run; a run without privacy needs none."""
    runs = {
        part.name: part.sampling for part in plan.parts if isinstance(part.sampling, AdaptiveRun)
    }
    return {
        name: run.filter(multipliers[name], relation)
        for name, run in runs.items()
        if multipliers[name] > 0
    }


def _refusal(reason: str) -> str:
    return f"The plan {reason}. Nothing was released. Declare every release in the solver's plan."
