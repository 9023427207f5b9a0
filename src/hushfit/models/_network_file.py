"""How files of networks are recognised; `hushfit.torch` reads and writes them."""

import os

NETWORK_FORMAT = "hushfit-network"
_LENGTH_BYTES = 8  # a safetensors file begins with the length of its header
_LONGEST_HEADER = 100_000_000  # the limit of safetensors


def is_network(path: str | os.PathLike[str]) -> bool:
    """Whether a file is that of a network; its contents are not checked, and torch is not
    imported.

    The fields of a header have no order, so all of it is read.
    """
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if length > _LONGEST_HEADER:  # the first characters of a text
                return False
            return NETWORK_FORMAT.encode() in file.read(length)
    except OSError:
        return False  # whoever reads it says why
