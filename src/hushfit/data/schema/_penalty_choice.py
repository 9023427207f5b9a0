"""The penalty that a schema states: a name, its weight, and the structure that it is about. Public,
as everything in a schema.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from hushfit.errors import InvalidArgument

CONSTRAINTS = ("identity", "chain", "graph", "generalised")
# What a constraint needs to be told.
_STRUCTURE = {"graph": "edges", "generalised": "combinations"}


@dataclass(frozen=True)
class PenaltyChoice:
    """A penalty by name, for the features of a schema.

    Parameters
    ----------
    name : str, optional
        As ``hushfit fit --penalty`` takes it, such as "l1", "scad" or "group".
    alpha : float or str, optional
        Weight of the penalty; for numbers and counts also "auto" or "select".
    l1_ratio : float, optional
        Share of the lasso in "elasticnet", "fused" and "sparse-group".
    constraint : {"identity", "chain", "graph", "generalised"}, optional
        What the penalty is a function of: the coefficients, differences of neighbours, differences
        along `edges`, or `combinations`.
    edges : sequence of pairs of str, default=()
        Features whose coefficients are drawn towards each other.
    groups : sequence of sequences of str, default=()
        For "group" and "sparse-group": columns or features that belong together. They may overlap.
        The features of each column when not given.
    combinations : sequence of mappings of str to float, default=()
        Sums of coefficients, by the names of their features.
    """

    name: str | None = None
    alpha: float | str | None = None
    l1_ratio: float | None = None
    constraint: str | None = None
    edges: tuple[tuple[str, str], ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    combinations: tuple[tuple[tuple[str, float], ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _lists("edges", self.edges, 2))
        object.__setattr__(self, "groups", _lists("groups", self.groups, None))
        object.__setattr__(self, "combinations", _combinations(self.combinations))
        if self.name is not None and not isinstance(self.name, str):
            raise InvalidArgument(f"[penalty] has name = {self.name!r}. Write a text, as 'l1'.")
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, float | int | str | None):
            raise InvalidArgument(f"[penalty] has alpha = {self.alpha!r}. Write a number.")
        if isinstance(self.l1_ratio, bool) or not isinstance(self.l1_ratio, float | int | None):
            raise InvalidArgument(f"[penalty] has l1_ratio = {self.l1_ratio!r}. Write a number.")
        self._check_structure()

    def _check_structure(self) -> None:
        if self.constraint is not None and self.constraint not in CONSTRAINTS:
            raise InvalidArgument(
                f"[penalty] has constraint = {self.constraint!r}. Choose one of "
                f"{', '.join(CONSTRAINTS)}, or leave it out."
            )
        if self.groups and self.name not in ("group", "sparse-group"):
            raise InvalidArgument(
                f"[penalty] has groups, and name = {self.name!r} does not use them. Write name = "
                "'group' or 'sparse-group', or delete groups."
            )
        if self.groups and self.constraint is not None:
            raise InvalidArgument(
                "[penalty] has groups and a constraint, which each say what the penalty is about. "
                "Delete one of them."
            )
        stated = {"graph"} if self.name == "graph" else set()
        stated |= {self.constraint} if self.constraint is not None else set()
        for constraint, key in _STRUCTURE.items():
            if getattr(self, key) and constraint not in stated:
                raise InvalidArgument(
                    f"[penalty] has {key} that nothing uses. Write constraint = {constraint!r}, or "
                    f"delete {key}."
                )

    @classmethod
    def from_dict(cls, settings: Any) -> "PenaltyChoice":
        """From what a schema file states.

        Parameters
        ----------
        settings : mapping

        Returns
        -------
        PenaltyChoice
        """
        known = [field.name for field in fields(cls)]
        if not isinstance(settings, Mapping):
            raise InvalidArgument("penalty of the schema is no table. Write it as [penalty].")
        odd = sorted(map(str, set(settings) - set(known)))
        if odd:
            raise InvalidArgument(
                f"[penalty] of the schema has the unknown keys {odd}. Known keys are "
                f"{', '.join(known)}."
            )
        return cls(**settings)

    def to_dict(self) -> dict[str, Any]:
        """What is stated, as plain values.

        Returns
        -------
        dict
        """
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["combinations"] = [dict(terms) for terms in self.combinations]
        for key in ("edges", "groups"):
            found[key] = [list(names) for names in found[key]]
        return {key: value for key, value in found.items() if value not in (None, [])}


def _lists(key: str, value: Any, length: int | None) -> tuple[tuple[str, ...], ...]:
    """Lists of names, each of the given length if there is one."""
    if not _is_list(value) or not all(_is_list_of_names(names, length) for names in value):
        what = "lists of names" if length is None else "pairs of names"
        raise InvalidArgument(
            f"[penalty] has {key} that are no {what}. Write {key} = [['age', 'dose']], for "
            "instance."
        )
    return tuple(tuple(names) for names in value)


def _combinations(value: Any) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Weights of features, as tables or as lists of pairs."""
    try:
        found = [list(dict(terms).items()) for terms in value]
        if all(pairs and all(map(_is_weight, pairs)) for pairs in found):
            return tuple(tuple((name, float(weight)) for name, weight in pairs) for pairs in found)
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(
        "[penalty] has combinations that are no weights of features. Write combinations = "
        "[{age = 1, dose = -2}], for instance."
    )


def _is_weight(pair: tuple[Any, Any]) -> bool:
    name, weight = pair
    is_number = isinstance(weight, float | int) and not isinstance(weight, bool)
    return isinstance(name, str) and is_number and math.isfinite(weight)


def _is_list_of_names(names: Any, length: int | None) -> bool:
    right = _is_list(names) and len(names) == (length or max(len(names), 1))
    return right and all(isinstance(name, str) for name in names)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
