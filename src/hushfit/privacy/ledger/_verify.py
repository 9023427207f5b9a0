"""Verification of a ledger on disk: hashes, seals, totals, and copies stored elsewhere.

Nothing inside a database can show that all of it was reset to an earlier state. Something stored
elsewhere can: an export, the hash of an entry, or the receipt in a model file. Each is an `Anchor`,
and the ledger must still have it.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hushfit.errors import HushfitError, InvalidArgument
from hushfit.privacy.ledger._chain import Entry
from hushfit.privacy.ledger._disk_ledger import account_of, opened, receipts_of
from hushfit.privacy.ledger._export import read_export
from hushfit.privacy.ledger._reserve import RESERVED_SHARE
from hushfit.privacy.ledger._tally import Receipt, Tally
from hushfit.privacy.ledger._team import Team, day_of_entry, read_team

# A recomputed total may differ from the recorded one by rounding between machines, and by the
# reserve, which older ledgers lack.
_ROUNDING = RESERVED_SHARE

Chains = Mapping[str, tuple[Entry, ...]]


@dataclass(frozen=True)
class Anchor:
    """An entry of which a copy is stored elsewhere.

    Parameters
    ----------
    hash : str
        Hash of the entry; it covers all entries before.
    dataset : str, optional
        Account that it belongs to, if known.
    number : int, optional
        Its position there.
    """

    hash: str
    dataset: str | None = None
    number: int | None = None

    def is_in(self, chains: Chains) -> bool:
        """Whether the ledger still has the entry."""
        return any(
            entry.hash == self.hash and self.number in (None, entry.number)
            for dataset, chain in chains.items()
            if self.dataset in (None, dataset)
            for entry in chain
        )

    def __str__(self) -> str:
        number = "an entry" if self.number is None else f"entry {self.number}"
        dataset = "" if self.dataset is None else f" of {self.dataset!r}"
        return f"{number}{dataset} with the hash {self.hash[:12]}..."


@dataclass(frozen=True)
class Verdict:
    """Result of verifying a ledger.

    Parameters
    ----------
    chains : mapping of str to tuple of Entry
        Entries of each data set.
    problems : mapping of str to list of str
        Problems of each data set; empty lists if there are none.
    lost : tuple of Anchor
        Anchors that the ledger no longer has.
    unsealed : tuple of str
        Data sets whose seals could not be checked without the key.
    """

    chains: Chains
    problems: Mapping[str, list[str]]
    lost: tuple[Anchor, ...]
    unsealed: tuple[str, ...]

    def sentences(self) -> list[str]:
        """All problems, as sentences."""
        found = [f"{name}: {text}" for name, texts in self.problems.items() for text in texts]
        if not self.chains:
            found.append(
                "it has no data set left, though every ledger is made with one: accounts were "
                "removed"
            )
        return found + _lost_sentences(self.lost)


def _lost_sentences(lost: tuple[Anchor, ...]) -> list[str]:
    """One sentence for all entries that are not in the ledger: the first one of each data set, and
    the number of the others.
    """
    if not lost:
        return []
    firsts: dict[str | None, list[Anchor]] = {}
    for anchor in lost:
        firsts.setdefault(anchor.dataset, []).append(anchor)
    named = "; ".join(
        str(first) + (f" (and {len(others)} more)" if others else "")
        for first, *others in firsts.values()
    )
    # Every account keeps the entry that opened it: a copy without one in common is of another.
    opening = any(anchor.number == 0 for anchor in lost)
    other = ". Or the copy is of another ledger: not even the opening entry is here"
    verb = "is" if len(lost) == 1 else "are"
    return [
        f"{named} {verb} gone: the ledger went back to an earlier state, or was rewritten"
        + (other if opening else "")
    ]


def verify(location: str | os.PathLike[str], anchors: Iterable[Anchor] = ()) -> Verdict:
    """Check every hash and seal of a ledger on disk, recompute every total, and look for anchors.

    Parameters
    ----------
    location : path or str
        SQLite file or ``postgresql://`` address.
    anchors : iterable of Anchor
        Entries that it must still have.

    Returns
    -------
    Verdict

    Raises
    ------
    LedgerError
        If the ledger cannot be read at all.
    """
    place = os.fspath(location)
    with opened(place) as book:
        read = {dataset: book.read(dataset) for dataset in book.datasets()}
        has_key = book.key is not None
    chains = {name: tuple(chain) for name, (chain, _) in read.items()}
    # Composing takes time: do it after the transaction.
    problems = {
        name: found or list(_wrong_totals(place, name, chains[name]))
        for name, (_, found) in read.items()
    }
    lost = tuple(anchor for anchor in anchors if not anchor.is_in(chains))
    unsealed = (
        ()
        if has_key
        else tuple(name for name, chain in chains.items() if chain and "key" in chain[0].body)
    )
    return Verdict(chains, problems, lost, unsealed)


def verify_ledger(location: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Problems of each data set of a ledger on disk; empty lists if there are none.

    Parameters
    ----------
    location : path or str
        SQLite file or ``postgresql://`` address.

    Returns
    -------
    dict of str to list of str
    """
    return dict(verify(location).problems)


