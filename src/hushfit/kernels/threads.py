"""One pool of threads for the compiled loops, which all release the interpreter lock."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


def thread_count() -> int:
    """Cores this process may use, or the number in ``HUSHFIT_THREADS``."""
    asked = os.environ.get("HUSHFIT_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) > 0 else len(os.sched_getaffinity(0))


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    # Keyed by process: a forked child must not wait for threads that only its parent has.
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="hushfit")


def parallel_map(function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
    """Map on all cores, in order; a single item stays on the calling thread."""
    items = list(items)
    if len(items) <= 1 or thread_count() == 1:
        return map(function, items)
    return _pool(os.getpid()).map(function, items)
