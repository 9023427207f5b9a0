"""Verbs of ``hushfit ledger`` for a team: grants, approvals, freezing, renewal and tokens."""

from typing import Any

import click

from hushfit.cli._printing import json_option, print_json, print_message, print_table

_dataset = click.argument("dataset", metavar="DATASET")
_ledger = click.option(
    "--ledger",
    envvar="HUSHFIT_LEDGER",
    default="ledger.db",
    show_default=True,
    show_envvar=True,
    metavar="PATH|URL",
    help="SQLite file or postgresql:// address of the ledger.",
)
_until = click.option("--until", metavar="DAY", help="Last day in UTC, such as 2027-01-01.")


@click.command("grant", short_help="Give a person a ceiling.")
@_dataset
@_ledger
@click.option("--to", "person", required=True, metavar="PERSON", help="Who may spend it.")
@click.option("--epsilon", required=True, type=float, help="Ceiling, at most the total.")
@click.option("--delta", type=float, help="Of the ceiling.  [default: that of the account]")
@_until
@json_option
def grant(
    dataset: str,
    ledger: str,
    person: str,
    epsilon: float,
    delta: float | None,
    until: str | None,
    as_json: bool,
) -> None:
    """Give PERSON a ceiling on DATASET, or another one: what was spent counts.

    PERSON is the database role on PostgreSQL, the user of the system on SQLite, or the person of a
    token. From the first grant on only holders of grants can pay, and a charge must fit the ceiling
    of its payer and the total. Ceilings may add up to more than the total: then the first who asks
    is served.
    """
    team = _team(ledger, dataset)
    entry = team.grant(person, epsilon, delta, until)
    _confirm(entry, as_json, f"{person} may spend epsilon={epsilon:g} of {dataset!r}")
    now, total = team.now, team.account.budget.epsilon
    if now.committed > total:
        print_message(
            f"the ceilings add up to epsilon={now.committed:g}, the total is {total:g}: not all "
            "can be used up. The first who asks is served.",
            word="note",
        )


@click.command("revoke", short_help="End the grant of a person.")
@_dataset
@_ledger
@click.option("--from", "person", required=True, metavar="PERSON", help="Who holds it.")
@json_option
def revoke(dataset: str, ledger: str, person: str, as_json: bool) -> None:
    """End the grant of PERSON on DATASET."""
    entry = _team(ledger, dataset).revoke(person)
    _confirm(entry, as_json, f"{person} can spend nothing of {dataset!r} any more")


@click.command("transfer", short_help="Hand over a grant, or part of its ceiling.")
@_dataset
@_ledger
@click.option("--from", "giver", required=True, metavar="PERSON", help="Who holds it.")
@click.option("--to", "person", required=True, metavar="PERSON", help="Who will.")
@click.option("--epsilon", type=float, help="Part of the ceiling.  [default: the whole grant]")
@json_option
def transfer(
    dataset: str, ledger: str, giver: str, person: str, epsilon: float | None, as_json: bool
) -> None:
    """Hand over a grant on DATASET with all that was spent under it; with --epsilon lower one
    ceiling and raise another by the same amount.
    """
    entry = _team(ledger, dataset).transfer(giver, person, epsilon)
    part = "the whole grant" if epsilon is None else f"epsilon={epsilon:g} of the ceiling"
    _confirm(entry, as_json, f"{part} of {giver} on {dataset!r} passed to {person}")


@click.command("limit", short_help="Let large charges wait for a second person.")
@_dataset
@_ledger
@click.option("--epsilon", type=float, help="Largest charge that needs no approval.")
@click.option("--none", "unlimited", is_flag=True, help="Remove the limit.")
@json_option
def limit(dataset: str, ledger: str, epsilon: float | None, unlimited: bool, as_json: bool) -> None:
    """Let charges on DATASET above an epsilon wait until another administrator approves them."""
    if (epsilon is None) is not unlimited:
        raise click.UsageError("Give either --epsilon or --none.")
    entry = _team(ledger, dataset).set_limit(epsilon)
    bound = "No charge" if epsilon is None else f"A charge above epsilon={epsilon:g}"
    _confirm(entry, as_json, f"{bound} on {dataset!r} waits for a second person")


