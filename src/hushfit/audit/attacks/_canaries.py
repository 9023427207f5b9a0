"""Canaries: for every algorithm, two neighbouring tables on which its accounted epsilon is
attained, or nearly.

The rows around the canary are zero records, so that nothing hides it and only noise and the canary
change the weights. The loss is the squared loss with a bounded slope, and labels are so large that
the canary's gradient has its largest norm for all weights. What else an algorithm needs is stated
where it is listed; docs/audit.md has the table.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.audit._bounds import Curve
from hushfit.audit.attacks._auditor import (
    Attack,
    Audit,
    Neighbours,
    OwnerAttack,
    audit,
    require_known,
)
from hushfit.audit.attacks._list_canaries import ListCanary, RankingRun
from hushfit.audit.attacks._preparation import QuantileQueries, VocabularyQuery
from hushfit.audit.attacks._search import SEARCHES, search_attacks
from hushfit.audit.checks import curve_of, repeated_corner
from hushfit.data import DataSource, Persons, RecordScaling, as_source
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.federated import PPADMM, Algorithm, Network, Seat, SharedSolver
from hushfit.losses import (
    LeastSquares,
    Logistic,
    Loss,
    Poisson,
    SaturatingSquares,
    Softmax,
    Squared,
)
from hushfit.penalties import ScaledL2, Zero
from hushfit.privacy import (
    LABEL_RELATIONS,
    RECORD_RELATIONS,
    Budget,
    Relation,
    exchanges,
    labels_only,
    replaces_one,
)
from hushfit.privacy.accounting import normal_form
from hushfit.problem import Problem
from hushfit.release import FixedSizeBatch, PoissonBatch, TextColumns, Vocabulary
from hushfit.solvers import (
    DPAGD,
    DPBLS,
    DPSADMM,
    DPSC,
    DPSGD,
    DPSVRG,
    DPVRADMM,
    MPADMM,
    SSADMM,
    ClassicObjective,
    Counted,
    DoubleNoiseNewton,
    DPAdam,
    FrankWolfe,
    HeavyBall,
    ObjectivePerturbation,
    OneRelease,
    OutputPerturbation,
    PermutedSGD,
    PrivGene,
    ProximalGradient,
    ProxNewton,
    Recalibrated,
    Screening,
    Solver,
    SufficientStatistics,
    Tempered,
    TwoReleases,
    WhitenedGradientDescent,
    WhitenedLeastSquares,
    WhitenedPoisson,
    solver_from,
)
from hushfit.solvers.inference import ScoreSteps
from hushfit.solvers.ranking import ListwiseSGD, OneReleaseRanking, PrivBR, WhitenedLists
from hushfit.unit import ROW, PrivacyUnit

# A label so large that the slope of the loss is at its bound for all weights that occur.
FAR = 1e4
ROWS = 8
USUAL_BUDGET = Budget(8.0, 1e-5)
WHITE, BLACK = "white-box", "black-box"


@dataclass(frozen=True)
class Canary:
    """How a pair of neighbouring tables is made.

    Parameters
    ----------
    columns : int, default=2
    cosine : float, default=1.0
        Between the two records, under replace-one: 1 for one record with opposite labels; less
        where a second moment is also released, which does not depend on labels.
    label : float, default=FAR
        Smaller where slopes must change with the weights.
    other_label : float or None
        Label of the second record, if it is not the opposite one.
    crowd : bool, default=False
        Whether the other rows are copies of the second record instead of zero records: the worst
        case for batches of fixed size.
    pushing : int, default=0
        Number of other rows equal to the first record: a choice is then nearly decided, and its
        least likely outcome is the most informative.
    person_rows : int, default=1
        Above 1, the canary is a person with so many copies of the record; all others have one row.
    """

    columns: int = 2
    cosine: float = 1.0
    label: float = FAR
    other_label: float | None = None
    crowd: bool = False
    pushing: int = 0
    person_rows: int = 1
    rows: ClassVar[int] = ROWS

    @property
    def unit(self) -> PrivacyUnit:
        return PrivacyUnit.person() if self.person_rows > 1 else ROW

    def records(self, relation: Relation) -> tuple[Matrix, Vector]:
        """The two records and their labels; the second is the null record under add-remove."""
        X, y = (
            np.zeros((2, self.columns)),
            np.array([-self.label, self.label if self.other_label is None else self.other_label]),
        )
        X[0, 0] = 1.0
        if replaces_one(relation):
            X[1, 0] = self.cosine
            X[1, 1:2] = math.sqrt(1 - self.cosine**2)
        return X, y

    def neighbours(self, relation: Relation, row: int = 0, rows: int = ROWS) -> Neighbours:
        """The two tables."""
        records, labels = self.records(relation)
        others_like_second = replaces_one(relation) and self.crowd
        tables = []
        for record, label in zip(records, labels, strict=True):
            X = np.tile(records[1] if others_like_second else np.zeros(self.columns), (rows, 1))
            y = np.full(rows, labels[1])
            if self.pushing:
                X[-self.pushing :], y[-self.pushing :] = records[0], labels[0]
            X[row], y[row] = record, label
            tables.append(_rows_of(X, y, row, self.person_rows, self.unit))
        return Neighbours(tables[0], tables[1], row, self.words(relation))

    def words(self, relation: Relation) -> str:
        """Description of how the tables differ."""
        alone = replace(self, person_rows=1)
        if self.person_rows > 1:
            return f"a person with {self.person_rows} rows, all alike: {alone.words(relation)}"
        near = "" if self.label == FAR else f", label {self.label:g}"
        if replaces_one(relation) and self.other_label is not None:
            near += f" against {-self.other_label:g}"
        if not replaces_one(relation):
            return (
                f"a unit record against none{near}; other rows "
                f"empty{f' but for {self.pushing} like it' if self.pushing else ''}"
            )
        apart = (
            "opposite labels on one record"
            if self.cosine == 1
            else f"opposite labels, records at cosine {self.cosine:g}"
        )
        others = (
            "all like the second"
            if self.crowd
            else f"empty but for {self.pushing} like the first"
            if self.pushing
            else "empty"
        )
        return f"{apart}{near}; other rows {others}"


def _rows_of(X: Matrix, y: Vector, row: int, copies: int, unit: PrivacyUnit) -> DataSource:
    """A table; with persons as units, one row is repeated as the rows of one person."""
    if not unit.is_person:
        return as_source(X, y, fit_intercept=False)
    owner = np.append(np.arange(len(X)), np.full(copies - 1, row))
    persons = Persons(owner, len(X), unit)
    return as_source(X[owner], y[owner], fit_intercept=False, persons=persons)


@dataclass(frozen=True)
class ClassCanary:
    """One of two classes against the other on a unit record; other rows empty."""

    columns: int = 2
    rows: ClassVar[int] = ROWS
    unit: ClassVar[PrivacyUnit] = ROW

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two tables; under add-remove the second has no record there."""
        X, y = np.zeros((2, ROWS, self.columns)), np.zeros((2, ROWS))
        X[0, row, 0] = 1.0
        if replaces_one(relation):
            X[1, row, 0], y[1, row] = 1.0, 1.0
        else:
            X[1, row] = np.nan
        tables = [as_source(X[k], y[k], fit_intercept=False) for k in range(2)]
        other = "the other class" if replaces_one(relation) else "no record"
        words = f"a unit record of one class against {other}; other rows empty"
        return Neighbours(tables[0], tables[1], row, words)


