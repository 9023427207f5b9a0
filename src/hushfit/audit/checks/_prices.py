"""Audits of privacy costs, from the distributions of a mechanism on worst-case tables alone.

Each mechanism declares what it does (rate, noise, number of queries) and its cost. Here the
distribution of its answers on a worst-case pair of tables is derived independently, discretised
into cells, and composed. Discretising only loses information, so the result is a lower bound on
delta at every epsilon, and no cost may be below it. `check_choices` then tests that mechanisms that
choose have that distribution.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

from hushfit._typing import Vector
from hushfit.audit.checks._noise import LEVEL, Finding
from hushfit.audit.checks._worst_laws import Laws, cell_edges, worst_laws
from hushfit.privacy import Budget, Cost, GaussianCost, Relation, delta_of
from hushfit.privacy.accounting import StoppingRule, best_of_many
from hushfit.release import Quote

# Number of cells of the privacy loss.
_LOSS_CELLS = 2**14
# Relative error of integrals over a threshold, and of costs by convolution.
_SLACK = 2e-3
_LEAST_DELTA = 1e-9
_EPSILONS = np.array([0.0, 0.1, 0.3, 0.7, 1.5, 3.0, 5.0, 8.0])


def least_deltas(laws: Sequence[Laws], epsilons: Vector) -> Vector:
    """Lower bound on delta at each epsilon for all these answers together."""
    most = sum(one.count * _largest_loss(one) for one in laws)
    width = 2 * max(most, 1e-6) / _LOSS_CELLS
    total = np.zeros(_LOSS_CELLS)
    total[0] = 1.0
    spectrum, shift, finite_loss = np.fft.rfft(total), 0, 1.0
    for one in laws:
        cells, low, finite_share = _loss_cells(one, width)
        spectrum = spectrum * np.fft.rfft(cells, _LOSS_CELLS) ** one.count
        shift += one.count * low
        finite_loss *= finite_share**one.count
    mass = np.fft.irfft(spectrum, _LOSS_CELLS)
    losses = width * (shift + np.arange(_LOSS_CELLS))
    finite = np.array(
        [
            float((mass * -np.expm1(np.minimum(epsilon - losses, 0.0)))[losses > epsilon].sum())
            for epsilon in epsilons
        ]
    )
    return np.clip(finite + (1 - finite_loss), 0.0, 1.0)


def _largest_loss(one: Laws) -> float:
    both = (one.first > 1e-18) & (one.second > 1e-18)
    return float(np.abs(np.log(one.first[both] / one.second[both])).max(initial=1e-6))


def _loss_cells(one: Laws, width: float) -> tuple[Vector, int, float]:
    """Probability of each cell of the privacy loss under the first distribution, the index of the
    lowest cell, and the probability of a finite loss.
    """
    both = (one.first > 1e-18) & (one.second > 1e-18)
    losses = np.floor(np.log(one.first[both] / one.second[both]) / width).astype(np.int64)
    low = int(losses.min())
    never = float(one.first[(one.second <= 0) & (one.first > 0)].sum())
    return np.bincount(losses - low, weights=one.first[both]).astype(np.float64), low, 1 - never


def check_price(
    cost: Cost, laws: Sequence[Sequence[Laws]], relation: Relation, name: str
) -> Finding:
    """Check that a cost covers what answers with these distributions reveal, at every epsilon.

    Parameters
    ----------
    cost : Cost
        The claimed cost.
    laws : sequence of sequences of Laws
        Alternatives; each holds all answers on one pair of tables.
    relation : Relation
    name : str

    Returns
    -------
    Finding
    """
    worst, at_worst = 0.0, (0.0, 0.0, 0.0)
    claimed = np.array([delta_of(cost, float(epsilon), relation) for epsilon in _EPSILONS])
    for answers in laws:
        for directed in (list(answers), [one.swapped for one in answers]):
            least = least_deltas(directed, _EPSILONS)
            seen = (least > _LEAST_DELTA) & (least < 1 - 1e-6)
            ratios = np.where(seen, least / np.maximum(claimed, 1e-300), 0.0)
            k = int(np.argmax(ratios))
            if ratios[k] > worst:
                worst, at_worst = (
                    float(ratios[k]),
                    (float(least[k]), float(claimed[k]), float(_EPSILONS[k])),
                )
    evidence = "delta at least {:.3g} where {:.3g} is claimed, at epsilon {:g}".format(*at_worst)
    return Finding(f"{name} ({relation}): price", worst <= 1 + _SLACK, evidence)


def check_mechanism_price(
    mechanism: Any,
    noise_multiplier: float,
    count: int,
    n_units: int,
    relation: Relation,
    name: str = "",
) -> Finding:
    """`check_price` of one mechanism by itself."""
    laws = worst_laws(mechanism, noise_multiplier, count, relation, n_units)
    assert laws, f"{type(mechanism).__name__} has no distribution here"
    cost = mechanism.cost(noise_multiplier, count, n_units)
    return check_price(cost, [[one] for one in laws], relation, name or type(mechanism).__name__)


def check_quote(
    quote: Quote, budget: Budget, n_units: int, relation: Relation, name: str
) -> list[Finding]:
    """Check that a whole plan, at its calibrated noise, stays within its budget.

    Parameters
    ----------
    quote : Quote
    budget : Budget
        The budget it was calibrated to.
    n_units : int
    relation : Relation
    name : str

    Returns
    -------
    list of Finding
        That the cost covers what all parts reveal together, and that this is within the budget.
    """
    parts = [
        worst_laws(part.sampling, quote.multipliers[part.name], part.count, relation, n_units)
        for part in quote.plan.parts
    ]
    # Any pair of one part can be combined with any of another, on different coordinates of one
    # record.
    together = [
        [laws[min(k, len(laws) - 1)] for laws in parts if laws] for k in range(max(map(len, parts)))
    ]
    found = []
    if together and together[0]:
        found.append(check_price(quote.cost, together, relation, name))
        least = max(float(least_deltas(one, np.array([budget.epsilon]))[0]) for one in together)
        within = least <= budget.delta * (1 + _SLACK) + _LEAST_DELTA
        found.append(
            Finding(
                f"{name} ({relation}): budget",
                within,
                f"true delta at least {least:.3g} of {budget.delta:.3g}",
            )
        )
    claimed = delta_of(quote.cost, budget.epsilon, relation)
    found.append(
        Finding(
            f"{name} ({relation}): its own cost fits",
            claimed <= budget.delta,
            f"delta {claimed:.6g} of {budget.delta:.3g}",
        )
    )
    return found


def check_search_price(rule: StoppingRule, mu: float, relation: Relation) -> Finding:
    """Check the cost of the best of a random number of Gaussian trials.

    Parameters
    ----------
    rule : StoppingRule
    mu : float
        Of one trial.
    relation : Relation

    Returns
    -------
    Finding
    """
    edges = cell_edges(mu)
    laws = []
    for centre in (mu, 0.0):
        # The best of K is below t with probability f(q), with the generating function f of K and
        # the probability q of one trial.
        below = _generated(rule, ndtr(edges - centre))
        laws.append(np.diff(below, prepend=0.0, append=1.0))
    cost = best_of_many(GaussianCost(1 / mu), rule, relation)
    return check_price(
        cost, [[Laws(laws[0], laws[1])]], relation, f"best of {type(rule).__name__} trials"
    )


def _generated(rule: StoppingRule, q: Vector) -> Vector:
    total, power, seen = np.zeros_like(q), q.copy(), 0.0
    for probability in rule.probabilities():
        total += float(probability) * power
        power, seen = power * q, seen + float(probability)
        if seen > 1 - 1e-12:
            break
    return total


# Mechanisms that choose, against their distributions


def check_choices(
    draw: Callable[[], int], law: Vector, name: str, draws: int = 1500, level: float = LEVEL
) -> Finding:
    """Check that a mechanism's choices have the distribution of its cost.

    Parameters
    ----------
    draw : callable
        Draws one choice.
    law : array
        Probability of each.
    name : str
    draws : int, default=1500
    level : float, default=1e-6

    Returns
    -------
    Finding
    """
    counts = np.bincount([draw() for _ in range(draws)], minlength=len(law))
    order = np.argsort(law)
    pooled: list[tuple[float, float]] = []
    expected = number = 0.0
    for k in order:
        expected, number = expected + draws * law[k], number + counts[k]
        if expected >= 30:
            pooled.append((number, expected))
            expected = number = 0.0
    if pooled and expected > 0:
        pooled[-1] = (pooled[-1][0] + number, pooled[-1][1] + expected)
    observed, predicted = np.array(pooled).T
    seen = float(((observed - predicted) ** 2 / predicted).sum())
    p = float(chi2.sf(seen, max(len(observed) - 1, 1)))
    return Finding(f"{name}: distribution of its choices", p > level, f"p = {p:.3g}")
