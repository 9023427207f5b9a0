"""Privacy units: whom a guarantee protects, a row, a list, or a person with several of them.

Rows of one person share one weight, so that a person contributes no more than a row does where
every row is its own unit. Proof: docs/proofs/persons.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from numbers import Integral
from typing import Any, Final

from hushfit.errors import InvalidArgument

WEIGHTINGS: Final = ("mean", "cap")
RECORDS: Final = ("row", "list")
ROWS_PER_PERSON: Final = 1000
"""Rows of one person that are used unless another bound is given."""
_MOST_ROWS_PER_PERSON = 1_000_000


@dataclass(frozen=True)
class PrivacyUnit:
    """Whom the guarantee protects: one row, or one person with all of their rows.

    A row of a person with k rows has the weight 1 / k (``"mean"``), or 1 / max(k, m) (``"cap"``):
    then a person counts k / m until there are m rows, and one from there on. Rows beyond
    ``rows_per_person`` are not used. Everything here is public, and none of it may be chosen by
    looking at the rows.

    Parameters
    ----------
    kind : {"row", "person"}, default="row"
    column : str or None
        Name of the column of ids; None if ids were given as an array.
    weighting : {"mean", "cap"}, default="mean"
    rows_per_person : int, default=1
        Contribution bound: how many rows of one person are used, the first ones.
    full_weight : int, default=1
        The m of ``"cap"``: rows at which a person counts as one.
    record : {"row", "list"}, default="row"
        What a record is: a row of a table, or a list of documents. Where it is a list, read "list"
        for "row" above; lists that are their own units have the kind ``"row"``.

    Examples
    --------
    >>> from hushfit.unit import PrivacyUnit
    >>> unit = PrivacyUnit.person(column="patient", rows_per_person=20)
    >>> unit.in_words, unit.rows_per_person
    ('one person', 20)
    """

    kind: str = "row"
    column: str | None = None
    weighting: str = "mean"
    rows_per_person: int = 1
    full_weight: int = 1
    record: str = "row"

    def __post_init__(self) -> None:
        if self.kind not in ("row", "person"):
            raise InvalidArgument(f"privacy unit {self.kind!r} is not 'row' or 'person'.")
        if self.record not in RECORDS:
            raise InvalidArgument(f"record {self.record!r} is not 'row' or 'list'.")
        if not isinstance(self.column, str | None):
            raise InvalidArgument(f"the id column {self.column!r} is not the name of a column.")
        if self.weighting not in WEIGHTINGS:
            raise InvalidArgument(
                f"person_weight={self.weighting!r} is not known. Use 'mean', where every person "
                "counts once, or 'cap', where a person with few rows counts less."
            )
        for name in ("rows_per_person", "full_weight"):
            _require_count(getattr(self, name), name)
        if self.rows_per_person > _MOST_ROWS_PER_PERSON:
            raise InvalidArgument(
                f"rows_per_person={self.rows_per_person} is above {_MOST_ROWS_PER_PERSON}, which "
                "the proof of rounding does not cover. Give a smaller bound."
            )
        if not 1 <= self.full_weight <= self.rows_per_person or (
            self.weighting == "mean" and self.full_weight != 1
        ):
            raise InvalidArgument(
                f"full_weight={self.full_weight} does not suit {self.weighting!r} with at most "
                f"{self.rows_per_person} rows per person."
            )
        own = (self.column, self.weighting, self.rows_per_person)
        if self.kind == "row" and own != (None, "mean", 1):
            raise InvalidArgument("A row is its own unit: it has no id column and no weights.")

    @classmethod
    def person(
        cls,
        weighting: str = "mean",
        rows_per_person: int | None = None,
        column: str | None = None,
        record: str = "row",
    ) -> "PrivacyUnit":
        """One person with all of their rows.

        Parameters
        ----------
        weighting : {"mean", "cap"}, default="mean"
        rows_per_person : int, optional
            With ``"mean"`` how many rows of a person are used, 1000 if not given. With ``"cap"``,
            where it must be given, the number of rows at which a person counts as one.
        column : str, optional
            Name of the column of ids.
        record : {"row", "list"}, default="row"

        Returns
        -------
        PrivacyUnit
        """
        if rows_per_person is not None:
            _require_count(rows_per_person, "rows_per_person")
        if weighting != "cap":
            most = rows_per_person or ROWS_PER_PERSON
            return cls("person", column, weighting, most, record=record)
        if rows_per_person is None:
            raise InvalidArgument(
                "person_weight='cap' needs rows_per_person: the number of rows at which a person "
                "counts as one. Give a small number that you know without looking, such as 3."
            )
        most = max(ROWS_PER_PERSON, rows_per_person)
        return cls("person", column, weighting, most, rows_per_person, record)

    @property
    def is_person(self) -> bool:
        """Whether rows of one person are protected together."""
        return self.kind == "person"

    @property
    def total_weight_is_public(self) -> bool:
        """Whether the weights of all rows add up to the number of units; with ``"cap"`` they add
        up to an unknown number below it.
        """
        return self.full_weight == 1

    @property
    def plural(self) -> str:
        return f"{self._noun}s"

    @property
    def _noun(self) -> str:
        return self.kind if self.is_person else self.record

    @property
    def in_words(self) -> str:
        """The unit as it is printed: "one row", "one list" or "one person"."""
        return f"one {self._noun}"

    @property
    def rule(self) -> str:
        """How rows are put together, in words; empty for rows."""
        if not self.is_person:
            return ""
        ids = "the ids given" if self.column is None else f"column {self.column!r}"
        weight = (
            f"{self.record}s of a person with k {self.record}s weigh 1/k each"
            if self.full_weight == 1
            else f"{self.record}s of a person with k {self.record}s weigh 1/max(k, "
            f"{self.full_weight}) each"
        )
        most = f"the first {self.rows_per_person} {self.record}s of a person are used"
        alone = f"a {self.record} without an id is its own person"
        return f"persons by {ids}, {alone}; {weight}; {most}"

    def __str__(self) -> str:
        return f"{self.in_words} ({self.rule})" if self.is_person else self.in_words

    def same_kind(self, other: "PrivacyUnit") -> bool:
        """Whether both protect the same thing: rows, lists, or persons by the same ids."""
        own = self.kind, self.column, self.record
        return own == (other.kind, other.column, other.record)

    def to_dict(self) -> dict[str, Any]:
        """Describe the unit in plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "PrivacyUnit":
        """Read what `to_dict` wrote; raise `InvalidArgument` on anything else."""
        # Units that were written before there were lists have no record.
        given = {"record": "row", **data} if isinstance(data, Mapping) else data
        return cls(**_exact_fields(cls, given, "a privacy unit"))


