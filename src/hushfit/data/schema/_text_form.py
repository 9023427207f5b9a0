"""How a text file or a spreadsheet of rows is written. Public, and part of the schema: no row
decides how others are read.
"""

import codecs
from dataclasses import dataclass
from typing import Any, Final

from hushfit.errors import InvalidArgument

UTF_8 = "utf-8"
_KEYS: Final = ("encoding", "delimiter", "header")
# A row further down would tell how many rows a table has, which persons keep private.
LAST_HEADER: Final = 50
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}


@dataclass(frozen=True)
class TextForm:
    """Encoding and delimiter of a text file, and where the names of its columns are.

    Parameters
    ----------
    encoding : str, default="utf-8"
        Bytes that the encoding does not know become a replacement character. A byte order mark at
        the beginning of a file overrides it.
    delimiter : str, optional
        One character, or "tab". By the header when not given: names of columns are public.
    header : int, optional
        Row of the names of the columns, counted from 1, also of a spreadsheet. Rows above it, such
        as a title, are left out. The first that is there when not given. At most 50.

    Examples
    --------
    >>> TextForm("latin-1", "tab")
    TextForm(encoding='iso8859-1', delimiter='\\t')
    """

    encoding: str = UTF_8
    delimiter: str | None = None
    header: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _delimiter(self.delimiter))
        if self.header is not None:
            _refuse_no_row(self.header)

    @property
    def rows_above(self) -> int:
        """How many rows are above the names of the columns."""
        return 0 if self.header is None else self.header - 1

    @classmethod
    def from_dict(cls, settings: Any) -> "TextForm":
        """From what a schema file states.

        Parameters
        ----------
        settings : mapping

        Returns
        -------
        TextForm
        """
        if not isinstance(settings, dict) or not set(settings) <= set(_KEYS):
            raise InvalidArgument(
                "[file] of the schema should have `encoding`, `delimiter` and `header`, and "
                "nothing else."
            )
        return cls(**settings)

    def to_dict(self) -> dict[str, Any]:
        """What is not the default.

        Returns
        -------
        dict
        """
        usual = TextForm()
        stated = {key: getattr(self, key) for key in _KEYS}
        return {key: value for key, value in stated.items() if value != getattr(usual, key)}


def _encoding(name: Any) -> str:
    try:
        return codecs.lookup(name).name
    except (LookupError, TypeError):
        raise InvalidArgument(
            f"encoding={name!r} is not known. Use utf-8, cp1252, latin-1, utf-16 or another name "
            "that Python knows."
        ) from None


def _delimiter(given: Any) -> str:
    delimiter = _NAMED.get(given, given) if isinstance(given, str) else None
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"':
        raise InvalidArgument(
            f"delimiter={given!r} is not one character. Use , or ; or | or tab, for instance."
        )
    return delimiter


def _refuse_no_row(header: Any) -> None:
    whole = isinstance(header, int) and not isinstance(header, bool)
    if not whole or not 1 <= header <= LAST_HEADER:
        raise InvalidArgument(
            f"header={header!r} is no row from 1 to {LAST_HEADER}. Give the one with the names of "
            "the columns, counted from 1."
        )