def head_anchor(text: str) -> Anchor:
    """Anchor from the hash of an entry, as `hushfit ledger verify` prints it."""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise InvalidArgument(
            f"{text!r} is not the hash of an entry. Give the 64 hexadecimal digits that `ledger "
            "verify` printed."
        )
    return Anchor(text)


def export_anchors(
    path: str | os.PathLike[str], signer: str | os.PathLike[str] | None = None
) -> list[Anchor]:
    """Anchors of all entries in a file written by `hushfit ledger export`.

    Parameters
    ----------
    path : path
    signer : path, optional
        Public key with which the export must have been signed.

    Returns
    -------
    list of Anchor
    """
    export = read_export(path)
    if signer is not None:
        export.refuse_unless_signed(signer)
    return [
        Anchor(entry.hash, name, entry.number)
        for name, chain in export.chains.items()
        for entry in chain
    ]


def verify_export(
    path: str | os.PathLike[str], signer: str | os.PathLike[str] | None = None
) -> Verdict:
    """Check every hash, rule and total of an export, without the ledger.

    Seals need the ledger's key and are not checked.

    Parameters
    ----------
    path : path
    signer : path, optional
        Public key with which the export must have been signed.

    Returns
    -------
    Verdict
    """
    export = read_export(path)
    if signer is not None:
        export.refuse_unless_signed(signer)
    problems = {
        name: found or list(_wrong_totals(os.fspath(path), name, export.chains[name]))
        for name, found in export.hash_problems().items()
    }
    sealed = tuple(name for name, chain in export.chains.items() if "key" in chain[0].body)
    return Verdict(export.chains, problems, (), sealed)


def _wrong_totals(place: str, dataset: str, chain: tuple[Entry, ...]) -> Iterator[str]:
    """Problems found by composing the recorded costs again, payment by payment."""
    try:
        account = account_of(place, dataset, chain)
        receipts = receipts_of(chain, account)
    except HushfitError as error:
        yield str(error)
        return
    tally, team, paid = Tally.of(account), Team(dataset, account), iter(receipts)
    for entry in chain:
        receipt = next(paid) if entry.kind == "charge" else None
        if receipt is not None:
            yield from _charge_problems(tally, receipt, account.budget.epsilon)
            yield from _team_problems(team, entry, receipt)
            tally = tally.after(receipt)
        try:
            team = read_team(team, entry, receipt)
        except HushfitError as error:
            yield str(error)
            return


def _charge_problems(before: Tally, receipt: Receipt, budget: float) -> Iterator[str]:
    number = before.count + 1
    if receipt.number != number:
        yield f"payment {number} is numbered {receipt.number}"
    if problem := before.unit_problem(receipt.unit):
        yield f"payment {number} {problem}"
    after, stated = before.after(receipt), receipt.total.epsilon
    if not after.total.within(stated * (1 + _ROUNDING)):
        yield (
            f"after payment {number} the record says epsilon={stated:g}, its costs give "
            f"{after.epsilon:g}"
        )
    if not after.total.within(budget * (1 + _ROUNDING)):
        yield (
            f"payment {number} brought the total to epsilon={after.epsilon:g}, over the budget "
            f"of {budget:g}"
        )


def _team_problems(team: Team, entry: Entry, receipt: Receipt) -> Iterator[str]:
    """Problems of a payment with grants and approvals."""
    try:
        admission = team.admission(receipt, str(entry.body.get("user", "")), day_of_entry(entry))
    except HushfitError as error:
        yield f"payment {receipt.number} was not allowed: {error}"
        return
    stated = {name: entry.body[name] for name in ("grant", "request") if name in entry.body}
    if admission.waits:
        yield f"payment {receipt.number} was made without the approval of a second person"
    elif admission.body != stated:
        yield (f"payment {receipt.number} should count against {admission.body}, and says {stated}")
