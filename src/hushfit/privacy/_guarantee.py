"""Privacy guarantees of fits, as text and as JSON."""

import json
import math
import textwrap
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from html import escape
from typing import Any

from hushfit._json import no_key_twice
from hushfit._version import __version__
from hushfit.errors import InvalidArgument
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation, labels_only, refuse_other_unit
from hushfit.privacy.accounting import group_delta, group_epsilon
from hushfit.privacy.costs import (
    ApproximateCost,
    ComposedCost,
    Cost,
    cost_from_dict,
    parts_of,
    require_proof,
)
from hushfit.privacy.ledger import RESERVED_SHARE
from hushfit.unit import ROW, PrivacyUnit

_WIDTH = 96


@dataclass(frozen=True)
class ReleaseRecord:
    """One kind of release that a fit made.

    Parameters
    ----------
    name : str
        Name that the solver gives it, for instance ``"gradient"``.
    query : str
        The query that was answered, for instance ``"ClippedGradient"``.
    count : int
        How many times.
    noise_multiplier : float
        Noise scale over L2 sensitivity under the relation of the guarantee.
    sampling : str
        Which rows were read, for instance ``"all rows"`` or ``"Poisson batches at rate 0.05"``.
    share : float
        Share of the budget, in (0, 1], that was set aside for it.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression
    >>> model = PrivateLogisticRegression(epsilon=1.0, delta=1e-3, classes=[0, 1])
    >>> guarantee = model.fit(np.eye(8), np.arange(8) % 2).privacy_
    >>> [(record.name, record.count) for record in guarantee.releases]
    [('second moment', 1), ('gradient', 60), ('calibration', 1)]
    """

    name: str
    query: str
    count: int
    noise_multiplier: float
    sampling: str = "all rows"
    share: float = 1.0

    def __post_init__(self) -> None:
        for name in ("name", "query", "sampling"):
            _check.text(getattr(self, name), name)
        _store(self, count=_check.count(self.count), share=_check.fraction(self.share, "share"))
        _store(
            self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier")
        )

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        noise = (
            f"noise {self.noise_multiplier:.4g} times the sensitivity"
            if self.noise_multiplier
            else "no noise"
        )
        share = "" if self.share == 1 else f", {self.share:.3g} of the budget"
        return f"{self.name} ({self.query}) {times} over {self.sampling} with {noise}{share}"


@dataclass(frozen=True)
class GroupGuarantee:
    """What a guarantee means for several rows, or several persons, together.

    Parameters
    ----------
    size : int
        How many.
    unit : PrivacyUnit
        Of which unit.
    relation : Relation
    epsilon : float
        Infinity if nothing is promised at this delta.
    delta : float

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression
    >>> model = PrivateLogisticRegression(classes=[0, 1], random_state=0)
    >>> model = model.fit(np.array([[0.2], [0.8]] * 200), np.array([0, 1] * 200))
    >>> model.privacy_.for_group(3).epsilon > 2
    True
    """

    size: int
    unit: PrivacyUnit
    relation: Relation
    epsilon: float
    delta: float

    def __str__(self) -> str:
        many = f"any {self.size} {self.unit.plural} together"
        who = f"any {self.unit.in_words}" if self.size == 1 else many
        if self.epsilon == math.inf:
            return f"for {who}: nothing is promised at delta {self.delta:.4g}. Give a larger delta"
        return f"for {who}: epsilon {self.epsilon:.4g} at delta {self.delta:.4g}"


