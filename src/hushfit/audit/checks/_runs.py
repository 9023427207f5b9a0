"""Audits of whole runs: the noise of a run, owners replayed from their releases, and solvers that
stop as early as their certificate allows.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.stats import chi2, norm

from hushfit._typing import Vector
from hushfit.audit._curators import seeded_curator
from hushfit.audit._laws import inside_of
from hushfit.audit.checks._deterministic import UnreadableSource
from hushfit.audit.checks._noise import LEVEL, Finding
from hushfit.audit.checks.boundary import null_table
from hushfit.data import DataSource, RecordScaling
from hushfit.federated import Algorithm, Seat
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release import (
    Choice,
    Gate,
    GatedStep,
    LaplaceInside,
    NormAbove,
    PerturbedMinimiser,
    Priced,
    Quote,
    Released,
    SteepestCorner,
    Vocabulary,
)
from hushfit.release.mechanisms import certified_search as search
from hushfit.release.mechanisms import perturbed_minimiser as minimisers
from hushfit.solvers import Solver, run

# Answers that are choices; their distribution is checked elsewhere.
_CHOICES = (Gate, Choice, SteepestCorner, NormAbove, Vocabulary)


def check_run_noise(
    solver: Solver,
    problem: Problem,
    source: DataSource,
    quote: Quote,
    name: str,
    runs: int = 40,
    seed: int = 0,
    level: float = LEVEL,
) -> list[Finding]:
    """Check that the noise of a run has the paid scale and is independent between releases and
    coordinates.

    The run is made on a table of null records, where every answer is pure noise for every batch.

    Parameters
    ----------
    solver : Solver
        Configured for the problem and the budget.
    problem : Problem
    source : DataSource
        Gives size and type of the null table.
    quote : Quote
        With the calibrated noise.
    name : str
    runs : int, default=40
    seed : int, default=0
    level : float, default=1e-6
        False-alarm rate of each of four tests.

    Returns
    -------
    list of Finding
        Empty for runs that only choose.
    """
    null_source = null_table(source)
    logs = []
    for k in range(runs):
        curator = seeded_curator(null_source, quote, problem.relation, 1000 * seed + 2 * k)
        run(solver, problem, curator)
        logs.append(curator.transcript)
    return run_noise_findings(logs, quote, null_source, problem.relation, name, level)


def run_noise_findings(
    logs: Sequence[Sequence[Released]],
    quote: Quote,
    null_source: DataSource,
    relation: Relation,
    name: str,
    level: float = LEVEL,
) -> list[Finding]:
    """`check_run_noise` for transcripts of runs on a null table that were collected elsewhere."""
    noise = [
        [
            drawn
            for released in log
            if (drawn := _noise_of(released, quote, null_source, relation)) is not None
        ]
        for log in logs
    ]
    flat = (
        np.concatenate([drawn for of_run in noise for drawn in of_run])
        if any(noise)
        else np.empty(0)
    )
    if not flat.size:
        return []
    return [
        _has_paid_scale(flat, name, level),
        _is_fresh(noise, flat.size, name),
        *_are_independent(noise, name, level),
    ]


# The noise of some runs, by release, standardised to normal.
_NoiseOfRuns = list[list[Vector]]


def _has_paid_scale(flat: Vector, name: str, level: float) -> Finding:
    square = (flat**2).sum()
    p = 2 * min(float(chi2.cdf(square, flat.size)), float(chi2.sf(square, flat.size)))
    return Finding(
        f"{name}: noise of a run has the paid scale",
        p > level,
        f"variance ratio {np.mean(flat**2):.4f}, p = {p:.3g}",
    )


def _is_fresh(noise: _NoiseOfRuns, size: int, name: str) -> Finding:
    of_runs = [np.concatenate(of_run) for of_run in noise]
    repeated = sum(len(drawn) - len(np.unique(drawn.round(9))) for drawn in of_runs)
    # One pair may fall on the same point of the grid by chance, about once in a million audits;
    # reused noise repeats more often.
    return Finding(
        f"{name}: no noise is used twice in a run",
        repeated <= 1,
        f"{repeated} of {size} draws repeated",
    )


def _are_independent(noise: _NoiseOfRuns, name: str, level: float) -> Iterator[Finding]:
    """Neighbouring releases, and neighbouring coordinates. Each product is symmetric given all
    before it, as the test requires, because only consecutive draws are paired.
    """
    between = [(a, b) for of_run in noise for a, b in pairwise(of_run) if len(a) == len(b)]
    within = [pair for of_run in noise for drawn in of_run for pair in pairwise(drawn)]
    for what, pairs in (
        ("releases", [pair for a, b in between for pair in zip(a, b, strict=True)]),
        ("coordinates", within),
    ):
        if pairs:
            p = _correlation_p_value(*np.array(pairs).T)
            yield Finding(f"{name}: noise of {what} is independent", p > level, f"p = {p:.3g}")


def _correlation_p_value(a: Vector, b: Vector) -> float:
    """Bound on the probability of so large a sum of symmetric products, relative to the square root
    of the sum of their squares (de la Pena, 1999).
    """
    products = a * b
    squares = float((products**2).sum())
    return (
        min(1.0, 2 * math.exp(-0.5 * float(products.sum()) ** 2 / squares)) if squares > 0 else 1.0
    )


def _noise_of(
    released: Released, quote: Quote, null_source: DataSource, relation: Relation
) -> Vector | None:
    """Standardised noise of one answer; None for a choice."""
    query: Any = released.query
    multiplier, answer = quote.multipliers[released.name], released.answer
    mechanism: Any = next(part.sampling for part in quote.plan.parts if part.name == released.name)
    if isinstance(query, Priced):
        multiplier, query, mechanism = query.noise_multiplier, query.query, query.sampling
    if isinstance(query, _CHOICES):
        return None
    if isinstance(query, PerturbedMinimiser):
        drawn = inside_of(query, answer, null_source)[0] / (
            multiplier * query.gradient_shift(relation)
        )
        if not isinstance(mechanism, LaplaceInside):
            return drawn
        below = 0.5 * np.exp(-np.abs(drawn) / mechanism.stretch(query.size))
        return np.asarray(np.sign(drawn) * norm.isf(below))
    if isinstance(query, GatedStep):
        query, answer = query.gradient, answer[:-1]
    drawn = (answer - query(null_source, None)) / (multiplier * query.sensitivity(relation))
    return np.asarray(
        drawn if query.doubled is None else drawn * np.where(query.doubled, np.sqrt(2), 1.0)
    )


# Owners


def check_conversation(
    algorithm: Algorithm,
    seat: Seat,
    source: DataSource,
    whisper: Callable[[int], Vector],
    name: str,
    seed: int = 0,
) -> list[Finding]:
    """Check that an owner's messages are functions of its releases and of the messages it received:
    replayed without any rows, they are the same.

    Parameters
    ----------
    algorithm : Algorithm
    seat : Seat
    source : DataSource
        The owner's rows.
    whisper : callable
        Maps a round to the message of every neighbour.
    name : str
    seed : int, default=0

    Returns
    -------
    list of Finding
    """
    quote, relation = algorithm.plan(seat).quote(seat.problem, seat.budget), seat.problem.relation
    curator = seeded_curator(source, quote, relation, seed)
    messages, weights = _replayed(algorithm, seat, curator, whisper)
    no_rows: Any = UnreadableSource()
    try:
        again, same = _replayed(
            algorithm,
            seat,
            seeded_curator(no_rows, quote, relation, seed + 7, tuple(curator.transcript)),
            whisper,
        )
    except AssertionError as error:
        return [Finding(f"{name}: replay of a conversation", False, str(error))]
    repeated = len(messages) == len(again) and all(
        _equal(a, b) for a, b in zip(messages, again, strict=True)
    )
    made = {
        part.name: sum(released.name == part.name for released in curator.transcript)
        for part in quote.plan.parts
    }
    declared = {part.name: part.count for part in quote.plan.parts}
    return [
        Finding(
            f"{name}: messages are functions of the releases", repeated, f"{len(messages)} messages"
        ),
        Finding(f"{name}: weights are functions of the releases", _equal(weights, same)),
        Finding(
            f"{name}: no release beyond the plan",
            all(made[key] <= declared[key] for key in made),
            f"{made} of {declared}",
        ),
    ]


def _replayed(
    algorithm: Algorithm, seat: Seat, curator: Any, whisper: Callable[[int], Vector]
) -> tuple[list[Vector | None], Vector | None]:
    rounds, messages, k = algorithm.converse(seat, curator), [], 0
    try:
        messages.append(next(rounds))
        while True:
            inbox: Mapping[str, Vector] = {name: whisper(k) for name in seat.neighbours}
            messages.append(rounds.send(inbox))
            k += 1
    except StopIteration as end:
        return messages, end.value


def _equal(a: Vector | None, b: Vector | None) -> bool:
    return a is b if a is None or b is None else bool(np.array_equal(a, b))


# Minimisers that are only as accurate as their certificate


def check_certificate(
    query: PerturbedMinimiser, source: DataSource, name: str, seed: int = 0
) -> list[Finding]:
    """Check that the noise on a minimiser covers every solver that its certificate accepts.

    The solver is replaced by one that moves away from the minimum, in opposite directions on the
    two tables, until the norm of the gradient is the largest that the certificate allows.

    Parameters
    ----------
    query : PerturbedMinimiser
        With a large tolerance.
    source : DataSource
    name : str
    seed : int, default=0

    Returns
    -------
    list of Finding
    """
    rng = np.random.default_rng(seed)
    certified = minimisers.CertifiedMinimiser(query, np.zeros(query.size), 0.0, 0.0)

    def inaccurate(sign: float) -> Callable[..., Vector]:
        def minimise(
            problem: Problem,
            gradient: Callable[[Vector], Vector],
            steps: Any,
            smoothness: float,
            tolerance: float,
        ) -> Vector:
            found = search.minimise(problem, gradient, steps, smoothness, 1e-9)
            low, high = 0.0, 1e6
            for _ in range(60):
                middle = (low + high) / 2
                short = (
                    float(np.linalg.norm(gradient(found + sign * middle * direction)))
                    <= certified.gradient_norm
                )
                low, high = (middle, high) if short else (low, middle)
            return found + sign * low * direction

        return minimise

    worst = 0.0
    for _ in range(6):
        direction = rng.normal(size=query.problem.shape)
        direction /= np.linalg.norm(direction)
        answers = []
        for sign in (1.0, -1.0):
            with patch.object(minimisers, "minimise", inaccurate(sign)):
                answers.append(certified(source, None))
        worst = max(worst, float(np.linalg.norm(answers[0] - answers[1])))
    bound = certified.sensitivity(query.problem.relation)
    return [
        Finding(
            f"{name}: noise covers what its certificate allows",
            worst <= bound * (1 + 1e-6),
            f"{worst / bound:.3f} of the bound",
        )
    ]


class ObjectiveGradient:
    """The gradient of a perturbed objective at a point, as a query: its sensitivity is the shift
    that the noise inside the objective hides.
    """

    doubled = None
    sampled = False

    def __init__(self, asked: PerturbedMinimiser, w: Vector) -> None:
        self.asked, self.w = asked, w
        self.problem, self.size = asked.problem, w.size

    def __call__(self, source: DataSource, rows: Any) -> Vector:
        whole = minimisers._whole_gradient(self.problem, self.w)(source, rows)
        return np.asarray(whole / self.problem.n_units)

    def radius(self) -> float:
        return self.asked.gradient_shift(Relation.ADD_REMOVE)

    def sensitivity(self, relation: Relation) -> float:
        # Sums are rounded to a grid; the slack of the certificate covers the shift of the mean.
        return self.asked.gradient_shift(relation) * (1 + 1e-6)


class Bare:
    """A query without a problem, in the form that `fuzz_sensitivity` takes."""

    def __init__(self, query: Any, fit_intercept: bool = False) -> None:
        self.query, self.doubled, self.size = query, query.doubled, query.size
        self.problem = _Intercept(fit_intercept)

    def __call__(self, source: DataSource, rows: Any) -> Vector:
        answer: Vector = self.query(source, rows)
        return answer

    def sensitivity(self, relation: Relation) -> float:
        return float(self.query.sensitivity(relation))


@dataclass(frozen=True)
class _Intercept:
    """What a source is made from, in place of a problem."""

    fit_intercept: bool
    scaling: RecordScaling = RecordScaling.UNIT_LENGTH
    length: float = 1.0
