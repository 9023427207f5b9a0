"""The account of one fit of a pipeline. Proof: docs/proofs/filter.md."""

import threading
from typing import Any

from hushfit.errors import BudgetExceeded
from hushfit.privacy import Budget, Cost, Ledger, Receipt, Relation
from hushfit.privacy.ledger import ClosedAccount, Decide, Receipts, Tally


class OverOwnBudget(BudgetExceeded):
    """The pipeline's own budget does not cover a step; nothing was released for it.

    ``price`` is the cost of the step, if it would fit alone.
    """

    def __init__(self, message: str, price: Cost | None) -> None:
        super().__init__(message)
        self.price = price


class PipelineAccount:
    """The account of one fit of a pipeline.

    It enforces the pipeline's total and charges every payment to the ledger of the data set too.
    """

    def __init__(self, budget: Budget, relation: Relation, ledger: Ledger | None) -> None:
        self.budget, self.relation, self.name = budget, relation, "pipeline"
        # An early release (a vocabulary, and with it the number of columns) may change what a later
        # step requests, or whether it runs at all: every payment is a separate, adaptively chosen
        # plan.
        self.adaptive = True
        self.unit = None  # that of the first step, which all others must have as well
        self._ledger = ledger
        self._receipts = Receipts(self)
        self._lock = threading.RLock()

    def entries(self) -> tuple[Receipt, ...]:
        return tuple(self._receipts.kept)

    def tally(self) -> Tally:
        return self._receipts.tally

    def append(self, decide: Decide) -> Receipt:
        # Threads may fit the parts of a column transformer, each requesting budget that the others
        # are about to spend.
        with self._lock:
            before = self.tally()
            try:
                receipt = decide(before)
            except BudgetExceeded as error:
                raise OverOwnBudget(str(error), self._price_alone(decide)) from None
            self._receipts.refuse_if_changed(before, self.name)
            if self._ledger is not None:
                self._ledger.charge(receipt.cost, receipt.label, receipt.relation, receipt.unit)
            self._receipts.add(receipt)
        return receipt

    def _price_alone(self, decide: Decide) -> Cost | None:
        """Cost of a refused payment, if it would fit an empty account."""
        try:
            return decide(Tally.of(self)).cost
        except BudgetExceeded:
            return None

    def __deepcopy__(self, memo: dict[int, Any]) -> "PipelineAccount":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy elsewhere could spend the rest a second time.
        terms = (self.budget, self.relation, self.name, self.entries(), self.adaptive, self.unit)
        return ClosedAccount, terms
