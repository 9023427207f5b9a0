"""One example of every query over rows of features, at random public values, for deterministic
audits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.data import (
    AT_MOST_ONE,
    DataSource,
    Persons,
    RecordScaling,
    as_source,
    scaling_of,
)
from hushfit.losses import (
    HuberHinge,
    LeastSquares,
    Logistic,
    Loss,
    OneVsRest,
    Poisson,
    SaturatingSquares,
    Softmax,
    Squared,
)
from hushfit.penalties import L1, Penalty, Zero
from hushfit.privacy import Relation, labels_only, replaces_one
from hushfit.problem import Problem
from hushfit.release import (
    AdmmRun,
    AdmmState,
    AdmmStep,
    Choice,
    ClassCounts,
    ClippedGradient,
    ColumnMoments,
    ColumnWhitening,
    Gate,
    GradientDifference,
    GradientWithMoment,
    GroupMoments,
    HessianSum,
    LabelStatistic,
    LineDerivative,
    LogisticGradient,
    LogLength,
    LossDrop,
    MarginHistogram,
    MatrixWhitening,
    MeanAndSquare,
    Metric,
    NewtonDirection,
    Passes,
    PermutedRun,
    PerturbedMinimiser,
    Prediction,
    RankOneMetric,
    RecordSum,
    RegularisedMinimiser,
    ResidualGradient,
    ResidualMoments,
    ScoreMoments,
    SecondMoment,
    ShortenedMoment,
    Snapshot,
    SteepestCorner,
    Target,
    VarianceReducedGradient,
    difference_bound,
    score_family,
)
from hushfit.unit import ROW, PrivacyUnit

ROWS, COLUMNS = 12, 3
_SCORES: dict[str, Loss] = {
    "linear": LeastSquares(),
    "logistic": Logistic(),
    "counts": Poisson(4.0),
}


@dataclass(frozen=True, eq=False)
class Example:
    """A query, the table around the replaced record, and admissible labels."""

    query: Any
    rows: Vector
    labels: Vector
    draw_label: Callable[[np.random.Generator], float]


def source_for(
    problem: Problem, rows: Any, labels: Vector, persons: Persons | None = None
) -> DataSource:
    """The source that a query of this problem is answered over. Where entries are bounded, rows and
    labels are clipped first, so that a search over all numbers finds every corner.

    Parameters
    ----------
    problem : Problem
    rows : array or CSR matrix
    labels : array
    persons : Persons, optional

    Returns
    -------
    DataSource
    """
    intercept = problem.fit_intercept
    if scaling_of(problem) in AT_MOST_ONE:
        return as_source(
            rows,
            labels,
            fit_intercept=intercept,
            persons=persons,
            scaling=problem.scaling,
            length=problem.length,
        )
    if hasattr(rows, "indptr"):
        kept = np.clip(rows.data, -1.0, 1.0)
        bounded = type(rows)((kept, rows.indices, rows.indptr), shape=rows.shape)
    else:
        bounded = np.clip(rows, -1.0, 1.0)
    return as_source(
        bounded,
        labels if isinstance(problem.loss, Logistic | Poisson) else np.clip(labels, -1.0, 1.0),
        fit_intercept=intercept,
        scaled_labels=True,
        persons=persons,
        scaling=RecordScaling.BOUNDED,
    )


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
    A = rng.normal(size=(COLUMNS + 1, COLUMNS + 1))
    metric = Metric(A @ A.T / 4 + np.eye(COLUMNS + 1))
    short = RankOneMetric(np.array([1.0, -2.0, 0.5, 3.0]), 0.4, 0.7)

    def drawn(recipes: Sequence[_Recipe]) -> dict[str, Example]:
        return {recipe.name: recipe.drawn(relation, unit, rng) for recipe in recipes}

    first = drawn([*_gradients(metric, short), *_curvatures(), *_runs(relation), *_minimisers()])
    bounded = _of_bounded_records(relation, rng, unit)
    # New ones come last: those before them keep the values that short searches were tried with.
    return first | drawn(_more(short)) | bounded


@dataclass(frozen=True)
class _Recipe:
    """How an example is made.

    Parameters
    ----------
    name : str
    loss : Loss
    build : callable
        Maps the problem and drawn coefficients to the query.
    outputs : int, default=1
    intercept : bool, default=True
    penalty : Penalty, default=Zero()
    size : float, default=1.0
        Standard deviation of the coefficients.
    records : mapping, optional
        What the problem says about the lengths of records.
    """

    name: str
    loss: Loss
    build: Callable[[Problem, Vector], Any]
    outputs: int = 1
    intercept: bool = True
    penalty: Penalty = Zero()
    size: float = 1.0
    records: Mapping[str, Any] = field(default_factory=dict)

    def drawn(self, relation: Relation, unit: PrivacyUnit, rng: np.random.Generator) -> Example:
        """The example with random labels, coefficients and rows, drawn in this order."""
        problem = Problem(
            self.loss,
            self.penalty,
            ROWS,
            COLUMNS,
            relation,
            self.intercept,
            self.outputs,
            privacy_unit=unit,
            **self.records,
        )
        draw = _labels_of(self.loss, self.outputs)
        labels = np.array([draw(rng) for _ in range(ROWS)])
        query = self.build(problem, self.size * rng.normal(size=problem.shape))
        return Example(query, rng.normal(size=(ROWS, COLUMNS)), labels, draw)


def _gradients(metric: Metric, short: RankOneMetric) -> list[_Recipe]:
    """Gradients, sums of records, and derivatives along a line."""
    return [
        _Recipe("gradient, logistic", Logistic(), lambda p, w: ClippedGradient(p, w, 0.5)),
        _Recipe(
            "gradient, no intercept",
            Logistic(),
            lambda p, w: ClippedGradient(p, w, 0.5),
            intercept=False,
        ),
        _Recipe("gradient, hinge", HuberHinge(), lambda p, w: ClippedGradient(p, w, 0.7), size=5.0),
        _Recipe("gradient, squared", Squared(2.0), lambda p, w: ClippedGradient(p, w, 1.0)),
        _Recipe("gradient, poisson", Poisson(4.0), lambda p, w: ClippedGradient(p, w, 1.0)),
        _Recipe(
            "gradient, softmax", Softmax(3), lambda p, w: ClippedGradient(p, w, 0.8), outputs=3
        ),
        _Recipe(
            "gradient, one against the rest",
            OneVsRest(HuberHinge(), 3),
            lambda p, w: ClippedGradient(p, w, 0.8),
            outputs=3,
        ),
        _Recipe(
            "gradient in a metric", Logistic(), lambda p, w: ClippedGradient(p, w, 0.5, metric)
        ),
        _Recipe("gradient, rank one", Logistic(), lambda p, w: ClippedGradient(p, w, 0.3, short)),
        _Recipe("gradient by its diameter", Logistic(), LogisticGradient),
        _Recipe("sum of records", Logistic(), lambda p, w: RecordSum(p)),
        _Recipe("class counts", Softmax(3), lambda p, w: ClassCounts(p), outputs=3),
        _Recipe(
            "derivative along a line",
            Softmax(3),
            lambda p, w: LineDerivative(p, w, w, 0.5),
            outputs=3,
            size=2.0,
        ),
        _Recipe(
            "derivative along a line, one against the rest",
            OneVsRest(Logistic(), 3),
            lambda p, w: LineDerivative(p, w, -w, 0.5),
            outputs=3,
        ),
    ]


def _curvatures() -> list[_Recipe]:
    """Second moments, curvature, histograms and differences."""
    return [
        _Recipe("second moment", Logistic(), lambda p, w: SecondMoment(p)),
        _Recipe(
            "gradient with moment", Logistic(), lambda p, w: _together(p, w, SecondMoment(p), 0.5)
        ),
        _Recipe(
            "gradient with moment, softmax",
            Softmax(3),
            lambda p, w: _together(p, w, SecondMoment(p), 0.3),
            outputs=3,
        ),
        _Recipe(
            "gradient with curvature",
            Squared(1.0),
            lambda p, w: _together(p, w, HessianSum(p, w, "majorant"), 0.3),
        ),
        _Recipe("curvature", Logistic(), lambda p, w: HessianSum(p, w, "hessian")),
        _Recipe("majorant", Squared(1.0), lambda p, w: HessianSum(p, w, "majorant")),
        _Recipe(
            "newton direction",
            Logistic(),
            lambda p, w: NewtonDirection(p, w, np.ones(p.shape), 0.1),
        ),
        _Recipe(
            "margin histogram",
            Logistic(),
            lambda p, w: MarginHistogram(p, w, np.linspace(-1, 1, 5)),
        ),
        _Recipe(
            "difference",
            Squared(2.0),
            lambda p, w: GradientDifference(
                p, w, 0.8 * w, 0.5, difference_bound(p, w, 0.8 * w, 0.5)
            ),
        ),
    ]


def _runs(relation: Relation) -> list[_Recipe]:
    """Several steps at once."""
    return [
        _Recipe(
            "step of ADMM",
            Logistic(),
            lambda p, w: AdmmStep(p, AdmmState(w, 0.5 * w, -w), 1.0, 0.5, 0.5),
            penalty=L1(0.1),
        ),
        _Recipe(
            "steps of ADMM",
            Logistic(),
            lambda p, w: AdmmRun(p, w, -w, 2.0, 0.5, 0.5, 4),
            penalty=L1(0.1),
        ),
        _Recipe(
            "run in one batch",
            Logistic(),
            lambda p, w: PermutedRun(p, Passes.even(ROWS, 1, (1.0, 1.0, 0.5), None), 0.5),
        ),
        _Recipe(
            "run in batches",
            Logistic(),
            lambda p, w: PermutedRun(p, Passes.even(ROWS, 3, (1.0, 0.5), 2), 0.5),
        )
        if replaces_one(relation)
        else _Recipe(
            "variance-reduced gradient",
            Logistic(),
            lambda p, w: VarianceReducedGradient(p, w, Snapshot(-w, 0.5), 0.3),
        ),
    ]


def _minimisers() -> list[_Recipe]:
    """Minimisers, gates and choices."""
    return [
        _Recipe(
            "minimiser", Logistic(), lambda p, w: RegularisedMinimiser(p, 0.3), penalty=L1(0.02)
        ),
        _Recipe("perturbed minimiser", Logistic(), lambda p, w: PerturbedMinimiser(p, 0.3)),
        _Recipe("loss drops", Logistic(), _drop),
        _Recipe(
            "gate", Logistic(), lambda p, w: Gate(_drop(p, w), np.array([0.1, 0.2, 0.3])), size=4.0
        ),
        _Recipe(
            "choice", HuberHinge(), lambda p, w: Choice(_drop(p, w), np.array([0.1, 0.2, 0.3]))
        ),
        _Recipe("steepest corner", Logistic(), lambda p, w: SteepestCorner(p, w, 0.5)),
    ]


def _more(short: RankOneMetric) -> list[_Recipe]:
    """Saturating losses, moments by group, and records of length at most one."""
    at_most_one = {"scaling": RecordScaling.PUBLIC_LENGTH, "length": 3.0}
    return [
        _Recipe(
            "gradient, saturating", SaturatingSquares(), lambda p, w: ClippedGradient(p, w, 1.0)
        ),
        _Recipe("moments of columns", Logistic(), lambda p, w: GroupMoments(p, (0, 1, 2))),
        _Recipe(
            "moments by group", Logistic(), lambda p, w: GroupMoments(p, (0, 2), by=1, groups=3)
        ),
        _Recipe(
            "gradient, public length", Logistic(), LogisticGradient, size=3.0, records=at_most_one
        ),
        _Recipe(
            "gradient with moment, public length",
            Logistic(),
            lambda p, w: _together(p, w, SecondMoment(p), 0.5),
            records=at_most_one,
        ),
        _Recipe(
            "gradient, rank one, public length",
            Logistic(),
            lambda p, w: ClippedGradient(p, w, 0.3, short),
            records=at_most_one,
        ),
    ]


def _of_bounded_records(
    relation: Relation, rng: np.random.Generator, unit: PrivacyUnit
) -> dict[str, Example]:
    """The queries over records that keep their lengths."""
    d = COLUMNS
    A = rng.normal(size=(d + 1, d + 1)) / 2 + np.eye(d + 1)
    inverse, centre = rng.uniform(1.0, 4.0, d), rng.uniform(-0.5, 0.5, d)
    weights = rng.normal(size=d + 1)
    builds: dict[str, tuple[bool, Callable[[Problem], Any]]] = {
        "targets": (True, lambda p: MeanAndSquare(p, Target())),
        "lengths": (True, lambda p: MeanAndSquare(p, LogLength(float(d), 5.0))),
        "predictions": (True, lambda p: MeanAndSquare(p, Prediction(2 * weights))),
        "residuals": (True, lambda p: ResidualMoments(p, weights, 0.1, 0.2, 0.5)),
        "shortened moment": (True, lambda p: ShortenedMoment(p, 1.0)),
        "shortened moment, no intercept": (False, lambda p: ShortenedMoment(p, 1.5)),
        "column moments": (True, lambda p: ColumnMoments(p, 1.0)),
        "residual gradient": (
            True,
            lambda p: ResidualGradient(p, weights, 0.3, MatrixWhitening(A)),
        ),
        "residual gradient, no intercept": (
            False,
            lambda p: ResidualGradient(p, weights[:-1], 0.3, MatrixWhitening(A[:-1, :-1], False)),
        ),
        "residual gradient, by columns": (
            True,
            lambda p: ResidualGradient(p, weights, 0.3, ColumnWhitening(inverse, centre)),
        ),
    }
    losses: dict[str, Loss] = {}
    for family, loss in _SCORES.items():
        name = f"scores, {family}"
        losses[name] = loss
        builds[name] = True, lambda p: ScoreMoments(p, 9 * weights, A / 2, score_family(p.loss))
    made = {}
    for name, (intercept, build) in builds.items():
        problem = Problem(
            losses.get(name, SaturatingSquares()),
            Zero(),
            ROWS,
            COLUMNS,
            relation,
            intercept,
            privacy_unit=unit,
            scaling=RecordScaling.BOUNDED,
        )
        draw = _labels_of(problem.loss, 1)
        labels = np.array([draw(rng) for _ in range(ROWS)])
        made[name] = Example(build(problem), rng.normal(size=(ROWS, COLUMNS)), labels, draw)
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
    if isinstance(loss, Squared | LeastSquares | SaturatingSquares):
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
