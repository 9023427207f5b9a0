"""Privacy ledger of one data set: what was spent, and whether a new cost still fits the budget.

A `Ledger` decides; an `Account` stores.
"""

import math
import os
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from hushfit.errors import BudgetExceeded, InvalidArgument, LedgerError
from hushfit.privacy import _check
from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._relation import Relation
from hushfit.privacy.accounting import FilteredTotal
from hushfit.privacy.costs import Cost, compose, require_proof
from hushfit.privacy.ledger._identity import day_of
from hushfit.privacy.ledger._tally import Receipt, Tally, counted_costs, smaller_charge
from hushfit.unit import ROW, ROW_ACCOUNT, AccountUnit, PrivacyUnit

if TYPE_CHECKING:
    from hushfit.privacy.ledger._administration import Administration
    from hushfit.privacy.ledger._disk_ledger import DiskAccount
from hushfit.privacy.ledger._accounts import Account, ClosedAccount, Decide, MemoryAccount, title_of

_RULES: Final = {
    True: "filter: prices may be chosen after seeing answers",
    False: "composition: prices were fixed before the first answer",
}
_NO_RULE: Final = "composition: there is no budget to hold"
_REUSE: Final = "reuse a model you have already paid for"
_FIXED_REMEDY: Final = (
    " Only if all analyses and their costs were fixed before the first answer, and none will be "
    "left out, a ledger for fixed analyses is valid and has more room (adaptive=False in Python, "
    "--fixed with `hushfit ledger init`)."
)


