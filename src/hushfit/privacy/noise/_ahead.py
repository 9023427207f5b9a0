"""Noise drawn ahead: while an answer is computed, a thread draws the noise that it will get. Proof:
docs/proofs/noise.md.

Noise needs no data, so it may be drawn at any time before it is used; it must be used once.
"""

import os
from dataclasses import dataclass
from threading import Lock, Thread
from typing import NoReturn

from hushfit._typing import IntVector
from hushfit.privacy.noise._sampler import Sampler

# Below this size a draw takes less time than handing it over.
_WORTH_A_THREAD = 1 << 14


class AheadSampler:
    """A sampler that draws the next Gaussian noise of the same kind in a thread.

    Every draw is handed out once, and only in the process that made it: a fork forgets it. It
    cannot be copied or pickled.

    Parameters
    ----------
    sampler : Sampler
        Draws the noise. A seeded one would depend on the order of threads: give a secure one.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._lock = Lock()
        self._next: _Draw | None = None

    @property
    def secure(self) -> bool:
        return self._sampler.secure

    def gaussian(self, log2_variance: int, size: int) -> IntVector:
        """Discrete Gaussians: those drawn ahead if they are of this kind, new ones otherwise."""
        with self._lock:
            waiting, self._next = self._next, None
        kind = log2_variance, size
        drawn = None if waiting is None else waiting.taken(kind)
        if drawn is None:
            drawn = self._sampler.gaussian(log2_variance, size)
        if size >= _WORTH_A_THREAD:
            following = _Draw(self._sampler, kind)
            with self._lock:
                self._next = following
        return drawn

    def laplace(self, log2_scale: int, size: int) -> IntVector:
        """Discrete Laplace noise; never drawn ahead, because gates need little."""
        return self._sampler.laplace(log2_scale, size)

    def __reduce__(self) -> NoReturn:
        raise TypeError("Noise drawn ahead cannot be copied or pickled: it would be used twice.")


@dataclass
class _Draw:
    """Noise of one kind, drawn in a thread of the process that created it."""

    sampler: Sampler
    kind: tuple[int, int]

    def __post_init__(self) -> None:
        self._process = os.getpid()
        self._drawn: IntVector | None = None
        self._thread = Thread(target=self._draw, daemon=True)
        self._thread.start()

    def _draw(self) -> None:
        self._drawn = self.sampler.gaussian(*self.kind)

    def taken(self, kind: tuple[int, int]) -> IntVector | None:
        """The noise, once it is there; None for another kind, another process, or a failed draw."""
        if kind != self.kind or self._process != os.getpid():
            return None
        self._thread.join()
        drawn, self._drawn = self._drawn, None
        return drawn
