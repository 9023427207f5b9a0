"""``hushfit studio``: a page in the browser for all of this."""

from pathlib import Path

import click


@click.command(
    "studio",
    short_help="Work in the browser: table, plan, fit, budget, models.",
    epilog="""\b
Examples:
  hushfit studio patients.csv
  hushfit studio --folder study --ledger postgresql://analyst@db/ledger
  hushfit studio --read-only
  hushfit studio --host studio.example --port 8443 --accounts \\
      --tls-cert cert.pem --tls-key key.pem --officer carol""",
)
@click.argument("table", required=False, type=click.Path(dir_okay=False, exists=True))
@click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True),
    help="Where tables, schemas and models are.  [default: that of TABLE, or else this one]",
)
@click.option(
    "--ledger",
    envvar="HUSHFIT_LEDGER",
    metavar="PATH|URL",
    help="Ledger, relative to the folder.  [default: ledger.db]",
)
@click.option("--port", type=int, default=0, help="Port; a free one if not given.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Another than loopback needs TLS and --accounts.",
)
@click.option("--tls-cert", type=click.Path(dir_okay=False, exists=True), help="Certificate (PEM).")
@click.option("--tls-key", type=click.Path(dir_okay=False, exists=True), help="Its key (PEM).")
@click.option(
    "--accounts",
    is_flag=True,
    help="People log in with tokens of the ledger (`hushfit ledger token`) and pay in their own "
    "name.",
)
@click.option(
    "--officer",
    "officers",
    multiple=True,
    metavar="PERSON",
    help="With --accounts: may look, not change anything.",
)
@click.option("--read-only", is_flag=True, help="Nobody may change anything.")
@click.option(
    "--max-upload",
    type=int,
    default=2 << 30,
    show_default=True,
    help="Largest upload in bytes.",
)
@click.option("--open/--no-open", "opens", default=True, help="Open the browser.")
def command(
    table: str | None,
    folder: str | None,
    ledger: str | None,
    port: int,
    host: str,
    tls_cert: str | None,
    tls_key: str | None,
    accounts: bool,
    officers: tuple[str, ...],
    read_only: bool,
    max_upload: int,
    opens: bool,
) -> None:
    """Serve pages to describe a table, plan, fit, watch budgets and compare models.

    It listens on this machine only. The address that it prints holds a token: whoever has it can
    spend the budget. Nothing is loaded from the network and nothing is sent anywhere. Fits run one
    after the other, each a `hushfit fit` of its own; pages show the command to copy.

    Needs `pip install hushfit[studio]`.
    """
    from hushfit.errors import InvalidArgument

    try:
        from hushfit.studio import Settings, doorway, serve
    except ModuleNotFoundError as error:
        if error.name in ("fcntl", "resource"):
            raise InvalidArgument(
                "the studio needs Linux or macOS, whose locks it uses. Use the command line."
            ) from None
        raise InvalidArgument(
            f"the studio needs {error.name}, which is not installed. Run `pip install "
            "hushfit[studio]`."
        ) from None
    place = Path(folder or (Path(table).parent if table else "."))
    if table is not None and Path(table).resolve().parent != place.resolve():
        raise InvalidArgument(f"{table} is not in the folder {place}. Leave --folder out.")
    settings = Settings(
        folder=place,
        table=None if table is None else Path(table).name,
        ledger=ledger,
        host=host,
        port=port,
        certificate=None if tls_cert is None else Path(tls_cert),
        key=None if tls_key is None else Path(tls_key),
        accounts=accounts,
        officers=officers,
        read_only=read_only,
        max_upload=max_upload,
    )

    def announce(address: str) -> None:
        click.echo(f"hushfit studio: {address}")
        if opens:
            click.launch(str(doorway(settings, address)))

    serve(settings, announce)
