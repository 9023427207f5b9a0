"""Who writes an entry: a database role, a user of the system, or the person of a signed token.

A service that holds the ledger's key acts for many people. It gives each a token, signed with the
key, and records entries for the person whose token it was shown.
"""

import base64
import hmac
import json
import os
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from hushfit.errors import InvalidArgument, LedgerError
from hushfit.privacy.ledger._ledger_key import KEY_VARIABLE, LedgerKey, key_from_environment

TOKEN_VARIABLE: Final = "HUSHFIT_LEDGER_TOKEN"
_PREFIX: Final = "hushfit1"
_NOTHING: Final = "Nothing was spent or released."


@dataclass(frozen=True)
class Identity:
    """Who an entry is by.

    Parameters
    ----------
    name : str
        Database role, user of the system, or person of a token.
    through : str, optional
        Role or user of the service that was shown the token.
    """

    name: str
    through: str | None = None

    @property
    def body(self) -> dict[str, str]:
        """What an entry says about it."""
        return {"user": self.name} | ({} if self.through is None else {"through": self.through})


def issue_token(person: str, until: str | date, key: LedgerKey | None = None) -> str:
    """Token with which a service that holds the ledger's key acts for a person.

    Parameters
    ----------
    person : str
        Name under which grants are given.
    until : str or date
        Last day of the token, in UTC.
    key : LedgerKey, optional
        The key that HUSHFIT_LEDGER_KEY_FILE names by default.

    Returns
    -------
    str
        Secret of the person: whoever has it can pay in their name.
    """
    day = day_of(until)
    assert day is not None
    stated = {"person": checked_person(person, "person"), "until": day.isoformat()}
    payload = base64.urlsafe_b64encode(json.dumps(stated, sort_keys=True).encode()).decode()
    return f"{_PREFIX}.{payload}.{_required(key).sign_token(payload)}"


def person_of_token(token: str, key: LedgerKey | None = None, today: date | None = None) -> str:
    """Name of the person to whom a token was issued.

    Parameters
    ----------
    token : str
    key : LedgerKey, optional
        The key that HUSHFIT_LEDGER_KEY_FILE names by default.
    today : date, optional
        In UTC; the current day by default.

    Returns
    -------
    str

    Raises
    ------
    LedgerError
        If it was not signed with the key, or has expired.
    """
    prefix, _, rest = token.strip().partition(".")
    payload, _, code = rest.partition(".")
    signed = _required(key).sign_token(payload)
    if prefix != _PREFIX or not hmac.compare_digest(code.encode(), signed.encode()):
        raise LedgerError(
            f"the token was not signed with the ledger's key. {_NOTHING} Ask the administrator for "
            "a new one (`hushfit ledger token`)."
        )
    stated = json.loads(base64.urlsafe_b64decode(payload))
    until = day_of(stated["until"])
    if until is None or (today or datetime.now(UTC).date()) > until:
        raise LedgerError(
            f"the token of {stated['person']!r} expired after {until}. {_NOTHING} Ask the "
            "administrator for a new one (`hushfit ledger token`)."
        )
    return str(stated["person"])


def identity(
    user: str, token: str | None, key: LedgerKey | None, today: date | None = None
) -> Identity:
    """Who writes: the person of a token, given or in the environment, or else the user."""
    shown = token or os.environ.get(TOKEN_VARIABLE)
    return Identity(person_of_token(shown, key, today), user) if shown else Identity(user)


def day_of(stated: object, name: str = "until") -> date | None:
    """A day from its ISO form, or from a date."""
    if stated is None or type(stated) is date:
        return stated
    try:
        return date.fromisoformat(str(stated))
    except ValueError:
        raise InvalidArgument(
            f"{name}={stated!r} is not a day. Write it as 2027-01-01, the last day in UTC."
        ) from None


def checked_person(person: object, name: str) -> str:
    """Name of a person or role, as identities have it."""
    if not isinstance(person, str) or not person.strip() or not person.isprintable():
        raise InvalidArgument(
            f"{name}={person!r} is not the name of a person. Give the database role on "
            "PostgreSQL, the user of the system on SQLite, or the person of a token."
        )
    if len(person) > 200:
        raise InvalidArgument(f"{name} has {len(person)} characters. Give at most 200.")
    return person


def _required(key: LedgerKey | None) -> LedgerKey:
    found = key or key_from_environment()
    if found is None:
        raise LedgerError(
            f"tokens are signed with the ledger's key, and {KEY_VARIABLE} names none. {_NOTHING} "
            "Set it where the service runs."
        )
    return found
