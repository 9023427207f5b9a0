"""Who may spend what on one account: grants, limits, approvals, and whether it is open.

A `Team` is what the entries of an account so far say about this. One set of rules decides when an
entry is written, when it is read before a payment, and in `verify`. Ceilings only ever refuse: the
total of the account holds whatever analysts do. Proof: docs/proofs/filter.md.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

from hushfit.errors import BudgetExceeded, HushfitError, LedgerError
from hushfit.privacy import _check
from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs import Cost, cost_from_dict
from hushfit.privacy.ledger._chain import Entry
from hushfit.privacy.ledger._grown import Grown
from hushfit.privacy.ledger._identity import checked_person, day_of
from hushfit.privacy.ledger._reserve import RESERVED_SHARE
from hushfit.privacy.ledger._tally import AccountTerms, Receipt, Tally, smaller_charge
from hushfit.unit import AccountUnit, PrivacyUnit

OPEN, FROZEN, CLOSED = "open", "frozen", "closed"
WAITING, APPROVED, DECLINED, PAID = "waiting", "approved", "declined", "paid"
_NOTHING: Final = "Nothing was spent or released."


@dataclass(frozen=True)
class Ceiling:
    """Terms of a sub-account: a budget of its own, and the rest as in its account."""

    budget: Budget
    relation: Relation
    adaptive: bool
    unit: AccountUnit | None


@dataclass(frozen=True)
class Grant:
    """Sub-account of one person.

    Parameters
    ----------
    number : int
        Entry that opened it.
    holder : str
        Who may spend it.
    tally : Tally
        What was spent, under the ceiling as its terms.
    until : date, optional
        Last day on which it can be spent, in UTC.
    state : {"open", "frozen", "closed"}
    receipts : Grown of Receipt
        Payments that count against it: those made under it, and all earlier ones of its holders.
    """

    number: int
    holder: str
    tally: Tally
    until: date | None = None
    state: str = OPEN
    receipts: Grown[Receipt] = Grown()

    @property
    def budget(self) -> Budget:
        """Ceiling of the holder."""
        return self.tally.terms.budget

    @property
    def largest_fit(self) -> float:
        """Epsilon, at the delta of the ceiling, of the largest fit that it still covers."""
        return self.tally.largest_fit(self.budget.delta)

    def paid(self, receipt: Receipt) -> "Grant":
        """The same with one more payment."""
        tally, receipts = self.tally.after(receipt), self.receipts.after((receipt,))
        return replace(self, tally=tally, receipts=receipts)

    def under(self, ceiling: AccountTerms) -> "Grant":
        """The same under another ceiling: what was spent counts."""
        return replace(self, tally=Tally.of(ceiling, self.receipts))

    def held_by(self, person: str, paid: Iterable[Receipt]) -> "Grant":
        """The same in the hands of a person: all that the person has paid before counts as well."""
        both = {receipt.number: receipt for receipt in (*self.receipts, *paid)}
        receipts = Grown(both[number] for number in sorted(both))
        return replace(self, holder=person, receipts=receipts).under(self.tally.terms)

    def problem(self, day: date) -> str | None:
        """Why nothing can be spent on a day; None if something can."""
        if self.state == CLOSED:
            return f"the grant of {self.holder!r} was revoked"
        if self.state == FROZEN:
            return f"the grant of {self.holder!r} is frozen"
        if self.until is not None and day > self.until:
            return f"the grant of {self.holder!r} expired after {self.until}"
        return None


@dataclass(frozen=True)
class Request:
    """A charge above the limit, which waits for a second person.

    Parameters
    ----------
    number : int
        Entry that states it.
    user : str
        Who wants to pay.
    label, cost, unit
        As the charge will have them.
    at : str
        When it was made.
    state : {"waiting", "approved", "declined", "paid"}
    decided_by : str, optional
    """

    number: int
    user: str
    label: str
    cost: Cost
    unit: PrivacyUnit
    at: str
    state: str = WAITING
    decided_by: str | None = None

    def is_for(self, receipt: Receipt, user: str) -> bool:
        """Whether a charge is the one that was asked for."""
        asked = (self.user, self.label, self.cost, self.unit)
        return asked == (user, receipt.label, receipt.cost, receipt.unit)


@dataclass(frozen=True)
class Admission:
    """How a charge may be recorded: against which grant, and by which approved request.

    If it ``waits``, only a request may be recorded; ``request`` is then the one that is there
    already.
    """

    grant: int | None = None
    request: int | None = None
    waits: bool = False

    @property
    def body(self) -> dict[str, int]:
        """What the entry of the charge says about it."""
        stated = {"grant": self.grant, "request": self.request}
        return {name: number for name, number in stated.items() if number is not None}


@dataclass(frozen=True)
class Team:
    """Who may spend what on an account, after some of its entries.

    Parameters
    ----------
    name : str
        Of the data set.
    terms : AccountTerms
    administrators : tuple of str
        Who may grant, approve, freeze and close.
    until : date, optional
        Last day on which the account can be charged, in UTC.
    state : {"open", "frozen", "closed"}
    limit : float, optional
        Epsilon of a single charge above which a second person must approve it.
    grants : tuple of Grant
    requests : tuple of Request
    payments : Grown of (str, Receipt)
        Who paid what, with a grant or before there were any.
    renews : mapping, optional
        Data set and last hash of the account that this one renews.
    latest : date
        Latest day of any entry. A clock that shows an earlier one was set back.
    """

    name: str
    terms: AccountTerms
    administrators: tuple[str, ...] = ()
    until: date | None = None
    state: str = OPEN
    limit: float | None = None
    grants: tuple[Grant, ...] = ()
    requests: tuple[Request, ...] = ()
    payments: Grown[tuple[str, Receipt]] = Grown()
    renews: Mapping[str, str] | None = None
    latest: date = date.min

    def after(self, entry: Entry, receipt: Receipt | None = None) -> "Team":
        """The team after one more entry; a `LedgerError` says which rule it breaks.

        Whether a charge was admissible is not decided here: see `admission`.
        """
        through = entry.body.get("through")
        if through is not None and entry.kind != "open" and through not in self.administrators:
            raise LedgerError(
                f"{through!r} recorded an entry of {self.name!r} for {_author(entry)!r}, and only "
                f"administrators ({self._named}) may act for others. {_NOTHING}"
            )
        team = replace(self, latest=max(self.latest, day_of_entry(entry)))
        event = _EVENTS.get(entry.kind)
        if event is not None:
            return event(team, entry)
        return team if receipt is None else team._paid(entry, receipt)

    def admission(self, receipt: Receipt, user: str, day: date) -> Admission:
        """How a charge may be recorded; errors say why it may not."""
        day = max(day, self.latest)
        self._refuse_unless_open(receipt.label, day)
        grant = self._grant_for(receipt, user, day)
        own = None if grant is None else grant.number
        # A charge of exactly the limit passes: its epsilon is stated after the reserve of delta.
        if self.limit is None or self.epsilon_alone(receipt) <= self.limit * (1 + RESERVED_SHARE):
            return Admission(own)
        asked = [
            request
            for request in self.requests
            if request.is_for(receipt, user) and request.state in (WAITING, APPROVED)
        ]
        approved = [request.number for request in asked if request.state == APPROVED]
        if approved:
            return Admission(own, approved[0])
        return Admission(own, asked[0].number if asked else None, waits=True)

    def grant_of(self, person: str) -> Grant | None:
        """Sub-account that a person holds, also if it was revoked."""
        return next((grant for grant in reversed(self.grants) if grant.holder == person), None)

    def request(self, number: int) -> Request:
        """The request of a number."""
        for request in self.requests:
            if request.number == number:
                return request
        waiting = [str(request.number) for request in self.requests if request.state == WAITING]
        raise LedgerError(
            f"the account {self.name!r} has no request {number}. Nothing was changed. Waiting: "
            f"{', '.join(waiting) or 'none'}."
        )

    def epsilon_alone(self, charge: Receipt | Request) -> float:
        """Epsilon of one charge by itself, which the limit is about."""
        zero = Spent(0.0, self.terms.budget.delta)
        alone = Receipt(1, charge.label, charge.cost, self.terms.relation, zero, charge.unit)
        return Tally.of(self.terms, (alone,)).epsilon

    @property
    def committed(self) -> float:
        """Sum of the epsilons of all ceilings that can be spent."""
        return sum(grant.budget.epsilon for grant in self.grants if grant.state == OPEN)

    @property
    def _named(self) -> str:
        return ", ".join(self.administrators) or "none"

    def _refuse_unless_open(self, label: str, day: date) -> None:
        problem = None
        if self.state == CLOSED:
            problem = "is closed for ever. Use the account that renews it, if there is one"
        elif self.state == FROZEN:
            problem = f"is frozen. Ask an administrator ({self._named}) for `hushfit ledger thaw`"
        elif self.until is not None and day > self.until:
            problem = f"expired after {self.until}. Renew it with `hushfit ledger renew`"
        if problem is not None:
            raise LedgerError(
                f"{label} cannot be paid: the account {self.name!r} {problem}. {_NOTHING}"
            )

    def _grant_for(self, receipt: Receipt, user: str, day: date) -> Grant | None:
        """The grant that pays; None where the account has no grants and everybody may pay."""
        if not self.grants:
            return None
        grant = self.grant_of(user)
        problem = f"{user!r} has no grant" if grant is None else grant.problem(day)
        if grant is None or problem is not None:
            raise LedgerError(
                f"{receipt.label} cannot be paid from {self.name!r}: {problem}. {_NOTHING} Ask an "
                f"administrator ({self._named}) for one: hushfit ledger grant {self.name} --to "
                f"{user} --epsilon E"
            )
        after = grant.tally.after(receipt)
        if not after.fits:
            ask = f"ask an administrator ({self._named}) for a higher ceiling"
            raise BudgetExceeded(
                f"{receipt.label} would bring {user!r} to epsilon={after.epsilon:.4g}, over the "
                f"ceiling of {grant.budget.epsilon:g} that was granted on {self.name!r} (spent so "
                f"far: {grant.tally.epsilon:.3g}). Nothing was spent or released. "
                f"{smaller_charge(grant.largest_fit, grant.budget, ask)}."
            )
        return grant

    def _paid(self, entry: Entry, receipt: Receipt) -> "Team":
        grant, request = entry.body.get("grant"), entry.body.get("request")
        grants = tuple(g.paid(receipt) if g.number == grant else g for g in self.grants)
        requests = tuple(
            replace(r, state=PAID) if r.number == request else r for r in self.requests
        )
        payments = self.payments.after(((_author(entry), receipt),))
        return replace(self, grants=grants, requests=requests, payments=payments)

    def _opened(self, entry: Entry) -> "Team":
        people = (_author(entry), entry.body.get("through"))
        return replace(
            self,
            administrators=tuple(dict.fromkeys(name for name in people if name)),
            until=day_of(entry.body.get("until")),
            renews=entry.body.get("renews"),
        )

    def _granted(self, entry: Entry) -> "Team":
        self._refuse_stranger(entry)
        person, budget = _person(entry, "grantee"), _budget(entry)
        self._refuse_above_total(budget)
        until, earlier = day_of(entry.body.get("until")), self.grant_of(person)
        ceiling = self._ceiling(budget)
        if earlier is None:
            first = Grant(entry.number, person, Tally.of(ceiling), until)
            return self._with(self._in_hands_of(person, first))
        again = replace(earlier.under(ceiling), until=until, state=OPEN)
        return self._with(_covering(again, self.name))

    def _revoked(self, entry: Entry) -> "Team":
        return self._changed_grant(entry, CLOSED)

    def _frozen(self, entry: Entry) -> "Team":
        if entry.body.get("grantee") is not None:
            return self._changed_grant(entry, FROZEN)
        return self._changed_state(entry, FROZEN)

    def _thawed(self, entry: Entry) -> "Team":
        if entry.body.get("grantee") is not None:
            return self._changed_grant(entry, OPEN)
        return self._changed_state(entry, OPEN)

    def _closed(self, entry: Entry) -> "Team":
        return self._changed_state(entry, CLOSED)

    def _changed_state(self, entry: Entry, state: str) -> "Team":
        self._refuse_stranger(entry)
        return replace(self, state=state)

    def _changed_grant(self, entry: Entry, state: str) -> "Team":
        self._refuse_stranger(entry)
        return self._with(replace(self._held(_person(entry, "grantee")), state=state))

    def _transferred(self, entry: Entry) -> "Team":
        self._refuse_stranger(entry)
        giver, taker = self._held(_person(entry, "from")), _person(entry, "to")
        if taker == giver.holder:
            raise LedgerError(
                f"{taker!r} would transfer to themselves. Nothing was changed. Name another person."
            )
        amount = entry.body.get("epsilon")
        if amount is None:
            return self._handed_over(giver, taker)
        part = Budget(amount, giver.budget.delta).epsilon
        if not part < giver.budget.epsilon:
            raise LedgerError(
                f"epsilon={part:g} is not less than the ceiling of {giver.holder!r}, "
                f"{giver.budget.epsilon:g}. Nothing was changed. Transfer less, or the whole grant "
                "without an epsilon."
            )
        receiver = self._held(taker)
        smaller = self._ceiling(replace(giver.budget, epsilon=giver.budget.epsilon - part))
        raised = replace(receiver.budget, epsilon=receiver.budget.epsilon + part)
        changed = self._with(_covering(giver.under(smaller), self.name))
        self._refuse_above_total(raised)
        return changed._with(receiver.under(self._ceiling(raised)))

    def _handed_over(self, grant: Grant, taker: str) -> "Team":
        if self.grant_of(taker) is not None:
            raise LedgerError(
                f"{taker!r} has a grant on {self.name!r} already. Nothing was changed. Transfer "
                "part of a ceiling with --epsilon."
            )
        return self._with(self._in_hands_of(taker, grant))

    def _in_hands_of(self, person: str, grant: Grant) -> Grant:
        """A grant of which a person becomes the holder.

        A ceiling is about all that a person sees, so it counts what the person paid before there
        were grants, and under a grant that others hold now.
        """
        paid = (receipt for payer, receipt in self.payments if payer == person)
        return _covering(grant.held_by(person, paid), self.name)

    def _limited(self, entry: Entry) -> "Team":
        self._refuse_stranger(entry)
        stated = entry.body.get("epsilon")
        return replace(self, limit=None if stated is None else Budget(stated, 0.5).epsilon)

    def _appointed(self, entry: Entry) -> "Team":
        self._refuse_stranger(entry)
        people = (*self.administrators, _person(entry, "person"))
        return replace(self, administrators=tuple(dict.fromkeys(people)))

    def _dismissed(self, entry: Entry) -> "Team":
        self._refuse_stranger(entry)
        person = _person(entry, "person")
        rest = tuple(name for name in self.administrators if name != person)
        if not rest or rest == self.administrators:
            problem = "is the last administrator" if not rest else "is no administrator"
            raise LedgerError(
                f"{person!r} {problem} of {self.name!r} (administrators: {self._named}). Nothing "
                "was changed. Appoint another one first, or check the name."
            )
        return replace(self, administrators=rest)

    def _requested(self, entry: Entry) -> "Team":
        body = entry.body
        request = Request(
            entry.number,
            _author(entry),
            str(body["label"]),
            cost_from_dict(body["cost"]),
            PrivacyUnit.from_dict(body["unit"]),
            str(body["at"]),
        )
        return replace(self, requests=(*self.requests, request))

    def _approved(self, entry: Entry) -> "Team":
        return self._decided(entry, APPROVED)

    def _declined(self, entry: Entry) -> "Team":
        return self._decided(entry, DECLINED)

    def _decided(self, entry: Entry, state: str) -> "Team":
        self._refuse_stranger(entry)
        number = _check.count(entry.body.get("request"), "request")
        request, author = self.request(number), _author(entry)
        if request.user == author:
            raise LedgerError(
                f"request {number} of {self.name!r} was made by {author!r} and needs a second "
                f"person. Nothing was changed. Ask another administrator ({self._named})."
            )
        if request.state != WAITING:
            raise LedgerError(
                f"request {number} of {self.name!r} does not wait: it is {request.state}. Nothing "
                "was changed."
            )
        decided = replace(request, state=state, decided_by=author)
        rest = tuple(decided if r.number == number else r for r in self.requests)
        return replace(self, requests=rest)

    def _refuse_stranger(self, entry: Entry) -> None:
        author = _author(entry)
        if author not in self.administrators:
            raise LedgerError(
                f"{author!r} is no administrator of {self.name!r}. Nothing was changed. Ask one of "
                f"them: {self._named}."
            )
        if self.state == CLOSED and entry.kind not in ("appoint", "dismiss"):
            raise LedgerError(
                f"the account {self.name!r} is closed for ever. Nothing was changed. Renew it with "
                "`hushfit ledger renew`."
            )

    def _refuse_above_total(self, budget: Budget) -> None:
        total = self.terms.budget
        if budget.delta > total.delta or budget.epsilon > total.epsilon:
            raise LedgerError(
                f"a ceiling of epsilon={budget.epsilon:g}, delta={budget.delta:g} is above the "
                f"total of {self.name!r}, epsilon={total.epsilon:g}, delta={total.delta:g}, and "
                "could never be reached. Nothing was changed. Grant at most the total."
            )

    def _held(self, person: str) -> Grant:
        grant = self.grant_of(person)
        if grant is None or grant.state == CLOSED:
            held = [grant.holder for grant in self.grants if grant.state != CLOSED]
            raise LedgerError(
                f"{person!r} has no grant on {self.name!r}. Nothing was changed. Grants are held "
                f"by: {', '.join(held) or 'nobody'}. Give one with `hushfit ledger grant`."
            )
        return grant

    def _ceiling(self, budget: Budget) -> Ceiling:
        return Ceiling(budget, self.terms.relation, self.terms.adaptive, self.terms.unit)

    def _with(self, grant: Grant) -> "Team":
        """The same with a grant in place of the one of its number, or beside the others."""
        if all(other.number != grant.number for other in self.grants):
            return replace(self, grants=(*self.grants, grant))
        found = tuple(grant if other.number == grant.number else other for other in self.grants)
        return replace(self, grants=found)


_EVENTS: Final[Mapping[str, Callable[[Team, Entry], Team]]] = {
    "open": Team._opened,
    "grant": Team._granted,
    "revoke": Team._revoked,
    "transfer": Team._transferred,
    "freeze": Team._frozen,
    "thaw": Team._thawed,
    "close": Team._closed,
    "limit": Team._limited,
    "appoint": Team._appointed,
    "dismiss": Team._dismissed,
    "request": Team._requested,
    "approve": Team._approved,
    "decline": Team._declined,
}


def day_of_entry(entry: Entry) -> date:
    """The day on which an entry was recorded, in UTC."""
    day = day_of(str(entry.body.get("at", "1970-01-01"))[:10], "at")
    assert day is not None
    return day


def read_team(team: Team, entry: Entry, receipt: Receipt | None = None) -> Team:
    """`Team.after` for entries on disk, which may have any contents."""
    try:
        return team.after(entry, receipt)
    except (KeyError, TypeError, ValueError, HushfitError) as error:
        raise LedgerError(
            f"the ledger of {team.name!r} does not verify: entry {entry.number} ({entry.kind}) "
            f"breaks its rules: {error}"
        ) from error


def team_summary(team: Team) -> dict[str, Any]:
    """A team as plain values, for people and programs."""
    return {
        "dataset": team.name,
        "state": team.state,
        "administrators": list(team.administrators),
        "until": None if team.until is None else team.until.isoformat(),
        "renews": None if team.renews is None else dict(team.renews),
        "limit": team.limit,
        "budget": team.terms.budget.epsilon,
        "committed": team.committed,
        "grants": [
            {
                "holder": grant.holder,
                "epsilon": grant.budget.epsilon,
                "delta": grant.budget.delta,
                "until": None if grant.until is None else grant.until.isoformat(),
                "state": grant.state,
                "spent": grant.tally.epsilon,
                "payments": len(grant.receipts),
            }
            for grant in team.grants
        ],
        "requests": [
            {
                "request": request.number,
                "user": request.user,
                "label": request.label,
                "epsilon": team.epsilon_alone(request),
                "at": request.at,
                "state": request.state,
                "decided_by": request.decided_by,
            }
            for request in team.requests
        ],
    }


def _author(entry: Entry) -> str:
    return str(entry.body.get("user", ""))


def _person(entry: Entry, name: str) -> str:
    return checked_person(entry.body.get(name), name)


def _budget(entry: Entry) -> Budget:
    epsilon: Any = entry.body.get("epsilon")
    return Budget(_check.from_json_number(epsilon, "epsilon"), entry.body["delta"])


def _covering(grant: Grant, name: str) -> Grant:
    """A grant whose ceiling covers what was spent under it, or else a refusal."""
    if grant.receipts and not grant.tally.fits:
        raise LedgerError(
            f"{grant.holder!r} has spent epsilon={grant.tally.epsilon:.4g} on {name!r}, more than "
            f"the new ceiling of {grant.budget.epsilon:g}. Nothing was changed. Give a higher "
            "ceiling, or freeze or revoke the grant if there is one."
        )
    return grant
