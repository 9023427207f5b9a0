"""A data owner: rows, ledger and journal of its own; it pays before it speaks, and never says
anything twice in two ways.

It knows nothing of how messages travel. Whatever calls `Owner.turn` may be broken or hostile: a
round is answered once, a repeated question gets the recorded answer, and any other question is
refused. Proof: docs/proofs/federated.md.
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

_LONGEST_NAME = 100  # it becomes part of file names


@dataclass(frozen=True, eq=False)
class Run:
    """What the owners are about to do together; public, the same for all.

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
        """How its line in a ledger begins."""
        return f"federated run {self.name}"

    def paid_as(self, token: str) -> str:
        """Its line in a ledger, when the journal with this token pays."""
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
        Its rows. Nobody else sees them.
    seat : Seat
        Its place among the others; public.
    run : Run
    ledger : Ledger or None
        Charged once for the whole run, before the first word.
    folder : path or None
        Where the journal is kept; None forgets it with the process.
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
        if (
            self.source.n_rows != self.seat.problem.n_rows
            or self.seat.sizes[self.seat.name] != self.source.n_rows
        ):
            raise InvalidArgument(
                f"{self.seat.name} has {self.source.n_rows} rows, but the run counts on "
                f"{self.seat.sizes[self.seat.name]}. The number "
                "of rows is public: state it correctly."
            )
        self._quote = self.run.algorithm.plan(self.seat).quote(self.seat.problem, self.seat.budget)
        terms = {"cost": self._quote.cost.to_dict(), "relation": self.seat.problem.relation.value}
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
        """How far its journal has come."""
        return self._journal.standing

    @property
    def receipt(self) -> int | None:
        """Number of its payment in the ledger; None without one."""
        return self._journal.receipt

    @property
    def guarantee(self) -> Guarantee:
        """What this owner's rows are promised, whatever the other owners do with what they hear."""
        return self._contract.guarantee

    def _signed(self) -> Contract:
        """Promise, pay once for the whole run, and open the rows; released answers are replayed."""
        payer = None if self.ledger is None else _PaidOnce(self, self.ledger)
        return Contract.signed(
            self.source,
            self._quote,
            self.seat.problem.relation,
            _terms(self.seat, self.run, payer, self.random_state),
            replay=self._journal.releases,
            keep=self._keep,
        )

    def _pay(self, ledger: Ledger) -> Receipt:
        """Once for a run, however often its process is started."""
        journal, paid = (
            self._journal,
            [receipt for receipt in ledger.entries if self.run.is_paid_by(receipt)],
        )
        if not paid:
            label = self.run.paid_as(journal.note_paying())
            paid = [ledger.charge(self._quote.cost, label, self.seat.problem.relation)]
            journal.note_receipt(paid[0].number)
        # What another journal paid for, that one may have released: only a payment that carries
        # this journal's token is its own.
        own = [
            receipt
            for receipt in paid
            if journal.token and receipt.label == self.run.paid_as(journal.token)
        ]
        if own and journal.receipt is None and not journal.releases:
            journal.note_receipt(
                own[0].number
            )  # it crashed between paying and saying so, before its first word
        if not own or journal.receipt != own[0].number:
            raise LedgerError(
                f"The ledger has paid for run {self.run.name}, but its journal is gone: what it "
                "released may be out, and drawing it "
                "again would not be paid for. Bring the journal back, or start a run with a new "
                "name."
            )
        if [receipt.cost for receipt in own] != [self._quote.cost]:
            raise LedgerError(
                f"The ledger has paid for run {self.run.name} with other settings. Start a run "
                "with a new name."
            )
        self._paid = own[0]
        self._refuse_old_journal()
        return own[0]

    def _refuse_old_journal(self) -> None:
        """What was released after an old copy of the journal was made, or by another copy, would
        be drawn again.
        """
        account, here = self._account(), self._journal.releases
        if account is None or self._paid is None:
            return
        recorded, digest = account.releases_recorded(self._paid)
        if len(here) < recorded:
            raise OldJournal(
                f"The journal of run {self.run.name} holds {len(here)} releases, but the ledger "
                "has recorded "
                f"{recorded}: it is an old copy. Bring the last one back, or start a run with a "
                "new name."
            )
        if recorded and digest_of(here[:recorded]) != digest:
            raise OldJournal(
                f"The journal of run {self.run.name} holds other releases than the ledger has "
                "recorded: another "
                "copy of it has spoken. Bring that one back, or start a run with a new name."
            )

    def _account(self) -> DiskAccount | None:
        """Where releases are counted beside the payment; an account in memory does not outlive
        the process.
        """
        account = None if self.ledger is None else self.ledger.account
        return account if isinstance(account, DiskAccount) else None

    def _keep(self, released: Released) -> None:
        """In the journal first, then in the ledger: a crash between the two leaves no journal
        that seems old.
        """
        self._journal.note_release(released)
        account = self._account()
        if account is not None and self._paid is not None:
            releases = self._journal.releases
            account.record_releases(self._paid, len(releases), digest_of(releases))

    def _start(self) -> None:
        """Hold the conversation again as far as the journal goes."""
        past = list(self._journal.turns)
        self._talk: Conversation = self.run.algorithm.converse(self.seat, self._contract.curator)
        for place, turn in enumerate(past):
            said = self._advance(turn.heard, first=place == 0)
            if not _same(said, turn.said):
                raise InvalidArgument(
                    f"The journal of run {self.run.name} does not fit its settings. Start a new "
                    "run."
                )

    def turn(self, number: int, heard: Mapping[str, Vector]) -> Vector | None:
        """What this owner says in a round, given what its neighbours said in the round before.

        Parameters
        ----------
        number : int
            From 0; each once, in order. A number that was answered gets the same answer again.
        heard : mapping from name to array
            Empty in round 0. Names that are no neighbours are ignored.

        Returns
        -------
        array or None
            None is silence. After the last round there is one more turn, which is silent and leaves
            ``weights``.
        """
        taken = self.turns_taken
        if 0 <= number < taken:
            return self._journal.turns[number].said
        if number != taken or self.weights is not None:
            raise InvalidArgument(
                f"{self.name} is asked for round {number} but is at round {taken}. Ask in order."
            )
        if self._broken:
            raise InvalidArgument(
                f"{self.name} failed in round {number}. Start its process again: it will go on "
                "from its journal."
            )
        heard = {
            name: np.array(heard[name], dtype=np.float64)
            for name in self.seat.neighbours
            if name in heard
        }
        self._broken = (
            True  # until the turn is in the journal: it cannot be taken again from the middle
        )
        said = self._advance(heard, first=number == 0)
        self._journal.note_turn(heard, said)
        self._broken = False
        return said

    def close(self) -> None:
        """Let go of the journal, so that another process may go on."""
        self._talk.close()
        self._journal.close()

    def _advance(self, heard: Mapping[str, Vector], first: bool) -> Vector | None:
        try:
            return next(self._talk) if first else self._talk.send(heard)
        except StopIteration as end:
            self.weights = end.value
            return None


def _same(a: Vector | None, b: Vector | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


@dataclass(frozen=True, eq=False)
class _PaidOnce:
    """Whoever pays for an owner: its ledger, once for a run, however often its process starts."""

    owner: Owner
    ledger: Ledger

    def charge(self, cost: Cost, label: str, relation: Relation | str) -> Receipt:
        return self.owner._pay(self.ledger)


def _terms(seat: Seat, run: Run, payer: Payer | None, random_state: Any) -> Terms:
    others = ", ".join(name for name in seat.network.names if name != seat.name)
    return Terms(
        seat.budget,
        run.label,
        Randomness.of(random_state),
        payer,
        public=(
            f"the number of rows of every owner, {dict(seat.sizes)}",
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
