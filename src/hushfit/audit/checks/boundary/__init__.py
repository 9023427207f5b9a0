"""Checks of the trusted boundary: what bypasses it, what is paid for it, which rows are read, and
what it must refuse.

check_batch_sensitivity  Check the sensitivity of a sum in random batches
check_batches            Check that the rows a mechanism reads are the secret batch of its cost
check_ledger             Check composition, refusals, copies, threads and adaptive charges of a
                         ledger
check_disk_ledger        Check that a ledger on disk refuses second names and forked children, and
                         detects forgeries
check_paid               Check that every access to the rows was paid before, at its full cost
check_scores             Check that one row moves the scores of a search by at most one
null_table               A table in which every record is the null record
recorded_boundary        Record every payment, curator and release
check_refusals           Check that a curator answers only what its plan declares
check_sealed             Check that a fit reads rows only through its curators, record by record
"""

from hushfit.audit.checks.boundary._batches import check_batch_sensitivity, check_batches
from hushfit.audit.checks.boundary._disk_ledger import check_disk_ledger
from hushfit.audit.checks.boundary._ledger import check_ledger
from hushfit.audit.checks.boundary._payments import check_paid, check_scores
from hushfit.audit.checks.boundary._recorded import null_table, recorded_boundary
from hushfit.audit.checks.boundary._refusals import check_refusals
from hushfit.audit.checks.boundary._sealed import check_sealed

__all__ = [
    "check_batch_sensitivity",
    "check_batches",
    "check_disk_ledger",
    "check_ledger",
    "check_paid",
    "check_refusals",
    "check_scores",
    "check_sealed",
    "null_table",
    "recorded_boundary",
]
