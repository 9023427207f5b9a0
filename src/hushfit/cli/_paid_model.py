"""The end of a fit: a model that was paid for is recorded, written and shown."""

import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hushfit.cli._printing import print_guarantee, print_json, print_message


def payment_options(command: Any) -> Any:
    """The options of a release that is no fit: relation, account and noise."""
    for option in reversed(
        [
            click.option(
                "--adjacency",
                type=click.Choice(["replace-one", "add-remove"]),
                default="replace-one",
                show_default=True,
                help="Adjacency relation: which tables are neighbours.",
            ),
            click.option(
                "--ledger",
                metavar="PATH|URL",
                help="SQLite file or postgresql:// address of the ledger.",
            ),
            click.option("--dataset", metavar="NAME", help="Account in the ledger."),
            click.option("--seed", type=int, help="Reproducible, INSECURE noise: for tests only."),
        ]
    ):
        command = option(command)
    return command


def ledger_of(given: dict[str, Any]) -> Any:
    """The account that the options name; None, with a warning, if they name none."""
    from hushfit import Ledger
    from hushfit.errors import InvalidArgument

    if given["ledger"] is None:
        if given["dataset"] is not None:
            raise InvalidArgument(
                f"--dataset {given['dataset']} names an account, but no --ledger was given. Give "
                "both."
            )
        print_message(
            "no --ledger was given, so the budget spent on these rows is not recorded.",
            word="warning",
        )
        return None
    return Ledger(given["ledger"], dataset=given["dataset"])


def units_in(n_records: int, persons: Any, record: Any) -> tuple[int, Any]:
    """How many units are protected, and what they are: persons, or else the records themselves."""
    return (n_records, record) if persons is None else (persons.n_persons, persons.unit)


def refuse_large_delta(delta: float, n_units: int, unit: Any, allowed: bool | None = None) -> None:
    """Refuse a delta that publishing a row at random would satisfy, unless it is allowed.

    ``allowed`` is None for commands without an option for that.
    """
    from hushfit.errors import InvalidArgument

    share = 1 / max(n_units, 1)
    if delta <= share or allowed:
        return
    everything = f"all {unit.record}s of one person" if unit.is_person else f"one {unit.record}"
    otherwise = "" if allowed is None else ", or --allow-large-delta"
    raise InvalidArgument(
        f"--delta {delta:g} is above 1/(number of {unit.plural}) = {share:.2g}: publishing "
        f"{everything} in full, chosen at random, would also satisfy that guarantee. Nothing was "
        f"spent. Use a delta well below it, for instance {0.1 * share:.0e}{otherwise}."
    )


def write_paid(
    text: str, digest: str, record: Callable[[str], None], ledger: Any, output: Path
) -> None:
    """Record the hash of a model file in the ledger, and write the file."""
    from hushfit.errors import HushfitError
    from hushfit.models import write_whole

    try:
        record(digest)  # before the file exists: every model file is in the ledger
        write_whole(output, text)
    except HushfitError as error:
        raise type(error)(f"{error} {_rescued(text, digest, ledger, output)}") from error


def _rescued(text: str, digest: str, ledger: Any, output: Path) -> str:
    """Save a model that was paid for and could not be recorded or written; returns a text with its
    path.
    """
    import tempfile

    from hushfit.cli._files import saved_elsewhere

    location = "" if ledger is None else str(ledger.account.location)
    ledger_folder = [Path(location).parent] if location and "://" not in location else []
    place = saved_elsewhere(
        f"{output.name}.{digest[:12]}.rescued",
        text,
        [output.parent, *ledger_folder, Path(tempfile.gettempdir())],
    )
    if place is None:
        return "No other folder could be written either, so the model is lost; its payment stays."
    return f"The model was paid for and is saved as {place}: move it from there."


def print_paid(
    model: Any, ledger: Any, digest: str, given: dict[str, Any], records: str = "rows"
) -> None:
    """Print the guarantee, the payment and what can be done next."""
    spent = None if ledger is None else ledger.spent()
    if given["as_json"]:
        total = None
        if spent is not None:
            total = {
                "epsilon": spent.epsilon,
                "delta": spent.delta,
                "budget": ledger.budget.epsilon,
                "rule": ledger.rule,
            }
        paid = (
            None
            if model.receipt is None
            else {"dataset": model.receipt.dataset, "number": model.receipt.number}
        )
        print_json(
            {
                "model": given["output"],
                "hash": digest,
                "guarantee": model.guarantee.to_dict(),
                "receipt": paid,
                "ledger_total": total,
                **_intervals(model, given),
            }
        )
        return
    print_guarantee(model.guarantee)
    click.echo(f"Model:  {given['output']}  (sha256 {digest[:12]}...)")
    if spent is not None and model.receipt is not None:
        print_payment(model.receipt.number, ledger, spent)
    if given.get("inference"):
        click.echo(f"\n{model.estimator.summary()}")
    output = shlex.quote(given["output"])
    click.echo("\nNext steps:")
    click.echo(f"  hushfit evaluate {output} TEST.csv     on {records} that were held out")
    click.echo(f"  hushfit report {output} -o report.html")
    click.echo(f"  hushfit predict {output} NEW.csv -o predictions.csv")


def print_payment(number: int, ledger: Any, spent: Any) -> None:
    """Which payment it was, and what the account has spent in all."""
    click.echo(
        f"Ledger: payment {number} on {ledger.name!r}; composed total "
        f"epsilon={spent.epsilon:.4g} of {ledger.budget.epsilon:g} at delta={spent.delta:g} "
        f"({ledger.rule})"
    )


def note_unit_of_schema(path: str, schema: Any, where: str) -> None:
    """The schema names a unit other than the row, but no column of ids."""
    if schema.unit == "row" or schema.person is not None:
        return
    print_message(
        f"{path} has the unit {schema.unit}. That is a label only: the guarantee protects one row, "
        f"and is weaker for a {schema.unit} with several rows. To protect all of them, name the "
        f"column of ids {where}.",
        word="note",
    )


def _intervals(model: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Coefficients with their intervals, of a fit that has them."""
    if not given.get("inference"):
        return {}
    found = model.estimator.inference_
    plain = [{"name": name, "coef": value} for name, value in found.named]
    lines = [
        line._asdict() if math.isfinite(line.std_err) else alone
        for line, alone in zip(found.lines(), plain, strict=False)
    ]
    return {"verdict": found.verdict, "coefficients": lines or plain}


def note_account_of_rows(ledger: Any, person: str | None) -> None:
    """The fit protects persons, but the total of the account is about rows."""
    from hushfit.privacy.ledger import redacted

    if ledger is None or person is None or ledger.unit.is_person:
        return
    place, column = shlex.quote(redacted(str(ledger.account.location))), shlex.quote(person)
    print_message(
        f"this fit protects persons, but its account {ledger.name!r} protects rows only: its total "
        "makes no statement about a person with several rows. An account for persons is opened "
        f"with: hushfit ledger init {place} --dataset NAME --epsilon E --delta D --unit person "
        f"--person-column {column}",
        word="note",
    )


def note_bound_account(ledger: Any, receipt: Any) -> None:
    """Say so if this payment was the first for persons on an account without a column."""
    if ledger is None or receipt is None or not ledger.unit.is_person:
        return
    first = next((entry for entry in ledger.entries if entry.unit.is_person), None)
    if ledger.unit.column is None and first is not None and first.number == receipt.number:
        print_message(
            f"the account {ledger.name!r} was opened without --person-column. This fit, its first, "
            f"binds it: all later ones for persons must use column {first.unit.column!r} too.",
            word="note",
        )
