"""``hushfit federate``: create a federation of data owners, join one, start a run, and follow
it.
"""

import json
import time
from pathlib import Path
from typing import Any

import click

from hushfit.cli._printing import json_option, print_json, print_panel, print_table

_BUDGET = ("epsilon", "delta")
_EVERY_SECONDS = 2.0  # between lines about rounds; `status --follow` shows them all


@click.group(
    "federate",
    short_help="Fit one model with owners who do not pool their rows.",
    epilog="""\b
Examples:
  hushfit federate init fed --owners north,east,south --host fed.example.org
  hushfit federate join invitation.json --name north --folder north
  hushfit federate approve north.csr --folder fed -o north.crt
  hushfit federate join invitation.json --name north --folder north \\
      --certificate north.crt
  hushfit federate fingerprint run.toml
  hushfit federate run fed run.toml
  hushfit federate status fed --follow""",
)
def command() -> None:
    """Create or join a federation: several owners fit one model, each with its own rows, noise and
    ledger.

    Needs the extra hushfit[federated]. Every key is generated where it is used; connections are
    always mutual TLS.
    """


@command.command("init", short_help="Create a federation.")
@click.argument("folder", type=click.Path(file_okay=False))
@click.option("--owners", required=True, metavar="NAME,NAME,...", help="Names of the owners.")
@click.option("--name", default="federation", show_default=True, help="Of the federation.")
@click.option(
    "--network",
    type=click.Choice(["complete", "ring", "star"]),
    default="complete",
    show_default=True,
)
@click.option(
    "--edge",
    "edges",
    multiple=True,
    metavar="NAME:NAME",
    help="An edge of the network, instead of --network.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the coordinator.")
@click.option("--port", type=int, default=18002, show_default=True)
@json_option
def init(
    folder: str,
    owners: str,
    name: str,
    network: str,
    edges: tuple[str, ...],
    host: str,
    port: int,
    as_json: bool,
) -> None:
    """Create the certificate authority, the coordinator's kit and the invitation in FOLDER.

    Send invitation.json to every owner, and the authority's fingerprint over another channel.
    FOLDER/ca can be moved to a neutral party: whoever holds it decides who is an owner.
    """
    _needs_engine()
    from hushfit.federated import Network
    from hushfit.federated.deployment import kits as _kits

    names = [owner.strip() for owner in owners.split(",")]
    graph = Network.parse(_edges(edges) if edges else network, names)
    invitation = _kits.found(folder, name, host, port, graph)
    if as_json:
        print_json(
            {
                "invitation": f"{folder}/invitation.json",
                "authority": invitation.fingerprint,
                "owners": names,
            }
        )
        return
    click.echo(
        f"Federation {name!r} of {', '.join(names)}; the coordinator will listen at {host}:{port}."
    )
    click.echo(f"Authority (SHA-256): {invitation.fingerprint}")
    click.echo(
        f"Send {folder}/invitation.json to the owners. Each of them runs `hushfit federate join`."
    )


def _edges(edges: tuple[str, ...]) -> list[tuple[str, str]]:
    from hushfit.errors import InvalidArgument

    pairs = [edge.split(":") for edge in edges]
    if not all(len(pair) == 2 for pair in pairs):
        raise InvalidArgument(
            f"--edge {', '.join(edges)} must be two names with a colon between them, such as "
            "north:east."
        )
    return [(a, b) for a, b in pairs]


