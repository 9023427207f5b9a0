"""Noise samplers: the only module that imports OpenDP.

In the privacy layer it is also the only user of ``numpy.random``. Noise lives on an integer grid.
The caller chooses the grid step so that the variance in grid units is a power of two; then exact
sampling needs integers only. The proof is ``docs/proofs/noise.md``.
"""

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol, TypeAlias

import numpy as np

from hushfit._typing import AnyArray, IntVector
from hushfit.errors import InvalidArgument
from hushfit.kernels.gaussian import fill_gaussian, fine_bits, slots_for
from hushfit.kernels.noise import fill_laplace
from hushfit.privacy.noise._exact_gaussian import exact_gaussian

MAX_LOG2_VARIANCE = 62
MAX_LOG2_SCALE = 31

# The privacy loss of discrete noise, times its variance: for each coordinate, and once for a fit
# (the theorem of docs/proofs/noise.md).
LOSS_PER_COORDINATE, LOSS_PER_FIT = 0.2, 200.0

# Bytes of the operating system's generator up to which it is the faster one.
_FEW_BYTES = 1 << 11

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence
Entropy: TypeAlias = Callable[[int], bytes]


class Sampler(Protocol):
    """Source of integer noise.

    Attributes
    ----------
    secure : bool
        Whether the noise is unpredictable. A guarantee built on an insecure sampler states so.
    """

    @property
    def secure(self) -> bool: ...

    def gaussian(self, log2_variance: int, size: int) -> IntVector: ...

    def laplace(self, log2_scale: int, size: int) -> IntVector: ...


@dataclass(frozen=True)
class SecureSampler:
    """Exact discrete noise from the operating system's cryptographic generator; where much is
    drawn, from OpenSSL's, with fresh entropy of the operating system mixed in (docs/adr/0009).

    Every call takes fresh random bits and stores none, so neither a fork, nor a copy, nor a thread
    can repeat a draw.

    Examples
    --------
    >>> from hushfit.privacy.noise import SecureSampler
    >>> SecureSampler().gaussian(log2_variance=20, size=3).shape
    (3,)
    """

    secure = True

    def gaussian(self, log2_variance: int, size: int) -> IntVector:
        """Draw discrete Gaussians.

        Parameters
        ----------
        log2_variance : int
            The variance parameter is ``2**log2_variance``, with the exponent between 0 and 62.
        size : int
            Number of independent coordinates.

        Returns
        -------
        array of int64
            P(x) is proportional to ``exp(-x**2 / (2 * 2**log2_variance))``.
        """
        _check_exponent("log2_variance", log2_variance, MAX_LOG2_VARIANCE)
        return _gaussian(int(log2_variance), size)

    def laplace(self, log2_scale: int, size: int) -> IntVector:
        """Draw discrete Laplace noise.

        Parameters
        ----------
        log2_scale : int
            The scale is ``2**log2_scale``, with the exponent between 0 and 31.
        size : int
            Number of independent coordinates.

        Returns
        -------
        array of int64
            P(x) is proportional to ``exp(-abs(x) / 2**log2_scale)``.
        """
        _check_exponent("log2_scale", log2_scale, MAX_LOG2_SCALE)
        return _laplace(int(log2_scale), size)


@dataclass(frozen=True)
class OpenDPSampler:
    """The same noise from OpenDP's exact samplers: a reference, about a hundred times slower.

    OpenDP takes the scale as a float, so for odd ``log2_variance`` its variance differs from the
    power of two by a rounding error (relative size 1e-16). It needs the extra ``reference``.

    Examples
    --------
    >>> from hushfit.privacy.noise import OpenDPSampler
    >>> OpenDPSampler().laplace(log2_scale=4, size=3).shape
    (3,)
    """

    secure = True

    @staticmethod
    def installed() -> bool:
        """Whether OpenDP can be imported here."""
        return find_spec("opendp") is not None

    def gaussian(self, log2_variance: int, size: int) -> IntVector:
        """Draw discrete Gaussians; see `SecureSampler.gaussian`."""
        _check_exponent("log2_variance", log2_variance, MAX_LOG2_VARIANCE)
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        return _around_zero(dp.m.make_gaussian(*space, scale=2.0 ** (log2_variance / 2)), size)

    def laplace(self, log2_scale: int, size: int) -> IntVector:
        """Draw discrete Laplace noise; see `SecureSampler.laplace`."""
        _check_exponent("log2_scale", log2_scale, MAX_LOG2_SCALE)
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        return _around_zero(dp.m.make_laplace(*space, scale=2.0**log2_scale), size)


