"""One pool of threads for the compiled loops, which all release the interpreter lock."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import chain
from threading import get_ident
from typing import Any, TypeVar

import numpy as np

from hushfit._typing import Vector

In = TypeVar("In")
Out = TypeVar("Out")


def thread_count() -> int:
    """Number of cores this process may use, or the value of ``HUSHFIT_THREADS``."""
    requested = os.environ.get("HUSHFIT_THREADS", "")
    if requested.isdigit() and int(requested) > 0:
        return int(requested)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS cannot tie a process to some cores


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    # Keyed by process: a forked child must not wait for threads that only its parent has.
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="hushfit")


def parallel_map(function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
    """Map on all cores, in order; a single item stays on the calling thread."""
    items = iter(items)
    for first in items:
        for second in items:
            several = chain((first, second), items)
            return (
                map(function, several) if thread_count() == 1 else _bounded_map(function, several)
            )
        return map(function, (first,))
    return iter(())


def parallel_sum(
    function: Callable[[In], Vector], items: Iterable[In], shape: tuple[int, ...]
) -> Vector:
    """Sum of arrays of that shape on all cores, in order; zeros if there is no item."""
    parts = parallel_map(function, items)
    first = next(parts, None)
    return np.zeros(shape) if first is None else sum(parts, start=first)


def parallel_total(
    function: Callable[[In], Vector], items: Iterable[In], shape: tuple[int, ...]
) -> Vector:
    """Sum of arrays of that shape on all cores, in any order: for sums that are exact.

    Each thread has one total, so that no large arrays wait to be added; the arrays must not be used
    elsewhere. BLAS gets one thread inside: several would compete with this pool.
    """
    totals: dict[int, Vector] = {}

    def add(item: In) -> None:
        part, thread = function(item), get_ident()
        if thread in totals:
            totals[thread] += part
        else:
            totals[thread] = part

    with one_blas_thread():
        deque(parallel_map(add, items), maxlen=0)
    return sum(totals.values(), start=np.zeros(shape))


def one_blas_thread() -> Any:
    """A context in which BLAS runs on the thread that calls it."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # finds the libraries: some milliseconds

    return ThreadpoolController()


def _bounded_map(function: Callable[[In], Out], items: Iterator[In]) -> Iterator[Out]:
    """Map with a bounded queue. Items may be copies of rows: submitting all of them at once would
    copy the whole table.
    """
    pool, waiting = _pool(os.getpid()), deque[Future[Out]]()
    for item in items:
        try:
            waiting.append(pool.submit(function, item))
        except RuntimeError:  # threads have stacks, for which there is no memory
            raise MemoryError("no thread could be started") from None
        if len(waiting) > 4 * thread_count():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