@dataclass(frozen=True)
class CellCanary:
    """Values that lie in different bins of every column, for histograms of columns.

    Parameters
    ----------
    columns : int, default=2
    rows : int, default=64
        The other rows alternate between the two values, so that the first histogram finds both.
    """

    columns: int = 2
    rows: int = 64
    unit: ClassVar[PrivacyUnit] = ROW

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two tables; under add-remove the second record has no values."""
        X = np.tile(np.resize([1.0, -1.0], self.rows)[:, None], (1, self.columns))
        tables = []
        for value in (1.0, -1.0 if replaces_one(relation) else np.nan):
            X[row] = value
            tables.append(as_source(X.copy(), np.zeros(self.rows), fit_intercept=False))
        other = "opposite values" if replaces_one(relation) else "values or none"
        return Neighbours(tables[0], tables[1], row, f"{other} in each of {self.columns} columns")


@dataclass(frozen=True)
class LabelCanary:
    """Opposite ends of the range of labels on one unit record; other rows empty.

    Parameters
    ----------
    columns : int, default=2
    person_rows : int, default=1
        Above 1, the canary is a person with so many copies of the record; all others have one row.
    """

    columns: int = 2
    person_rows: int = 1
    rows: ClassVar[int] = ROWS

    @property
    def unit(self) -> PrivacyUnit:
        return PrivacyUnit.person() if self.person_rows > 1 else ROW

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two tables, with the same features."""
        X = np.zeros((ROWS, self.columns))
        X[row, 0] = 1.0
        tables = []
        for label in (-FAR, FAR):  # both are clipped to the range
            y = np.zeros(ROWS)
            y[row] = label
            tables.append(_rows_of(X, y, row, self.person_rows, self.unit))
        whose = f"a person with {self.person_rows} rows, all alike: " * self.unit.is_person
        words = f"{whose}opposite labels on one public record; other rows empty"
        return Neighbours(tables[0], tables[1], row, words)