@click.command("approve", short_help="Allow a charge that waits.")
@_dataset
@click.argument("request", type=int)
@_ledger
@click.option("--decline", is_flag=True, help="Refuse it instead.")
@json_option
def approve(dataset: str, request: int, ledger: str, decline: bool, as_json: bool) -> None:
    """Allow the charge on DATASET that waits as REQUEST: whoever asked can then make it, once.
    `hushfit ledger team` lists requests.
    """
    team = _team(ledger, dataset)
    entry = team.decline(request) if decline else team.approve(request)
    asked = team.now.request(request)
    _confirm(entry, as_json, f"Request {request} of {asked.user} ({asked.label}): {asked.state}")


@click.command("freeze", short_help="Stop charges for the time being.")
@_dataset
@_ledger
@click.option("--of", "person", metavar="PERSON", help="Only the charges of this person.")
@json_option
def freeze(dataset: str, ledger: str, person: str | None, as_json: bool) -> None:
    """Stop all charges on DATASET until `thaw`."""
    entry = _team(ledger, dataset).freeze(person)
    _confirm(
        entry, as_json, f"{dataset!r} is frozen" + ("" if person is None else f" for {person}")
    )


@click.command("thaw", short_help="Allow charges again.")
@_dataset
@_ledger
@click.option("--of", "person", metavar="PERSON", help="Only the charges of this person.")
@json_option
def thaw(dataset: str, ledger: str, person: str | None, as_json: bool) -> None:
    """Allow charges on DATASET again after `freeze`."""
    entry = _team(ledger, dataset).thaw(person)
    _confirm(entry, as_json, f"{dataset!r} is open{_for(person)}")


@click.command("close", short_help="Stop charges for ever.")
@_dataset
@_ledger
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def close(dataset: str, ledger: str, yes: bool, as_json: bool) -> None:
    """Stop all charges on DATASET for ever. Its history stays."""
    if not yes:
        click.confirm(f"Close {dataset!r} for ever?", abort=True, err=True)
    entry = _team(ledger, dataset).close()
    _confirm(entry, as_json, f"{dataset!r} is closed")


@click.command("renew", short_help="Close an account and open its successor.")
@_dataset
@_ledger
@click.option("--as", "renewed", required=True, metavar="NAME", help="Name of the new data set.")
@click.option("--epsilon", required=True, type=float, help="Total budget of the new rows.")
@click.option("--delta", type=float, help="[default: that of the old account]")
@_until
@json_option
def renew(
    dataset: str,
    ledger: str,
    renewed: str,
    epsilon: float,
    delta: float | None,
    until: str | None,
    as_json: bool,
) -> None:
    """Close the account of DATASET and open one for the renewed rows, which names the old one.

    Adjacency, unit and rule stay; grants have to be given again. For somebody whose rows are in
    both data sets the epsilons and deltas of both accounts add up.
    """
    old = _account(ledger, dataset)
    made = old.renew(renewed, epsilon, delta, until)
    if as_json:
        print_json({"dataset": made.name, "renews": dict(made.team.now.renews)})
        return
    click.echo(
        f"Account {made.name!r}: epsilon={made.budget.epsilon:g} at delta={made.budget.delta:g}, "
        f"nothing spent. It renews {dataset!r}, which is closed."
    )
    print_message(
        f"for somebody whose rows are in both, the totals add up: epsilon="
        f"{old.spent().epsilon + made.budget.epsilon:.4g} at delta="
        f"{old.budget.delta + made.budget.delta:g} once the new budget is spent.",
        word="note",
    )


@click.command("appoint", short_help="Appoint or dismiss an administrator.")
@_dataset
@click.argument("person")
@_ledger
@click.option("--dismiss", is_flag=True, help="Make PERSON an administrator no longer.")
@json_option
def appoint(dataset: str, person: str, ledger: str, dismiss: bool, as_json: bool) -> None:
    """Make PERSON an administrator of DATASET, who may grant, approve, freeze and close."""
    team = _team(ledger, dataset)
    entry = team.dismiss(person) if dismiss else team.appoint(person)
    _confirm(entry, as_json, f"Administrators of {dataset!r}: {', '.join(team.administrators)}")


