"""Fast checks: choices have the distribution that was accounted for."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from hushfit.audit.checks import LEVEL, Finding, check_choices, choice_law, gate_law
from hushfit.audit.suite.fast._check import Check
from hushfit.audit.suite.fast._examples import gated_step, loss_drop, loss_gate, small_case
from hushfit.data import Persons, SeededCoins, as_source
from hushfit.privacy import Relation, SeededSampler
from hushfit.release import (
    Choice,
    Entropy,
    FreshGate,
    GatedBatch,
    GradientNorm,
    NoisyChoice,
    NoisyCorner,
    NormAbove,
    PerturbedMinimiser,
    RestartedGate,
    SteepestCorner,
    TextColumns,
    Thresholded,
    Vocabulary,
    vocabulary_of,
)
from hushfit.unit import PrivacyUnit


def laws() -> Iterator[Check]:
    """Frequencies of the choices of gates, noisy choices and vocabularies."""
    for name in ("laplace", "gaussian"):
        yield Check(f"distribution of gates, {name}", partial(_gate_law, name), tests=1)
    yield Check("distribution of gates with their gradient", _gated_law, tests=1)
    yield Check("distribution of gates that restart", _restarted_law, tests=1)
    yield Check("distribution of choices", _choice_law, tests=1)
    yield Check("distribution of corners", _corner_law, tests=1)
    yield Check("distribution of vocabularies", _vocabulary_law, tests=1)
    yield Check("persons: distribution of vocabularies", _person_vocabulary_law, tests=1)


def _entropy(seed: int) -> Entropy:
    return Entropy(Relation.REPLACE_ONE, SeededSampler(seed), SeededCoins(seed + 1))


def _gate_law(noise: str, seed: int) -> list[Finding]:
    problem, source = small_case(seed)
    gate, mechanism, entropy = loss_gate(problem), FreshGate(1.0, noise, queries=3), _entropy(seed)
    scores = gate.scores(source, None) / gate.sensitivity(Relation.REPLACE_ONE)
    law = np.exp(gate_law(noise, 1.0, 2.0 if noise == "laplace" else math.sqrt(2), scores))
    return [
        check_choices(
            lambda: int(mechanism.answer(gate, source, 1.0, entropy)[0]), law, f"gate, {noise}"
        )
    ]


def _gated_law(seed: int) -> list[Finding]:
    """Check that a gate stops as one whose candidates are computed from the released gradient."""
    problem, source = small_case(seed)
    step, mechanism, entropy = (
        gated_step(problem),
        GatedBatch(1.0, gate=60.0, queries=3),
        _entropy(seed),
    )
    # Much noise on the gradient, little in the gate: candidates of the exact gradient would stop
    # much earlier.
    threshold, query = mechanism.gate_multipliers(3.0)
    surplus = variance = 0.0
    for _ in range(300):
        answer = mechanism.answer(step, source, 3.0, entropy)
        gate = step.gate(answer[:-1])
        law = np.exp(
            gate_law(
                "laplace",
                threshold,
                query,
                gate.scores(source, None) / gate.sensitivity(Relation.REPLACE_ONE),
            )
        )
        places = np.arange(len(law))
        surplus += float(answer[-1] - law @ places)
        variance += float(law @ places**2 - (law @ places) ** 2)
    p = 2 * float(ndtr(-abs(surplus) / math.sqrt(variance)))
    return [
        Finding(
            "gate with its gradient: distribution of its choices",
            p > LEVEL,
            f"{surplus / math.sqrt(variance):.2f} standard deviations, p = {p:.3g}",
        )
    ]


def _restarted_law(seed: int) -> list[Finding]:
    """Check the distribution of one segment, and that segments are no more than were paid for."""
    problem, source = small_case(seed)
    rounds, mechanism = 12, RestartedGate(2)
    norm = GradientNorm(PerturbedMinimiser(problem, 0.3), np.zeros(problem.shape))
    unit = norm.sensitivity(Relation.REPLACE_ONE)
    threshold = float(norm(source, None)[0]) + 3.0 * unit
    entropies = iter(range(10**9))

    def draw() -> int:
        entropy = _entropy(2 * next(entropies) + 10**6 * seed)
        for place in range(rounds):
            if mechanism.answer(NormAbove(norm, threshold, 0, place), source, 1.0, entropy)[0] == 1:
                return place
        return rounds

    law = np.exp(gate_law("laplace", 1.0, 2.0, np.full(rounds, -3.0)))
    opened = sum(
        mechanism.objection(NormAbove(norm, -math.inf, segment), Relation.REPLACE_ONE) is None
        for segment in range(8)
    )
    priced = mechanism.cost(1.0, 100, 10)
    return [
        check_choices(draw, law, "gate that restarts"),
        Finding(
            "gate that restarts: no more segments than were paid for",
            opened <= sum(part.count for part in priced.entries()),
            f"{opened} segments",
        ),
    ]


def _choice_law(seed: int) -> list[Finding]:
    problem, source = small_case(seed)
    choice, mechanism, entropy = (
        Choice(loss_drop(problem), np.zeros(3)),
        NoisyChoice(),
        _entropy(seed),
    )
    law = np.exp(
        choice_law(0.7, choice.scores(source, None) / choice.sensitivity(Relation.REPLACE_ONE))
    )
    return [
        check_choices(lambda: int(mechanism.answer(choice, source, 0.7, entropy)[0]), law, "choice")
    ]


def _corner_law(seed: int) -> list[Finding]:
    problem, source = small_case(seed)
    problem = replace(problem, fit_intercept=False)
    source = as_source(source.X, source.y, fit_intercept=False)  # type: ignore[attr-defined]
    query, mechanism, entropy = (
        SteepestCorner(problem, np.zeros(problem.shape), 0.5),
        NoisyCorner(),
        _entropy(seed),
    )
    sums = query.sums(source)
    utilities = (
        np.column_stack([-sums, sums]).ravel() / query.sensitivity(Relation.REPLACE_ONE) / 0.5
    )
    law = np.exp(utilities - utilities.max())

    def draw() -> int:
        answer = int(mechanism.answer(query, source, 0.5, entropy)[0])
        return 2 * (abs(answer) - 1) + (answer < 0)

    return [check_choices(draw, law / law.sum(), "corner")]


def _vocabulary_law(seed: int) -> list[Finding]:
    """Check that a text of a single record is named with the accounted probability."""
    mechanism, query, entropy = Thresholded(0.05, 2), Vocabulary(2), _entropy(seed)
    source: Any = TextColumns((("common",) * 20, (*("common",) * 19, "rare")))
    scale = query.sensitivity(Relation.REPLACE_ONE)
    # One column has a rare text, and each column has half of the failure probability.
    named = 0.05 / 2

    def draw() -> int:
        return int("rare" in vocabulary_of(mechanism.answer(query, source, 1.0, entropy))[1])

    assert scale > 0
    return [check_choices(draw, np.array([1 - named, named]), "vocabulary", 3000)]


def _person_vocabulary_law(seed: int) -> list[Finding]:
    """Check that any of the texts that only one person has is named with the accounted
    probability, where the person has as many as are used.
    """
    rows, lost, multiplier = 20, 0.05, 2.0
    unit = PrivacyUnit.person(rows_per_person=rows)
    codes = np.append(np.arange(20), np.full(rows + 5, 20))
    texts = ("common",) * 20 + tuple(f"rare {k}" for k in range(rows + 5))
    source: Any = TextColumns((texts,), Persons(codes, 21, unit))
    mechanism, query, entropy = Thresholded(lost, 1), Vocabulary(1), _entropy(seed)
    # So many texts of weight 1 / sqrt(j) each are named with probability lost / j at the threshold
    # of j; with this much noise the threshold of all rows is the highest.
    scale = multiplier * query.sensitivity(Relation.REPLACE_ONE)
    number = np.arange(1, rows + 1)
    threshold = (1 / np.sqrt(number) - scale * ndtri(lost / number)).max()
    one = ndtr((1 / math.sqrt(rows) - threshold) / scale)
    named = 1 - (1 - one) ** rows

    def draw() -> int:
        answer = vocabulary_of(mechanism.answer(query, source, multiplier, entropy))
        return int(any(text.startswith("rare") for text in answer[0]))

    law = np.array([1 - named, named])
    return [check_choices(draw, law, "vocabulary of persons", 3000)]