@dataclass(frozen=True)
class Guarantee:
    """The privacy guarantee of a released model.

    Parameters
    ----------
    epsilon : float
        At least 0; infinity means no guarantee.
    delta : float
        Strictly between 0 and 1.
    relation : Relation or str
        Which data sets are neighbours.
    unit : PrivacyUnit, default=ROW
        Whom the guarantee protects: one row, or one person with all of their rows.
    public : tuple of str
        What was taken as public, such as the number of rows or the feature ranges.
    releases : tuple of ReleaseRecord
        Everything that was computed from the rows and released by the curator.
    cost : Cost
        The same, as input of the accountant.
    secure : bool, default=False
        Whether the noise came from a cryptographic generator and an exact sampler.
    adaptive : bool, default=False
        Whether costs were chosen after seeing answers, within a filter: then epsilon and delta are
        all that is proved, and ``cost`` is what was spent in this fit.
    version : str
        Version of the library that made the releases.
    notes : tuple of str
        Anything else a reader should know.

    Examples
    --------
    >>> from hushfit import Guarantee, Relation
    >>> promise = Guarantee(1.0, 1e-6, Relation.REPLACE_ONE)
    >>> Guarantee.from_json(promise.to_json()) == promise
    True
    >>> str(promise).split(":")[0]
    'Differentially private with epsilon=1 and delta=1e-06'
    """

    epsilon: float
    delta: float
    relation: Relation
    _: KW_ONLY
    unit: PrivacyUnit = ROW
    public: tuple[str, ...] = ()
    releases: tuple[ReleaseRecord, ...] = ()
    cost: Cost = field(default_factory=lambda: ComposedCost(()))
    secure: bool = False
    adaptive: bool = False
    version: str = __version__
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _store(
            self,
            epsilon=_check.non_negative(self.epsilon, "epsilon"),
            delta=_check.probability(self.delta, "delta"),
        )
        _store(self, relation=Relation.parse(self.relation))
        _store(self, public=_texts(self.public, "public"), notes=_texts(self.notes, "notes"))
        _store(self, releases=tuple(self.releases))
        if not isinstance(self.unit, PrivacyUnit):
            raise InvalidArgument(f"unit={self.unit!r} is not a PrivacyUnit. Give ROW or a person.")
        _check.text(self.version, "version")
        for name in ("secure", "adaptive"):
            if not isinstance(value := getattr(self, name), bool):
                raise InvalidArgument(f"{name}={value!r} is not a bool. Give True or False.")
        if not all(isinstance(release, ReleaseRecord) for release in self.releases):
            raise InvalidArgument("releases must contain ReleaseRecord objects only.")
        list(parts_of(self.cost))  # refuses what is not a cost
        refuse_other_unit(self.relation, self.unit)
        require_proof(self.cost, self.relation)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # A storage format may have turned the relation into its name: validate the fields as in a
        # call.
        self.__init__(**state)  # type: ignore[misc]

    @property
    def nonprivate(self) -> bool:
        """Whether epsilon is infinite, so that there is no privacy."""
        return self.epsilon == math.inf

    def for_group(
        self, size: int, delta: float | None = None, epsilon: float | None = None
    ) -> GroupGuarantee:
        """What the guarantee means for several rows, or several persons, together.

        A guarantee for one row says little about a person with ``k`` rows, and one for a person
        little about a family of ``k``: this is how much. It speaks of exchanging ``k`` units for as
        many others, with the number of units public, and costs nothing: it is no further release.

        Parameters
        ----------
        size : int
            How many units of the guarantee.
        delta : float, optional
            Of the statement; that of the guarantee if neither is given.
        epsilon : float, optional
            Instead of delta: the statement then has the smallest delta at this epsilon.

        Returns
        -------
        GroupGuarantee
            Exact for Gaussian releases, whose mu is multiplied by ``size``.

        Examples
        --------
        >>> from hushfit.privacy import GaussianCost, Guarantee
        >>> one = Guarantee(1.0, 1e-6, "replace-one", cost=GaussianCost(4.225))
        >>> print(one.for_group(5))
        for any 5 rows together: epsilon 5.926 at delta 1e-06
        """
        size = _check.count(size, "size")
        if delta is not None and epsilon is not None:
            raise InvalidArgument(
                f"delta={delta!r} and epsilon={epsilon!r} were both given. Give one of them: the "
                "other is the answer."
            )
        if self.nonprivate:
            return GroupGuarantee(size, self.unit, self.relation, math.inf, self.delta)
        if epsilon is not None:
            epsilon = _check.finite(epsilon, "epsilon")
            found = self._group_delta(size, epsilon)
            return GroupGuarantee(size, self.unit, self.relation, epsilon, found)
        delta = self.delta if delta is None else _check.probability(delta, "delta")
        found = self._group_epsilon(size, delta)
        return GroupGuarantee(size, self.unit, self.relation, found, delta)

    @property
    def _proved(self) -> tuple[Cost, float]:
        """What is proved about one unit, and the share of it that discrete noise may add: the cost
        of the releases, or epsilon and delta alone.
        """
        if self.adaptive or not list(parts_of(self.cost)):
            return ApproximateCost(self.epsilon, self.delta), 0.0
        return self.cost, RESERVED_SHARE

    def _group_epsilon(self, size: int, delta: float) -> float:
        if size == 1 and delta == self.delta:
            return self.epsilon
        # Discrete noise adds the same to epsilon for every pair of data sets, however many units
        # they differ in, and a tiny share of a large epsilon (docs/proofs/noise.md).
        cost, reserve = self._proved
        found = group_epsilon(cost, size, (1 - reserve) * delta, self.relation)
        found = max(found + reserve * self.epsilon, (1 + reserve) * found)
        return max(found, self.epsilon) if delta <= self.delta else found

    def _group_delta(self, size: int, epsilon: float) -> float:
        if size == 1 and epsilon == self.epsilon:
            return self.delta
        cost, reserve = self._proved
        spendable = max(0.0, min(epsilon - reserve * self.epsilon, epsilon / (1 + reserve)))
        found = group_delta(cost, size, spendable, self.relation) / (1 - reserve)
        return min(1.0, max(found, self.delta) if epsilon <= self.epsilon else found)

    def __str__(self) -> str:
        return "\n".join(textwrap.fill(sentence, _WIDTH) for sentence in self._sentences())

    def _repr_html_(self) -> str:
        warning = "".join(f"<p><strong>{escape(line)}</strong></p>" for line in self.warnings)
        others = self._sentences()[len(self.warnings) :]
        paragraphs = warning + "".join(f"<p>{escape(sentence)}</p>" for sentence in others)
        return f'<div class="hushfit-guarantee">{paragraphs}</div>'

    def to_dict(self) -> dict[str, Any]:
        """Describe the guarantee in plain JSON values."""
        return {
            "epsilon": _check.to_json_number(self.epsilon),
            "delta": self.delta,
            "relation": str(self.relation),
            "unit": self.unit.to_dict(),
            "public": list(self.public),
            "releases": [_release_to_dict(release) for release in self.releases],
            "cost": self.cost.to_dict(),
            "secure": self.secure,
            "adaptive": self.adaptive,
            "version": self.version,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """Write the guarantee as strict JSON.

        Returns
        -------
        str
            Infinity is written as the string ``"inf"``. `from_json` returns an equal guarantee.
        """
        return json.dumps(self.to_dict(), allow_nan=False, indent=2)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Guarantee":
        """Read what `to_dict` wrote; raise `InvalidArgument` on anything else."""
        names = {f.name for f in fields(cls)}
        if isinstance(data, Mapping) and "adaptive" not in data:
            data = {**data, "adaptive": False}  # older files hold no guarantee of a filter
        given = dict(_check.fields(data, names, "a guarantee"))
        given["epsilon"] = _check.from_json_number(given["epsilon"], "epsilon")
        for name in ("public", "notes", "releases"):
            if not isinstance(given[name], list):
                raise InvalidArgument(
                    f"{name} of a guarantee should be a list. Use what to_json() wrote."
                )
        given["releases"] = tuple(_release_from_dict(release) for release in given["releases"])
        given["cost"] = cost_from_dict(given["cost"])
        given["unit"] = _unit_from(given["unit"])
        return cls(**given)

    @classmethod
    def from_json(cls, text: str) -> "Guarantee":
        """Read a guarantee from JSON.

        Parameters
        ----------
        text : str
            What `to_json` wrote.

        Returns
        -------
        Guarantee

        Raises
        ------
        InvalidArgument
            If the text is not JSON, or a field is missing, unknown or out of range.
        """
        try:
            data = json.loads(text, parse_constant=_no_constants, object_pairs_hook=no_key_twice)
        except InvalidArgument:
            raise
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidArgument(
                f"the guarantee is not JSON ({error}). Use what to_json() wrote."
            ) from None
        return cls.from_dict(data)

    def _sentences(self) -> list[str]:
        """The guarantee as short sentences, one topic each."""
        made = f"Made with hushfit {self.version}."
        return [*self.warnings, self._statement(), *self._details(), made]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must see before anything else: under a label relation, that features have
        no protection at all.
        """
        if not labels_only(self.relation):
            return ()
        row = self.unit.record.upper()
        persons = f" AND WHOSE {row} EACH IS" if self.unit.is_person else ""
        return (
            f"FEATURES ARE NOT PROTECTED: ALL COLUMNS BUT THE LABEL{persons} ARE TAKEN AS PUBLIC. "
            "ONLY LABELS ARE PRIVATE.",
        )

    def _statement(self) -> str:
        if self.nonprivate:
            return (
                "NOT PRIVATE: epsilon is infinite, so nothing is promised "
                f"(delta={self.delta:g}, relation {self.relation}, unit {self.unit.in_words})."
            )
        return (
            f"Differentially private with epsilon={self.epsilon:.6g} and delta={self.delta:g}: two "
            "data sets that "
            f"differ by {self.relation.in_words(self.unit)} give any outcome with "
            "probabilities within a factor "
            f"exp({self.epsilon:.6g}) of each other, up to {self.delta:g}. Relation: "
            f"{self.relation}. "
            f"{self._unit_sentence()}"
        )

    def _unit_sentence(self) -> str:
        row, labels = self.unit.record, "label" if self.unit.record == "row" else "labels"
        if labels_only(self.relation):
            return (
                f"The unit of privacy is the labels of one person: {self.unit.rule}."
                if self.unit.is_person
                else f"The unit of privacy is the {labels} of one {row}: if a person has several "
                f"{row}s, the guarantee for the person is weaker, the more {row}s the weaker."
            )
        if self.unit.is_person:
            return f"The unit of privacy is one person: {self.unit.rule}."
        ids = (
            "that names a column of ids (groups= or --person)"
            if row == "row"
            else "with the ids of persons (unit='person')"
        )
        return (
            f"The unit of privacy is one {row}: if a person has several {row}s, the guarantee for "
            f"the person is weaker, the more {row}s the weaker. for_group(k) says how weak for k "
            f"{row}s; a fit {ids} protects persons."
        )

    def _details(self) -> list[str]:
        public = "; ".join(self.public) or "nothing beyond the relation"
        released = "; ".join(map(str, self.releases)) or "nothing"
        secure = (
            "Noise: secure=True, drawn exactly from a cryptographic generator."
            if self.secure
            else "Noise: secure=False. The noise can be reproduced or its floating-point form "
            "analysed, so whoever "
            "knows the seed can remove it: use this result for tests and simulations, not for a "
            "release."
        )
        notes = [f"Note: {note}" for note in self.notes]
        return [f"Taken as public: {public}.", f"Released: {released}.", secure, *notes]


def _release_to_dict(release: ReleaseRecord) -> dict[str, Any]:
    return {f.name: _check.to_json_number(getattr(release, f.name)) for f in fields(release)}


def _release_from_dict(data: object) -> ReleaseRecord:
    given = dict(_check.fields(data, {f.name for f in fields(ReleaseRecord)}, "a release record"))
    given["noise_multiplier"] = _check.from_json_number(
        given["noise_multiplier"], "noise_multiplier"
    )
    return ReleaseRecord(**given)


def _unit_from(value: object) -> PrivacyUnit:
    """A unit from JSON. Older versions wrote what the table's description called a row, which
    nothing checked: their guarantees are for one row.
    """
    if isinstance(value, str):
        return ROW
    return PrivacyUnit.from_dict(value)  # type: ignore[arg-type]  # it refuses all else


def _texts(values: object, name: str) -> tuple[str, ...]:
    """A tuple of strings; a lone string would otherwise be split into letters."""
    if not isinstance(values, tuple | list):
        raise InvalidArgument(f"{name}={values!r} is not a tuple. Give a tuple of texts.")
    return tuple(_check.text(value, name) for value in values)


def _no_constants(word: str) -> float:
    raise InvalidArgument(f"{word} is not strict JSON. Write infinity as the string 'inf'.")


def _store(instance: Any, **values: Any) -> None:
    """Store the checked, converted arguments of a frozen instance."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)
