"""A client of a Dask cluster, over TLS."""

from pathlib import Path
from typing import Any

from distributed import Client, Security

from hushfit.errors import InvalidArgument

# Seconds to wait for a scheduler.
_CONNECT_SECONDS = 30


def connected(
    address: str,
    ca_file: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
) -> Any:
    """Connect to a scheduler.

    Parameters
    ----------
    address : str
        ``tls://host:port``. Another one is refused unless it is on this machine: rows and exact
        sums travel between scheduler, workers and client.
    ca_file, cert, key : path
        Certificate of the authority that signed the cluster's, and the client's own certificate and
        key; needed for ``tls://``.

    Returns
    -------
    distributed.Client
        Close it at the end, or use it in a ``with`` statement.

    Raises
    ------
    InvalidArgument
        If there is no such scheduler, or it does not accept the certificate.

    Examples
    --------
    >>> from hushfit.dask import connected
    >>> connected("tcp://elsewhere:8786")
    Traceback (most recent call last):
    hushfit.errors.InvalidArgument: ...
    """
    given = {"ca_file": ca_file, "cert": cert, "key": key}
    missing = [name for name, path in given.items() if path is None or not Path(path).is_file()]
    if address.startswith("tls://"):
        if missing:
            raise InvalidArgument(
                f"{address} needs the files {', '.join(missing)}: the certificate of the "
                "cluster's authority, and the client's certificate and key. Give them."
            )
        security = Security(
            tls_ca_file=str(ca_file),
            tls_client_cert=str(cert),
            tls_client_key=str(key),
            require_encryption=True,
        )
    elif address.startswith(("tcp://127.0.0.1:", "tcp://localhost:")):
        security = Security()
    else:
        raise InvalidArgument(
            f"{address!r} is not encrypted, and private rows would travel in the open. Use "
            "tls://host:port."
        )
    try:
        return Client(address, security=security, timeout=_CONNECT_SECONDS)
    except (OSError, TimeoutError) as error:
        raise InvalidArgument(
            f"there is no scheduler at {address} that accepts this certificate "
            f"({type(error).__name__}). Nothing was spent. Check address, port and certificates."
        ) from None
