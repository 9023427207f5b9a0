"""``hushfit ledger``: open accounts, show them, and verify that they were not rewritten."""

import math
from pathlib import Path
from typing import Any

import click

from hushfit.cli import _ledger_team
from hushfit.cli._printing import console, json_option, print_json, print_message, print_table
from hushfit.privacy.ledger import redacted

_path = click.argument("ledger", metavar="LEDGER")
_dataset = click.option("--dataset", metavar="NAME", help="Only this data set.")


@click.group(
    "ledger",
    short_help="Manage the budget of data sets.",
    epilog="""\b
Examples:
  hushfit ledger init ledger.db --dataset patients --epsilon 3 --delta 1e-6
  hushfit ledger init ledger.db --dataset stays --epsilon 3 --delta 1e-6 \\
      --unit person --person-column patient_nbr
  hushfit ledger show ledger.db
  hushfit ledger grant patients --to alice --epsilon 1 --until 2027-01-01
  hushfit ledger limit patients --epsilon 0.5
  hushfit ledger approve patients 7
  hushfit ledger renew patients --as patients-2027 --epsilon 3
  hushfit ledger export ledger.db -o /elsewhere/ledger.jsonl --sign sign.pem
  hushfit ledger verify ledger.db --against /elsewhere/ledger.jsonl --model model.json""",
)
def command() -> None:
    """Manage the budget of data sets in an SQLite file, or in a postgresql:// database shared by a
    team.

    Costs are stored, not epsilons: the total is composed again each time, so a tighter accountant
    lowers it. The next query may depend on earlier answers: a privacy filter decides whether a
    payment fits. An account opened with --fixed composes as if all costs had been fixed before the
    first answer, and is valid only if they were and nothing is left out.

    An account protects one row or, with --unit person, one person with all of their rows; the
    latter refuses fits that protect rows only.

    A team shares an account through grants: each analyst has a ceiling, and the total holds
    whatever they do. Verbs for a team name the DATASET; their ledger is --ledger, HUSHFIT_LEDGER,
    or ledger.db.
    """


for _verb in _ledger_team.VERBS:
    command.add_command(_verb)


@command.command("init", short_help="Open the account of a data set.")
@_path
@click.option("--dataset", required=True, metavar="NAME", help="Name of the data set.")
@click.option("--epsilon", required=True, type=float, help="Total budget, fixed from now on.")
@click.option("--delta", required=True, type=float, help="Delta of the total budget.")
@click.option(
    "--adjacency",
    type=click.Choice(["replace-one", "add-remove", "label", "person-label"]),
    default="replace-one",
    show_default=True,
)
@click.option(
    "--fixed", is_flag=True, help="All costs are fixed before the first answer, none is left out."
)
@click.option(
    "--unit",
    type=click.Choice(["row", "person"]),
    default="row",
    show_default=True,
    help="Whom the account protects.",
)
@click.option(
    "--person-column",
    metavar="NAME",
    help="With --unit person: column of ids that all fits must use. If it is not given, the first "
    "fit that protects persons binds the account to its column.",
)
@click.option(
    "--rows-per-person",
    type=int,
    metavar="K",
    help="Also take fits that protect rows, each counted for K rows at once; the account then "
    "protects a person with at most K rows, exchanged for as many.",
)
@click.option(
    "--until", metavar="DAY", help="Last day on which it can be charged, such as 2027-01-01."
)
@json_option
def init(
    ledger: str,
    dataset: str,
    epsilon: float,
    delta: float,
    adjacency: str,
    fixed: bool,
    unit: str,
    person_column: str | None,
    rows_per_person: int | None,
    until: str | None,
    as_json: bool,
) -> None:
    """Open the account of a data set in LEDGER, which is created if it does not exist."""
    from hushfit import Ledger
    from hushfit.privacy import Relation, labels_only
    from hushfit.unit import AccountUnit

    protects = AccountUnit(unit, person_column, rows_per_person)
    account = Ledger.create(
        ledger, dataset, epsilon, delta, adjacency, adaptive=not fixed, unit=protects, until=until
    )
    if as_json:
        print_json(
            {
                "dataset": dataset,
                "epsilon": epsilon,
                "delta": delta,
                "adjacency": adjacency,
                "unit": protects.to_dict(),
                "rule": account.rule,
            }
        )
    else:
        labels = labels_only(Relation.parse(adjacency))
        protected = f"the labels of {protects}, NOT features" if labels else protects
        click.echo(
            f"Account {dataset!r}: epsilon={epsilon:g} at delta={delta:g} ({adjacency}), nothing "
            f"spent. It protects {protected}. Rule: {account.rule}."
        )


