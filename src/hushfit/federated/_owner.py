"""A data owner with its own rows, ledger and journal. It pays before it sends anything, and never
sends two different messages in one round.

It does not depend on the transport. The caller of `Owner.turn` may be broken or hostile: a round is
answered once, a repeated request gets the recorded answer, and any other request is refused. Proof:
docs/proofs/federated.md.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument, LedgerError, OldJournal
from hushfit.federated._journal import Journal, Standing, digest_of
from hushfit.federated._protocol import Algorithm, Conversation, Seat
from hushfit.privacy import Cost, Guarantee, Ledger, Receipt, Relation
from hushfit.privacy.ledger import DiskAccount
from hushfit.release import Contract, Payer, Randomness, Released, Terms
from hushfit.unit import ROW, PrivacyUnit

_LONGEST_NAME = 100  # it becomes part of file names


@dataclass(frozen=True, eq=False)
class Run:
    """Name and algorithm of a run; public, the same for all owners.

    Parameters
    ----------
    name : str
        Of the run: at most 100 letters, digits, dots and dashes. A name is used once.
    algorithm : Algorithm
    """

    name: str
    algorithm: Algorithm

    def __post_init__(self) -> None:
        plain = all(c.isascii() and (c.isalnum() or c in "-._") for c in self.name)
        if not plain or not 1 <= len(self.name) <= _LONGEST_NAME or self.name.startswith("."):
            raise InvalidArgument(
                f"{self.name[:_LONGEST_NAME]!r} does not name a run. Use letters, digits, dots and "
                f"dashes, at most {_LONGEST_NAME}."
            )

    @property
    def label(self) -> str:
        """Prefix of its entry in a ledger."""
        return f"federated run {self.name}"

    def paid_as(self, token: str) -> str:
        """Its entry in a ledger if the journal with this token pays."""
        return f"{self.label} (journal {token})"

    def is_paid_by(self, receipt: Receipt) -> bool:
        """Whether a payment is for this run, whichever journal made it. Names of runs have no
        spaces.
        """
        return receipt.label.startswith(f"{self.label} ")


@dataclass(eq=False)
class Owner:
    """One owner of rows in a run.

    Parameters
    ----------
    source : DataSource
        Its rows. No one else sees them.
    seat : Seat
        Public facts about the run and the other owners.
    run : Run
    ledger : Ledger or None
        Charged once for the whole run, before the first message.
    folder : path or None
        Where the journal is stored; None keeps it in memory only.
    random_state : int or None
        None is secure; an int is for tests and simulations.
    """

    source: DataSource
    seat: Seat
    run: Run
    ledger: Ledger | None = None
    folder: str | os.PathLike[str] | None = None
    random_state: Any = None
    weights: Vector | None = field(default=None, init=False)
    _paid: Receipt | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        problem, unit = self.seat.problem, self.source.privacy_unit
        if unit != problem.privacy_unit:
            raise InvalidArgument(
                f"{self.seat.name} has rows by which {unit} is protected, but the run protects "
                f"{problem.privacy_unit}. Nothing was spent. Give all owners the same unit."
            )
        if (
            self.source.n_units != problem.n_units
            or self.seat.sizes[self.seat.name] != self.source.n_units
        ):
            raise InvalidArgument(
                f"{self.seat.name} has {self.source.n_units} {unit.plural}, but the run states "
                f"{self.seat.sizes[self.seat.name]}. The number of {unit.plural} is public: state "
                "it correctly."
            )
        self._quote = self.run.algorithm.plan(self.seat).quote(self.seat.problem, self.seat.budget)
        terms = {"cost": self._quote.cost.to_dict(), "relation": problem.relation.value}
        if unit.is_person:  # journals of rows stay as they were
            terms["unit"] = unit.to_dict()
        self._journal = Journal.open(self.run.name, self.folder, terms)
        self._broken = False
        try:
            self._contract = self._signed()
            self._start()
        except BaseException:
            self._journal.close()
            raise

    @property
    def name(self) -> str:
        return self.seat.name

    @property
    def turns_taken(self) -> int:
        """Rounds answered so far."""
        return len(self._journal.turns)

    @property
    def standing(self) -> Standing:
        """Position of its journal."""
        return self._journal.standing

    @property
    def receipt(self) -> int | None:
        """Number of its payment in the ledger; None without one."""
        return self._journal.receipt

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee for this owner's rows, whatever the other owners do with what they receive."""
        return self._contract.guarantee

    def _signed(self) -> Contract:
        """State the guarantee, pay once for the whole run, and open the rows; recorded releases are
        replayed.
        """
        payer = None if self.ledger is None else _PaidOnce(self, self.ledger)
        return Contract.signed(
            self.source,
            self._quote,
            self.seat.problem.relation,
            _terms(self.seat, self.run, payer, self.random_state),
            replay=self._journal.releases,
            keep=self._record_release,
        )

    def _pay(self, ledger: Ledger) -> Receipt:
        """Pay once for a run, however often its process is started."""
        journal, paid = (
            self._journal,
            [receipt for receipt in ledger.entries if self.run.is_paid_by(receipt)],
        )
        if not paid:
            label = self.run.paid_as(journal.note_paying())
            problem = self.seat.problem
            paid = [ledger.charge(self._quote.cost, label, problem.relation, problem.privacy_unit)]
            journal.note_receipt(paid[0].number)
        # Another journal may have released what it paid for: only a payment with this journal's
        # token is its own.
        own = [
            receipt
            for receipt in paid
            if journal.token and receipt.label == self.run.paid_as(journal.token)
        ]
        if own and journal.receipt is None and not journal.releases:
            journal.note_receipt(
                own[0].number
            )  # it crashed between the payment and its record, before the first release
        if not own or journal.receipt != own[0].number:
            raise LedgerError(
                f"The ledger has paid for run {self.run.name}, but its journal is gone: its "
                "releases may be known to others, and drawing them again would not be paid for. "
                "Restore the journal, or start a run with a new name."
            )
        settings = (self._quote.cost, self.seat.problem.privacy_unit)
        if [(receipt.cost, receipt.unit) for receipt in own] != [settings]:
            raise LedgerError(
                f"The ledger has paid for run {self.run.name} with other settings. Start a run "
                "with a new name."
            )
        self._paid = own[0]
        self._refuse_old_journal()
        return own[0]

    def _refuse_old_journal(self) -> None:
        """Refuse a copy of a journal: what was released after it was made, or by another copy,
        would be drawn again.
        """
        account, here = self._account(), self._journal.releases
        if account is None or self._paid is None:
            return
        recorded, digest = account.releases_recorded(self._paid)
        if len(here) < recorded:
            raise OldJournal(
                f"The journal of run {self.run.name} holds {len(here)} releases, but the ledger "
                f"has recorded {recorded}: it is an old copy. Restore the latest one, or start a "
                "run with a new name."
            )
        if recorded and digest_of(here[:recorded]) != digest:
            raise OldJournal(
                f"The journal of run {self.run.name} holds other releases than the ledger has "
                "recorded: another copy of it has released them. Restore that one, or start a run "
                "with a new name."
            )

    def _account(self) -> DiskAccount | None:
        """The account that counts the releases of a payment, if it is on disk; one in memory does
        not outlive the process.
        """
        account = None if self.ledger is None else self.ledger.account
        return account if isinstance(account, DiskAccount) else None

    def _record_release(self, released: Released) -> None:
        """Record a release in the journal first, then in the ledger: after a crash in between, the
        journal does not look old.
        """
        self._journal.note_release(released)
        account = self._account()
        if account is not None and self._paid is not None:
            releases = self._journal.releases
            account.record_releases(self._paid, len(releases), digest_of(releases))

    def _start(self) -> None:
        """Replay the journal."""
        past = list(self._journal.turns)
        self._conversation: Conversation = self.run.algorithm.converse(
            self.seat, self._contract.curator
        )
        for place, turn in enumerate(past):
            sent = self._advance(turn.received, first=place == 0)
            if not _equal(sent, turn.sent):
                raise InvalidArgument(
                    f"The journal of run {self.run.name} does not fit its settings. Start a new "
                    "run."
                )

    def turn(self, number: int, heard: Mapping[str, Vector]) -> Vector | None:
        """The message of this owner in a round, given those of its neighbours in the round before.

        Parameters
        ----------
        number : int
            From 0; each once, in order. A number that was answered gets the same answer again.
        heard : mapping from name to array
            Empty in round 0. Names that are no neighbours are ignored.

        Returns
        -------
        array or None
            None if nothing is sent. After the last round there is one more turn, which sends
            nothing and sets ``weights``.
        """
        taken = self.turns_taken
        if 0 <= number < taken:
            return self._journal.turns[number].sent
        if number != taken or self.weights is not None:
            raise InvalidArgument(
                f"{self.name} was asked for round {number} but is at round {taken}. Ask in order."
            )
        if self._broken:
            raise InvalidArgument(
                f"{self.name} failed in round {number}. Start its process again: it will resume "
                "from its journal."
            )
        heard = {
            name: np.array(heard[name], dtype=np.float64)
            for name in self.seat.neighbours
            if name in heard
        }
        self._broken = (
            True  # until the turn is in the journal: it cannot be repeated from the middle
        )
        sent = self._advance(heard, first=number == 0)
        self._journal.note_turn(heard, sent)
        self._broken = False
        return sent

    def close(self) -> None:
        """Close the journal, so that another process may resume the run."""
        self._conversation.close()
        self._journal.close()

    def _advance(self, received: Mapping[str, Vector], first: bool) -> Vector | None:
        try:
            return next(self._conversation) if first else self._conversation.send(received)
        except StopIteration as end:
            self.weights = end.value
            return None


def _equal(a: Vector | None, b: Vector | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


@dataclass(frozen=True, eq=False)
class _PaidOnce:
    """Payer of an owner: its ledger, once for a run, however often its process starts."""

    owner: Owner
    ledger: Ledger

    def charge(
        self, cost: Cost, label: str, relation: Relation | str, unit: PrivacyUnit = ROW
    ) -> Receipt:
        return self.owner._pay(self.ledger)


def _terms(seat: Seat, run: Run, payer: Payer | None, random_state: Any) -> Terms:
    others = ", ".join(name for name in seat.network.names if name != seat.name)
    units = seat.problem.privacy_unit.plural
    return Terms(
        seat.budget,
        run.label,
        Randomness.of(random_state),
        payer,
        public=(
            f"the number of {units} of every owner, {dict(seat.sizes)}",
            "the network, the settings of the algorithm, and who is silent when",
        ),
        notes=(
            f"It holds for the rows of {seat.name} against everybody who sees every message, and "
            f"against {others} acting together.",
            "A person is taken to be in one owner's table; where one is in several, their epsilons "
            "and deltas add up.",
        ),
        warn=False,  # whoever starts the owners warns once
    )
