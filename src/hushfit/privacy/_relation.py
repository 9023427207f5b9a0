"""Adjacency relations: which data sets are neighbours, and the only code that compares them.

Everything that depends on a relation calls `by_relation` or `replaces_one`, which accept names as
well as members. A direct comparison could take a name for the other relation, and with it half the
noise.
"""

from enum import StrEnum
from typing import TypeVar, assert_never

from hushfit.errors import InvalidArgument
from hushfit.unit import ROW, PrivacyUnit

_T = TypeVar("_T")


class Relation(StrEnum):
    """Adjacency relation: which two data sets the guarantee makes hard to distinguish.

    Attributes
    ----------
    REPLACE_ONE
        One row is exchanged for any other admissible row. The number of rows is public.
    ADD_REMOVE
        One row is exchanged for the null row, which contributes zero (the zero-out form of adding
        or removing a row). The normaliser n is public and does not change.
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @classmethod
    def parse(cls, value: "str | Relation") -> "Relation":
        """Parse a relation from its name.

        Parameters
        ----------
        value : str or Relation
            ``"replace-one"`` or ``"add-remove"``.

        Returns
        -------
        Relation

        Raises
        ------
        InvalidArgument
            If the name is not one of the two.
        """
        try:
            return cls(value)
        except ValueError:
            names = " or ".join(repr(str(r)) for r in cls)
            raise InvalidArgument(
                f"adjacency={value!r} is not a known relation. Use {names}."
            ) from None

    def in_words(self, unit: PrivacyUnit = ROW) -> str:
        """The relation as the object of "differ by ..."."""
        if unit.is_person:
            return by_relation(
                self,
                replace_one=(
                    "replacing all rows of one person by any other admissible rows, few or many "
                    "(the number of persons is public, the number of rows is not)"
                ),
                add_remove=(
                    "adding or removing all rows of one person, in the zero-out form (their "
                    "contribution is set to zero; the number of persons that means are divided by "
                    "is public, the number of rows is not)"
                ),
            )
        return by_relation(
            self,
            replace_one=(
                "replacing one record by any other admissible record (the number of records "
                "is public)"
            ),
            add_remove=(
                "adding or removing one record, in the zero-out form (its contribution is set to "
                "zero; n is public)"
            ),
        )


def by_relation(relation: Relation | str, *, replace_one: _T, add_remove: _T) -> _T:
    """Select the value for a relation from one value for each.

    Parameters
    ----------
    relation : Relation or str
    replace_one, add_remove : object
        One of them is returned.

    Returns
    -------
    object

    Raises
    ------
    InvalidArgument
        If the relation is neither of the two, by member or by name.
    """
    known = Relation.parse(relation)
    match known:
        case Relation.REPLACE_ONE:
            return replace_one
        case Relation.ADD_REMOVE:
            return add_remove
        case _:
            assert_never(known)


def replaces_one(relation: Relation | str) -> bool:
    """Whether neighbours differ by exchanging one record for another.

    Parameters
    ----------
    relation : Relation or str

    Returns
    -------
    bool

    Raises
    ------
    InvalidArgument
        If the relation is neither of the two, by member or by name.
    """
    return by_relation(relation, replace_one=True, add_remove=False)