@command.command("show", short_help="Budget and composed total of each data set.")
@_path
@_dataset
@json_option
def show(ledger: str, dataset: str | None, as_json: bool) -> None:
    """Print the budget and the composed total of each data set in LEDGER."""
    accounts = _accounts(ledger, dataset)
    if as_json:
        print_json({"datasets": [balance(account) for account in accounts]})
        return
    rows = []
    for account in accounts:
        spent, budget = account.spent(), account.budget
        share = min(spent.epsilon / budget.epsilon, 1.0) if math.isfinite(budget.epsilon) else 0.0
        bar = "#" * round(20 * share) + "." * (20 - round(20 * share))
        rows.append(
            [
                account.name,
                bar,
                f"{spent.epsilon:.4g}",
                f"{budget.epsilon:g}",
                f"{account.largest_fit():g}",
                f"{budget.delta:g}",
                str(account.relation),
                account.unit.kind,
            ]
            + [str(len(account.entries)), account.rule.partition(":")[0]]
        )
    print_table(
        "Composed totals",
        [
            *("data set", "", "spent", "budget", "largest fit", "delta", "adjacency", "unit"),
            *("payments", "rule"),
        ],
        rows,
    )
    for account in accounts:
        if account.unit.is_person:
            click.echo(f"{account.name} protects {account.unit}")
        if (state := account.team.now.state) != "open":
            click.echo(f"{account.name} is {state}")
    for rule in sorted({account.rule for account in accounts}):
        click.echo(rule)
    print_message(
        "largest fit is the epsilon, at this delta, of the largest further fit that the account "
        "takes. Epsilons do not subtract, so it is not budget minus spent.",
        word="note",
    )


@command.command("history", short_help="All payments: who, what and when.")
@_path
@_dataset
@json_option
def history(ledger: str, dataset: str | None, as_json: bool) -> None:
    """Print every payment, its model, and the composed total after it."""
    lines = {account.name: payments_of(account) for account in _accounts(ledger, dataset)}
    if as_json:
        print_json({"datasets": lines})
        return
    for name, payments in lines.items():
        rows = [
            [
                str(p["number"]),
                p["at"][:16].replace("T", " "),
                f"{p['user']}@{p['host']}",
                p["label"],
            ]
            + [f"{p['epsilon_alone']:.4g}", f"{p['total']:.4g}", (p["model"] or "no model")[:12]]
            for p in payments
        ]
        print_table(name, ["#", "when (UTC)", "who", "what", "alone", "total", "model"], rows)
        _curve(payments)
        for p in payments:
            console().print(
                f"  {p['number']:>3}  {p['command']}",
                style="dim",
                markup=False,
                no_wrap=True,
                overflow="ellipsis",
            )


@command.command("export", short_help="All entries as JSON lines.")
@_path
@_dataset
@click.option("-o", "--output", default="-", show_default=True, help="File; - is standard output.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="With -o FILE: say as JSON where it was written. The export is JSON anyway.",
)
@click.option(
    "--sign",
    "key",
    type=click.Path(dir_okay=False),
    help="Ed25519 private key (PEM): a last line signs all others.",
)
def export(
    ledger: str,
    dataset: str | None,
    output: str,
    overwrite: bool,
    as_json: bool,
    key: str | None,
) -> None:
    """Write every entry with its hash, one JSON object a line, to be stored elsewhere.

    With --sign an auditor can check it with the public key alone: `hushfit ledger audit`. Auditors
    cannot check seals, so nothing is signed unless the ledger verifies and its seals were checked.
    """
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.models import write_whole
    from hushfit.privacy.ledger import export_text

    if output != "-":
        refuse_to_overwrite(output, overwrite)
    if key is not None:
        _refuse_to_sign_unverified(ledger)
    chains = {account.name: _disk(account).history() for account in _accounts(ledger, dataset)}
    text, entries = export_text(chains, key), sum(map(len, chains.values()))
    if output == "-":
        click.echo(text, nl=False)
    else:
        write_whole(Path(output), text)
        if as_json:
            print_json({"export": output, "entries": entries})
        else:
            click.echo(f"Export: {output}, {entries} entries")


