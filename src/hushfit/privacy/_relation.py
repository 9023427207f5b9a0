"""Which data sets count as neighbours."""

from enum import StrEnum

from hushfit.errors import InvalidArgument


class Relation(StrEnum):
    """Which two data sets the guarantee makes hard to tell apart.

    Attributes
    ----------
    REPLACE_ONE
        One row is exchanged for any other admissible row. The number of rows is public.
    ADD_REMOVE
        One row is exchanged for the null row, which contributes zero (the zero-out form of adding or
        removing a row). The normaliser n is public and does not change.
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @classmethod
    def parse(cls, value: "str | Relation") -> "Relation":
        """Read a relation from its name.

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
            raise InvalidArgument(f"adjacency={value!r} is not a known relation. Use {names}.") from None

    @property
    def in_words(self) -> str:
        """The relation as the object of "differ by ..."."""
        if self is Relation.REPLACE_ONE:
            return "replacing one record by any other admissible record (the number of records is public)"
        return "adding or removing one record, in the zero-out form (its contribution is set to zero; n is public)"
