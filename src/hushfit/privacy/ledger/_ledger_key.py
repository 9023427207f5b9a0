"""An optional secret, kept outside the ledger, without which nobody can write entries that
verify."""

import hashlib
import hmac
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hushfit.errors import LedgerError

KEY_VARIABLE: Final = "HUSHFIT_LEDGER_KEY_FILE"
_LEAST_BYTES: Final = 32


@dataclass(frozen=True)
class LedgerKey:
    """The secret of a ledger.

    Parameters
    ----------
    secret : bytes
        At least 32 bytes.
    """

    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """Tells keys apart and says nothing else about them."""
        return self._mac("hushfit ledger key")[:16]

    def seal(self, dataset: str, number: int, link: str) -> str:
        """What only a holder of the key can compute for an entry, and with it for all entries
        before."""
        return self._mac(f"{dataset}\n{number}\n{link}")

    def _mac(self, message: str) -> str:
        return hmac.new(self.secret, message.encode(), hashlib.sha256).hexdigest()


def key_from_environment() -> LedgerKey | None:
    """The key in the file that HUSHFIT_LEDGER_KEY_FILE names, all its bytes; None where the
    variable is not set."""
    named = os.environ.get(KEY_VARIABLE)
    if not named:
        return None
    try:
        secret = Path(named).read_bytes()
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or type(error).__name__
        raise LedgerError(
            f"{KEY_VARIABLE}={named!r} cannot be read ({said}). Nothing was spent or released. "
            "Check the path and the permissions."
        ) from None
    if len(secret) < _LEAST_BYTES:
        raise LedgerError(
            f"{KEY_VARIABLE}={named!r} holds {len(secret)} bytes, too few for a secret. Nothing "
            f"was spent or released. Make one of at least {_LEAST_BYTES}, for instance with "
            "`openssl rand -hex 32`."
        )
    return LedgerKey(secret)