@dataclass(frozen=True)
class BoundedCanary:
    """Opposite targets on one record that keeps its length; other rows have no features.

    Parameters
    ----------
    low, high : float
        The two targets.
    intercept : bool, default=False
        Whether the model has one; then the record is the longest one.
    """

    low: float = -1.0
    high: float = 1.0
    columns: int = 2
    rows: int = ROWS
    intercept: bool = False
    unit: ClassVar[PrivacyUnit] = ROW

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two tables; under add-remove the second has the null record."""
        tables = []
        for target in (self.low, self.high):
            X, y = np.zeros((self.rows, self.columns)), np.zeros(self.rows)
            X[row, : self.columns if self.intercept else 1], y[row] = 1.0, target
            if not replaces_one(relation) and target == self.low:
                X[row] = np.nan
            tables.append(
                as_source(
                    X,
                    y,
                    fit_intercept=self.intercept,
                    scaled_labels=True,
                    scaling=RecordScaling.BOUNDED,
                )
            )
        words = "opposite targets on" if replaces_one(relation) else "a target on, or none of,"
        return Neighbours(tables[1], tables[0], row, f"{words} one record; other rows empty")


@dataclass(frozen=True)
class TextCanary:
    """Texts with counts at the threshold, in so many columns that one bit of each count reveals
    most of it.

    Parameters
    ----------
    columns : int, default=40
    common : int, default=30
        Number of rows with the first text on the first table; as many have the second text on the
        second.
    """

    columns: int = 40
    common: int = 30
    unit: ClassVar[PrivacyUnit] = ROW

    @property
    def rows(self) -> int:
        return 2 * self.common

    def at_threshold(
        self, solver: VocabularyQuery, budget: Budget, relation: Relation
    ) -> "TextCanary":
        """The same with counts on both sides of the threshold that follows from the budget."""
        problem = Problem(
            Squared(1.0), Zero(), self.rows, self.columns, relation, fit_intercept=False
        )
        settled = solver.for_budget(budget, problem)
        multiplier = settled.plan(problem).quote(problem, budget).multipliers["vocabulary"]
        least = settled.mechanism(problem).threshold(
            multiplier * Vocabulary(self.columns).sensitivity(relation)
        )
        return replace(self, common=round(least + 0.5))

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two tables; under add-remove the second record has no texts."""
        column: list[str | None] = ["first"] * self.common + ["second"] * (self.common - 1) + [None]
        tables = []
        for text in ("first", "second" if replaces_one(relation) else None):
            column[row] = text
            tables.append(TextColumns((tuple(column),) * self.columns))
        other = "another text" if replaces_one(relation) else "none"
        return Neighbours(
            tables[0],
            tables[1],
            row,
            f"a text against {other} in each of {self.columns} columns, counts at the threshold",
        )


AnyCanary: TypeAlias = (
    Canary | BoundedCanary | CellCanary | ClassCanary | LabelCanary | ListCanary | TextCanary
)


