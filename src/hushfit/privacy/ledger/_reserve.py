"""What a budget sets aside for the difference between the noise of the proofs and the noise of a
computer.

Discrete noise on a fine grid costs a little more than continuous noise of the same scale: epsilon
grows by 2h and delta by the factor exp(h), h being about 1e-12 for a whole fit
(docs/proofs/noise.md). Every budget, a fit's and a ledger's, keeps a hundred-thousandth back; a fit
may use a thousandth of that, so that a ledger's reserve covers a thousand fits.
"""

from hushfit.privacy._budget import Budget

RESERVED_SHARE = 1e-5
_FIT_SHARE = 1e-3


def usable(budget: Budget) -> tuple[Budget, float]:
    """The budget less its reserve, and the epsilon that one fit may lose to discrete noise."""
    if not budget.is_private:
        return budget, float("inf")
    kept = 1 - RESERVED_SHARE
    return Budget(
        kept * budget.epsilon, kept * budget.delta
    ), _FIT_SHARE * RESERVED_SHARE * budget.epsilon