class SeededSampler:
    """Reproducible noise for tests and simulations. **Insecure**: not for real releases.

    Whoever knows or guesses the seed can compute the noise and subtract it, which leaves the exact
    answer and no privacy at all. Moreover, the noise is a floating-point normal rounded to the grid
    by a generator that is not cryptographic, so its distribution is only close to the one in the
    proofs.

    Parameters
    ----------
    seed : int, numpy.random.Generator, numpy.random.RandomState or numpy.random.SeedSequence
        A generator is used directly (and advances); anything else seeds a new one.

    Examples
    --------
    >>> from hushfit.privacy.noise import SeededSampler
    >>> bool((SeededSampler(7).gaussian(20, 5) == SeededSampler(7).gaussian(20, 5)).all())
    True
    """

    secure = False

    def __init__(self, seed: RandomState) -> None:
        self._generator = _generator_from(seed)

    def gaussian(self, log2_variance: int, size: int) -> IntVector:
        """Draw rounded normals of variance ``2**log2_variance`` (0 to 62)."""
        _check_exponent("log2_variance", log2_variance, MAX_LOG2_VARIANCE)
        _check_size(size)
        return np.rint(self._generator.normal(scale=2.0 ** (log2_variance / 2), size=size)).astype(
            np.int64
        )

    def laplace(self, log2_scale: int, size: int) -> IntVector:
        """Draw rounded Laplace noise of scale ``2**log2_scale`` (0 to 31)."""
        _check_exponent("log2_scale", log2_scale, MAX_LOG2_SCALE)
        _check_size(size)
        return np.rint(self._generator.laplace(scale=2.0**log2_scale, size=size)).astype(np.int64)


def sampler_for(random_state: RandomState | None) -> Sampler:
    """Choose the sampler for a ``random_state``.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator, numpy.random.RandomState or
    numpy.random.SeedSequence
        None is the only secure choice.

    Returns
    -------
    Sampler
        `SecureSampler` for None, otherwise a `SeededSampler`.

    Examples
    --------
    >>> from hushfit.privacy import sampler_for
    >>> sampler_for(None).secure, sampler_for(7).secure
    (True, False)
    """
    return SecureSampler() if random_state is None else SeededSampler(random_state)


@dataclass(frozen=True)
class DiscreteNoise:
    """All discrete Gaussian noise of a fit, as far as its privacy loss depends on it.

    Parameters
    ----------
    precision : float, default=0.0
        Sum over the noisy integers of one over their variance, in grid units.
    largest : float, default=0.0
        The largest of these.
    """

    precision: float = 0.0
    largest: float = 0.0

    def with_more(self, coordinates: int, log2_variance: int) -> "DiscreteNoise":
        """The same and some more integers, of variance ``2**log2_variance``."""
        _check_exponent("log2_variance", log2_variance, MAX_LOG2_VARIANCE)
        one = 2.0**-log2_variance
        return DiscreteNoise(self.precision + coordinates * one, max(self.largest, one))

    @property
    def loss(self) -> float:
        """Epsilon to add to the guarantee of the same fit with continuous noise."""
        return LOSS_PER_COORDINATE * self.precision + LOSS_PER_FIT * self.largest


def discretisation_loss(coordinates: int, log2_variance: int) -> float:
    """Epsilon to add when a Gaussian guarantee is met by discrete noise.

    Parameters
    ----------
    coordinates : int
        Number of noisy integers released in all, over every release of the fit.
    log2_variance : int
        The smallest exponent used; the variance in grid units is ``2**log2_variance``.

    Returns
    -------
    float
        ``(coordinates / 5 + 200) / 2**log2_variance``. If the continuous mechanism is (epsilon,
        delta)-private then the discrete one is ``((1 + 2**-log2_variance / 4) * epsilon + loss,
        exp(loss / 4) * (delta + 1e-340))``-private, by the theorem in ``docs/proofs/noise.md``.

    Examples
    --------
    >>> from hushfit.privacy import discretisation_loss
    >>> discretisation_loss(coordinates=10_000, log2_variance=50) < 1e-8
    True
    """
    return DiscreteNoise().with_more(coordinates, log2_variance).loss


def secure_bytes(count: int) -> bytes:
    """Random bytes of a cryptographic generator; never of a state that was there before the call.

    Many come from OpenSSL, whose generator is seeded again each time: ten times as fast as the
    operating system's.
    """
    if count <= _FEW_BYTES:
        return os.urandom(count)
    ssl.RAND_add(os.urandom(64), 64.0)
    return ssl.RAND_bytes(count)


@dataclass(frozen=True)
class _Need:
    """How a kernel reads its random words.

    Parameters
    ----------
    dtype : type
        Of the words.
    positions : int
        Positions in one word.
    words : float
        For a coordinate, about.
    """

    dtype: type
    positions: int
    words: float


# Spare words save most calls a second system call; more than the cache holds would be slower.
_SPARE_WORDS, _MOST_WORDS = 8, 1 << 14
_LONG_WORDS = _Need(np.uint64, 1, 1.02)
_SINGLE_BITS = _Need(np.uint32, 32, 3.2)


