"""Verification of a ledger on disk: hashes, seals, totals, and copies stored elsewhere.

Nothing inside a database can show that all of it was reset to an earlier state. Something stored
elsewhere can: an export, the hash of an entry, or the receipt in a model file. Each is an `Anchor`,
and the ledger must still have it.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hushfit.errors import HushfitError, InvalidArgument
from hushfit.privacy.ledger._chain import Entry
from hushfit.privacy.ledger._disk_ledger import account_of, opened, receipts_of
from hushfit.privacy.ledger._reserve import RESERVED_SHARE
from hushfit.privacy.ledger._tally import Tally

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
    # Composing takes time: do it after the transaction.
    problems = {
        name: found or list(_wrong_totals(place, name, chain))
        for name, (chain, found) in read.items()
    }
    chains = {name: chain for name, (chain, _) in read.items()}
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


def export_anchors(path: str | os.PathLike[str]) -> list[Anchor]:
    """Anchors of all entries in a file written by `hushfit ledger export`."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        entries = [json.loads(line) for line in lines if line.strip()]
        anchors = [
            Anchor(str(entry["hash"]), str(entry["dataset"]), int(entry["number"]))
            for entry in entries
        ]
    except OSError as error:
        raise InvalidArgument(
            f"the export {os.fspath(path)} cannot be read ({error.strerror}). Check the path."
        ) from None
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        raise InvalidArgument(
            f"{os.fspath(path)} is not what `hushfit ledger export` wrote. Check the path."
        ) from None
    if not anchors:
        raise InvalidArgument(
            f"the export {os.fspath(path)} has no entries. Give one with entries."
        )
    return anchors


def _wrong_totals(place: str, dataset: str, chain: tuple[Entry, ...]) -> Iterator[str]:
    """Problems found by composing the recorded costs again, payment by payment."""
    try:
        account = account_of(place, dataset, chain)
        receipts = receipts_of(chain, account)
    except HushfitError as error:
        yield str(error)
        return
    tally = Tally.of(account)
    for number, receipt in enumerate(receipts, start=1):
        if receipt.number != number:
            yield f"payment {number} is numbered {receipt.number}"
        if problem := tally.unit_problem(receipt.unit):
            yield f"payment {number} {problem}"
        tally = tally.after(receipt)
        stated, budget = receipt.total.epsilon, account.budget.epsilon
        if not tally.total.within(stated * (1 + _ROUNDING)):
            yield (
                f"after payment {number} the record says epsilon={stated:g}, its costs give "
                f"{tally.epsilon:g}"
            )
        if not tally.total.within(budget * (1 + _ROUNDING)):
            yield (
                f"payment {number} brought the total to epsilon={tally.epsilon:g}, over the budget "
                f"of {budget:g}"
            )
