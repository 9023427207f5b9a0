"""Everything hushfit raises or warns about.

A message says what happened, names the value, and says what to do. No message is computed from
private rows.
"""


class HushfitError(Exception):
    """Base of all errors that hushfit raises on purpose."""


class InvalidArgument(HushfitError, ValueError):
    """An argument is outside what is allowed; the message names the value and the remedy."""


class UnknownName(InvalidArgument):
    """There is no solver, penalty or loss of the given name."""


class BudgetExceeded(HushfitError):
    """The ledger's budget does not cover the request. Nothing was released."""


class LedgerError(HushfitError):
    """The ledger cannot be used here, for instance in another process than the one that holds
    it.
    """


class ApprovalNeeded(LedgerError):
    """A charge is above the limit of its account and waits for a second person."""


class OldJournal(LedgerError):
    """An owner's journal lacks past releases; continuing from it would draw them again."""


class UndeclaredRelease(HushfitError):
    """A solver requested a release that its plan did not declare; the curator refused."""


class UnsupportedRelation(InvalidArgument):
    """There is no proof for this mechanism under this adjacency relation."""


class InfeasibleBudget(InvalidArgument):
    """No amount of noise makes this plan fit the budget."""


class NotCertified(HushfitError):
    """A minimiser could not be proved to be one; it was not released."""


class TooFewRows(InvalidArgument):
    """The plan needs more rows than there are."""


class NonFiniteRecords(InvalidArgument):
    """Some value is NaN or infinite, and the caller requested an error for it."""


class OutOfMemory(HushfitError, MemoryError):
    """There is not enough memory. The message has no size of an array, which rows may decide."""


class NoIntervals(HushfitError):
    """Noise hides the curvature of a model, so its coefficients have no standard errors."""


class PrivacyLeakWarning(UserWarning):
    """Something that should be public was read from the rows, outside the guarantee."""


class WeakGuaranteeWarning(UserWarning):
    """The guarantee is formally valid but means little, for instance delta above 1/n."""


class MissingBoundsWarning(UserWarning):
    """Columns have no public range, so one was assumed; values outside are clipped."""


class TooLittleDataWarning(UserWarning):
    """The budget and the number of units are so small that noise will hide nearly everything."""


class NotConvergedWarning(UserWarning):
    """A fit without privacy stopped before it converged."""


class InsecureNoiseWarning(UserWarning):
    """Noise came from a seeded generator: anyone who knows the seed can remove it."""
