"""Files that are replaced as a whole. Light: verbs that fit nothing need no more."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hushfit.errors import InvalidArgument


def write_whole(path: Path, text: str | Iterable[str]) -> None:
    """Replace a text file atomically."""
    with replaced(path) as file:
        file.writelines(piece.encode() for piece in ([text] if isinstance(text, str) else text))


@contextmanager
def replaced(path: Path) -> Iterator[Any]:
    """A binary file that replaces another when the block ends: readers see the old one or the new
    one, also after a crash.
    """
    try:
        handle, temporary = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"
        )
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise _unwritable(path, error) from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _unwritable(path: Path, error: OSError) -> InvalidArgument:
    return InvalidArgument(
        f"{path} cannot be written ({error.strerror}). Choose another path with -o."
    )


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