@dataclass(frozen=True)
class Target:
    """An algorithm to attack.

    Parameters
    ----------
    solver : Solver
        With few steps: what a release reveals does not depend on how many follow.
    canary : Canary, or another of this module
        Under replace-one or label, and under other relations unless there is another.
    goal : float
        Share of the claimed epsilon that a white-box audit should measure.
    without : Canary or None
        Canary under add-remove.
    ridge : float, default=0.0
        Weight of a squared penalty.
    gaussian : bool, default=False
        Whether all releases on this canary are known to be Gaussian shifts, though the cost covers
        more: the family estimator then assumes Gaussian noise of unknown size.
    worst_row : bool, default=False
        Whether the answer depends on the position of a row, so that the worst one is searched.
    goal_replacing : float or None
        Goal under replace-one, if it differs.
    note : str
        Why less than the whole claim is attained, if so.
    law : callable or None
        Maps noise multipliers to the trade-off curve on the canary, where it is known and the cost
        is not attained at every epsilon at once.
    repeats : int, default=1
        Factor on the number of trials in the whole audit, where the measured share is close to the
        goal.
    relations : tuple of Relation
        Under which it is attacked, if it has a proof.
    of_persons : LabelCanary, ListCanary or None
        Canary under person-label.
    loss : Loss or None
        None is the squared loss.
    """

    solver: Solver
    canary: AnyCanary = Canary()
    goal: float = 0.8
    without: Canary | None = None
    ridge: float = 0.0
    gaussian: bool = False
    worst_row: bool = False
    goal_replacing: float | None = None
    note: str = ""
    law: Callable[[dict[str, float]], Curve] | None = None
    repeats: int = 1
    relations: tuple[Relation, ...] = RECORD_RELATIONS
    of_persons: LabelCanary | ListCanary | None = None
    loss: Loss | None = None

    def canary_under(self, relation: Relation) -> AnyCanary:
        """The canary of a relation."""
        if relation is Relation.PERSON_LABEL:
            return self.of_persons or self.canary
        return self.canary if exchanges(relation) else self.without or self.canary

    def goal_under(self, relation: Relation | str) -> float:
        """The share of the claim that a white-box audit should measure."""
        return (
            self.goal
            if self.goal_replacing is None or not exchanges(relation)
            else self.goal_replacing
        )


_POISSON = PoissonBatch(0.25)
_CORNERS = 4
_PERSON = Canary(person_rows=40)
_OF_PERSON = f"person of {_PERSON.person_rows} rows"
# One column: the weights then move along the record, and slopes below their bound follow them.
_LINE = Canary(columns=1)
_TRACKING = Canary(columns=1, label=0.45)
# At the first label the loss is curved and its slope exceeds the clipping norm; at the second it is
# linear. Both change curvature and gradient.
_CURVED_LABEL, _LINEAR_LABEL = -0.75, -FAR
_BATCHED = "the cost assumes a known batch; the attacker does not know it"
_GATES = "a gate costs as much as randomised response, which a line search does not attain"
_CHOICES = "a choice is accounted as a pure release, which noisy maxima do not attain"
_FLAT_SNAPSHOT = (
    "the cost covers a record with no gradient at the snapshot and a large one later, which no "
    "canary attains"
)
_LENGTHS_TOO = (
    "the cost covers records that differ in length and direction too; these differ in their target"
)
_CROWDED = "derivatives along a line attain their bound only at some weights"
_ONE_BIT = "one bit of each noisy count is released: at most 0.8 of the Gaussian parameter"

_PERSON_OF_LISTS = ListCanary(person_lists=5)
_OF_LISTS = f"person of {_PERSON_OF_LISTS.person_lists} lists"
_SGD_OF_LISTS = RankingRun(ListwiseSGD(steps=4, batch=2, clip=0.1))

