"""Acts of the administrators of an account: grants, approvals, freezing and closing."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from hushfit.privacy import _check
from hushfit.privacy._budget import Budget
from hushfit.privacy.ledger._chain import Entry
from hushfit.privacy.ledger._disk_ledger import DiskAccount
from hushfit.privacy.ledger._identity import checked_person, day_of
from hushfit.privacy.ledger._team import Grant, Request, Team


@dataclass(frozen=True)
class Administration:
    """Who may spend what on an account on disk, as ``Ledger.team``.

    Whoever opened the account is its first administrator. Each act is an entry of the ledger, and
    an act that is refused changes nothing.

    Parameters
    ----------
    account : DiskAccount
    """

    account: DiskAccount

    @property
    def now(self) -> Team:
        """The team as it is now."""
        return self.account.team()

    @property
    def identity(self) -> str:
        """Who acts and pays through this ledger."""
        return self.account.author().name

    @property
    def administrators(self) -> tuple[str, ...]:
        """Who may grant, approve, freeze and close."""
        return self.now.administrators

    @property
    def grants(self) -> tuple[Grant, ...]:
        """Sub-accounts, with what was spent of each ceiling."""
        return self.now.grants

    @property
    def requests(self) -> tuple[Request, ...]:
        """Charges that waited for a second person, or still wait."""
        return self.now.requests

    def grant(
        self,
        to: str,
        epsilon: float,
        delta: float | None = None,
        until: str | date | None = None,
    ) -> Entry:
        """Give a person a ceiling, or another one; all that the person has ever paid counts.

        From the first grant on only holders of grants can pay. A charge must fit the ceiling and
        the total.

        Parameters
        ----------
        to : str
            Database role, user of the system, or person of a token.
        epsilon : float
            Ceiling; at most the total.
        delta : float, optional
            That of the account by default.
        until : str or date, optional
            Last day, in UTC.

        Returns
        -------
        Entry
        """
        budget = Budget(epsilon, self.account.budget.delta if delta is None else delta)
        stated = {"epsilon": _check.to_json_number(budget.epsilon), "delta": budget.delta}
        return self._act("grant", grantee=checked_person(to, "to"), until=_iso(until), **stated)

    def revoke(self, person: str) -> Entry:
        """End the grant of a person."""
        return self._act("revoke", grantee=person)

    def transfer(self, giver: str, to: str, epsilon: float | None = None) -> Entry:
        """Hand over a grant with all that was spent under it, or move part of a ceiling.

        What the receiver has paid before counts against the grant as well.

        Parameters
        ----------
        giver, to : str
        epsilon : float, optional
            Part of the ceiling; the receiver must have a grant. By default the whole sub-account
            passes to a person who has none.

        Returns
        -------
        Entry
        """
        return self._act("transfer", **{"from": giver, "to": to, "epsilon": epsilon})

    def set_limit(self, epsilon: float | None) -> Entry:
        """Let charges above an epsilon wait for a second person; None removes the limit."""
        stated = None if epsilon is None else Budget(epsilon, self.account.budget.delta).epsilon
        return self._act("limit", epsilon=stated)

    def approve(self, request: int) -> Entry:
        """Allow a charge that waits; the one who asked can then make it, once."""
        return self._act("approve", request=request)

    def decline(self, request: int) -> Entry:
        """Refuse a charge that waits."""
        return self._act("decline", request=request)

    def freeze(self, person: str | None = None) -> Entry:
        """Stop all charges, or those of one person, until `thaw`."""
        return self._act("freeze", grantee=person)

    def thaw(self, person: str | None = None) -> Entry:
        """Allow charges again."""
        return self._act("thaw", grantee=person)

    def close(self) -> Entry:
        """Stop all charges for ever."""
        return self._act("close")

    def appoint(self, person: str) -> Entry:
        """Make a person, or the role of a service, an administrator."""
        return self._act("appoint", person=checked_person(person, "person"))

    def dismiss(self, person: str) -> Entry:
        """Make an administrator one no longer; one always remains."""
        return self._act("dismiss", person=person)

    def _act(self, kind: str, **stated: Any) -> Entry:
        given = {name: value for name, value in stated.items() if value is not None}
        return self.account.administer({"kind": kind, **given})


def _iso(until: str | date | None) -> str | None:
    day = day_of(until)
    return None if day is None else day.isoformat()
