"""Reserve of every budget for the difference between continuous and discrete noise.

Discrete noise on a fine grid costs slightly more than continuous noise of the same scale: epsilon
grows by l and delta by the factor exp(l/2), with l about 1e-14 for a whole fit
(docs/proofs/noise.md). Every budget, of a fit or of a ledger, reserves a share of 1e-5; a fit may
use a thousandth of that, so that a ledger's reserve covers a thousand fits.
"""

from hushfit.privacy._budget import Budget

RESERVED_SHARE = 1e-5
_FIT_SHARE = 1e-3


def usable(budget: Budget) -> tuple[Budget, float]:
    """Budget minus its reserve, and the epsilon that one fit may lose to discrete noise."""
    if not budget.is_private:
        return budget, float("inf")
    spendable_share = 1 - RESERVED_SHARE
    return Budget(
        spendable_share * budget.epsilon, spendable_share * budget.delta
    ), _FIT_SHARE * RESERVED_SHARE * budget.epsilon