class Ledger:
    """An append-only account of the privacy spent on one data set.

    ``Ledger(epsilon, delta)`` lives in memory: copies, clones and pickles made in one process all
    share the account, and threads may charge it concurrently; in another process it shows its
    history and refuses to pay. ``Ledger("ledger.db", dataset="patients")`` opens one on disk, made
    with `Ledger.create`, which any number of processes may charge.

    Parameters
    ----------
    epsilon : float, path or str
        Total budget; with infinity, costs are only recorded. A path or a ``postgresql://`` address
        opens a ledger on disk, whose budget and relation were fixed when it was made.
    delta : float
        Delta of the total budget. Not given for a ledger on disk.
    adjacency : str, default="replace-one"
        Which data sets are neighbours. Every charge must be stated under the same relation.
    name : str, default=""
        Name of the data set, for people.
    dataset : str, optional
        Data set of a ledger on disk; may be left out if it has only one.
    adaptive : bool, optional
        Whether the next query and its cost may depend on earlier answers. A filter then decides
        whether a charge fits (docs/proofs/filter.md). False composes as if all costs had been fixed
        before the first answer, which leaves some per cent more room and is valid only if they
        were, and nothing is left out because of an answer: otherwise the true delta may be two to
        three times as large. None is True for a new ledger; one on disk keeps what it was made
        with.
    unit : {"row", "person"} or AccountUnit, optional
        Whom the account protects. None is a row for a new ledger; one on disk keeps what it was
        made with. An account of persons refuses charges for rows.
    token : str, optional
        Of a ledger on disk: token of the person who pays, for services that act for others.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, Ledger
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6, name="patients")
    >>> receipt = ledger.charge(GaussianCost(noise_multiplier=6.0), "mean", "replace-one")
    >>> round(ledger.spent().epsilon, 3)
    0.686
    """

    def __init__(
        self,
        epsilon: float | str | os.PathLike[str],
        delta: float | None = None,
        adjacency: str = "replace-one",
        name: str = "",
        *,
        dataset: str | None = None,
        adaptive: bool | None = None,
        unit: str | AccountUnit | None = None,
        token: str | None = None,
    ) -> None:
        self._account: Account
        requested = None if adaptive is None else _checked_flag(adaptive)
        wanted = None if unit is None else AccountUnit.parse(unit)
        if isinstance(epsilon, str | os.PathLike):
            from hushfit.privacy.ledger._disk_ledger import open_account

            if delta is not None:
                raise InvalidArgument(
                    f"delta={delta!r} was given for a ledger on disk, whose budget is fixed. Leave "
                    "it out, or make another one with Ledger.create."
                )
            self._account = open_account(epsilon, dataset, token)
            if requested not in (None, self.adaptive):
                raise InvalidArgument(
                    f"adaptive={requested} was given for a ledger on disk whose rule is fixed: "
                    f"{self.rule}. Leave it out, or make another one with Ledger.create(..., "
                    f"adaptive={requested})."
                )
            if wanted not in (None, self.unit):
                raise InvalidArgument(
                    f"unit={unit!r} was given for a ledger on disk that protects {self.unit}. "
                    "Leave it out, or make another one with Ledger.create."
                )
            return
        if dataset is not None or token is not None:
            given = "a token" if dataset is None else f"dataset={dataset!r}"
            raise InvalidArgument(
                f"{given} names an account on disk. Give the path of the ledger, or use name."
            )
        budget = Budget(epsilon, _check.number(delta, "delta"))
        self._account = MemoryAccount(
            budget,
            Relation.parse(adjacency),
            _check.text(name, "name"),
            requested is not False,
            wanted or ROW_ACCOUNT,
        )

    @classmethod
    def create(
        cls,
        location: str | os.PathLike[str],
        dataset: str,
        epsilon: float,
        delta: float,
        adjacency: str = "replace-one",
        adaptive: bool = True,
        unit: str | AccountUnit = "row",
        until: str | date | None = None,
        token: str | None = None,
    ) -> "Ledger":
        """Open an account on disk for a data set; its budget is fixed from then on.

        Parameters
        ----------
        location : path or str
            SQLite file, made if there is none, or a ``postgresql://`` address.
        dataset : str
            Name of the data set.
        epsilon, delta : float
            Total budget.
        adjacency : str, default="replace-one"
            Which data sets are neighbours.
        adaptive : bool, default=True
            Whether costs may be chosen after seeing answers; see `Ledger`.
        unit : {"row", "person"} or AccountUnit, default="row"
            Whom the account protects.
        until : str or date, optional
            Last day on which it can be charged, in UTC.
        token : str, optional
            Token of the person who opens it and becomes its administrator.

        Returns
        -------
        Ledger

        Raises
        ------
        LedgerError
            If the data set has an account already, or the place cannot be written.
        """
        from hushfit.privacy.ledger._disk_ledger import create_account

        return cls.over(
            create_account(
                location,
                dataset,
                Budget(epsilon, delta),
                Relation.parse(adjacency),
                _checked_flag(adaptive),
                AccountUnit.parse(unit),
                day_of(until),
                token,
            )
        )

    @classmethod
    def over(cls, account: Account) -> "Ledger":
        """A ledger over a given account.

        Parameters
        ----------
        account : Account
            Stores budget, relation, name and entries.

        Returns
        -------
        Ledger
        """
        ledger = cls.__new__(cls)
        ledger._account = account
        return ledger

    @property
    def account(self) -> Account:
        """Storage of the entries."""
        return self._account

    @property
    def budget(self) -> Budget:
        """Total budget."""
        return self._account.budget

    @property
    def relation(self) -> Relation:
        """Adjacency relation of every charge."""
        return self._account.relation

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self._account.name

    @property
    def adaptive(self) -> bool:
        """Whether costs may be chosen after seeing answers."""
        return self._account.adaptive

    @property
    def unit(self) -> AccountUnit | None:
        """Whom the account protects; None for the account of one fit."""
        return self._account.unit

    @property
    def team(self) -> "Administration":
        """Grants, approvals and administrators of a ledger on disk."""
        from hushfit.privacy.ledger._administration import Administration

        return Administration(self._on_disk("has grants"))

    def renew(
        self,
        dataset: str,
        epsilon: float,
        delta: float | None = None,
        until: str | date | None = None,
    ) -> "Ledger":
        """Close this account and open one for the renewed data set, which names this one.

        The budget of the new account is for the new rows. For somebody whose rows are in both, both
        totals count: epsilons and deltas of the two accounts add up.

        Parameters
        ----------
        dataset : str
            Name of the renewed data set.
        epsilon : float
        delta : float, optional
            That of this account by default.
        until : str or date, optional
            Last day on which the new account can be charged, in UTC.

        Returns
        -------
        Ledger
        """
        from hushfit.privacy.ledger._disk_ledger import renew_account

        budget = Budget(epsilon, self.budget.delta if delta is None else delta)
        old = self._on_disk("can be renewed")
        return Ledger.over(renew_account(old, dataset, budget, day_of(until)))

    def _on_disk(self, can: str) -> "DiskAccount":
        from hushfit.privacy.ledger._disk_ledger import DiskAccount

        if not isinstance(self._account, DiskAccount):
            raise LedgerError(
                f"only a ledger on disk {can}, and {title_of(self.name)} is in memory. Make one "
                "with Ledger.create."
            )
        return self._account

    @property
    def rule(self) -> str:
        """Rule by which payments compose, in words."""
        return _RULES[self.adaptive] if self.budget.is_private else _NO_RULE

    @property
    def entries(self) -> tuple[Receipt, ...]:
        """Every payment so far, oldest first."""
        return self._account.entries()

    @property
    def total_cost(self) -> Cost:
        """Composition of all costs paid for, as they count for the unit of the account."""
        return compose(counted_costs(self._account, self.entries))

    def spent(self) -> Spent:
        """Total privacy loss so far, composed by the ledger's rule.

        Returns
        -------
        Spent
            Epsilon at the ledger's delta. Epsilons of single charges do not add up to it, and the
            budget minus it is not what another charge may cost. Where costs are chosen adaptively
            the guarantee is the budget; this is how much of it is used.
        """
        # Composed again rather than read from the last receipt: a tighter accountant lowers it.
        return Spent(self._account.tally().epsilon, self.budget.delta)

    def largest_fit(self, delta: float | None = None) -> float:
        """Epsilon of the largest fit that the ledger still takes, for fits with Gaussian noise such
        as those of ``solver="auto"``.

        Parameters
        ----------
        delta : float, optional
            Delta of that fit; by default the ledger's.

        Returns
        -------
        float
            Rounded down to three digits; 0 if no fit is possible. The ceiling of a grant, and the
            limit above which charges wait for a second person, may be lower.

        Examples
        --------
        >>> from hushfit.privacy import GaussianCost, Ledger
        >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
        >>> receipt = ledger.charge(GaussianCost(noise_multiplier=6.0), "mean", "replace-one")
        >>> round(ledger.spent().epsilon, 2), ledger.largest_fit()
        (0.69, 0.684)
        """
        if delta is not None:
            Budget(self.budget.epsilon, delta)
        return self._account.tally().largest_fit(self.budget.delta if delta is None else delta)

    def charge(
        self, cost: Cost, label: str, relation: Relation | str, unit: PrivacyUnit = ROW
    ) -> Receipt:
        """Pay for a release before it is made. There are no refunds.

        Releases whose costs are all fixed now, and which will all be made, may be paid for at once:
        ``compose`` their costs.

        Parameters
        ----------
        cost : Cost
            Cost of the release.
        label : str
            Name of the payer, for instance of an estimator.
        relation : Relation or str
            Adjacency relation of the cost; must be the ledger's.
        unit : PrivacyUnit, default=ROW
            Whom the cost is for; must suit the account's.

        Returns
        -------
        Receipt

        Raises
        ------
        BudgetExceeded
            If the total would pass the budget. Nothing is recorded then.
        LedgerError
            If the relation differs from the ledger's, the account does not take charges for this
            unit, or it lives in another process.
        """
        return self._account.append(self._decision(cost, label, relation, unit))

    def rehearse(
        self, cost: Cost, label: str, relation: Relation | str, unit: PrivacyUnit = ROW
    ) -> Receipt:
        """The receipt that `charge` would return now; nothing is recorded and nothing is paid.

        Parameters
        ----------
        cost, label, relation, unit
            As for `charge`.

        Returns
        -------
        Receipt

        Raises
        ------
        BudgetExceeded, LedgerError
            As `charge`. A charge that would wait for a second person raises `ApprovalNeeded`, and
            no request is made.

        Examples
        --------
        >>> from hushfit.privacy import GaussianCost, Ledger
        >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
        >>> receipt = ledger.rehearse(GaussianCost(noise_multiplier=6.0), "mean", "replace-one")
        >>> round(receipt.total.epsilon, 3), len(ledger.entries)
        (0.686, 0)
        """
        from hushfit.privacy.ledger._disk_ledger import DiskAccount

        account, decide = self._account, self._decision(cost, label, relation, unit)
        if isinstance(account, DiskAccount):
            return account.rehearse(decide)
        return decide(account.tally())

    def _decision(
        self, cost: Cost, label: str, relation: Relation | str, unit: PrivacyUnit
    ) -> Decide:
        """What decides about a charge: returns its receipt, or refuses it."""
        relation = Relation.parse(relation)
        _check.text(label, "label")
        require_proof(cost, relation)
        if relation is not self.relation:
            raise LedgerError(
                f"{label} is stated under {str(relation)!r}, the ledger under "
                f"{str(self.relation)!r}: their costs do not compose. Use "
                f"adjacency={str(self.relation)!r}, or a second ledger."
            )

        def decide(tally: Tally) -> Receipt:
            _refuse_unit(tally, label, unit)
            so_far = Spent(tally.recorded, self.budget.delta)
            receipt = Receipt(tally.count + 1, label, cost, relation, so_far, unit)
            after = tally.after(receipt)
            if not after.fits:
                raise _refusal(after, receipt, tally.largest_fit(self.budget.delta))
            return replace(receipt, total=Spent(after.epsilon, self.budget.delta))

        return decide

    def __copy__(self) -> "Ledger":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Ledger":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Ledger.over, (self._account,)

    def __getstate__(self) -> dict[str, Any]:
        # For formats that store attributes (skops), not for pickles: a history that cannot pay.
        own = self._account
        terms = (own.budget, own.relation, own.name, own.entries(), own.adaptive, own.unit)
        return {"_account": ClosedAccount(*terms)}

    def __repr__(self) -> str:
        name = f"{self.name!r}: " if self.name else ""
        many = len(self.entries)
        person = "one person, " if self.unit is not None and self.unit.is_person else ""
        return (
            f"Ledger({name}spent epsilon={self.spent().epsilon:.4g}, budget "
            f"epsilon={self.budget.epsilon:g}, "
            f"delta={self.budget.delta:g}, {self.relation}, {person}{many} "
            f"{'entry' if many == 1 else 'entries'})"
        )


