"""One example of every query over rows of features, at random public values, for deterministic
audits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.data import as_source
from hushfit.losses import (
    HuberHinge,
    LeastSquares,
    Logistic,
    Loss,
    OneVsRest,
    Poisson,
    Softmax,
    Squared,
)
from hushfit.penalties import L1, Zero
from hushfit.privacy import Relation, labels_only, replaces_one
from hushfit.problem import Problem
from hushfit.release import (
    AdmmRun,
    AdmmState,
    AdmmStep,
    Choice,
    ClippedGradient,
    Gate,
    GradientDifference,
    GradientWithMoment,
    HessianSum,
    LabelStatistic,
    LogisticGradient,
    LossDrop,
    MarginHistogram,
    Metric,
    NewtonDirection,
    Passes,
    PermutedRun,
    PerturbedMinimiser,
    RegularisedMinimiser,
    SecondMoment,
    Snapshot,
    SteepestCorner,
    VarianceReducedGradient,
    difference_bound,
)
from hushfit.unit import ROW, PrivacyUnit

ROWS, COLUMNS = 12, 3


@dataclass(frozen=True, eq=False)
class Example:
    """A query, the table around the replaced record, and admissible labels."""

    query: Any
    rows: Vector
    labels: Vector
    draw_label: Callable[[np.random.Generator], float]


def example_queries(
    relation: Relation | str, seed: int = 0, unit: PrivacyUnit = ROW
) -> dict[str, Example]:
    """Every query that is answered over rows of features, by name.

    Parameters
    ----------
    relation : Relation or str
    seed : int, default=0
        Seed of the public values and the rows.
    unit : PrivacyUnit, default=ROW
        Whom the bounds of the queries protect.

    Returns
    -------
    dict of str to Example
    """
    relation, rng = Relation.parse(relation), np.random.default_rng(seed)
    if labels_only(relation):
        return _label_statistics(relation, rng)
    made: dict[str, Example] = {}

    def add(
        name: str,
        loss: Loss,
        build: Callable[[Problem, Vector], Any],
        outputs: int = 1,
        intercept: bool = True,
        **more: Any,
    ) -> None:
        penalty = more.get("penalty", Zero())
        problem = Problem(
            loss, penalty, ROWS, COLUMNS, relation, intercept, outputs, privacy_unit=unit
        )
        draw = _labels_of(loss, outputs)
        labels = np.array([draw(rng) for _ in range(ROWS)])
        w = more.get("size", 1.0) * rng.normal(size=problem.shape)
        made[name] = Example(build(problem, w), rng.normal(size=(ROWS, COLUMNS)), labels, draw)

    A = rng.normal(size=(COLUMNS + 1, COLUMNS + 1))
    metric = Metric(A @ A.T / 4 + np.eye(COLUMNS + 1))
    add("gradient, logistic", Logistic(), lambda p, w: ClippedGradient(p, w, 0.5))
    add(
        "gradient, no intercept",
        Logistic(),
        lambda p, w: ClippedGradient(p, w, 0.5),
        intercept=False,
    )
    add("gradient, hinge", HuberHinge(), lambda p, w: ClippedGradient(p, w, 0.7), size=5.0)
    add("gradient, squared", Squared(2.0), lambda p, w: ClippedGradient(p, w, 1.0))
    add("gradient, poisson", Poisson(4.0), lambda p, w: ClippedGradient(p, w, 1.0))
    add("gradient, softmax", Softmax(3), lambda p, w: ClippedGradient(p, w, 0.8), outputs=3)
    add(
        "gradient, one against the rest",
        OneVsRest(HuberHinge(), 3),
        lambda p, w: ClippedGradient(p, w, 0.8),
        outputs=3,
    )
    add("gradient in a metric", Logistic(), lambda p, w: ClippedGradient(p, w, 0.5, metric))
    add("gradient by its diameter", Logistic(), LogisticGradient)
    add("second moment", Logistic(), lambda p, w: SecondMoment(p))
    add("gradient with moment", Logistic(), lambda p, w: _together(p, w, SecondMoment(p), 0.5))
    add(
        "gradient with moment, softmax",
        Softmax(3),
        lambda p, w: _together(p, w, SecondMoment(p), 0.3),
        outputs=3,
    )
    add(
        "gradient with curvature",
        Squared(1.0),
        lambda p, w: _together(p, w, HessianSum(p, w, "majorant"), 0.3),
    )
    add("curvature", Logistic(), lambda p, w: HessianSum(p, w, "hessian"))
    add("majorant", Squared(1.0), lambda p, w: HessianSum(p, w, "majorant"))
    add("newton direction", Logistic(), lambda p, w: NewtonDirection(p, w, np.ones(p.shape), 0.1))
    add("margin histogram", Logistic(), lambda p, w: MarginHistogram(p, w, np.linspace(-1, 1, 5)))
    add(
        "difference",
        Squared(2.0),
        lambda p, w: GradientDifference(p, w, 0.8 * w, 0.5, difference_bound(p, w, 0.8 * w, 0.5)),
    )
    add(
        "step of ADMM",
        Logistic(),
        lambda p, w: AdmmStep(p, AdmmState(w, 0.5 * w, -w), 1.0, 0.5, 0.5),
        penalty=L1(0.1),
    )
    add(
        "steps of ADMM",
        Logistic(),
        lambda p, w: AdmmRun(p, w, -w, 2.0, 0.5, 0.5, 4),
        penalty=L1(0.1),
    )
    add(
        "run in one batch",
        Logistic(),
        lambda p, w: PermutedRun(p, Passes.even(ROWS, 1, (1.0, 1.0, 0.5), None), 0.5),
    )
    if replaces_one(relation):
        add(
            "run in batches",
            Logistic(),
            lambda p, w: PermutedRun(p, Passes.even(ROWS, 3, (1.0, 0.5), 2), 0.5),
        )
    else:
        add(
            "variance-reduced gradient",
            Logistic(),
            lambda p, w: VarianceReducedGradient(p, w, Snapshot(-w, 0.5), 0.3),
        )
    add("minimiser", Logistic(), lambda p, w: RegularisedMinimiser(p, 0.3), penalty=L1(0.02))
    add("perturbed minimiser", Logistic(), lambda p, w: PerturbedMinimiser(p, 0.3))
    add("loss drops", Logistic(), _drop)
    add("gate", Logistic(), lambda p, w: Gate(_drop(p, w), np.array([0.1, 0.2, 0.3])), size=4.0)
    add("choice", HuberHinge(), lambda p, w: Choice(_drop(p, w), np.array([0.1, 0.2, 0.3])))
    add("steepest corner", Logistic(), lambda p, w: SteepestCorner(p, w, 0.5))
    return made


def _label_statistics(relation: Relation, rng: np.random.Generator) -> dict[str, Example]:
    """The queries whose features are public."""
    metric = Metric(np.diag(rng.uniform(1.0, 4.0, COLUMNS + 1)))
    weights = rng.uniform(0.0, 1.0, ROWS)
    settings: dict[str, tuple[Loss, bool, Vector | None, Metric | None]] = {
        "logistic": (Logistic(), True, None, None),
        "no intercept": (Logistic(), False, None, None),
        "squared": (LeastSquares(-1.0, 3.0), True, None, None),
        "counts": (Poisson(4.0), True, None, None),
        "softmax": (Softmax(3), True, None, None),
        "weighted rows": (Logistic(), True, weights, None),
        "in a metric": (Softmax(3), True, weights, metric),
    }
    made = {}
    for name, (loss, intercept, own, image) in settings.items():
        rows, draw = rng.normal(size=(ROWS, COLUMNS)), _labels_of(loss, loss.outputs)
        labels = np.array([draw(rng) for _ in range(ROWS)])
        problem = Problem(loss, Zero(), ROWS, COLUMNS, relation, intercept, loss.outputs)
        public = as_source(rows, np.zeros(ROWS), fit_intercept=intercept).public_rows()
        query = LabelStatistic(problem, public, own, image)
        made[f"label statistic, {name}"] = Example(query, rows, labels, draw)
    return made


def _labels_of(loss: Loss, outputs: int) -> Callable[[np.random.Generator], float]:
    if outputs > 1:
        return lambda rng: float(rng.integers(outputs))
    if isinstance(loss, Squared | LeastSquares):
        return lambda rng: float(10 ** rng.uniform(-1, 4) * rng.choice([-1, 1]))
    if isinstance(loss, Poisson):  # counts beyond the largest too
        return lambda rng: float(np.rint(10 ** rng.uniform(-1, 4)))
    return lambda rng: float(rng.choice([-1.0, 1.0]))


def _together(
    problem: Problem, w: Vector, moment: SecondMoment | HessianSum, share: float
) -> GradientWithMoment:
    return GradientWithMoment(ClippedGradient(problem, w, 0.5), moment, share)


def _drop(problem: Problem, w: Vector) -> LossDrop:
    mixes = np.array([[1.0, 0.0], [1.0, -0.5], [1.0, -1.0], [1.0, -2.0]])
    return LossDrop(problem, np.stack([w, w[::-1].copy()]), mixes, np.array([0.5, 1.0, 1.0]))
