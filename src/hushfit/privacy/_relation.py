"""Adjacency relations: which data sets are neighbours, and the only code that compares them.

Everything that depends on a relation calls `by_relation`, `replaces_one` or `labels_only`, which
accept names as well as members. A direct comparison could take a name for the other relation, and
with it half the noise.
"""

from enum import StrEnum
from typing import Final, TypeVar, assert_never

from hushfit.errors import InvalidArgument, UnsupportedRelation
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
    LABEL
        The label of one row is exchanged for any other admissible one. Features are public, and so
        is everything else about the rows.
    PERSON_LABEL
        All labels of one person's rows are exchanged. Features are public, and so is whose row
        each is.

    Examples
    --------
    >>> from hushfit import Relation
    >>> Relation("label").in_words()
    'replacing the label of one record by any other admissible label (all features are public)'
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"
    LABEL = "label"
    PERSON_LABEL = "person-label"

    @classmethod
    def parse(cls, value: "str | Relation") -> "Relation":
        """Parse a relation from its name.

        Parameters
        ----------
        value : str or Relation
            ``"replace-one"``, ``"add-remove"``, ``"label"`` or ``"person-label"``.

        Returns
        -------
        Relation

        Raises
        ------
        InvalidArgument
            If the name is not one of these.
        """
        if isinstance(value, cls):  # every release asks several times
            return value
        try:
            return cls(value)
        except ValueError:
            *others, last = (repr(str(r)) for r in cls)
            names = f"{', '.join(others)} or {last}"
            raise InvalidArgument(
                f"adjacency={value!r} is not a known relation. Use {names}."
            ) from None

    def in_words(self, unit: PrivacyUnit = ROW) -> str:
        """The relation as the object of "differ by ..."."""
        if labels_only(self):
            several = unit.is_person or unit.record == "list"
            whose = f"all labels of {unit.in_words}" if several else "the label of one record"
            others = "admissible labels" if several else "admissible label"
            persons = f" and whose {unit.record} each is" if unit.is_person else ""
            return f"replacing {whose} by any other {others} (all features{persons} are public)"
        rows, record = f"{unit.record}s", "list" if unit.record == "list" else "record"
        if unit.is_person:
            return by_relation(
                self,
                replace_one=(
                    f"replacing all {rows} of one person by any other admissible {rows}, few or "
                    f"many (the number of persons is public, the number of {rows} is not)"
                ),
                add_remove=(
                    f"adding or removing all {rows} of one person, in the zero-out form (their "
                    "contribution is set to zero; the number of persons that means are divided by "
                    f"is public, the number of {rows} is not)"
                ),
            )
        return by_relation(
            self,
            replace_one=(
                f"replacing one {record} by any other admissible {record} (the number of {record}s "
                "is public)"
            ),
            add_remove=(
                f"adding or removing one {record}, in the zero-out form (its contribution is set "
                "to zero; n is public)"
            ),
        )


RECORD_RELATIONS: Final = (Relation.REPLACE_ONE, Relation.ADD_REMOVE)
"""Relations under which whole records are private."""
LABEL_RELATIONS: Final = (Relation.LABEL, Relation.PERSON_LABEL)
"""Relations under which labels are private and features are public."""


def by_relation(relation: Relation | str, *, replace_one: _T, add_remove: _T) -> _T:
    """Select the value for a relation between records from one value for each.

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
    UnsupportedRelation
        If only labels are private: what is proved for records needs a proof of its own for labels.
    InvalidArgument
        If the relation is none of all, by member or by name.
    """
    known = Relation.parse(relation)
    match known:
        case Relation.REPLACE_ONE:
            return replace_one
        case Relation.ADD_REMOVE:
            return add_remove
        case Relation.LABEL | Relation.PERSON_LABEL:
            raise no_proof_for_labels(known)
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
    UnsupportedRelation
        If only labels are private.
    InvalidArgument
        If the relation is none of all, by member or by name.
    """
    return by_relation(relation, replace_one=True, add_remove=False)


def exchanges(relation: Relation | str) -> bool:
    """Whether neighbours differ by an exchange, of a record or of its labels, and not by a record
    that is there or not.

    Parameters
    ----------
    relation : Relation or str

    Returns
    -------
    bool
    """
    return labels_only(relation) or replaces_one(relation)


def labels_only(relation: Relation | str) -> bool:
    """Whether labels alone are private, and features public.

    Parameters
    ----------
    relation : Relation or str

    Returns
    -------
    bool
    """
    return Relation.parse(relation) in LABEL_RELATIONS


def require_records(relation: Relation | str) -> None:
    """Refuse a relation under which only labels are private."""
    by_relation(relation, replace_one=None, add_remove=None)


def require_labels(relation: Relation | str, unit: PrivacyUnit) -> None:
    """Refuse a relation under which records are private, or labels of another unit than this."""
    known = Relation.parse(relation)
    if not labels_only(known):
        raise UnsupportedRelation(
            f"a release in which features are public has no proof under {str(known)!r}. Use "
            "adjacency='label' if features may be known to everybody, or another solver."
        )
    refuse_other_unit(known, unit)


def refuse_other_unit(relation: Relation | str, unit: PrivacyUnit) -> None:
    """Refuse ``"label"`` with persons as units, and ``"person-label"`` with rows."""
    known = Relation.parse(relation)
    if labels_only(known) and (known is Relation.PERSON_LABEL) is not unit.is_person:
        wanted = Relation.PERSON_LABEL if unit.is_person else Relation.LABEL
        raise InvalidArgument(
            f"adjacency={str(known)!r} does not suit {unit.plural} as units of privacy. Use "
            f"adjacency={str(wanted)!r}, or "
            f"{'leave groups out' if unit.is_person else 'give groups'}."
        )


def no_proof_for_labels(relation: Relation | str) -> UnsupportedRelation:
    """Error for something whose proof is about whole records."""
    return UnsupportedRelation(
        f"this release has no proof under adjacency={str(Relation.parse(relation))!r}, where "
        "features are public and labels alone are private: its bounds are for whole records. Use "
        "solver='auto' with a loss in which labels enter linearly (logistic, softmax, Poisson or "
        "least squares), or adjacency='replace-one'."
    )
