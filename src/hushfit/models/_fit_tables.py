"""From tables on disk to a model file: fit, then record payment, schema and provenance."""

from collections.abc import Callable
from typing import Any

from hushfit.data.design import MainEffects
from hushfit.data.schema import SchemaFile, schema_hash
from hushfit.estimators import TableRows, fit_table
from hushfit.models._model import Model, PaidReceipt, Provenance
from hushfit.models._standard_errors import noise_standard_errors
from hushfit.privacy import Ledger, Receipt
from hushfit.privacy.ledger import DiskAccount


def fit_rows(
    estimator: Any,
    rows: TableRows,
    file: SchemaFile,
    ledger: Ledger | None = None,
    command: str = "",
) -> tuple[Model, Callable[[str], None]]:
    """Fit an estimator to packed rows, paying first.

    Parameters
    ----------
    estimator : classifier or regressor
        Not fitted; its settings are used. A classifier for classes, a regressor, with the range of
        the target, for numbers, counts and grades.
    rows : TableRows
        Packed with the schema of ``file``.
    file : SchemaFile
        Its unconfirmed values are recorded in the guarantee.
    ledger : Ledger, optional
        Charged before any row is read.
    command : str, default=""
        For the provenance.

    Returns
    -------
    model : Model
    record : callable
        Takes the hash of the model file and records it in the ledger.
    """
    made = fit_table(estimator, rows, file, ledger)
    errors = (
        None
        if estimator.inference
        else noise_standard_errors(made.fit, made.problem, made.in_units)
    )
    paid, record = paid_receipt(ledger, made.fit.receipt)
    provenance = Provenance.now(command, schema_hash(file.schema))
    design = MainEffects(file.schema) if estimator.inference else None
    return Model(estimator, file.schema, errors, paid, provenance, design), record


def payment_of(fitted: Any) -> tuple[PaidReceipt | None, Callable[[str], None]]:
    """`paid_receipt` of a fitted estimator; none if its ledger is another one by now."""
    ledger, receipt = getattr(fitted, "ledger", None), getattr(fitted, "receipt_", None)
    if ledger is None or receipt is None or receipt not in ledger.account.entries():
        return None, lambda digest: None
    return paid_receipt(ledger, receipt)


def paid_receipt(
    ledger: Any, receipt: Receipt | None
) -> tuple[PaidReceipt | None, Callable[[str], None]]:
    """The payment as a model file states it, and a function that records the hash of the file in
    the ledger.
    """
    account = None if ledger is None else ledger.account
    if receipt is None or not isinstance(account, DiskAccount):
        return None, lambda digest: None
    paid = PaidReceipt(account.name, receipt.number, account.hash_of(receipt))
    return paid, lambda digest: account.record_model(receipt, digest)
