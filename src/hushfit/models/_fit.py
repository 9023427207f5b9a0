"""From tables on disk to a model: read, pay, fit, and keep the papers together."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hushfit.data._schema import CategoricalColumn, Schema
from hushfit.data._schema_file import SchemaFile, schema_hash
from hushfit.data.tables import CodedRows
from hushfit.errors import InvalidArgument
from hushfit.estimators import Prepared
from hushfit.estimators._fit import Terms, private_fit
from hushfit.models._model import Model, PaidReceipt, Provenance
from hushfit.models._spread import Recorded, noise_spread
from hushfit.privacy import Account, Budget, Ledger, Receipt, Relation
from hushfit.privacy._disk_ledger import DiskAccount
from hushfit.privacy._ledger import Decide
from hushfit.solvers import solver_from


@dataclass(eq=False)
class Till:
    """An account that keeps the receipts of one fit."""

    account: Account
    receipts: list[Receipt] = field(default_factory=list)

    @property
    def budget(self) -> Budget:
        return self.account.budget

    @property
    def relation(self) -> Relation:
        return self.account.relation

    @property
    def name(self) -> str:
        return self.account.name

    @property
    def adaptive(self) -> bool:
        return self.account.adaptive

    def entries(self) -> tuple[Receipt, ...]:
        return self.account.entries()

    def append(self, decide: Decide) -> Receipt:
        receipt = self.account.append(decide)
        self.receipts.append(receipt)
        return receipt

    def paid(self) -> PaidReceipt | None:
        """The last payment, with what pins it in a ledger on disk."""
        if not self.receipts or not isinstance(self.account, DiskAccount):
            return None
        return PaidReceipt(self.name, self.receipts[-1].number, self.account.hash_of(self.receipts[-1]))


def with_sorted_classes(schema: Schema) -> Schema:
    """The schema with its classes in the order that estimators keep them."""
    if not isinstance(schema.target, CategoricalColumn):
        raise InvalidArgument("the schema needs a categorical [target]: the classes to tell apart. Write it.")
    return replace(schema, target=replace(schema.target, categories=tuple(sorted(schema.target.categories))))


def fit_rows(
    estimator: Any, rows: CodedRows, file: SchemaFile, ledger: Ledger | None = None, command: str = ""
) -> tuple[Model, Callable[[str], None]]:
    """Fit an estimator to packed rows, paying first.

    Parameters
    ----------
    estimator : PrivateLogisticRegression or PrivateLinearSVC
        Not fitted; its settings decide.
    rows : CodedRows
        Packed with the schema of ``file``.
    file : SchemaFile
        What it leaves unconfirmed is recorded in the guarantee.
    ledger : Ledger, optional
        Charged before any row is looked at.
    command : str, default=""
        For the provenance.

    Returns
    -------
    model : Model
    record : callable
        Takes the hash of the model file and notes it in the ledger.
    """
    schema, classes = file.schema, list(rows.target.categories)
    problem = estimator.problem(rows.n_rows, rows.n_features, len(classes))
    budget = Budget(estimator.epsilon, estimator.delta)
    till = None if ledger is None else Till(ledger.account)
    recorded = Recorded(solver_from(estimator.solver, problem, budget))
    terms = Terms(
        budget,
        None if till is None else Ledger.over(till),
        estimator.random_state,
        type(estimator).__name__,
        _public(file),
        _notes(file),
        estimator.verbose,
    )
    result, guarantee = private_fit(rows, problem, recorded, terms)
    estimator.accept(result, guarantee, Prepared(rows, problem, np.array(classes), None))
    multipliers = {release.name: release.noise_multiplier for release in guarantee.releases}
    spread = noise_spread(recorded, problem, multipliers, result.w)
    paid = None if till is None else till.paid()
    model = Model(estimator, schema, spread, paid, Provenance.now(command, schema_hash(schema)))

    def record(digest: str) -> None:
        if till is not None and isinstance(till.account, DiskAccount):
            till.account.record_model(till.receipts[-1], digest)

    return model, record


def _public(file: SchemaFile) -> tuple[str, ...]:
    stated = "the classes, the columns, and the range or vocabulary of every column, as the schema states them"
    if not file.unconfirmed:
        return (stated,)
    return (stated, f"of these, READ FROM THE ROWS and not confirmed: {', '.join(file.unconfirmed)}")


def _notes(file: SchemaFile) -> tuple[str, ...]:
    notes = [
        "Records are scaled to unit length; one whose label is not among the classes counts as the zero record.",
    ]
    if file.unconfirmed:
        notes.append(
            f"--accept-draft was given: {len(file.unconfirmed)} values of the schema were read from the rows, outside the "
            "guarantee."
        )
    return tuple(notes)
