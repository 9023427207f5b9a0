"""Everything hushfit raises or warns about.

A message says what happened, names the value, and says what to do. No message is computed from
private rows.
"""


class HushfitError(Exception):
    """Base of all errors that hushfit raises on purpose.

    Examples
    --------
    >>> from hushfit import Ledger
    >>> from hushfit.errors import HushfitError
    >>> try:
    ...     Ledger(epsilon=-1.0, delta=1e-6)
    ... except HushfitError as error:
    ...     print(type(error).__name__)
    InvalidArgument
    """


class InvalidArgument(HushfitError, ValueError):
    """An argument is outside what is allowed; the message names the value and the remedy.

    Examples
    --------
    >>> from hushfit.privacy import Budget
    >>> Budget(epsilon=1.0, delta=2.0)
    Traceback (most recent call last):
    hushfit.errors.InvalidArgument: ...
    """


class UnknownName(InvalidArgument):
    """There is no solver, penalty or loss of the given name.

    Examples
    --------
    >>> from hushfit.penalties import penalty_from_name
    >>> penalty_from_name("l7", alpha=0.1, l1_ratio=0.5)
    Traceback (most recent call last):
    hushfit.errors.UnknownName: ...
    """


class BudgetExceeded(HushfitError):
    """The ledger's budget does not cover the request. Nothing was released.

    Examples
    --------
    >>> from hushfit import Ledger
    >>> from hushfit.privacy import GaussianCost
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
    >>> ledger.charge(GaussianCost(noise_multiplier=1.0), "mean", "replace-one")
    Traceback (most recent call last):
    hushfit.errors.BudgetExceeded: ...
    >>> ledger.spent().epsilon
    0.0
    """


class LedgerError(HushfitError):
    """The ledger cannot be used here, for instance in another process than the one that holds
    it.

    Examples
    --------
    >>> from hushfit import Ledger
    >>> ledger = Ledger.create("ledger.db", "patients", epsilon=3.0, delta=1e-6)
    >>> Ledger.create("ledger.db", "patients", epsilon=9.0, delta=1e-6)
    Traceback (most recent call last):
    hushfit.errors.LedgerError: ...
    """


class ApprovalNeeded(LedgerError):
    """A charge is above the limit of its account and waits for a second person.

    Examples
    --------
    >>> from hushfit import Ledger
    >>> from hushfit.privacy import GaussianCost
    >>> ledger = Ledger.create("ledger.db", "patients", epsilon=3.0, delta=1e-6)
    >>> limit = ledger.team.set_limit(0.5)
    >>> ledger.charge(GaussianCost(noise_multiplier=5.0), "mean", "replace-one")
    Traceback (most recent call last):
    hushfit.errors.ApprovalNeeded: ...
    """


class OldJournal(LedgerError):
    """An owner's journal lacks past releases; continuing from it would draw them again.

    Examples
    --------
    >>> from hushfit.errors import LedgerError, OldJournal
    >>> issubclass(OldJournal, LedgerError)
    True
    """


class UndeclaredRelease(HushfitError):
    """A solver requested a release that its plan did not declare; the curator refused.

    Examples
    --------
    >>> from hushfit.errors import HushfitError, UndeclaredRelease
    >>> issubclass(UndeclaredRelease, HushfitError)
    True
    """


class UnsupportedRelation(InvalidArgument):
    """There is no proof for this mechanism under this adjacency relation.

    Examples
    --------
    >>> from hushfit.privacy import PermutedGaussianCost, epsilon_of
    >>> cost = PermutedGaussianCost(5.0, shares=(0.5, 0.5), ratios=(1.0, 1.0))
    >>> epsilon_of(cost, 1e-6, "add-remove")
    Traceback (most recent call last):
    hushfit.errors.UnsupportedRelation: ...
    """


class InfeasibleBudget(InvalidArgument):
    """No amount of noise makes this plan fit the budget.

    Examples
    --------
    >>> from hushfit.privacy import Budget, PureCost, calibrate
    >>> calibrate(lambda strength: PureCost(1.0), Budget(0.5, 1e-6), "replace-one")
    Traceback (most recent call last):
    hushfit.errors.InfeasibleBudget: ...
    """


class NotCertified(HushfitError):
    """A minimiser could not be proved to be one; it was not released.

    Examples
    --------
    >>> from hushfit.errors import HushfitError, NotCertified
    >>> issubclass(NotCertified, HushfitError)
    True
    """


