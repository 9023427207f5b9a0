"""A progress bar on the terminal. The number of steps is public, so it may be shown."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_WIDTH = 30


@contextmanager
def progress_bar(label: str, steps: int, *, shown: bool) -> Iterator[Callable[[int], None] | None]:
    """Draw a bar on standard error; yields a function to call with the number of steps done."""
    if not shown:
        yield None
        return

    def watch(done: int) -> None:
        filled = min(_WIDTH, _WIDTH * done // steps)
        sys.stderr.write(f"\r{label} [{'#' * filled}{'.' * (_WIDTH - filled)}] {done}/{steps}")
        sys.stderr.flush()

    try:
        yield watch
    finally:
        sys.stderr.write("\n")