def _checked_flag(adaptive: object) -> bool:
    if not isinstance(adaptive, bool):
        raise InvalidArgument(
            f"adaptive={adaptive!r} is neither True nor False. Use True unless all costs were "
            "fixed beforehand."
        )
    return adaptive


def _refuse_unit(tally: Tally, label: str, unit: PrivacyUnit) -> None:
    if not isinstance(unit, PrivacyUnit):
        raise InvalidArgument(f"unit={unit!r} is not a PrivacyUnit. Give ROW or a person.")
    problem = tally.unit_problem(unit)
    if problem is not None:
        raise LedgerError(f"{label} {problem}. Nothing was spent or released.")


def _refusal(after: Tally, receipt: Receipt, largest: float) -> BudgetExceeded:
    """Error for a charge that does not fit, with the remedy; ``largest`` fits."""
    total, epsilon, budget = after.total, after.epsilon, after.terms.budget
    if after.count == 1 or not isinstance(total, FilteredTotal):
        return _over_budget(receipt, epsilon, budget, largest)
    if math.isfinite(epsilon):
        return _over_budget(receipt, epsilon, budget, largest, _FIXED_REMEDY)
    if total.left <= 0:
        return BudgetExceeded(
            f"{receipt.label} does not fit: the first payment took the whole of the ledger's "
            f"delta={budget.delta:g} (spent so far: {receipt.total.epsilon:.3g}). Nothing "
            "was released. Reuse the model you have already paid for."
        )
    if total.lost > total.room:
        digits = _digits_apart(float(total.lost), total.room)
        return BudgetExceeded(
            f"{receipt.label} does not fit: the failure probability of payments after the first "
            f"would be {float(total.lost):.{digits}g}, over the {total.room:.{digits}g} that a "
            "ledger allows at "
            f"delta={budget.delta:g}. Nothing was released. Use a smaller delta, or make "
            "the payment that needs most of delta first."
        )
    return _over_budget(receipt, epsilon, budget, largest)


def _over_budget(
    receipt: Receipt, epsilon: float, budget: Budget, largest: float, remedy: str = ""
) -> BudgetExceeded:
    """Error with as many digits as needed to distinguish the total from the budget."""
    digits = _digits_apart(epsilon, budget.epsilon)
    total = f"{epsilon:.{digits}g}" if math.isfinite(epsilon) else "inf (no privacy)"
    less = " less its reserve for discrete noise" if epsilon <= budget.epsilon else ""
    return BudgetExceeded(
        f"{receipt.label} would bring the total to epsilon={total}, over the ledger's "
        f"{budget.epsilon:g}{less} "
        f"(spent so far: {receipt.total.epsilon:.3g}). Nothing was released. "
        f"{smaller_charge(largest, budget, _REUSE)}.{remedy}"
    )


def _digits_apart(first: float, second: float) -> int:
    """As many digits as needed to tell two numbers apart, at least three."""
    return next((k for k in range(3, 17) if f"{first:.{k}g}" != f"{second:.{k}g}"), 17)