TARGETS: dict[str, Target] = {
    "whitened-gd": Target(WhitenedGradientDescent(steps=4), ridge=1e-3),
    "prox-newton": Target(ProxNewton(steps=4)),
    "proximal-gd": Target(ProximalGradient(steps=4)),
    "proximal-gd, fixed size": Target(
        ProximalGradient(steps=4, sampling=FixedSizeBatch(2)), Canary(crowd=True), 0.5
    ),
    "recalibrated": Target(Recalibrated(WhitenedGradientDescent(steps=4), share=0.3), ridge=1e-3),
    "tempered": Target(
        Tempered(WhitenedGradientDescent(steps=4), share=0.3),
        ClassCanary(),
        goal=0.7,
        note=_CROWDED,
        loss=Softmax(2),
    ),
    "counted": Target(Counted(WhitenedGradientDescent(steps=4), share=0.3), ridge=1e-3),
    "heavy-ball": Target(HeavyBall(steps=4), repeats=2),
    "screening": Target(Screening(steps=4)),
    "ss-admm": Target(SSADMM(steps=4)),
    "mp-admm": Target(MPADMM(steps=4)),
    "mp-admm, published": Target(MPADMM(steps=4, form="published")),
    "mp-admm, multi-step": Target(
        MPADMM(steps=2, inner=3, form="multi-step"),
        goal=0.7,
        note="the cost covers every direction of the metric",
    ),
    "objective": Target(ObjectivePerturbation(kappa=0.005), gaussian=True),
    "objective-kifer": Target(
        ClassicObjective(),
        goal=0.15,
        gaussian=True,
        note="the classic theorem requires about twice the noise",
    ),
    "dpsc": Target(
        DPSC(steps=3, c=10.0),
        gaussian=True,
        note="several noisy objectives are accounted by a Renyi curve",
        repeats=3,
    ),
    "dpsc, pure": Target(DPSC(steps=2, c=10.0, noise="pure"), _LINE, goal=0.5),
    "dp-sadmm": Target(DPSADMM(steps=4, sampling=_POISSON), goal=0.5),
    "dp-vradmm": Target(
        DPVRADMM(epochs=2, inner_steps=3, eta=0.02, sampling=_POISSON), _TRACKING, 0.5
    ),
    "dp-vradmm, single noise": Target(
        DPVRADMM(epochs=2, inner_steps=2, noise="single", sampling=_POISSON),
        _LINE,
        0.0,
        note=_FLAT_SNAPSHOT,
    ),
    "dp-sgd": Target(DPSGD(steps=4, sampling=_POISSON), goal=0.5),
    "dp-adam": Target(DPAdam(steps=4, sampling=_POISSON), goal=0.5),
    "dp-svrg": Target(
        DPSVRG(epochs=2, inner_steps=3, step_size=0.02, sampling=_POISSON), _TRACKING, 0.5
    ),
    "newton": Target(
        DoubleNoiseNewton(steps=3, floor=100.0),
        Canary(label=_CURVED_LABEL, other_label=_LINEAR_LABEL),
        without=Canary(label=_CURVED_LABEL),
        repeats=3,
    ),
    "newton, noisy direction": Target(
        DoubleNoiseNewton(steps=3, floor=1.0, second_noise="direction"),
        Canary(columns=1, label=_CURVED_LABEL, other_label=_LINEAR_LABEL),
    ),
    "frank-wolfe": Target(
        FrankWolfe(steps=_CORNERS, radius=0.1),
        Canary(columns=1, pushing=3),
        without=Canary(columns=1, pushing=1),
        # The added rows shift the utilities from equality by three times what a record does, under
        # both relations.
        law=lambda multipliers: curve_of(repeated_corner(multipliers["corner"], _CORNERS, 3.0)),
        repeats=3,
    ),
    "ssp": Target(SufficientStatistics(floor=1.0), Canary(cosine=0.25), repeats=6),
    "rsgd-ar": Target(PermutedSGD(epochs=2, batches=2, step_size=0.5), goal=0.5, note=_BATCHED),
    "nsgd": Target(
        PermutedSGD(epochs=2, batches=4, step_size=0.5, schedule="constant", restart=None, order=0),
        worst_row=True,
    ),
    "outpert-gd": Target(
        PermutedSGD(epochs=3, batches=1, step_size=0.5, schedule="constant", restart=None)
    ),
    "output": Target(OutputPerturbation(mu=1.0)),
    "two-releases": Target(
        TwoReleases(),
        LabelCanary(),
        relations=LABEL_RELATIONS,
        of_persons=LabelCanary(person_rows=40),
        loss=Logistic(),
    ),
    "one-release": Target(
        OneRelease(),
        LabelCanary(),
        relations=LABEL_RELATIONS,
        of_persons=LabelCanary(person_rows=40),
    ),
    "least-squares": Target(
        WhitenedLeastSquares(steps=4), BoundedCanary(), goal=0.5, note=_LENGTHS_TOO
    ),
    "poisson": Target(
        WhitenedPoisson(steps=4),
        BoundedCanary(0.0, 4.0),
        goal=0.5,
        note=_LENGTHS_TOO,
        loss=Poisson(4.0),
    ),
    # Most of the budget goes to the first look: the weights and the metric of later ones follow
    # noise, and no record is far from others in all of them.
    "score-steps": Target(
        ScoreSteps(shares=(0.95, 0.025, 0.025)), BoundedCanary(intercept=True), loss=LeastSquares()
    ),
    "bls": Target(DPBLS(steps=2, rate=0.5, candidates=4, first_step=1.0), _LINE, 0.5, note=_GATES),
    "bls, all rows": Target(DPBLS("gd", steps=2, candidates=4, first_step=1.0), _LINE, repeats=2),
    "dp-agd": Target(DPAGD(steps=2, candidates=4, choice_share=0.1), _LINE, repeats=3),
    "priv-gene": Target(
        PrivGene(generations=1, children=32), _LINE, goal=0.5, note=_CHOICES, repeats=4
    ),
    f"whitened-gd, {_OF_PERSON}": Target(
        WhitenedGradientDescent(steps=4), _PERSON, ridge=1e-3, repeats=2
    ),
    f"proximal-gd, {_OF_PERSON}": Target(ProximalGradient(steps=4), _PERSON),
    f"dp-sgd, {_OF_PERSON}": Target(DPSGD(steps=4, sampling=_POISSON), _PERSON, goal=0.5),
    "one-release-ranking": Target(
        RankingRun(OneReleaseRanking()),
        ListCanary(),
        relations=LABEL_RELATIONS,
        of_persons=_PERSON_OF_LISTS,
    ),
    # Small steps: further from zero weights, gradients are shorter than their bound.
    "privbr": Target(
        RankingRun(PrivBR(steps=4, batch=2, learning_rate=1e-3)),
        ListCanary("bayesrank"),
        goal=0.5,
        relations=LABEL_RELATIONS,
        of_persons=ListCanary("bayesrank", person_lists=5),
    ),
    "privbr, network": Target(
        RankingRun(PrivBR(steps=4, batch=2, learning_rate=1e-3)),
        ListCanary("bayesrank", hidden=3),
        goal=0.5,
        relations=(Relation.LABEL,),
    ),
    "whitened-lists": Target(RankingRun(WhitenedLists(steps=4)), ListCanary()),
    f"whitened-lists, {_OF_LISTS}": Target(RankingRun(WhitenedLists(steps=4)), _PERSON_OF_LISTS),
    "listwise-sgd": Target(_SGD_OF_LISTS, ListCanary(), goal=0.5),
    "listwise-sgd, listmle": Target(_SGD_OF_LISTS, ListCanary("listmle"), goal=0.5),
    "listwise-sgd, network": Target(_SGD_OF_LISTS, ListCanary(hidden=3), goal=0.5, repeats=2),
    f"listwise-sgd, {_OF_LISTS}": Target(_SGD_OF_LISTS, _PERSON_OF_LISTS, goal=0.5),
    "quantiles": Target(QuantileQueries(), CellCanary()),
    "vocabulary": Target(VocabularyQuery(), TextCanary(), goal=0.5, note=_ONE_BIT),
}
"""Every algorithm, and preprocessing, with the settings and the canary of its audit."""

