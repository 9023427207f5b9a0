"""``hushfit owner``: take part in runs with one's own rows, and show requests and spending."""

import signal
import time
from pathlib import Path
from typing import Any

import click

from hushfit.cli._printing import json_option, print_json, print_message, print_table
from hushfit.cli.verbs.federate import _needs_engine

_config = click.option(
    "--config",
    "path",
    required=True,
    type=click.Path(dir_okay=False),
    help="The owner's own file (TOML).",
)


@click.group(
    "owner",
    short_help="Take part in a federation with your own rows.",
    epilog="""\b
Examples:
  hushfit owner run --config owner.toml
  hushfit owner show --config owner.toml""",
)
def command() -> None:
    """Take part in the runs of a federation. Rows stay here; only noisy, encrypted messages are
    sent.
    """


@command.command("run", short_help="Wait for runs and take part in them.")
@_config
@click.option("--once", is_flag=True, help="End after the first run that finishes.")
def run(path: str, once: bool) -> None:
    """Connect to the coordinator and take part in the runs that it requests, until interrupted.

    A run that is not under [approved] in the owner's file, exceeds the ceiling or the ledger's
    budget, or describes another table is refused before anything is released; the line that would
    approve it is printed. When a run finishes, the model is written to the state folder. After a
    crash, start this again: nothing is paid or drawn twice.
    """
    _needs_engine()
    from hushfit.federated import nvflare
    from hushfit.federated.deployment import Identity, OwnerConfig

    config = OwnerConfig.load(path)
    Identity.read(config.name, config.kit / "startup")
    config.own_schema()
    _print_account(config)
    signal.signal(signal.SIGTERM, _interrupt)
    with nvflare.kit_in_use(config.kit) as held:
        _take_part(config, Path(path), held, once)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _take_part(config: Any, path: Path, held: int, once: bool) -> None:
    from hushfit.federated import nvflare
    from hushfit.federated.deployment import Events

    events, process, reported = Events(config.state), None, ""
    _, place = events.read()
    try:
        while True:
            if process is None or process.poll() is not None:
                why = nvflare.try_connection(config)
                if why is not None and why != reported:
                    print_message(why, word="note")
                if why is None:
                    process = nvflare.start_owner(config, path, [held])
                    click.echo(f"{config.name} is connecting")
                reported = why or ""
            new_events, place = events.read(place)
            finished = [_print_event(config, event) for event in new_events]
            if once and any(finished):
                return
            time.sleep(0.3)
    finally:
        if process is not None:
            nvflare.end_process(process)


def _print_event(config: Any, event: dict[str, Any]) -> bool:
    """Print one event; True if a run has finished."""
    when = event["at"][11:19]
    if event["what"] == "asked":
        who = ", ".join(event["owners"])
        click.echo(
            f"{when}  request for run {event['run']} ({event['algorithm']}, with {who}): "
            f"epsilon={event['epsilon']:g}, delta={event['delta']:g}, protects {event['protects']}"
        )
    elif event["what"] == "open":
        spent = event["spent"]
        click.echo(
            f"{when}  takes part from round {event['turns']}; spent in all "
            f"epsilon={spent['epsilon']:.4g} of {spent['budget']:g}"
        )
    elif event["what"] == "finished":
        click.echo(
            f"{when}  run {event['run']} finished after {event['rounds']} rounds; model: "
            f"{write_model(config, event['run'])}"
        )
        return True
    else:
        print_message(f"{when}  {event['what']}: {event['why']}", word="warning")
    return False


def write_model(config: Any, run: str) -> Path:
    """Write the model of a finished run, with its guarantee and receipt, to the state folder."""
    import json

    import numpy as np

    from hushfit.data.schema import schema_hash
    from hushfit.estimators import Prepared
    from hushfit.federated import unpacked
    from hushfit.federated.deployment import made_estimator, outcome_path
    from hushfit.models import Model, PaidReceipt, Provenance, save_model
    from hushfit.privacy import Budget, Guarantee
    from hushfit.solvers import Result

    outcome = json.loads(outcome_path(config, run).read_text(encoding="utf-8"))
    schema, guarantee = config.own_schema(), Guarantee.from_dict(outcome["guarantee"])
    estimator = made_estimator(outcome["terms"], Budget(guarantee.epsilon, guarantee.delta))
    estimator.set_params(pos_label=schema.target.positive)
    classes = np.array(schema.target.categories)
    problem = estimator.problem(
        outcome["units"], len(schema.feature_names), len(classes), guarantee.unit
    )
    weights = unpacked(outcome["weights"]).reshape(outcome["shape"])
    estimator.accept(
        Result(weights, outcome["rounds"]),
        guarantee,
        Prepared(None, problem, classes, None),  # type: ignore[arg-type]
    )  # no rows needed
    ledger = config.open_ledger()
    paid = next(receipt for receipt in ledger.entries if receipt.number == outcome["receipt"])
    receipt = PaidReceipt(ledger.name, paid.number, ledger.account.hash_of(paid))
    path: Path = config.state / f"{run}.model.json"
    digest = save_model(
        Model(
            estimator,
            schema,
            None,
            receipt,
            Provenance.now(f"federated run {run}", schema_hash(schema)),
        ),
        path,
    )
    ledger.account.record_model(paid, digest)
    return path


def _print_account(config: Any) -> None:
    ledger = config.open_ledger()
    spent = ledger.spent()
    click.echo(
        f"{config.name}: ledger {ledger.name!r} has spent epsilon={spent.epsilon:.4g} of "
        f"{ledger.budget.epsilon:g} at delta={ledger.budget.delta:g} ({ledger.relation}); ceiling "
        f"of one run: epsilon={config.ceiling.epsilon:g}, delta={config.ceiling.delta:g}"
    )


@command.command("show", short_help="Show requests and spending.")
@_config
@json_option
def show(path: str, as_json: bool) -> None:
    """Print every requested run, its outcome, and the ledger's total."""
    _needs_engine()
    from hushfit.federated.deployment import Events, OwnerConfig

    config = OwnerConfig.load(path)
    events, _ = Events(config.state).read()
    ledger = config.open_ledger()
    if as_json:
        spent = ledger.spent()
        total = {"epsilon": spent.epsilon, "delta": spent.delta, "budget": ledger.budget.epsilon}
        print_json({"name": config.name, "spent": total, "events": events})
        return
    _print_account(config)
    rows = [
        [
            event["at"][:19].replace("T", " "),
            event["what"],
            str(event.get("run", "")),
            _details(event),
        ]
        for event in events
    ]
    print_table("Requests and outcomes", ["when (UTC)", "what", "run", "details"], rows)


def _details(event: dict[str, Any]) -> str:
    if event["what"] == "asked":
        return (
            f"epsilon={event['epsilon']:g}, delta={event['delta']:g}, {event['algorithm']}, "
            f"attempt {event['attempt']}"
        )
    return str(
        event.get("why")
        or (
            f"from round {event['turns']}"
            if "turns" in event
            else f"{event.get('rounds', '')} rounds"
        )
    )
