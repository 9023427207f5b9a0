"""Public objects that arrive in a worker with every query, and that caches are kept by."""

import pickle
from functools import lru_cache
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)
_MOST_KEPT = 16


def unpickled_once(kind: Kind) -> Kind:
    """Make a class whose equal pickles are read as one object in each process.

    What was measured in a metric is cached by the metric; a copy in each step of a run would
    measure all rows again.
    """

    def __reduce__(self: Any) -> tuple[Any, ...]:
        return _kept, (kind, pickle.dumps(vars(self)))

    setattr(kind, "__reduce__", __reduce__)  # noqa: B010  # not known to the type checker
    return kind


@lru_cache(maxsize=_MOST_KEPT)
def _kept(kind: type, state: bytes) -> Any:
    made: Any = object.__new__(kind)
    vars(made).update(pickle.loads(state))
    return made