RANKING_TARGETS = {
    "one-release": "one-release-ranking",
    "privbr": "privbr",
    "whitened-lists": "whitened-lists",
    "listwise-sgd": "listwise-sgd",
}
"""The attacked algorithm of each ranking solver, by its name."""

ROW_LEVEL_TARGETS = (f"whitened-gd, {_OF_PERSON}", f"proximal-gd, {_OF_PERSON}")
"""Attacks on a person that are repeated against a fit that protects single rows. All releases are
Gaussian shifts then, of 40 times the size, so that the family estimator holds.
"""

RELATIONS = RECORD_RELATIONS


def attack_on(
    name: str,
    relation: Relation | str = Relation.REPLACE_ONE,
    budget: Budget = USUAL_BUDGET,
    secure: bool = False,
) -> Attack:
    """The strongest known attack on an algorithm.

    Parameters
    ----------
    name : str
        A key of `TARGETS`.
    relation : Relation or str, default="replace-one"
    budget : Budget
    secure : bool, default=False
        Noise from the operating system instead of reproducible noise.

    Returns
    -------
    Attack

    Raises
    ------
    UnsupportedRelation
        If the algorithm has no proof under the relation.
    """
    require_known(name, {**TARGETS, **SEARCHES}, "algorithm")
    relation, target = Relation.parse(relation), TARGETS[name]
    if relation not in target.relations:
        raise UnsupportedRelation(
            f"{name} is not attacked under {str(relation)!r}: it has no proof there. Use "
            f"{' or '.join(map(str, target.relations))}."
        )
    canary = target.canary_under(relation)
    if isinstance(canary, TextCanary) and isinstance(target.solver, VocabularyQuery):
        canary = canary.at_threshold(target.solver, budget, relation)
    neighbours = canary.neighbours(relation)
    problem: Any = (
        canary.problem(relation, neighbours)
        if isinstance(canary, ListCanary)
        else _table_problem(canary, relation, target.ridge, target.loss)
    )
    solver = solver_from(target.solver, problem, budget)
    made = Attack(solver, problem, neighbours, budget, secure, target.gaussian, target.law)
    return _at_worst_row(made, canary) if target.worst_row else made