@click.command("team", short_help="Grants, requests and administrators.")
@_dataset
@_ledger
@json_option
def team(dataset: str, ledger: str, as_json: bool) -> None:
    """Print who may spend what of DATASET, and what waits for approval."""
    from hushfit.privacy.ledger import team_summary

    now = _team(ledger, dataset).now
    summary = team_summary(now)
    if as_json:
        print_json(summary)
        return
    click.echo(f"{dataset}: {summary['state']}, administrators {', '.join(now.administrators)}")
    if now.renews is not None:
        click.echo(f"renews {now.renews['dataset']!r}")
    if now.until is not None:
        click.echo(f"can be charged until {now.until}")
    if now.limit is not None:
        click.echo(f"charges above epsilon={now.limit:g} wait for a second person")
    if now.grants:
        _print_grants(summary)
    waiting = [request for request in summary["requests"] if request["state"] == "waiting"]
    if waiting:
        rows = [
            [str(r["request"]), r["user"], r["label"], f"{r['epsilon']:.4g}", r["at"][:16]]
            for r in waiting
        ]
        print_table("Waiting for approval", ["#", "who", "what", "epsilon", "since (UTC)"], rows)


@click.command("token", short_help="Token with which a service acts for a person.")
@click.argument("person")
@click.option("--until", required=True, metavar="DAY", help="Last day in UTC.")
@json_option
def token(person: str, until: str, as_json: bool) -> None:
    """Print a token for PERSON, signed with the key that HUSHFIT_LEDGER_KEY_FILE names.

    A service that holds the key, such as `hushfit studio`, records what it is asked with the token
    as done by PERSON. It is a secret: whoever has it can pay in that name. Its signature is checked
    wherever HUSHFIT_LEDGER_TOKEN holds it.
    """
    from hushfit.privacy.ledger import issue_token

    issued = issue_token(person, until)
    if as_json:
        print_json({"person": person, "until": until, "token": issued})
    else:
        click.echo(issued)


@click.command("audit", short_help="Check an export without the ledger.")
@click.argument("export", type=click.Path(dir_okay=False))
@click.option(
    "--signer", type=click.Path(dir_okay=False), help="Public key that must have signed it (PEM)."
)
@json_option
def audit(export: str, signer: str | None, as_json: bool) -> None:
    """Check every hash, rule and total of EXPORT; exit code 4 if anything is wrong.

    An auditor needs the export and, with --signer, the public key of whoever signed it. Seals need
    the ledger's key and are not checked.
    """
    from hushfit.errors import LedgerError
    from hushfit.privacy.ledger import verify_export

    verdict = verify_export(export, signer)
    if problems := verdict.sentences():
        raise LedgerError(f"{export} does not verify. " + " ".join(f"{p}." for p in problems))
    if as_json:
        heads = {name: chain[-1].hash for name, chain in verdict.chains.items()}
        print_json({"verified": True, "signed": signer is not None, "heads": heads})
        return
    signed = f", signed with {signer}" if signer else ""
    click.echo(f"{export} verifies: every hash, rule and total{signed}.")
    for name, chain in verdict.chains.items():
        click.echo(f"  {name}: {len(chain)} entries, head {chain[-1].hash}")


VERBS = (
    grant,
    revoke,
    transfer,
    limit,
    approve,
    freeze,
    thaw,
    close,
    renew,
    appoint,
    team,
    token,
    audit,
)


def _print_grants(summary: dict[str, Any]) -> None:
    rows = [
        [g["holder"], f"{g['spent']:.4g}", f"{g['epsilon']:g}", f"{g['delta']:g}"]
        + [g["until"] or "", g["state"], str(g["payments"])]
        for g in summary["grants"]
    ]
    columns = ["who", "spent", "ceiling", "delta", "until", "state", "payments"]
    print_table("Grants", columns, rows)
    click.echo(
        f"ceilings add up to epsilon={summary['committed']:g}, the total is "
        f"{summary['budget']:g}: the total holds in any case"
    )


def _account(ledger: str, dataset: str) -> Any:
    from hushfit import Ledger

    return Ledger(ledger, dataset=dataset)


def _team(ledger: str, dataset: str) -> Any:
    return _account(ledger, dataset).team


def _for(person: str | None) -> str:
    return "" if person is None else f" for {person}"


def _confirm(entry: Any, as_json: bool, sentence: str) -> None:
    """Say what was recorded."""
    if as_json:
        print_json({"entry": entry.number, "hash": entry.hash, **entry.body})
    else:
        click.echo(f"{sentence} (entry {entry.number}).")
