"""Privacy ledgers of data sets, in memory and on disk: charged before any row is read.

Entry              One entry of a ledger on disk
DiskAccount        Account of one data set in a database
ledger_datasets    Names of the data sets with an account in a ledger on disk
unit_of_account    Whom an account on disk protects
unit_of_charge     Whom a payment on disk was for
Account            Storage for the entries of a ledger
ClosedAccount      Read-only history of an account that belongs to another process
Decide             What an account calls, under its lock, with its tally so far
Ledger             An append-only account of the privacy spent on one data set
Receipts           Receipts in memory, with their tally
KEY_VARIABLE       Environment variable that names the file with the ledger's key
Mount              A mount point, as ``/proc/self/mountinfo`` lists it
redacted           A command line without logins of database addresses and without invalid text
RESERVED_SHARE     Share of every budget that is reserved for the rounding of noise
usable             Budget minus its reserve, and the epsilon that one fit may lose to discrete noise
Receipt            Receipt of a payment: one entry of a ledger
Tally              All charges of an account so far, as far as the next decision needs them
counted_costs      Costs of receipts as they count for the unit of the account
transaction        Open a connection, begin, and commit at the end
Anchor             An entry of which a copy is stored elsewhere
Verdict            Result of verifying a ledger
export_anchors     Anchors of all entries in a file written by `hushfit ledger export`
head_anchor        Anchor from the hash of an entry, as `hushfit ledger verify` prints it
verify             Check every hash and seal of a ledger on disk, recompute every total, and look
                   for anchors
"""

from hushfit.privacy.ledger._chain import Entry
from hushfit.privacy.ledger._disk_ledger import (
    DiskAccount,
    ledger_datasets,
    unit_of_account,
    unit_of_charge,
)
from hushfit.privacy.ledger._ledger import (
    Account,
    ClosedAccount,
    Decide,
    Ledger,
    Receipts,
)
from hushfit.privacy.ledger._ledger_key import KEY_VARIABLE
from hushfit.privacy.ledger._mounts import Mount
from hushfit.privacy.ledger._redact import redacted
from hushfit.privacy.ledger._reserve import RESERVED_SHARE, usable
from hushfit.privacy.ledger._tally import Receipt, Tally, counted_costs
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
    "Receipts",
    "Tally",
    "Verdict",
    "counted_costs",
    "export_anchors",
    "head_anchor",
    "ledger_datasets",
    "redacted",
    "transaction",
    "unit_of_account",
    "unit_of_charge",
    "usable",
    "verify",
]