class TooFewRows(InvalidArgument):
    """The plan needs more rows than there are.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression
    >>> X, y = np.tile(np.eye(4), (10, 1)), np.arange(40) % 2
    >>> model = PrivateLogisticRegression(
    ...     epsilon=0.01, delta=1e-6, classes=[0, 1], feature_bounds=(0, 1), inference=True
    ... )
    >>> model.fit(X, y)
    Traceback (most recent call last):
    hushfit.errors.TooFewRows: 40 rows are too few for intervals of 5 coefficients ...
    """


class NonFiniteRecords(InvalidArgument):
    """Some value is NaN or infinite, and the caller requested an error for it.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression
    >>> model = PrivateLogisticRegression(
    ...     epsilon=1.0, delta=1e-6, classes=[0, 1], nonfinite="raise"
    ... )
    >>> model.fit(np.array([[1.0], [np.nan]]), [0, 1])
    Traceback (most recent call last):
    hushfit.errors.NonFiniteRecords: ...
    """


class OutOfMemory(HushfitError, MemoryError):
    """There is not enough memory. The message has no size of an array, which rows may decide.

    Examples
    --------
    >>> from hushfit.errors import OutOfMemory
    >>> issubclass(OutOfMemory, MemoryError)
    True
    """


class NoIntervals(HushfitError):
    """Noise hides the curvature of a model, so its coefficients have no standard errors.

    Examples
    --------
    >>> from hushfit.errors import HushfitError, NoIntervals
    >>> issubclass(NoIntervals, HushfitError)
    True
    """


class PrivacyLeakWarning(UserWarning):
    """Something that should be public was read from the rows, outside the guarantee.

    Examples
    --------
    >>> import warnings
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.errors import PrivacyLeakWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PrivacyLeakWarning)
    ...     PrivateLogisticRegression(epsilon=1.0, delta=1e-6).fit([[0.0], [1.0]], [0, 1])
    Traceback (most recent call last):
    hushfit.errors.PrivacyLeakWarning: ...
    """


class WeakGuaranteeWarning(UserWarning):
    """The guarantee is formally valid but means little, for instance delta above 1/n.

    Examples
    --------
    >>> import warnings
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.errors import WeakGuaranteeWarning
    >>> model = PrivateLogisticRegression(epsilon=1.0, delta=0.6, classes=[0, 1])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", WeakGuaranteeWarning)
    ...     model.fit([[0.0], [1.0]], [0, 1])
    Traceback (most recent call last):
    hushfit.errors.WeakGuaranteeWarning: ...
    """


class MissingBoundsWarning(UserWarning):
    """Columns have no public range, so one was assumed; values outside are clipped.

    Examples
    --------
    >>> import warnings
    >>> from hushfit import PrivateRidge
    >>> from hushfit.errors import MissingBoundsWarning
    >>> model = PrivateRidge(epsilon=1.0, delta=1e-6)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", MissingBoundsWarning)
    ...     model.fit([[0.0], [1.0]], [0, 1])
    Traceback (most recent call last):
    hushfit.errors.MissingBoundsWarning: ...
    """


class TooLittleDataWarning(UserWarning):
    """The budget and the number of units are so small that noise will hide nearly everything.

    Examples
    --------
    >>> import warnings
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.errors import TooLittleDataWarning
    >>> model = PrivateLogisticRegression(epsilon=0.1, delta=1e-6, classes=[0, 1])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", TooLittleDataWarning)
    ...     model.fit([[0.0], [1.0]], [0, 1])
    Traceback (most recent call last):
    hushfit.errors.TooLittleDataWarning: ...
    """


class NotConvergedWarning(UserWarning):
    """A fit without privacy stopped before it converged.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.errors import NotConvergedWarning
    >>> from hushfit.solvers import ExactMinimiser
    >>> model = PrivateLogisticRegression(
    ...     epsilon=np.inf, classes=[0, 1], solver=ExactMinimiser(most_steps=1)
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", NotConvergedWarning)
    ...     model.fit(np.eye(4), [0, 1, 0, 1])
    Traceback (most recent call last):
    hushfit.errors.NotConvergedWarning: ...
    """


class InsecureNoiseWarning(UserWarning):
    """Noise came from a seeded generator: anyone who knows the seed can remove it.

    Examples
    --------
    >>> import warnings
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.errors import InsecureNoiseWarning
    >>> model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1], random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", InsecureNoiseWarning)
    ...     model.fit([[0.0], [1.0]], [0, 1])
    Traceback (most recent call last):
    hushfit.errors.InsecureNoiseWarning: ...
    """
