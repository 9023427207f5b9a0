"""How files of networks are recognised; `hushfit.torch` reads and writes them."""

import os

NETWORK_FORMAT = "hushfit-network"
_BEGINNING = 4096


def is_network(path: str | os.PathLike[str]) -> bool:
    """Whether a file is that of a network; its contents are not checked, and torch is not
    imported.
    """
    try:
        with open(path, "rb") as file:
            return NETWORK_FORMAT.encode() in file.read(_BEGINNING)
    except OSError:
        return False  # whoever reads it says why