@command.command(
    "verify",
    short_help="Compute totals again, and check hashes, seals and what is stored elsewhere.",
)
@_path
@click.option(
    "--against",
    "exports",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="Export whose entries must be in the ledger.",
)
@click.option(
    "--signer",
    type=click.Path(dir_okay=False),
    help="Public key that must have signed every export (PEM).",
)
@click.option(
    "--head",
    "heads",
    multiple=True,
    metavar="HASH",
    help="Hash of an entry that must be in the ledger.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="Model that must be as recorded.",
)
@json_option
def verify(
    ledger: str,
    exports: tuple[str, ...],
    signer: str | None,
    heads: tuple[str, ...],
    models: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check every hash in LEDGER and compose every total again; exit code 4 if anything is
    wrong.

    This alone finds entries that were edited, removed or added by hand. It cannot detect that the
    whole ledger was reset to an earlier state, or rewritten by someone who computes the hashes too.
    For that it needs what was stored elsewhere: an export (--against), a hash that it printed
    (--head), or a model file (--model), whose payment, contents and cost must be exactly as
    recorded. Each shows that nothing up to that entry was rewritten or lost; it shows nothing about
    later entries.

    Charges must also obey the grants, approvals and dates of their account.

    If HUSHFIT_LEDGER_KEY_FILE names a secret when an account is opened, entries are sealed with it:
    an entry that was written without the secret does not verify for those who have it.
    """
    from hushfit.errors import LedgerError
    from hushfit.models import model_problems
    from hushfit.privacy.ledger import export_anchors, head_anchor, unit_of_account
    from hushfit.privacy.ledger import verify as verified

    anchors = [
        *map(head_anchor, heads),
        *(anchor for path in exports for anchor in export_anchors(path, signer)),
    ]
    verdict = verified(ledger, anchors)
    problems = verdict.sentences() + [
        text for path in models for text in model_problems(path, verdict)
    ]
    if problems:
        raise LedgerError(
            f"{redacted(ledger)} does not verify. " + " ".join(f"{text}." for text in problems)
        )
    ends = {name: chain[-1] for name, chain in verdict.chains.items()}
    if as_json:
        described = {
            name: {
                "entries": end.number + 1,
                "head": end.hash,
                "unit": unit_of_account(verdict.chains[name][0]).to_dict(),
            }
            for name, end in ends.items()
        }
        print_json(
            {
                "verified": True,
                "datasets": sorted(ends),
                "heads": described,
                "seals_unchecked": list(verdict.unsealed),
            }
        )
        return
    accounts = "1 data set" if len(ends) == 1 else f"{len(ends)} data sets"
    click.echo(f"{redacted(ledger)} verifies: {accounts}, every hash and every total.")
    for name, end in ends.items():
        unit = unit_of_account(verdict.chains[name][0])
        click.echo(f"  {name}: {end.number + 1} entries, head {end.hash}, protects {unit}")
    if verdict.unsealed:
        names = ", ".join(verdict.unsealed)
        print_message(
            f"the seals of {names} were not checked: HUSHFIT_LEDGER_KEY_FILE names no key.",
            word="note",
        )


def _refuse_to_sign_unverified(ledger: str) -> None:
    """Refuse to sign entries that somebody may have edited."""
    from hushfit.errors import LedgerError
    from hushfit.privacy.ledger import verify as verified

    verdict = verified(ledger, [])
    problems = verdict.sentences() + [
        f"the seals of {name!r} were not checked: HUSHFIT_LEDGER_KEY_FILE names no key"
        for name in verdict.unsealed
    ]
    if problems:
        raise LedgerError(
            f"{redacted(ledger)} was not signed or exported. "
            + " ".join(f"{text}." for text in problems)
        )


def _accounts(ledger: str, dataset: str | None) -> list[Any]:
    from hushfit import Ledger
    from hushfit.privacy.ledger import ledger_datasets

    names = [dataset] if dataset is not None else ledger_datasets(ledger)
    return [Ledger(ledger, dataset=name) for name in names]


def _disk(account: Any) -> Any:
    return account.account


def balance(account: Any) -> dict[str, Any]:
    """Budget and total of an account, as plain values."""
    spent, budget = account.spent(), account.budget
    head = _disk(account).history()[-1].hash
    return {
        "dataset": account.name,
        "spent": spent.epsilon,
        "budget": budget.epsilon,
        "largest_fit": account.largest_fit(),
        "delta": budget.delta,
        "adjacency": str(account.relation),
        "unit": account.unit.to_dict(),
        "payments": len(account.entries),
        "rule": account.rule,
        "state": account.team.now.state,
        "head": head,
    }


def payments_of(account: Any) -> list[dict[str, Any]]:
    """Every payment of an account, as plain values."""
    from hushfit.privacy.ledger import Tally

    chain, receipts = _disk(account).history(), account.entries  # which may have grown meanwhile
    models = {
        entry.body["receipt"]: entry.body["model"] for entry in chain if entry.kind == "model"
    }
    return [
        {
            "number": entry.body["receipt"],
            **{key: entry.body[key] for key in ("at", "user", "host", "command", "label")},
            "total": float(entry.body["total"]),
            "epsilon_alone": Tally.of(account.account, (receipt,)).epsilon,
            "unit": receipt.unit.kind,
            "model": models.get(entry.body["receipt"]),
        }
        for entry, receipt in zip(
            (entry for entry in chain if entry.kind == "charge"), receipts, strict=False
        )
    ]


def _curve(payments: list[dict[str, Any]]) -> None:
    """The composed total after each payment, as a line of blocks."""
    top = max((p["total"] for p in payments), default=0.0)
    if 0 < top < math.inf:
        blocks = "".join("▁▂▃▄▅▆▇█"[min(int(8 * p["total"] / top), 7)] for p in payments[-80:])
        click.echo(f"  total after each payment: {blocks} {top:.4g}")
