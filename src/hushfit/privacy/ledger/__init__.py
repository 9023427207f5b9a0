"""The account of a data set, in memory and on disk: charged before a row is looked at.

Entry              One line of a ledger on disk
DiskAccount        The account of one data set in a database
ledger_datasets    Names of the data sets that a ledger on disk has accounts for
Account            Where a ledger keeps its entries
ClosedAccount      The history of an account that lives in another process
Decide             What an account calls, under its lock, with its entries so far
Ledger             An append-only account of the privacy spent on one data set
Receipt            Proof of payment: one line of a ledger
refuse_if_changed  A lock lets its own thread in again
total_epsilon      What entries come to by the rule of an account, with the reserve for discrete
                   noise kept back
KEY_VARIABLE       Environment variable that names the file with the ledger's key
Mount              A place where a file system begins, as ``/proc/self/mountinfo`` lists it
redacted           A command line without the logins of database addresses, and without bytes that
                   are no text
RESERVED_SHARE     Share of every budget that is kept back for the rounding of noise
usable             The budget less its reserve, and the epsilon that one fit may lose to discrete
                   noise
transaction        Open a connection, begin, and commit at the end
Anchor             An entry that somebody remembers
Verdict            What a check of a ledger found
export_anchors     Every entry that a file written by `hushfit ledger export` has
head_anchor        The hash of an entry, as `hushfit ledger verify` prints it
verify             Check every hash and seal of a ledger on disk, re-derive every total, and look
                   for what others remember
"""

from hushfit.privacy.ledger._chain import Entry
from hushfit.privacy.ledger._disk_ledger import DiskAccount, ledger_datasets
from hushfit.privacy.ledger._ledger import (
    Account,
    ClosedAccount,
    Decide,
    Ledger,
    Receipt,
    refuse_if_changed,
    total_epsilon,
)
from hushfit.privacy.ledger._ledger_key import KEY_VARIABLE
from hushfit.privacy.ledger._mounts import Mount
from hushfit.privacy.ledger._redact import redacted
from hushfit.privacy.ledger._reserve import RESERVED_SHARE, usable
from hushfit.privacy.ledger._transaction import transaction
from hushfit.privacy.ledger._verify import Anchor, Verdict, export_anchors, head_anchor, verify

__all__ = [
    "KEY_VARIABLE",
    "RESERVED_SHARE",
    "Account",
    "Anchor",
    "ClosedAccount",
    "Decide",
    "DiskAccount",
    "Entry",
    "Ledger",
    "Mount",
    "Receipt",
    "Verdict",
    "export_anchors",
    "head_anchor",
    "ledger_datasets",
    "redacted",
    "refuse_if_changed",
    "total_epsilon",
    "transaction",
    "usable",
    "verify",
]
