"""Serve the studio until it is interrupted."""

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import uvicorn

from hushfit._pages import rendered
from hushfit.errors import InvalidArgument
from hushfit.studio._app import make_app
from hushfit.studio._connections import PatientProtocol
from hushfit.studio._settings import Settings


def serve(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve the studio until it is interrupted.

    Parameters
    ----------
    settings : Settings
    announce : callable
        Called with the address, token included, when it can be opened.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        raise InvalidArgument(
            f"--port {settings.port} of {settings.host} cannot be used ({error.strerror}). Choose "
            "another, or leave it out."
        ) from None
    with listener:
        port = listener.getsockname()[1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        token = "" if settings.accounts else f"?token={settings.secret}"
        config = uvicorn.Config(
            make_app(settings),
            http=PatientProtocol,
            log_level="error",
            access_log=False,  # addresses hold the token
            server_header=False,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
            timeout_keep_alive=5,
            limit_concurrency=200,
        )
        listener.listen(2048)  # from here on browsers wait rather than fail
        announce(f"{settings.scheme}://{host}:{port}{settings.root}/{token}")
        uvicorn.Server(config).run(sockets=[listener])


def doorway(settings: Settings, address: str) -> Path:
    """A file that leads a browser to the studio, and that nobody else can read.

    The arguments of a browser's process can be seen by all users of the machine; the token must
    not be among them.

    Parameters
    ----------
    settings : Settings
    address : str
        With the token.

    Returns
    -------
    Path
    """
    # A studio that is only looked at writes nothing into its folder.
    own = Path(tempfile.mkdtemp()) if settings.read_only else settings.folder / ".studio"
    place = own / "open.html"
    place.unlink(missing_ok=True)
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(rendered(__package__, "entered.html", first=address))
    return place.resolve()