class _Stream:
    """Buffer of fresh random words with the position of the next unused one, or of its bit.

    New words are appended, and used ones dropped.
    """

    def __init__(
        self, need: _Need, coordinates: int, entropy: Entropy, words_at_once: int | None
    ) -> None:
        self._need, self._entropy, self._words_at_once = need, entropy, words_at_once
        self.words, self.at = self._fresh(coordinates), np.zeros(1, np.int64)

    def refill(self, coordinates: int = 1) -> None:
        """Append enough words for so many coordinates, or as many as fit into the cache.

        An interrupted coordinate finds its own bits again: they are retained, never redrawn.
        """
        positions = self._need.positions
        left = self.words[self.at[0] // positions :]
        self.words = np.concatenate([left, self._fresh(coordinates)])
        self.words.flags.writeable = False  # as at first: loops are compiled for one type
        self.at[0] %= positions

    def word(self) -> int:
        """The next word, of a stream whose positions are words."""
        if self.at[0] == len(self.words):
            self.refill()
        found = int(self.words[self.at[0]])
        self.at[0] += 1
        return found

    def _fresh(self, coordinates: int) -> AnyArray:
        enough = int(coordinates * self._need.words) + _SPARE_WORDS
        count = self._words_at_once or min(enough, _MOST_WORDS)
        size: int = np.dtype(self._need.dtype).itemsize
        return np.frombuffer(self._entropy(size * count), self._need.dtype)


def _gaussian(
    log2_variance: int,
    size: int,
    entropy: Entropy = secure_bytes,
    words_at_once: int | None = None,
) -> IntVector:
    """Run the kernel over a stream of fresh words; proposals that it leaves undecided are drawn
    exactly.
    """
    _check_size(size)
    k, odd = (log2_variance + 1) // 2, log2_variance % 2
    cells, firsts = slots_for(fine_bits(k), odd)
    stream = _Stream(_LONG_WORDS, size, entropy, words_at_once)
    out, done = np.empty(size, np.int64), 0
    while (
        done := fill_gaussian(stream.words, stream.at, out, done, k, odd, cells, firsts)
    ) != size:
        if done < 0:
            done = ~done
            out[done] = exact_gaussian(stream.word, log2_variance)
            done += 1
        else:
            stream.refill(size - done)
    return out


def _laplace(
    log2_scale: int,
    size: int,
    entropy: Entropy = secure_bytes,
    words_at_once: int | None = None,
) -> IntVector:
    """Run the kernel over a stream of fresh bits."""
    _check_size(size)
    stream = _Stream(_SINGLE_BITS, size, entropy, words_at_once)
    out, done = np.empty(size, np.int64), 0
    while (done := fill_laplace(stream.words, stream.at, out, done, log2_scale)) != size:
        stream.refill(size - done)
    return out


def _opendp() -> Any:
    """OpenDP's prelude, with its contributed measurements."""
    try:
        import opendp.prelude as dp
    except ModuleNotFoundError:
        raise InvalidArgument(
            "OpenDP is not installed. Install it with: pip install 'hushfit[reference]', or use "
            "SecureSampler, which draws from the same distribution."
        ) from None
    dp.enable_features("contrib")
    return dp


def _around_zero(measurement: Callable[[list[int]], list[int]], size: int) -> IntVector:
    """Noise alone: the measurement applied to a vector of zeros."""
    _check_size(size)
    return np.array(measurement([0] * size), np.int64)


def _generator_from(seed: RandomState) -> np.random.Generator | np.random.RandomState:
    """Use a generator directly; seed a new one from anything else."""
    if isinstance(seed, np.random.Generator | np.random.RandomState):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer | np.random.SeedSequence):
        raise InvalidArgument(
            f"random_state={seed!r} is not a seed. Use None for secure noise, or an int, a numpy "
            "Generator, RandomState or SeedSequence for reproducible, insecure noise."
        )
    if not isinstance(seed, np.random.SeedSequence) and seed < 0:
        raise InvalidArgument(
            f"random_state={seed} is negative. Use a seed of at least 0, or None for secure noise."
        )
    return np.random.default_rng(seed)


def _check_exponent(name: str, value: int, largest: int) -> None:
    """Refuse exponents that are not integers or would overflow the integers of the kernels."""
    if not isinstance(value, int | np.integer) or not 0 <= value <= largest:
        raise InvalidArgument(
            f"{name}={value} is not an integer in 0..{largest}. Choose the grid step accordingly."
        )


def _check_size(size: int) -> None:
    """Refuse negative sizes."""
    if size < 0:
        raise InvalidArgument(f"size={size} is negative. Give 0 or more coordinates.")
