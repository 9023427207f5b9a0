"""Which account pays for which table, where people log in.

An account is a name, and so is a table: nothing else would keep somebody with a ceiling on one
account from paying with it for the rows of another. Administrators of an account assign tables to
it.
"""

import json
import os
import threading
from pathlib import Path

from hushfit._write import write_whole
from hushfit.errors import InvalidArgument, LedgerError
from hushfit.privacy import Ledger


class Assigned:
    """Tables of a folder and the accounts that pay for them.

    Parameters
    ----------
    folder : Path
        Of the studio.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".studio" / "tables.json"
        self._lock = threading.Lock()

    def accounts(self) -> dict[str, str]:
        """The account of each table that has one."""
        if not os.access(self._path, os.R_OK):
            return {}
        stored: dict[str, str] = json.loads(self._path.read_text(encoding="utf-8"))
        return stored

    def assign(self, table: str, account: Ledger, others: "dict[str, Ledger]") -> None:
        """Let an account pay for a table.

        Parameters
        ----------
        table : str
        account : Ledger
        others : dict of str to Ledger
            All accounts by name, as the same person sees them.
        """
        with self._lock:
            known = self.accounts()
            before = others.get(known.get(table, ""))
            for one in (account, before):
                if one is not None:
                    _refuse_stranger(one)
            write_whole(self._path, json.dumps({**known, table: account.name}, indent=1))

    def refuse_other(self, table: str, account: Ledger) -> None:
        """Refuse to pay for a table from another account than its own."""
        own = self.accounts().get(table)
        if own == account.name:
            return
        named = ", ".join(account.team.administrators)
        raise InvalidArgument(
            f"{table} is {'not assigned to an account' if own is None else f'paid from {own!r}'}, "
            f"so {account.name!r} does not pay for it. Nothing was spent. Ask an administrator "
            f"({named}) to assign it on the page Budget."
        )


def refuse_who_administers_nothing(accounts: "dict[str, Ledger]") -> None:
    """Let only administrators open further accounts: theirs could pay for any table.

    Parameters
    ----------
    accounts : dict of str to Ledger
        All accounts by name, as one person sees them.
    """
    if not any(one.team.identity in one.team.administrators for one in accounts.values()):
        raise LedgerError(
            "where people log in, accounts are opened by administrators of the ledger's other "
            "accounts. Nothing was changed. The first one is opened with `hushfit ledger init`."
        )


def _refuse_stranger(account: Ledger) -> None:
    team = account.team
    if team.identity not in team.administrators:
        raise LedgerError(
            f"{team.identity!r} is no administrator of {account.name!r}. Nothing was changed. Ask "
            f"one of them: {', '.join(team.administrators)}."
        )
