"""``--dry-run``: everything that a verb does before it pays, and not the payment."""

from dataclasses import dataclass
from typing import Any

import click

from hushfit.cli._printing import print_json

option = click.option(
    "--dry-run",
    is_flag=True,
    help="Read and check everything, also whether the account would take the charge, and stop "
    "before the payment. Nothing is spent, released or written.",
)


@dataclass
class Rehearsed(Exception):
    """A run ended where it would have paid.

    Parameters
    ----------
    receipt : Receipt or None
        What the ledger would have recorded; None without a ledger.
    ledger : Ledger or None
    cost : Cost
    relation : Relation
    unit : PrivacyUnit
    """

    receipt: Any
    ledger: Any
    cost: Any
    relation: Any
    unit: Any


@dataclass(frozen=True)
class Rehearsal:
    """Takes the place of a ledger: checks a charge, and ends the run instead of paying."""

    ledger: Any

    def charge(self, cost: Any, label: str, relation: Any, unit: Any) -> Any:
        """Refuse what the ledger would refuse; everything else ends the run."""
        receipt = None if self.ledger is None else self.ledger.rehearse(cost, label, relation, unit)
        raise Rehearsed(receipt, self.ledger, cost, relation, unit)


def payer_of(ledger: Any, given: dict[str, Any]) -> Any:
    """The ledger, or with ``--dry-run`` what takes its place."""
    return Rehearsal(ledger) if given["dry_run"] else ledger


def print_rehearsed(end: Rehearsed, as_json: bool) -> None:
    """Say what would have been paid."""
    spent = None if end.ledger is None else end.ledger.spent()
    if as_json:
        after = None if end.receipt is None else end.receipt.total.epsilon
        paid = None if spent is None else {"spent": spent.epsilon, "after": after}
        described = {"relation": str(end.relation), "unit": end.unit.to_dict()}
        print_json({"dry_run": True, "cost": end.cost.to_dict(), **described, "account": paid})
        return
    click.echo(f"Dry run: nothing was spent, released or written. Protects {end.unit}.")
    if end.receipt is None or spent is None:
        click.echo("Everything is in order. No account would be charged: there is no --ledger.")
        return
    click.echo(
        f"Everything is in order. Account {end.ledger.name!r} would take the charge as payment "
        f"{end.receipt.number}: the composed total would rise from epsilon={spent.epsilon:.4g} to "
        f"{end.receipt.total.epsilon:.4g} of {end.ledger.budget.epsilon:g} at "
        f"delta={spent.delta:g}."
    )