@command.command("join", short_help="Create an owner's key and kit.")
@click.argument("invitation", type=click.Path(dir_okay=False))
@click.option("--name", required=True, help="Your name in the invitation.")
@click.option(
    "--folder",
    required=True,
    type=click.Path(file_okay=False),
    help="Where key, kit and owner.toml are stored.",
)
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False),
    help="The certificate that the coordinator sent; completes the kit.",
)
@click.option(
    "--authority",
    metavar="SHA256",
    help="The authority's fingerprint, as received over another channel.",
)
@json_option
def join(
    invitation: str,
    name: str,
    folder: str,
    certificate: str | None,
    authority: str | None,
    as_json: bool,
) -> None:
    """Join the federation of INVITATION, in two steps.

    First, without --certificate, a key is generated in FOLDER, and a request that you send to the
    coordinator. The key stays there. Then, with the --certificate that came back, the kit is
    completed: it refuses foreign code, shell commands and every class but hushfit's own. Fill in
    owner.toml, and start `hushfit owner run`.
    """
    _needs_engine()
    from hushfit.errors import InvalidArgument
    from hushfit.federated.deployment import fingerprint_of
    from hushfit.federated.deployment import kits as _kits

    invited = _kits.Invitation.read(invitation)
    if authority is not None and authority.lower().replace(":", "") != invited.fingerprint:
        raise InvalidArgument(
            f"the invitation's authority is {invited.fingerprint}, not {authority}. Do not join; "
            "ask the coordinator."
        )
    if certificate is None:
        path = _kits.request(folder, invited, name)
        result = {"request": str(path), "authority": invited.fingerprint}
        text = (
            f"Key generated. Send {path} to the coordinator, then run this again with "
            f"--certificate.\nAuthority (SHA-256): {invited.fingerprint}"
        )
    else:
        identity = _kits.install(folder, invited, name, _text(certificate))
        settings = _owner_file(Path(folder), name)
        result = {
            "kit": f"{folder}/kit",
            "owner": str(settings),
            "fingerprint": fingerprint_of(identity.certificate),
        }
        text = (
            f"Kit completed. Give your neighbours its fingerprint: {result['fingerprint']}\nNow "
            f"fill in {settings}, and run: hushfit owner run --config {settings}"
        )
    print_json(result) if as_json else click.echo(text)


def _text(path: str) -> str:
    from hushfit.errors import InvalidArgument

    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            f"{path} cannot be read ({type(error).__name__}). Check the path."
        ) from None


def _owner_file(folder: Path, name: str) -> Path:
    """A first owner.toml, if there is none."""
    path = folder / "owner.toml"
    if not path.exists():
        path.write_text(
            f"""# Read by this owner's processes only. Paths are relative to this file.
name = "{name}"
kit = "kit"
data = "rows.csv"          # a table, or a list of tables
schema = "schema.toml"     # must be the same at all owners
ledger = "ledger.db"       # created with: hushfit ledger init ledger.db --dataset {name} --epsilon ... --delta ... (--unit person, if the schema has persons)
dataset = "{name}"
state = "state"            # journals and results: never delete while a run may be resumed

[ceiling]                  # the largest budget of one run
epsilon = 1.0
delta = 1e-6

[peers]                    # fingerprints of neighbours' certificates, from another channel; optional

[approved]                 # runs that you approve, each with its fingerprint: hushfit federate fingerprint run.toml
""",  # noqa: E501
            encoding="utf-8",
        )
    return path


@command.command("approve", short_help="Turn an owner's request into a certificate.")
@click.argument("request", type=click.Path(dir_okay=False))
@click.option(
    "--folder", required=True, type=click.Path(file_okay=False), help="Of the federation."
)
@click.option(
    "--ca", type=click.Path(file_okay=False), help="Where the authority is, if it was moved."
)
@click.option(
    "--days",
    type=float,
    default=365.0,
    show_default=True,
    help="How long the certificate is valid.",
)
@click.option(
    "--replace",
    is_flag=True,
    help="Replace a certificate, after the owner has confirmed that it needs a new one.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    help="Where to write the certificate.",
)
@json_option
def approve(
    request: str,
    folder: str,
    ca: str | None,
    days: float,
    replace: bool,
    output: str,
    as_json: bool,
) -> None:
    """Sign REQUEST, for an invited name that has no certificate yet. Check with the owner, over
    another channel, that it is theirs.
    """
    _needs_engine()
    from hushfit.federated.deployment import kits as _kits

    invitation = _kits.Invitation.read(Path(folder) / "invitation.json")
    made = _kits.approve(
        ca or Path(folder) / "ca", invitation, _text(request).encode(), days, replace
    )
    Path(output).write_text(made, encoding="utf-8")
    print_json({"certificate": output}) if as_json else click.echo(
        f"Written: {output}. Send it back to the owner."
    )


