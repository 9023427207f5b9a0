"""Optional secret key outside the ledger, without which no one can write entries that verify."""

import hashlib
import hmac
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hushfit.errors import LedgerError

KEY_VARIABLE: Final = "HUSHFIT_LEDGER_KEY_FILE"
_MIN_BYTES: Final = 32


@dataclass(frozen=True)
class LedgerKey:
    """Secret key of a ledger.

    Parameters
    ----------
    secret : bytes
        At least 32 bytes.
    """

    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """Identifies a key and reveals nothing else about it."""
        return self._mac("hushfit ledger key")[:16]

    def seal(self, dataset: str, number: int, link: str) -> str:
        """Authentication code of an entry and, through its hash, of all entries before."""
        return self._mac(f"{dataset}\n{number}\n{link}")

    def sign_token(self, payload: str) -> str:
        """Authentication code of a token; one line, so that no seal is the code of a token."""
        return self._mac(f"hushfit ledger token\n{payload}")

    def _mac(self, message: str) -> str:
        return hmac.new(self.secret, message.encode(), hashlib.sha256).hexdigest()


def key_from_environment() -> LedgerKey | None:
    """Key from the file that HUSHFIT_LEDGER_KEY_FILE names (all its bytes); None if not set."""
    named = os.environ.get(KEY_VARIABLE)
    if not named:
        return None
    try:
        secret = Path(named).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise LedgerError(
            f"{KEY_VARIABLE}={named!r} cannot be read ({reason}). Nothing was spent or released. "
            "Check the path and the permissions."
        ) from None
    if len(secret) < _MIN_BYTES:
        raise LedgerError(
            f"{KEY_VARIABLE}={named!r} has {len(secret)} bytes, too few for a secret. Nothing was "
            f"spent or released. Use at least {_MIN_BYTES}, for instance from `openssl rand -hex "
            "32`."
        )
    return LedgerKey(secret)
