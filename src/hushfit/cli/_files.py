"""Output files: what is checked before anything is paid for, and what is done if writing fails
afterwards."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hushfit.errors import InvalidArgument


def refuse_to_overwrite(output: str, allowed: bool) -> None:
    """Nothing that was paid for is replaced by accident, and no fit is paid for that could not
    be saved.
    """
    path = Path(output)
    if path.exists() and not allowed:
        raise InvalidArgument(f"{output} exists. Choose another name, or say --overwrite.")
    with reserved_room(output, 0):
        pass


@contextmanager
def reserved_room(output: str, size: int) -> Iterator[None]:
    """Keep so many bytes free where a file will be written; the room is given up just before
    that."""
    with ExitStack() as held:
        try:
            # The file has no name: it is gone when the process is. Random bytes, because zeros
            # might be stored as nothing.
            reserve = held.enter_context(tempfile.TemporaryFile(dir=Path(output).parent))
            reserve.write(os.urandom(size))
            reserve.flush()
            os.fsync(reserve.fileno())
        except OSError as error:
            raise InvalidArgument(
                f"{output} cannot be written ({os.strerror(error.errno or 0)}). Choose another "
                "place."
            ) from None
        yield


def kept_elsewhere(name: str, text: str, folders: Iterable[Path]) -> Path | None:
    """Save what was paid for in the first folder that takes it; None if none does."""
    from hushfit.models import write_whole

    for folder in folders:
        place = folder / name
        try:
            write_whole(place, text)
        except InvalidArgument:
            continue
        return place
    return None
