"""Checks on output files, made before anything is paid for."""

import os
import tempfile
from pathlib import Path

from hushfit.errors import InvalidArgument


def refuse_to_overwrite(output: str, allowed: bool) -> None:
    """Nothing that was paid for is replaced by accident, and no fit is paid for that could not be saved."""
    path = Path(output)
    if path.exists() and not allowed:
        raise InvalidArgument(f"{output} exists. Choose another name, or say --overwrite.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InvalidArgument(f"{output} cannot be written ({os.strerror(error.errno or 0)}). Choose another place.") from None
