"""Reserve of every budget for the difference between continuous and discrete noise.

Discrete noise on a fine grid costs slightly more than continuous noise of the same scale: epsilon
grows by l and delta by the factor exp(l/4), with l about 1e-14 for a whole fit
(docs/proofs/noise.md). Every budget, of a fit or of a ledger, reserves a share of 1e-5; a fit may
use a thousandth of that, so that a ledger's reserve covers a thousand fits. From epsilon 1 on a fit
may use no more: its loss counts against delta too, whose reserve does not grow.
"""

from hushfit.errors import InvalidArgument
from hushfit.privacy._budget import Budget

RESERVED_SHARE = 1e-5
_FIT_SHARE = 1e-3
# Next to smaller ones the probability that noise lies too far out is no longer nothing, and floats
# have fewer digits than the reserve needs.
LEAST_DELTA = 1e-300


def usable(budget: Budget) -> tuple[Budget, float]:
    """Budget minus its reserve, and the epsilon that one fit may lose to discrete noise."""
    if not budget.is_private:
        return budget, float("inf")
    if budget.delta < LEAST_DELTA:
        raise InvalidArgument(
            f"delta={budget.delta:g} is below {LEAST_DELTA:g}, beyond what is proved for discrete "
            "noise. Give a larger one."
        )
    spendable_share = 1 - RESERVED_SHARE
    return Budget(
        spendable_share * budget.epsilon, spendable_share * budget.delta
    ), _FIT_SHARE * RESERVED_SHARE * min(budget.epsilon, 1.0)