def _table_problem(
    canary: AnyCanary, relation: Relation, ridge: float, loss: Loss | None = None
) -> Problem:
    bounded = isinstance(canary, BoundedCanary)
    usual: Loss = LeastSquares() if labels_only(relation) else Squared(1.0)
    if bounded:
        usual = SaturatingSquares()
    chosen = loss or usual
    return Problem(
        chosen,
        ScaledL2(ridge) if ridge else Zero(),
        canary.rows,
        canary.columns,
        relation,
        fit_intercept=isinstance(canary, BoundedCanary) and canary.intercept,
        outputs=chosen.outputs,
        privacy_unit=canary.unit,
        scaling=RecordScaling.BOUNDED if bounded else RecordScaling.UNIT_LENGTH,
    )


def row_level_attack(
    name: str,
    relation: Relation | str = Relation.REPLACE_ONE,
    budget: Budget = USUAL_BUDGET,
) -> Attack:
    """The attack on a person, against a fit of the same table that protects single rows.

    The claim is what the row-level fit states, read as if it held for the person. It does not: all
    rows of a person together reveal more than one row does.

    Parameters
    ----------
    name : str
        One of `ROW_LEVEL_TARGETS`.
    relation : Relation or str, default="replace-one"
    budget : Budget

    Returns
    -------
    Attack
    """
    require_known(name, dict.fromkeys(ROW_LEVEL_TARGETS), "attack on a person")
    attack = attack_on(name, relation, budget)
    row = attack.neighbours.row
    first, second = (
        as_source(source.X, source.y, fit_intercept=False)  # type: ignore[attr-defined]
        for source in attack.neighbours.tables
    )
    problem = replace(attack.problem, n_units=first.n_units, privacy_unit=ROW)
    words = f"{attack.neighbours.words}; the fit takes each row for a unit"
    solver = solver_from(TARGETS[name].solver, problem, budget)
    return Attack(solver, problem, Neighbours(first, second, row, words), budget)


