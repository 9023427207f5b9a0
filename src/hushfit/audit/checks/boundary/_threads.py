"""Several threads at once."""

import threading
from collections.abc import Callable


def run_concurrently(act: Callable[[], object]) -> None:
    """Run a function in four threads at once."""
    threads = [threading.Thread(target=act) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
