"""The vertex of a public polytope with the steepest descent (Frank-Wolfe), chosen by the
exponential mechanism. Proof: docs/proofs/selection.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushfit._typing import AnyArray, IntVector, Vector
from hushfit.data import AT_MOST_ONE, Coins, DataSource, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.kernels.choice import choose
from hushfit.privacy import Cost, Relation, by_relation
from hushfit.privacy.costs import BoundedRangeCost
from hushfit.problem import Problem
from hushfit.release.mechanism import Entropy, too_large
from hushfit.release.queries import ClippedGradient
from hushfit.release.query import Query, refuse_batch

# Utilities are integer multiples of 2**-31 of their scale, or coarser where floating point has no
# more digits.
_LOG2_STEPS = 31
_EXACT_BITS = 50
_LARGEST_TILT = 2.0**60
# Utilities of an intercept's two signs are multiplied by this: every record contributes to it, so
# its signal is strong and needs less of the budget.
_INTERCEPT_WEIGHT = 0.25
_WORDS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class SteepestCorner:
    r"""For each output, the column (and the sign) along which the loss decreases fastest; with an
    intercept, its sign too.

    The answer has an entry for each output's columns, 1 to d for ``+e_j`` and -1 to -d for
    ``-e_j``, followed by an entry for each intercept, 1 or -1. The utility of a vertex is minus its
    inner product with the sum of clipped gradients.

    Parameters
    ----------
    problem : Problem
    w : array of shape ``problem.shape``
        Where the gradient is taken; public.
    clip : float
        Clipping norm of a record's gradient.
    tilt : array of shape ``problem.shape`` or None
        Public gradient to add to the sum, for instance that of a squared penalty.
    """

    problem: Problem
    w: Vector
    clip: float
    tilt: Vector | None = None

    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "NoisyCorner()"

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 0  # it draws no noise on a grid: its choices are exact

    @property
    def size(self) -> int:
        return self.problem.outputs * (1 + self.problem.fit_intercept)

    @property
    def gradient(self) -> ClippedGradient:
        return ClippedGradient(self.problem, self.w, self.clip)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        """The vertex without noise: the first of the best."""
        refuse_batch(self, units)
        finest = math.ldexp(
            1.0, _EXACT_BITS - math.ceil(math.log2(max(source.n_units * self.clip, 1.0)))
        )
        return np.array(
            [
                _signed(int(np.argmax(utilities)))
                for utilities in self.utilities(self.sums(source), finest)
            ]
        )

    def sums(self, source: DataSource) -> Vector:
        """The exact sum of clipped gradients; private."""
        return self.gradient(source, None)

    def utilities(self, sums: Vector, steps: float) -> Iterator[IntVector]:
        """Utilities of the candidates of each entry of the answer, ``+e_1, -e_1, +e_2, ...``, in
        units of 1/steps, rounded.
        """
        weighted = np.full(self.problem.dimension, steps)
        weighted[self.problem.n_features :] *= _INTERCEPT_WEIGHT
        total = np.rint(np.atleast_2d(sums.reshape(self.problem.shape)) * weighted).astype(np.int64)
        if self.tilt is not None:
            tilt = np.rint(np.atleast_2d(self.tilt) * weighted)
            total += np.clip(tilt, -_LARGEST_TILT, _LARGEST_TILT).astype(np.int64)
        parts = [total[:, : self.problem.n_features], total[:, self.problem.n_features :]]
        for part in parts[: 1 + self.problem.fit_intercept]:
            for along in part:
                yield np.column_stack([-along, along]).ravel()

    def radius(self) -> float:
        # Changes of the utilities add up over the entries of an answer. A record has norm one, so
        # |x_j| + weight |intercept| <= hypot(1, weight).
        gradient = self.gradient
        rounding = gradient.radius() - self.clip
        one_output = math.hypot(1.0, _INTERCEPT_WEIGHT) if self.problem.fit_intercept else 1.0
        return math.sqrt(self.problem.outputs) * one_output * self.clip + self.size * rounding

    def sensitivity(self, relation: Relation) -> float:
        """Largest change of the utility of an answer between neighbouring tables: half the range of
        all changes.
        """
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


@dataclass(frozen=True)
class NoisyCorner:
    """The exponential mechanism, exactly: chooses vertices with probabilities proportional to
    exp(utility / scale).

    Coordinates of a vertex are chosen one by one; as utilities add up, that is the exponential
    mechanism over all vertices. The running time of a choice depends on the rows: do not let an
    adversary measure it.
    """

    answers: ClassVar[type[Query]] = SteepestCorner
    alone, samples, sized = False, False, True

    def expected_units(self, n_units: int) -> float:
        return n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return math.sqrt(count) / strength

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return BoundedRangeCost(noise_multiplier, count=count)

    def objection(self, query: SteepestCorner, relation: Relation) -> str | None:
        """Why its cost does not cover this query, or None."""
        return None

    def answer(
        self, query: SteepestCorner, source: DataSource, noise_multiplier: float, entropy: Entropy
    ) -> Vector:
        if noise_multiplier == 0:
            return query(source, None)
        bits, steps = _grid(query, noise_multiplier, entropy.relation, source.n_units)
        stream = _Stream(entropy.coins)
        chosen = [
            stream.choice(utilities, bits)
            for utilities in query.utilities(query.sums(source), steps)
        ]
        return np.array([_signed(index) for index in chosen])

    def __str__(self) -> str:
        return "all rows, by exponential mechanism,"


def _grid(
    query: SteepestCorner, multiplier: float, relation: Relation, n_units: int
) -> tuple[int, float]:
    """Bits of a utility below one unit of the exponent, and steps of it in one unit of the
    gradient.
    """
    largest = max(n_units * query.clip / (multiplier * query.sensitivity(relation)), 1.0)
    bits = min(_LOG2_STEPS, math.floor(_EXACT_BITS - math.log2(largest)))
    # Rounding changes each entry's utility by half a step on either table, plus the error of the
    # product before it.
    rounding = query.size * math.ldexp(2.0, -bits) if bits >= 0 else math.inf
    if rounding * multiplier >= 0.5:
        raise (
            too_large(multiplier, query.size)
            if bits == _LOG2_STEPS
            else InvalidArgument(
                f"A noise multiplier of {multiplier:.3g} for {n_units} units is too small to "
                "choose exactly. Ask for a smaller epsilon, or for epsilon=inf if no privacy is "
                "meant."
            )
        )
    return bits, math.ldexp((1 / multiplier - rounding) / query.sensitivity(relation), bits)


class _Stream:
    """Random words in the order in which they were drawn, so that no choice depends on how many are
    drawn at once.
    """

    def __init__(self, coins: Coins) -> None:
        self._coins = coins
        self._words = np.empty(0, np.uint32)
        self._at = np.zeros(1, np.int64)

    def choice(self, utilities: IntVector, bits: int) -> int:
        """An index with probability proportional to ``exp(utilities / 2**bits)``; utilities are
        integers.
        """
        gaps = utilities.max() - utilities
        while True:
            index = choose(self._words, self._at, gaps, bits)
            if index >= 0:
                return index
            self._words = np.concatenate([self._words[self._at[0] // 32 :], self._fresh(len(gaps))])
            self._at[0] %= 32

    def _fresh(self, candidates: int) -> AnyArray:
        return np.asarray(self._coins.words(_WORDS_AT_ONCE + candidates)).view(np.uint32)


def _signed(index: int) -> float:
    """1 to d for even indices, -1 to -d for odd ones."""
    return float((index // 2 + 1) * (-1 if index % 2 else 1))


def corner(query: SteepestCorner, answer: Vector) -> Vector:
    """The vertex of a released answer: a signed unit vector for each output, and a sign for each
    intercept.
    """
    problem = query.problem
    chosen = np.zeros(np.atleast_2d(query.w).shape)
    outputs = np.arange(problem.outputs)
    columns = answer[: problem.outputs].astype(np.int64)
    chosen[outputs, np.abs(columns) - 1] = np.sign(columns)
    if problem.fit_intercept:
        chosen[:, -1] = answer[problem.outputs :]
    return chosen.reshape(problem.shape)
