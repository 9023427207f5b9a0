"""``solver="auto"`` against baselines: other solvers of the library, tuned on the folds they are
scored on.

The best setting of each baseline is chosen on the test rows, per set and epsilon; ``auto`` is not
tuned. It should still lose to none of them by more than ``ALLOWANCE``, in accuracy or in AUC.
"""

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks._report import markdown
from hushfit.privacy import gaussian_mu
from hushfit.solvers import ObjectivePerturbation, ProximalGradient, Solver

ALLOWANCE = 0.002
# Steps, clipping norm, momentum, share of the iterates that is averaged, and step size relative to
# the default rule.
GRADIENT_SETTINGS = (
    (40, 0.5, 0.9, 0.0, 1.0),
    (40, 0.5, 0.9, 0.0, 4.0),
    (40, 0.25, 0.9, 0.0, 0.25),
    (40, 0.25, 0.9, 0.0, 1.0),
    (40, 0.25, 0.9, 0.0, 4.0),
    (10, 0.25, 0.0, 0.0, 0.25),
    (10, 0.25, 0.0, 0.0, 1.0),
    (150, 0.5, 0.0, 0.5, 0.25),
    (150, 0.5, 0.0, 0.5, 1.0),
    (150, 0.5, 0.0, 0.5, 4.0),
)
CURVATURES = (0.25, 1.0, 4.0)  # mu of objective perturbation relative to the default
_SMALLEST_MU, _LEAST_USUAL_MU = 2e-5, 1e-4


def tuned(n_units: int, dimension: int, epsilon: float, delta: float) -> dict[str, Solver]:
    """The settings of the baselines, from public numbers; replace-one."""
    gaussian = gaussian_mu(epsilon, delta)
    nu = 2 * math.sqrt(dimension) / (gaussian * n_units)
    usual_step = 0.1 * min(max(0.7 / nu, 8.0), 128.0)
    found: dict[str, Solver] = {}
    for steps, clip, momentum, averaged, factor in GRADIENT_SETTINGS:
        # The same total step length as forty steps with momentum 0.9.
        length = factor * usual_step * (40 / steps) * (1 - momentum) / 0.1
        found[f"gd T={steps} C={clip:g} x{factor:g}"] = ProximalGradient(
            steps=steps, clip=clip, momentum=momentum, step_size=length, average_last=averaged
        )
    usual_mu = 0.25 / (min(math.sqrt(0.01 * gaussian**2 / 2), 0.25) * n_units)
    for factor in CURVATURES:
        least = _LEAST_USUAL_MU if factor >= 1 else _SMALLEST_MU
        found[f"objective x{factor:g}"] = ObjectivePerturbation(mu=max(factor * usual_mu, least))
    return found


@dataclass(frozen=True)
class Duel:
    """One set at one epsilon in one measure: ``auto`` and the best baseline."""

    set: str
    epsilon: float
    measure: str
    auto: float
    rival: float
    name: str
    error: float

    @property
    def lead(self) -> float:
        return self.auto - self.rival

    @property
    def verdict(self) -> str:
        if self.lead >= -ALLOWANCE:
            return "pass"
        return "within error" if self.lead + 2 * self.error >= -ALLOWANCE else "FAIL"

    def cells(self) -> list[str]:
        return [
            *(
                self.set,
                f"{self.epsilon:g}",
                self.measure,
                f"{self.auto:.4f}",
                f"{self.rival:.4f}",
                self.name,
            ),
            *(f"{self.lead:+.4f}", f"{self.error:.4f}", self.verdict),
        ]


# Scores of one fit: measure -> value.
Scores = dict[str, float]


def duels(
    name: str, epsilon: float, auto: list[Scores], rivals: dict[str, list[Scores]]
) -> Iterator[Duel]:
    """The best baseline in each measure. Fits are in the same order everywhere (fold by fold, draw
    by draw), so that differences are paired.
    """
    for measure in auto[0]:
        own = [scores[measure] for scores in auto]
        others = {rival: [scores[measure] for scores in fits] for rival, fits in rivals.items()}
        best = max(others, key=lambda rival: statistics.fmean(others[rival]))
        leads = [a - b for a, b in zip(own, others[best], strict=True)]
        error = statistics.stdev(leads) / math.sqrt(len(leads)) if len(leads) > 1 else 0.0
        yield Duel(
            name,
            epsilon,
            measure,
            statistics.fmean(own),
            statistics.fmean(others[best]),
            best,
            error,
        )


HEAD = ["set", "epsilon", "measure", "auto", "best baseline", "which", "lead", "s.e.", "verdict"]


def table(found: list[Duel]) -> str:
    return markdown(HEAD, [duel.cells() for duel in found])


def compare(
    name: str,
    epsilon: float,
    fits: list[tuple[int, int]],
    score: Callable[[str | Solver, int, int], Scores],
    rivals: dict[str, Solver],
) -> list[Duel]:
    """All solvers on the same folds and draws; ``score`` fits one of them on one fold with one
    draw of noise.
    """
    auto = [score("auto", *fit) for fit in fits]
    others = {rival: [score(solver, *fit) for fit in fits] for rival, solver in rivals.items()}
    return list(duels(name, epsilon, auto, others))