def _at_worst_row(attack: Attack, canary: AnyCanary) -> Attack:
    """The same with the canary in the row where the exact answers differ most."""
    query: Any = attack.solver.query(attack.problem)  # type: ignore[attr-defined]

    def apart(row: int) -> float:
        tables = canary.neighbours(attack.problem.relation, row).tables
        return float(np.linalg.norm(query(tables[0], None) - query(tables[1], None)))

    return replace(
        attack, neighbours=canary.neighbours(attack.problem.relation, max(range(ROWS), key=apart))
    )


def owner_attacks(
    relation: Relation | str = Relation.REPLACE_ONE, budget: Budget = USUAL_BUDGET
) -> dict[str, OwnerAttack]:
    """Attacks on one owner of a federated run, by all the others."""
    relation = Relation.parse(relation)
    canary = Canary()
    problem = Problem(Squared(1.0), Zero(), ROWS, canary.columns, relation, fit_intercept=False)
    names = ("victim", "other")
    seat = Seat(
        "victim",
        Network.complete(names),
        problem,
        dict.fromkeys(names, ROWS),
        dict.fromkeys(names, budget),
    )
    algorithms: dict[str, Algorithm] = {
        "pp-admm": PPADMM(steps=3, eta=5.0),
        "shared": SharedSolver(SSADMM(steps=4)),
    }

    def alternating(k: int) -> Vector:
        return np.full(canary.columns, 0.1 * (-1) ** k)

    return {
        f"owner, {name}": OwnerAttack(
            algorithm, seat, canary.neighbours(relation), alternating, gaussian=True
        )
        for name, algorithm in algorithms.items()
    }


@cache
def proved(name: str, relation: Relation | str) -> bool:
    """Whether an algorithm has a guarantee under the adjacency relation."""
    try:
        attack = attack_on(name, relation)
        plan, n = attack.solver.plan(attack.problem), attack.problem.n_units
        # Any noise does: a relation without a proof is refused when the cost is evaluated.
        form = normal_form(plan.cost(plan.multipliers(1.0, n), n), Relation.parse(relation))
        for part in form.paired:
            part.directions(Relation.parse(relation))
    except UnsupportedRelation:
        return False
    return True


def first_proved(name: str) -> Relation:
    """The first relation under which an algorithm is attacked and has a guarantee."""
    return next(relation for relation in TARGETS[name].relations if proved(name, relation))


def audit_solver(
    name: str,
    relation: Relation | str = Relation.REPLACE_ONE,
    budget: Budget = USUAL_BUDGET,
    view: str = WHITE,
    trials: int = 4000,
    confidence: float = 0.999,
    *,
    seed: int = 0,
    secure: bool = False,
    alarm: float | None = None,
    watch: Callable[[int], None] | None = None,
) -> Audit:
    """Audit an algorithm of the library with its own canary.

    Parameters
    ----------
    name : str
        A key of `TARGETS`: the name of a solver, or one of its variants; or ``"search"``, private
        model selection.
    relation : Relation or str, default="replace-one"
    budget : Budget, default=Budget(8, 1e-5)
        What the algorithm is calibrated to, and so what it claims.
    view : {"white-box", "black-box"}, default="white-box"
        Whether the attacker sees every release, or the final weights alone.
    trials, confidence, seed, alarm, watch
        As for `audit`.
    secure : bool, default=False
        Noise from the operating system instead of reproducible noise.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from hushfit.audit import audit_solver
    >>> str(audit_solver("output", trials=400).verdict) != "violated"
    True
    """
    if view not in (WHITE, BLACK):
        raise InvalidArgument(f"view={view!r} is not known. Use {WHITE!r} or {BLACK!r}.")
    run_audit = partial(
        audit,
        trials=trials,
        confidence=confidence,
        name=name,
        seed=seed,
        view=view,
        alarm=alarm,
        watch=watch,
    )
    if name in (searches := search_attacks(relation, budget)):
        search = searches[name]
        # Every attacker sees only the model of a search.
        return run_audit(search.published, search.claim, canary=search.words, view=BLACK)
    attack = attack_on(name, relation, budget, secure)
    return run_audit(
        attack.white_box if view == WHITE else attack.black_box,
        attack.claim,
        canary=attack.neighbours.words,
    )
