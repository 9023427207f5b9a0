"""Privacy ledgers of data sets, in memory and on disk: charged before any row is read.

Administration     Grants, approvals and administrators of an account
Entry              One entry of a ledger on disk
DiskAccount        Account of one data set in a database
ledger_datasets    Names of the data sets with an account in a ledger on disk
unit_of_account    Whom an account on disk protects
unit_of_charge     Whom a payment on disk was for
Export             An export that was read
export_text        Every entry as a line of JSON, and a signature if a key is given
read_export        Read what `hushfit ledger export` wrote
TOKEN_VARIABLE     Environment variable with the token of the person who pays
Identity           Who an entry is by
issue_token        Token with which a service acts for a person
person_of_token    Name of the person to whom a token was issued
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
Grant              Sub-account of one person
Request            A charge above the limit, which waits for a second person
Team               Who may spend what on an account
team_summary       A team as plain values, for people and programs
transaction        Open a connection, begin, and commit at the end
Anchor             An entry of which a copy is stored elsewhere
Verdict            Result of verifying a ledger
export_anchors     Anchors of all entries in a file written by `hushfit ledger export`
head_anchor        Anchor from the hash of an entry, as `hushfit ledger verify` prints it
verify             Check every hash and seal of a ledger on disk, recompute every total, and look
                   for anchors
verify_export      Check every hash, rule and total of an export, without the ledger
"""

from hushfit.privacy.ledger._accounts import Account, ClosedAccount, Decide, Receipts
from hushfit.privacy.ledger._administration import Administration
from hushfit.privacy.ledger._chain import Entry
from hushfit.privacy.ledger._disk_ledger import (
    DiskAccount,
    ledger_datasets,
    unit_of_account,
    unit_of_charge,
)
from hushfit.privacy.ledger._export import Export, export_text, read_export
from hushfit.privacy.ledger._identity import (
    TOKEN_VARIABLE,
    Identity,
    issue_token,
    person_of_token,
)
from hushfit.privacy.ledger._ledger import Ledger
from hushfit.privacy.ledger._ledger_key import KEY_VARIABLE
from hushfit.privacy.ledger._mounts import Mount
from hushfit.privacy.ledger._redact import redacted
from hushfit.privacy.ledger._reserve import RESERVED_SHARE, usable
from hushfit.privacy.ledger._tally import Receipt, Tally, counted_costs
from hushfit.privacy.ledger._team import Grant, Request, Team, team_summary
from hushfit.privacy.ledger._transaction import transaction
from hushfit.privacy.ledger._verify import (
    Anchor,
    Verdict,
    export_anchors,
    head_anchor,
    verify,
    verify_export,
)

__all__ = [
    "KEY_VARIABLE",
    "RESERVED_SHARE",
    "TOKEN_VARIABLE",
    "Account",
    "Administration",
    "Anchor",
    "ClosedAccount",
    "Decide",
    "DiskAccount",
    "Entry",
    "Export",
    "Grant",
    "Identity",
    "Ledger",
    "Mount",
    "Receipt",
    "Receipts",
    "Request",
    "Tally",
    "Team",
    "Verdict",
    "counted_costs",
    "export_anchors",
    "export_text",
    "head_anchor",
    "issue_token",
    "ledger_datasets",
    "person_of_token",
    "read_export",
    "redacted",
    "team_summary",
    "transaction",
    "unit_of_account",
    "unit_of_charge",
    "usable",
    "verify",
    "verify_export",
]