@dataclass(frozen=True)
class AccountUnit:
    """Whom the account of a data set protects, and so which charges it takes.

    An account of rows takes charges of both kinds (under add-remove, for rows only): a guarantee
    for a person holds for each of their rows, if whose row it is stays the same. An account of
    persons takes charges for rows only if ``rows_per_person`` is declared: each then counts for
    that many rows at once. Proof: docs/proofs/groups.md.

    Charges for lists of documents are those of rows here: replacing a document is a way of
    replacing its list, if the document stays in it. Under add-remove it is not, and an account of
    rows takes charges for rows alone or for lists alone.

    Parameters
    ----------
    kind : {"row", "person"}, default="row"
    column : str, optional
        Name of the column of ids, for persons. All charges must name the same one; if it is not
        given, the first charge for persons decides.
    rows_per_person : int, optional
        For persons, makes the account take charges for rows. What it states is then about a person
        with at most so many rows, who is exchanged for one with as many: the number of rows is
        public. Nothing checks how many rows a person has; one with more is protected less.

    Examples
    --------
    >>> from hushfit import Ledger
    >>> from hushfit.unit import AccountUnit
    >>> persons = AccountUnit("person", column="patient", rows_per_person=20)
    >>> ledger = Ledger.create("ledger.db", "patients", 3.0, 1e-6, unit=persons)
    >>> ledger.unit.column
    'patient'
    """

    kind: str = "row"
    column: str | None = None
    rows_per_person: int | None = None

    def __post_init__(self) -> None:
        PrivacyUnit(self.kind, self.column if self.kind == "person" else None)  # checks both
        if self.rows_per_person is not None:
            _require_count(self.rows_per_person, "rows_per_person")
        if self.kind == "row" and (self.column, self.rows_per_person) != (None, None):
            raise InvalidArgument(
                "An account of rows has no id column and no number of rows per person. Open one "
                "for persons (unit='person' in Python, --unit person on the command line), or "
                "leave them out."
            )

    @classmethod
    def parse(cls, unit: "str | AccountUnit") -> "AccountUnit":
        """The unit that a user gives: an `AccountUnit`, ``"row"`` or ``"person"``."""
        if isinstance(unit, AccountUnit):
            return unit
        if unit not in ("row", "person"):
            raise InvalidArgument(
                f"unit={unit!r} is not 'row', 'person' or an AccountUnit. Give one of them."
            )
        return cls(unit)

    @property
    def is_person(self) -> bool:
        return self.kind == "person"

    def units_at_once(self, charged: PrivacyUnit) -> int:
        """How many units of a charge are exchanged when one unit of the account is."""
        return (self.rows_per_person or 1) if self.is_person and not charged.is_person else 1

    def objection(self, charged: PrivacyUnit, earlier: Iterable[PrivacyUnit] = ()) -> str | None:
        """Why a charge for this unit cannot be taken after earlier ones; None if it can."""
        if not self.is_person:
            return None
        if not charged.is_person:
            return (
                None
                if self.rows_per_person is not None
                else "is for one row, but the account protects one person with all of their rows. "
                "Name the column of ids (groups= in Python, --person on the command line), so that "
                "persons are protected, or use an account that was opened with a number of rows "
                "per person"
            )
        columns = (unit.column for unit in earlier if unit.is_person)
        expected = self.column if self.column is not None else next(columns, charged.column)
        if charged.column == expected:
            return None
        return (
            f"is for persons by {_ids(charged.column)}, but the account is for persons by "
            f"{_ids(expected)}: these may be others. Name the same column (groups= in Python, "
            "--person on the command line)"
        )

    def __str__(self) -> str:
        if not self.is_person:
            return "one row"
        by = "" if self.column is None else f" (column {self.column!r})"
        if self.rows_per_person is None:
            return f"one person{by}"
        return (
            f"one person{by} with at most {self.rows_per_person} rows, exchanged for as many rows; "
            "the number of rows is public"
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the unit in plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "AccountUnit":
        """Read what `to_dict` wrote; raise `InvalidArgument` on anything else."""
        return cls(**_exact_fields(cls, data, "the unit of an account"))


def _ids(column: str | None) -> str:
    return "ids without a name" if column is None else f"column {column!r}"


def _exact_fields(cls: Any, data: object, what: str) -> dict[str, Any]:
    names = {field.name for field in fields(cls)}
    if not isinstance(data, Mapping) or set(data) != names:
        raise InvalidArgument(
            f"{what} should have the fields {sorted(names)}. Use what to_dict() wrote."
        )
    return dict(data)


def _require_count(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise InvalidArgument(
            f"{name}={value!r} is not a number of rows. Give an int of 1 or more."
        )


ROW: Final = PrivacyUnit()
"""Every row is its own unit."""
LIST: Final = PrivacyUnit(record="list")
"""Every list of documents is its own unit."""

ROW_ACCOUNT: Final = AccountUnit()
"""An account that protects rows."""