@command.command("run", short_help="Start or resume a run.")
@click.argument("folder", type=click.Path(file_okay=False))
@click.argument("run_file", metavar="RUN.toml", type=click.Path(dir_okay=False))
@click.option(
    "--on-lost",
    type=click.Choice(["stop", "go-on"]),
    default="stop",
    show_default=True,
    help="What to do if an owner does not return.",
)
@click.option(
    "--patience", type=float, default=300.0, show_default=True, help="Seconds to wait for an owner."
)
@json_option
def run(folder: str, run_file: str, on_lost: str, patience: float, as_json: bool) -> None:
    """Start the coordinator of FOLDER, wait for the owners, and start the run that RUN.toml
    describes.

    If an owner is gone, the run resumes from its last completed round when it is back; no one pays
    twice. If it does not return, --on-lost decides. The same command again resumes a run that
    stopped.
    """
    _needs_engine()
    from hushfit.federated import nvflare

    spec = read_run(run_file)
    last = [0.0]

    def report(text: str) -> None:
        if text.startswith("round ") and time.monotonic() - last[0] < _EVERY_SECONDS:
            return
        last[0] = time.monotonic()
        click.echo(f"{time.strftime('%H:%M:%S')}  {text}", err=as_json)

    coordinator = nvflare.start_coordinator(folder)
    try:
        report(
            f"the coordinator is up; run {spec.run}, {spec.algorithm}, {len(spec.active)} owners"
        )
        report(f"its owners must have approved it: {spec.approval}")
        progress = nvflare.conduct(folder, spec, nvflare.Patience(on_lost, patience), report)
    finally:
        nvflare.end_process(coordinator)
    seconds = sorted(progress["seconds"])
    middle = seconds[len(seconds) // 2] if seconds else 0.0
    if as_json:
        print_json({**progress, "median_seconds": middle})
        return
    budgets = [spec.budgets[name] for name in spec.active]
    print_panel(
        f"Run {spec.run}",
        f"{progress['rounds']} rounds, {middle:.3f} s each (median). Every owner now has the "
        "model.\n"
        f"For {_protected(spec.unit)} in one owner's table: "
        f"epsilon={max(b.epsilon for b in budgets):g} (the largest of all owners), "
        f"{spec.terms['model']['adjacency']}. "
        f"For one who may be in all of them: the sum, {sum(b.epsilon for b in budgets):g}.",
    )


def _protected(unit: Any) -> str:
    return "a person with all of their rows" if unit.is_person else "a person with one row"


@command.command("fingerprint", short_help="Print the fingerprint that an owner approves.")
@click.argument("run_file", metavar="RUN.toml", type=click.Path(dir_okay=False))
@json_option
def fingerprint(run_file: str, as_json: bool) -> None:
    """Print the fingerprint of the run that RUN.toml describes, as a line for an owner's file.

    An owner that approves the run adds the line under [approved] in its owner.toml. The fingerprint
    covers the table, the unit of privacy, the model, the algorithm with its settings, the owners,
    and the budget of each of them; the owner takes part in no other run.
    """
    _needs_engine()
    spec = read_run(run_file)
    if as_json:
        print_json({"run": spec.run, "fingerprint": spec.fingerprint})
        return
    click.echo(
        f"Run {spec.run}: {spec.algorithm}, {len(spec.active)} owners, protects "
        f"{spec.unit.in_words}. To approve it, add this line under [approved] in owner.toml:"
    )
    click.echo(spec.approval)


def read_run(path: str | Path) -> Any:
    """Read a run from its TOML file; the path of its schema is relative to it."""
    from hushfit.data.tables import read_schema
    from hushfit.errors import InvalidArgument
    from hushfit.federated.deployment import read_toml

    path = Path(path)
    given = read_toml(path)
    unknown = set(given) - {
        "name",
        "schema",
        "algorithm",
        "network",
        "edges",
        "settings",
        "model",
        "owners",
        "turn_timeout",
    }
    owners = given.get("owners")
    complete = isinstance(owners, dict) and all(
        isinstance(o, dict) and set(o) in ({"rows", *_BUDGET}, {"persons", *_BUDGET})
        for o in owners.values()
    )
    if unknown or not complete or not {"name", "schema"} <= set(given):
        raise InvalidArgument(
            f"{path} needs name, schema, and [owners.NAME] with rows (or persons, if the schema "
            "has a column of their ids), epsilon and delta; it may have algorithm, network or "
            "edges, settings, model and turn_timeout"
            + (f", not {', '.join(sorted(unknown))}." if unknown else ".")
        )
    try:
        return _run_of(given, read_schema(path.parent / given["schema"]).schema)
    except InvalidArgument:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
        raise InvalidArgument(
            f"{path} has an entry of the wrong type ({type(error).__name__}). Compare it with the "
            "example in the documentation."
        ) from None


def _run_of(given: dict[str, Any], schema: Any) -> Any:
    from hushfit.federated import Network
    from hushfit.federated.deployment import RunSpec, terms_of
    from hushfit.privacy import Budget

    owners = given["owners"]
    network = (
        given.get("network", "complete")
        if "edges" not in given
        else [tuple(edge) for edge in given["edges"]]
    )
    return RunSpec(
        run=str(given["name"]),
        algorithm=given.get("algorithm", "shared"),
        settings=given.get("settings", {}),
        network=Network.parse(network, list(owners)),
        units={name: _size(name, owner, schema) for name, owner in owners.items()},
        budgets={name: Budget(owner["epsilon"], owner["delta"]) for name, owner in owners.items()},
        terms=terms_of(schema, **given.get("model", {})),
        turn_timeout=float(given.get("turn_timeout", 60.0)),
    )


def _size(name: str, owner: dict[str, Any], schema: Any) -> Any:
    """Number of rows, or of persons, that a run states for an owner."""
    from hushfit.errors import InvalidArgument

    unit = schema.privacy_unit
    if unit.plural not in owner:
        raise InvalidArgument(
            f"[owners.{name}] should state its number of {unit.plural}: the schema of the run "
            f"protects {unit.in_words}. Write {unit.plural} = ..."
        )
    return owner[unit.plural]


@command.command("status", short_help="Show rounds, silent owners and lost owners.")
@click.argument("folder", type=click.Path(file_okay=False))
@click.option("--run", "name", help="Only this run.")
@click.option("--follow", is_flag=True, help="Repeat until the run ends.")
@json_option
def status(folder: str, name: str | None, follow: bool, as_json: bool) -> None:
    """Print the progress of the runs of FOLDER. This is all that a coordinator knows about them."""
    while True:
        found = _runs(Path(folder), name)
        if as_json:
            print_json({"runs": found})
        else:
            print_table(
                "Runs",
                ["run", "state", "attempt", "rounds", "s/round", "silent", "gone", "last seen"],
                [_row(p) for p in found],
            )
        if not follow or all(p["state"] != "running" for p in found):
            return
        time.sleep(1.0)


def _runs(folder: Path, name: str | None) -> list[dict[str, Any]]:
    from hushfit.errors import InvalidArgument

    if not (folder / "invitation.json").exists():
        raise InvalidArgument(
            f"{folder} holds no federation. Give the folder of `hushfit federate init`."
        )
    found = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((folder / "runs").glob("*.json"))
    ]
    return [progress for progress in found if name is None or progress["run"] == name]


def _row(progress: dict[str, Any]) -> list[str]:
    seconds = sorted(progress["seconds"])
    middle = f"{seconds[len(seconds) // 2]:.3f}" if seconds else "-"
    ago = f"{max(0.0, time.time() - progress['at']):.0f} s ago"
    return [
        progress["run"],
        progress["state"],
        str(progress["attempt"]),
        str(progress["rounds"]),
        middle,
        ", ".join(progress["silent"]) or "none",
        ", ".join(progress["lost"]) or "none",
        ago,
    ]


def _needs_engine() -> None:
    """Refuse with a clear message if the engine is not installed."""
    from importlib.util import find_spec

    from hushfit.errors import InvalidArgument

    if find_spec("nvflare") is None or find_spec("cryptography") is None:
        raise InvalidArgument(
            "this needs the federated engine. Install it: pip install 'hushfit[federated]'."
        )
