"""Auditing with one run: many canaries in one fit, each included by its own random bit (Steinke,
Nasr and Jagielski, 2023).

The auditor guesses the bits with the most extreme scores. If the fit is (epsilon, delta)-private,
the number of right guesses is hardly larger than if each were right with probability
``e^epsilon / (1 + e^epsilon)``, independently. One fit is enough, but the bound is looser: use it
where fits are expensive.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit
from scipy.stats import binom

from hushfit._typing import BoolVector, Vector
from hushfit.audit._bounds import Claim, Verdict
from hushfit.audit._curators import seeded_curator
from hushfit.data import as_source
from hushfit.errors import InvalidArgument
from hushfit.losses import Squared
from hushfit.penalties import Zero
from hushfit.privacy import Budget, Relation, replaces_one
from hushfit.problem import Problem
from hushfit.release import ClippedGradient
from hushfit.solvers import run, solver_from

# Shares of the canaries that are guessed; each share is a separate test.
GUESSED_SHARES = (0.02, 0.1, 0.3, 1.0)
_MOST_EPSILON = 40.0


@dataclass(frozen=True)
class OneRun:
    """Result of an audit with one run.

    Parameters
    ----------
    claim : Claim
    canaries, guesses, right : int
        Number of canaries, of guesses, and of right guesses, where the bound is best.
    epsilon : float
        Lower bound at the claimed delta.
    p_value : float
        Of the guesses under the claim, corrected for the number of shares.
    level : float
    power : float
    """

    claim: Claim
    canaries: int
    guesses: int
    right: int
    epsilon: float
    p_value: float
    level: float
    power: float = 0.1

    @property
    def ratio(self) -> float:
        """Measured over claimed."""
        return self.epsilon / self.claim.epsilon

    @property
    def verdict(self) -> Verdict:
        if self.p_value <= self.level:
            return Verdict.VIOLATED
        return Verdict.CONSISTENT if self.ratio >= self.power else Verdict.NO_POWER


def one_run_p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    r"""Largest probability, under (epsilon, delta), of so many right guesses or more.

    With W binomial of ``guesses`` trials and success probability :math:`e^\epsilon/(1+e^\epsilon)`
    it is :math:`P(W \ge v) + 2 m \delta \max_i P(v - i \le W < v) / i`: what delta contributes is
    bounded by the mass that it can move above v.

    Parameters
    ----------
    canaries, guesses, right : int
    epsilon, delta : float

    Returns
    -------
    float
    """
    if not 0 <= right <= guesses <= canaries:
        raise InvalidArgument(
            f"{right} right of {guesses} guesses on {canaries} canaries is impossible."
        )
    probability = float(expit(epsilon))
    beyond = float(binom.sf(right - 1, guesses, probability))
    if right == 0 or delta == 0:
        return min(1.0, beyond)
    just_below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, probability))
    lifted = float((just_below / np.arange(1, right + 1)).max())
    return min(1.0, beyond + 2 * canaries * delta * lifted)


def one_run_epsilon(canaries: int, guesses: int, right: int, delta: float, level: float) -> float:
    """Largest epsilon that the guesses reject at the level; 0 if none."""

    def rejected(epsilon: float) -> bool:
        return one_run_p_value(canaries, guesses, right, epsilon, delta) <= level

    if not rejected(0.0):
        return 0.0
    low, high = 0.0, _MOST_EPSILON
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def one_run(
    mechanism: Callable[[BoolVector, int], Vector],
    claim: Claim,
    canaries: int = 1000,
    confidence: float = 0.999,
    *,
    seed: int = 0,
    shares: Sequence[float] = GUESSED_SHARES,
) -> OneRun:
    """Audit a mechanism with one run.

    Parameters
    ----------
    mechanism : callable
        Takes random bits, one for each canary, and a seed; runs on the table in which the canaries
        with a true bit are included and the others replaced or left out; returns one score for
        each, large if it looks included. Changing one bit must give a neighbouring table.
    claim : Claim
    canaries : int, default=1000
    confidence : float, default=0.999
    seed : int, default=0
    shares : sequence of float
        Shares of the canaries to guess, those with the most extreme scores; fixed in advance.

    Returns
    -------
    OneRun
    """
    level = (1 - confidence) / len(shares)
    included = np.random.default_rng([seed, 0]).random(canaries) < 0.5
    scores = np.asarray(mechanism(included, seed))
    if scores.shape != (canaries,):
        raise InvalidArgument(
            f"The mechanism returned scores of shape {scores.shape} for {canaries} canaries. "
            "Return one score for each."
        )
    most_extreme = np.argsort(-np.abs(scores - np.median(scores)), kind="stable")
    found = []
    for share in shares:
        chosen = most_extreme[: max(1, round(share * canaries))]
        right = int(((scores[chosen] > np.median(scores)) == included[chosen]).sum())
        p_value = one_run_p_value(canaries, len(chosen), right, claim.epsilon, claim.delta)
        found.append(
            (
                one_run_epsilon(canaries, len(chosen), right, claim.delta, level),
                -p_value,
                len(chosen),
                right,
            )
        )
    epsilon, _, guesses, right = max(found)
    p_value = min(1.0, len(shares) * min(-negative for _, negative, _, _ in found))
    return OneRun(claim, canaries, guesses, right, epsilon, p_value, 1 - confidence)


def gradient_canaries(
    solver: Any, relation: Relation | str, budget: Budget
) -> Callable[[BoolVector, int], Vector]:
    """One fit with a canary for every coordinate: unit records with labels so large that every
    gradient attains the clipping norm.

    Parameters
    ----------
    solver : str or Solver
        One that releases clipped gradients.
    relation : Relation or str
        A canary that is not included has the opposite label, or is the null record.
    budget : Budget

    Returns
    -------
    callable
        For `one_run`. Its scores are the sums of the released gradients.
    """
    relation = Relation.parse(relation)

    def mechanism(included: BoolVector, seed: int) -> Vector:
        m = len(included)
        problem = Problem(Squared(1.0), Zero(), m, m, relation, fit_intercept=False)
        y = np.where(included, -1e4, 1e4)
        present = np.ones(m) if replaces_one(relation) else included.astype(np.float64)
        X = csr_array((present, (np.arange(m), np.arange(m))), shape=(m, m))
        chosen = solver_from(solver, problem, budget)
        quote = chosen.plan(problem).quote(problem, budget)
        source = as_source(X, y, fit_intercept=False)
        curator = seeded_curator(source, quote, relation, seed)
        run(chosen, problem, curator)
        answers = [
            released.answer
            for released in curator.transcript
            if isinstance(released.query, ClippedGradient)
        ]
        if not answers:
            raise InvalidArgument(
                f"{solver!r} releases no gradients. Use a solver such as 'proximal-gd'."
            )
        total: Vector = np.sum(answers, axis=0) / math.sqrt(len(answers))
        return total

    return mechanism
