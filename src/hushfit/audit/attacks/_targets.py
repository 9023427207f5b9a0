"""All attacked algorithms, with their settings and canaries."""

from collections.abc import Callable
from dataclasses import dataclass

from hushfit.audit._bounds import Curve
from hushfit.audit.attacks._canaries import (
    FAR,
    AnyCanary,
    BoundedCanary,
    Canary,
    CellCanary,
    ClassCanary,
    LabelCanary,
    TextCanary,
)
from hushfit.audit.attacks._list_canaries import ListCanary, RankingRun
from hushfit.audit.attacks._preparation import QuantileQueries, VocabularyQuery
from hushfit.audit.checks import curve_of, repeated_corner
from hushfit.losses import LeastSquares, Logistic, Loss, Poisson, Softmax
from hushfit.privacy import LABEL_RELATIONS, RECORD_RELATIONS, Relation, exchanges
from hushfit.release import FixedSizeBatch, PoissonBatch
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
)
from hushfit.solvers.inference import ScoreSteps
from hushfit.solvers.ranking import ListwiseSGD, OneReleaseRanking, PrivBR, WhitenedLists


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
    "objective": Target(ObjectivePerturbation(kappa=0.005), gaussian=True, repeats=2),
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
