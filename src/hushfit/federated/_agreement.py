"""What owners must agree on before the first message: columns, ranges, classes, model. Compared by
hash; differences are listed.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hushfit.errors import InvalidArgument

_MISSING = json.dumps("missing")


@dataclass(frozen=True, eq=False)
class Agreement:
    """A public description of the table and the model, in plain JSON values.

    Parameters
    ----------
    terms : mapping
        For instance a schema's ``to_dict()`` under ``"schema"`` and the loss and penalty under
        ``"model"``.
    """

    terms: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the terms; the order of columns counts."""
        return hashlib.sha256(
            json.dumps(self.terms, separators=(",", ":"), allow_nan=False).encode()
        ).hexdigest()

    def require_same(self, mine: str, theirs: "Agreement", other: str) -> None:
        """Refuse terms that differ; the message has the first differences with both values."""
        if self.fingerprint == theirs.fingerprint:
            return
        found = list(_differences("", self.terms, theirs.terms)) or ["the order of the columns"]
        shown = "; ".join(_described(difference, mine, other) for difference in found[:3])
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        raise InvalidArgument(
            f"The owners do not agree on the table: {shown}{more}. Give all of them the same "
            "schema."
        )

    def own_differences(self, theirs: "Agreement") -> list[tuple[str, str]]:
        """Entries of these terms that differ from the others, with the values here; no value of the
        others is in them.
        """
        found = _differences("", self.terms, theirs.terms)
        return [(where, own) for where, own, _ in found if own != _MISSING]


def _described(difference: Any, mine: str, other: str) -> str:
    if isinstance(difference, str):
        return difference
    where, a, b = difference
    return f"{where} is {a} at {mine} and {b} at {other}"


def _differences(where: str, a: Any, b: Any) -> Iterator[Any]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in [*a, *(key for key in b if key not in a)]:
            yield from _differences(
                f"{where}.{key}" if where else str(key),
                a.get(key, "missing"),
                b.get(key, "missing"),
            )
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        for place, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _differences(f"{where}[{place}]", one, other)
    elif a != b:
        yield where, json.dumps(a), json.dumps(b)
