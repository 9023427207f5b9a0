"""``--dask``: rows on the workers of a Dask cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

_OF_TEXT = {
    "format_": "--format",
    "encoding": "--encoding",
    "delimiter": "--delimiter",
    "header": "--header",
}


def dask_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name a cluster and the certificates for it."""
    options = [
        click.option(
            "--dask",
            metavar="ADDRESS",
            help="Encode and add up on the workers of the Dask cluster with this scheduler, such "
            "as tls://host:8786; for Parquet files that all workers see.",
        ),
        click.option(
            "--dask-ca",
            type=click.Path(dir_okay=False),
            help="Certificate of the authority of the cluster.",
        ),
        click.option(
            "--dask-cert", type=click.Path(dir_okay=False), help="Certificate of this client."
        ),
        click.option(
            "--dask-key", type=click.Path(dir_okay=False), help="Private key of this client."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def refuse_ignored(given: dict[str, Any]) -> None:
    """Refuse certificates without a cluster, and options for files that are read here with one."""
    if given["dask"] is None:
        if any(given[f"dask_{name}"] for name in ("ca", "cert", "key")):
            raise click.UsageError("--dask-ca, --dask-cert and --dask-key need --dask ADDRESS.")
        return
    if given["cache"] is not None:
        raise click.UsageError(
            "--cache would be ignored: with --dask every worker keeps its own packed rows while "
            "the fit runs, and none afterwards. Leave out --cache, or fit on one machine without "
            "--dask. Nothing was spent."
        )
    ignored = [option for name, option in _OF_TEXT.items() if given[name] not in (None, "parquet")]
    if ignored:
        raise click.UsageError(
            f"{', '.join(ignored)} would be ignored: --dask reads Parquet files. Leave it out, or "
            "fit on one machine without --dask. Nothing was spent."
        )


@contextmanager
def cluster_rows(given: dict[str, Any], schema: Any) -> Iterator[Any]:
    """Rows of Parquet files on the cluster that the options name."""
    if given["adjacency"].endswith("label"):
        raise click.UsageError(
            f"--adjacency {given['adjacency']} needs all features in one place. Leave out --dask. "
            "Nothing was spent."
        )
    try:
        from hushfit.dask import DaskRows, connected
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f"--dask needs {error.name}, which is not installed: pip install hushfit[dask]."
        ) from None

    files = (given["dask_ca"], given["dask_cert"], given["dask_key"])
    with (
        connected(given["dask"], *files) as client,
        DaskRows.from_parquet(list(given["tables"]), schema, client=client) as rows,
    ):
        yield rows
