"""Bugs in queries: an answer that exceeds its stated sensitivity."""

import math

import numpy as np

from hushfit.audit.checks import _examples
from hushfit.data import RecordScaling
from hushfit.data.rows import FeatureBounds, _source
from hushfit.losses import _least_squares as least_squares
from hushfit.privacy import Relation
from hushfit.release import exact_sum
from hushfit.release.mechanisms import _corner as selection
from hushfit.release.mechanisms import _difference as difference
from hushfit.release.mechanisms import _gradient_norm as gradient_norm
from hushfit.release.mechanisms import _permuted as permuted
from hushfit.release.mechanisms import _regularised_minimiser as output
from hushfit.release.mechanisms import perturbed_minimiser as minimiser
from hushfit.release.queries import _admm as admm
from hushfit.release.queries import _class_counts as class_counts
from hushfit.release.queries import _column_histogram as quantile
from hushfit.release.queries import _gradient as gradient
from hushfit.release.queries import _hessian as hessian
from hushfit.release.queries import _joint as joint
from hushfit.release.queries import _label_statistic as label
from hushfit.release.queries import _line_derivative as line_derivative
from hushfit.release.queries import _logistic_gradient as logistic
from hushfit.release.queries import _loss_drop as loss_drop
from hushfit.release.queries import _margin_histogram as histogram
from hushfit.release.queries import _record_sum as record_sum
from hushfit.release.queries import _score as score
from hushfit.release.queries import _second_moment as moment

from ._mutant import Mutant, Shadow, swapped, together


def one_sided(kind):
    """Replace-one has the sensitivity of add-remove."""
    return lambda: swapped(kind, sensitivity=lambda self, relation: self.radius())


def clip_the_mean():
    original = gradient.ClippedGradient.__call__

    def __call__(self, source, rows):
        total = original(self, source, rows)
        count = source.n_units if rows is None else max(len(rows), 1)
        length = np.linalg.norm(total / count)
        return total * min(1.0, self.clip / max(length, 1e-300))

    return swapped(
        gradient.ClippedGradient, __call__=__call__, _caps=lambda self, source: np.array([np.inf])
    )


def by_the_realised_batch():
    original = gradient.ClippedGradient.__call__

    def __call__(self, source, rows):
        total = original(self, source, rows)
        return total if rows is None else total / max(len(rows), 1) * (self.problem.n_units / 4)

    return swapped(gradient.ClippedGradient, __call__=__call__)


def by_the_mean_of_the_batch():
    """As ranking losses are normalised: by a quantity of the current batch."""
    original = gradient.ClippedGradient.__call__

    def __call__(self, source, rows):
        chosen = np.arange(source.n_units) if rows is None else rows
        single = [float(np.linalg.norm(original(self, source, np.array([i])))) for i in chosen]
        return original(self, source, rows) * (self.clip / max(np.mean([*single, 0.0]), 1e-3))

    return swapped(gradient.ClippedGradient, __call__=__call__)


def metric_not_copied():
    return swapped(gradient.Metric, __post_init__=lambda self: None)


def everything_shortened():
    return swapped(
        gradient.RankOneMetric,
        lengths=lambda self, block, intercept: np.full(
            len(block.margins(np.zeros(len(self.direction) + (not intercept)))),
            self.factor / self.scale,
        ),
    )


def plain_sums():
    """A grid so fine that nothing is rounded to it, so that sums are of plain floats."""
    return swapped(exact_sum.ExactSum, grid=property(lambda self: 2.0**-900))


def plain_moment():
    """Outer products summed without rounding their entries first."""

    def __call__(self, source, rows):
        d = self.problem.dimension
        total = np.zeros((d, d))
        for block in source.blocks():
            for _, records in block._records():
                total += (records.T @ records)[:d, :d]
        return total[np.triu_indices(d)]

    return swapped(moment.SecondMoment, __call__=__call__)


def clip_before_the_metric():
    return swapped(gradient.ClippedGradient, _caps=lambda self, source: np.array([self.clip]))


def half_the_diameter():
    original = label.LabelStatistic.sensitivity
    return swapped(
        label.LabelStatistic,
        sensitivity=lambda self, relation: original(self, relation) / 2,
    )


def lengths_before_the_metric():
    return swapped(
        label.LabelStatistic,
        lengths=property(lambda self: self.rows.lengths() * self.row_weights),
    )


def labels_not_clipped():
    return swapped(
        least_squares.LeastSquares, label_deviation=lambda self, y: y - self.label_centre
    )


def intercept_forgotten():
    def lengths(self):
        d = self.problem.n_features
        plain = self.rows.per_row(lambda records: np.linalg.norm(records[:, :d], axis=1))
        return plain * self.row_weights

    return swapped(label.LabelStatistic, lengths=property(lengths))


def moment_in_one():
    return swapped(moment.SecondMoment, sensitivity=lambda self, relation: self.radius())


def moment_all_halved():
    everywhere = property(lambda self: np.ones(self.size, dtype=bool))
    return swapped(moment.SecondMoment, doubled=everywhere)


def orthogonal_taken_as_worst():
    """The distance of the matrices is largest for orthogonal records, that of the gradients is
    not.
    """
    return swapped(
        joint.GradientWithMoment,
        _replaced=lambda self, gradient, moment: math.sqrt(2 * (gradient**2 + moment**2)),
    )


def curvature_of_both_taken_as_worst():
    def _replaced(self, gradient, moment):
        t = min(1.0, gradient**2 / (2 * moment**2))
        return math.sqrt(2 * gradient**2 * (1 + t) + 2 * moment**2 * (1 - t * t))

    return swapped(joint.GradientWithMoment, _replaced=_replaced)


def eta_dropped():
    def radius(self):
        moved = (
            1
            / (1 + self.eta * self.rho)
            * admm._gradient_radius(self.problem, self.state.x, self.clip)
        )
        return moved * math.sqrt(1 + max(1.0, self.rho**2))

    return swapped(admm.AdmmStep, radius=radius)


def released_together():
    """x alone is counted; z and y are released too."""

    def radius(self):
        return admm.primal_step(self.eta, self.rho) * admm._gradient_radius(
            self.problem, self.state.x, self.clip
        )

    return swapped(admm.AdmmStep, radius=radius)


def inner_steps_for_one():
    original = admm.AdmmRun.radius
    return swapped(admm.AdmmRun, radius=lambda self: original(self) / self.inner)


def diameter_at_the_origin():
    return swapped(logistic, gradient_diameter=lambda length: logistic._diameter(0.0))


def curvature_of_another_loss():
    original = moment.SecondMoment.sensitivity

    def sensitivity(self, relation):
        return 0.25 * original(self._moment, relation)

    return swapped(hessian.HessianSum, sensitivity=sensitivity)


def newton_by_the_gradient():
    """Noise on the direction calibrated to a change of the gradient; the matrix changes."""
    return swapped(
        hessian.NewtonDirection, radius=lambda self: 1 / (self.problem.n_units * self.ridge)
    )


def difference_not_clipped():
    def __call__(self, source, rows):
        here, there = (
            gradient.ClippedGradient(self.problem, w, self.clip) for w in (self.w, self.snapshot)
        )
        return here(source, rows) - there(source, rows)

    def bound(problem, w, snapshot, clip):
        return 0.02 * clip * min(1.0, float(np.linalg.norm(w - snapshot)))

    return together(
        swapped(difference.GradientDifference, __call__=__call__),
        swapped(_examples, difference_bound=bound),
    )


def batch_part_ignored():
    return swapped(
        difference.VarianceReducedGradient, radius=lambda self: self.rate * self._full.radius()
    )


def columns_not_composed():
    return swapped(quantile.ColumnHistogram, radius=lambda self: 1.0)


def scores_not_clipped():
    def __call__(self, source, rows):
        return np.array([np.nan_to_num(source.y, nan=0.0).sum()])

    return swapped(score.TotalScore, __call__=__call__)


def halved_shift():
    def gradient_shift(self, relation):
        return self.problem.loss.slope_bound * (1 + 1e-9) / self.problem.n_units

    return swapped(minimiser.PerturbedMinimiser, gradient_shift=gradient_shift)


def halved_ball():
    return swapped(minimiser.CertifiedMinimiser, sensitivity=lambda self, relation: self.radius())


def no_tolerance():
    def sensitivity(self, relation):
        return self._certified.gradient_shift(relation) / self.mu / 2

    return swapped(output.RegularisedMinimiser, sensitivity=sensitivity)


def steps_of_another_schedule():
    """eta_0/s over all epochs, where the run uses eta_0/h, starts again with every restart, and
    averages.
    """
    original = permuted.PermutedRun._shifts

    def _shifts(self, gradients):
        first = self.passes.steps[0]
        steps = tuple(first / (s + 1) for s in range(len(self.passes.steps)))
        plain = permuted.PermutedRun.__new__(permuted.PermutedRun)
        for name in ("problem", "clip", "mu", "order"):
            object.__setattr__(plain, name, getattr(self, name))
        object.__setattr__(plain, "passes", permuted.Passes(self.passes.sizes, steps, None))
        return original(plain, gradients)

    return swapped(permuted.PermutedRun, _shifts=_shifts)


def batches_taken_as_equal():
    original = permuted.PermutedRun._shifts

    def _shifts(self, gradients):
        mean = self.problem.n_units / len(self.passes.sizes)
        return original(self, gradients) * np.array(self.passes.sizes) / mean

    return swapped(permuted.PermutedRun, _shifts=_shifts)


def last_batch_taken_as_worst():
    original = permuted.PermutedRun.sensitivity

    def sensitivity(self, relation):
        return (
            float(self.shifts[-1]) if relation is Relation.REPLACE_ONE else original(self, relation)
        )

    return swapped(permuted.PermutedRun, sensitivity=sensitivity)


def normalised_steps():
    original = permuted.PermutedRun._gradient

    def _gradient(self, w, source, rows):
        g = original(self, w, source, rows)
        return g / max(float(np.linalg.norm(g)), 1e-12)

    return swapped(permuted.PermutedRun, _gradient=_gradient)


def drops_not_clipped():
    def __call__(self, source, rows):
        wide = loss_drop.LossDrop(
            self.problem, self.vectors, self.mixes, np.full(len(self.bounds), 1e3)
        )
        return original(wide, source, rows)

    original = loss_drop.LossDrop.__call__
    return swapped(loss_drop.LossDrop, __call__=__call__)


def norm_by_one_gradient():
    return swapped(gradient_norm.GradientNorm, sensitivity=lambda self, relation: self.radius())


def intercept_after_clipping():
    rows = _source.row_kernels

    def unit_scales_dense(X, unit, out):
        return rows.unit_scales_dense(X, 0.0, out)

    return swapped(_source, row_kernels=Shadow(rows, unit_scales_dense=unit_scales_dense))


def longer_than_the_public_length():
    def limit(self, scale, length):
        if self is RecordScaling.PUBLIC_LENGTH:
            scale[scale > 0] = 1.0 / length

    return swapped(RecordScaling, limit=limit)


def ranges_from_the_rows():
    def apply(self, X):
        low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
        return (np.asarray(X, dtype=np.float64) - low) / np.maximum(high - low, 1e-300)

    return swapped(FeatureBounds, apply=apply)


_GRADIENT = "hushfit.release.queries._gradient"
_RO, _AR = "(replace-one)", "(add-remove)"

QUERIES = (
    Mutant(
        "one gradient for two",
        _GRADIENT,
        "Under replace-one a record's gradient is counted once, though one is removed and another "
        "added.",
        one_sided(gradient.ClippedGradient),
        (
            f"sensitivity of gradient, logistic {_RO}",
            f"attack on proximal-gd {_RO}",
            "sensitivity of gradient, softmax in batches",
        ),
    ),
    Mutant(
        "plain sums",
        "hushfit.release.exact_sum",
        "Contributions are summed as plain floats, so that one record changes the rounding of all "
        "after it.",
        plain_sums,
        (
            f"order of rows for gradient, softmax {_RO}",
            f"order of rows for variance-reduced gradient {_AR}",
            f"order of rows for loss drops {_RO}",
        ),
        "Mironov (2012); Casacuberta et al. (2022)",
    ),
    Mutant(
        "plain second moment",
        "hushfit.release.queries._second_moment",
        "Outer products of unrounded records are summed, so that the sum depends on their order.",
        plain_moment,
        (f"order of rows for second moment {_RO}",),
    ),
    Mutant(
        "clip after sum",
        _GRADIENT,
        "The mean gradient is clipped, and the records in it are not.",
        clip_the_mean,
        (f"sensitivity of gradient, logistic {_RO}", f"sensitivity of gradient, squared {_AR}"),
    ),
    Mutant(
        "division by the realised batch",
        _GRADIENT,
        "Sums over a batch are divided by its realised size instead of its expected size.",
        by_the_realised_batch,
        ("sensitivity of gradient, logistic in batches",),
        "thesis ch. 5",
    ),
    Mutant(
        "scale of the minibatch",
        _GRADIENT,
        "Contributions are divided by their mean norm in the batch, which one record changes for "
        "all.",
        by_the_mean_of_the_batch,
        (f"sensitivity of gradient, hinge {_RO}", "sensitivity of gradient, hinge in batches"),
        "thesis ch. 6 (PrivBR)",
    ),
    Mutant(
        "clip before the metric",
        _GRADIENT,
        "Gradients are clipped before they are multiplied by the metric that noise is measured in.",
        clip_before_the_metric,
        (
            f"sensitivity of gradient in a metric {_RO}",
            "sensitivity of gradient in a metric in batches",
        ),
    ),
    Mutant(
        "second moment, one record",
        "hushfit.release.queries._second_moment",
        "Replacing a record is taken to change the second moment by one instead of sqrt(2).",
        moment_in_one,
        (f"sensitivity of second moment {_RO}",),
    ),
    Mutant(
        "second moment, diagonal as off-diagonal",
        "hushfit.release.queries._second_moment",
        "Every entry gets the half variance that only entries off the diagonal may have.",
        moment_all_halved,
        (f"sensitivity of second moment {_RO}", f"sensitivity of second moment {_AR}"),
    ),
    Mutant(
        "missing eta",
        "hushfit.release.queries._admm",
        "The step size is left out of the sensitivity of x.",
        eta_dropped,
        (f"sensitivity of step of ADMM, long {_RO}",),
        "Renyi-DP ADMM, Algorithm 2",
    ),
    Mutant(
        "x counted, z and y released",
        "hushfit.release.queries._admm",
        "Noise is calibrated to x alone, while z and y are released with it.",
        released_together,
        (f"sensitivity of step of ADMM, long {_RO}",),
    ),
    Mutant(
        "inner steps for the price of one",
        "hushfit.release.queries._admm",
        "Several steps are taken between releases, and a record's effect is counted in one of "
        "them.",
        inner_steps_for_one,
        (f"sensitivity of steps of ADMM {_RO}", f"attack on mp-admm, multi-step {_RO}"),
    ),
    Mutant(
        "diameter at the origin",
        "hushfit.release.queries._logistic_gradient",
        "The largest distance of two logistic gradients at zero weights is used for all weights.",
        diameter_at_the_origin,
        (f"sensitivity of gradient by its diameter {_RO}",),
    ),
    Mutant(
        "curvature of another loss",
        "hushfit.release.queries._hessian",
        "A quarter, which bounds the logistic curvature, is used for every loss.",
        curvature_of_another_loss,
        (f"sensitivity of majorant {_RO}",),
    ),
    Mutant(
        "orthogonal records taken as worst",
        "hushfit.release.queries._joint",
        "Noise on gradient and second moment is calibrated to orthogonal records; other pairs "
        "change both together by more.",
        orthogonal_taken_as_worst,
        (f"sensitivity of gradient with moment, softmax {_RO}",),
    ),
    Mutant(
        "curvature of both taken as worst",
        "hushfit.release.queries._joint",
        "Gradient and curvature together, ignoring that the loss may be linear at one of two "
        "opposite records.",
        curvature_of_both_taken_as_worst,
        (f"sensitivity of gradient with curvature {_RO}",),
    ),
    Mutant(
        "direction as if the matrix stood still",
        "hushfit.release.queries._hessian",
        "Noise on the Newton direction is calibrated to a change of the gradient, though the "
        "Hessian changes.",
        newton_by_the_gradient,
        (f"sensitivity of newton direction {_RO}",),
    ),
    Mutant(
        "metric that can be changed",
        "hushfit.release.queries._gradient",
        "The norms of records in a metric are cached, and the caller can still write into the "
        "metric.",
        metric_not_copied,
        ("sensitivity of gradient in a metric after writing into it",),
    ),
    Mutant(
        "difference not clipped",
        "hushfit.release.mechanisms._difference",
        "The difference of two clipped gradients is assumed to be short, and not clipped to that "
        "norm.",
        difference_not_clipped,
        (f"sensitivity of difference {_RO}", f"sensitivity of difference {_AR}"),
    ),
    Mutant(
        "batch part ignored",
        "hushfit.release.mechanisms._difference",
        "Of the variance-reduced gradient only the full part is counted.",
        batch_part_ignored,
        (f"sensitivity of variance-reduced gradient {_AR}",),
        "DP-VRADMM, Theorem 1",
    ),
    Mutant(
        "histogram, one bin",
        "hushfit.release.queries._margin_histogram",
        "A replaced record is taken to change one bin of a histogram, and it changes two.",
        one_sided(histogram.MarginHistogram),
        (f"sensitivity of margin histogram {_RO}",),
    ),
    Mutant(
        "class counts, one class",
        "hushfit.release.queries._class_counts",
        "A replaced record is taken to change the count of one class, and it changes two.",
        one_sided(class_counts.ClassCounts),
        (f"sensitivity of class counts {_RO}",),
    ),
    Mutant(
        "sum of records, one side",
        "hushfit.release.queries._record_sum",
        "A replaced record is taken to move the sum by one length, and it moves it by two.",
        one_sided(record_sum.RecordSum),
        (f"sensitivity of sum of records {_RO}",),
    ),
    Mutant(
        "derivative along a line, one side",
        "hushfit.release.queries._line_derivative",
        "A replaced record is taken to change a derivative within [0, 1], and it has a sign.",
        one_sided(line_derivative.LineDerivative),
        (f"sensitivity of derivative along a line {_RO}",),
    ),
    Mutant(
        "lengths in a metric of rank one",
        "hushfit.release.queries._gradient",
        "Records are taken to be as short along all directions as along the shortened one.",
        everything_shortened,
        (f"sensitivity of gradient, rank one {_RO}", f"sensitivity of gradient, rank one {_AR}"),
    ),
    Mutant(
        "columns not composed",
        "hushfit.release.queries._column_histogram",
        "A record is counted once in the histograms of all columns, though it is in each of them.",
        columns_not_composed,
        (
            f"sensitivity of histogram of columns {_RO}",
            f"sensitivity of histogram of columns {_AR}",
        ),
    ),
    Mutant(
        "scores not clipped",
        "hushfit.release.queries._score",
        "Scores are trusted to lie between 0 and 1.",
        scores_not_clipped,
        (f"sensitivity of total of scores {_RO}",),
    ),
    Mutant(
        "halved shift of the objective",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "Noise inside the objective is calibrated to one record's gradient, and replacing changes "
        "two.",
        halved_shift,
        (f"sensitivity of objective's gradient {_RO}",),
    ),
    Mutant(
        "halved AMP ball",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "Two inexact minimisers are taken to be within beta/mu of each other, though each is "
        "within that of the exact one.",
        halved_ball,
        (f"certificate {_RO}", f"certificate {_AR}"),
        "PP-ADMM, Theorem 1 (AMP)",
    ),
    Mutant(
        "halved output sensitivity",
        "hushfit.release.mechanisms._regularised_minimiser",
        "Output perturbation with L/(n mu) instead of 2L/(n mu) plus the tolerance.",
        no_tolerance,
        (f"attack on output {_RO}",),
    ),
    Mutant(
        "eta0/s for eta0/h",
        "hushfit.release.mechanisms._permuted",
        "The bound assumes step sizes that decrease over all epochs, and no averaging; the run "
        "restarts both.",
        steps_of_another_schedule,
        (f"sensitivity of run with restarts {_RO}",),
        "thesis ch. 3, Algorithms 3.2 and 3.3",
    ),
    Mutant(
        "unequal batches",
        "hushfit.release.mechanisms._permuted",
        "Every batch is taken to have the average size, though a record of a smaller one has more "
        "weight.",
        batches_taken_as_equal,
        (f"sensitivity of run in uneven batches {_RO}",),
        "thesis ch. 3",
    ),
    Mutant(
        "last batch taken as worst",
        "hushfit.release.mechanisms._permuted",
        "Noise is calibrated to a record of the last batch.",
        last_batch_taken_as_worst,
        (f"sensitivity of run with restarts {_RO}",),
        "thesis ch. 3",
    ),
    Mutant(
        "normalised gradient steps",
        "hushfit.release.mechanisms._permuted",
        "Steps follow the normalised gradient, which is no Lipschitz function of the weights or "
        "the rows.",
        normalised_steps,
        (f"sensitivity of run in batches {_RO}", f"sensitivity of run in one batch {_RO}"),
        "code of thesis ch. 3",
    ),
    Mutant(
        "drops not clipped",
        "hushfit.release.queries._loss_drop",
        "Decreases of the loss are divided by their bound but not clipped to it.",
        drops_not_clipped,
        (f"sensitivity of gate {_RO}", "sensitivity of loss drops in batches"),
    ),
    Mutant(
        "corner by one record",
        "hushfit.release.mechanisms._corner",
        "The utility of a corner is taken to change by one clipped gradient when a record is "
        "replaced.",
        one_sided(selection.SteepestCorner),
        (f"sensitivity of steepest corner {_RO}",),
    ),
    Mutant(
        "norm by one gradient",
        "hushfit.release.mechanisms._gradient_norm",
        "The norm of a gradient is given half the sensitivity that replacing a record needs.",
        norm_by_one_gradient,
        (f"sensitivity of norm of a gradient {_RO}",),
    ),
    Mutant(
        "half the labels' diameter",
        "hushfit.release.queries._label_statistic",
        "Labels are taken to move by half their range, as if one were withdrawn, not replaced.",
        half_the_diameter,
        ("sensitivity of label statistic, logistic", "sensitivity of label statistic, counts"),
    ),
    Mutant(
        "lengths before the metric",
        "hushfit.release.queries._label_statistic",
        "The noise of a label statistic is calibrated to plain records, and the metric is applied "
        "afterwards.",
        lengths_before_the_metric,
        ("sensitivity of label statistic, in a metric",),
    ),
    Mutant(
        "labels not clipped",
        "hushfit.losses._least_squares",
        "Targets outside their public range enter the label statistic as they are.",
        labels_not_clipped,
        ("sensitivity of label statistic, squared",),
    ),
    Mutant(
        "intercept forgotten",
        "hushfit.release.queries._label_statistic",
        "The length of a record is taken without the intercept's entry.",
        intercept_forgotten,
        ("sensitivity of label statistic, logistic",),
    ),
    Mutant(
        "intercept after clipping",
        "hushfit.data.rows._source",
        "Rows are scaled to length one and the intercept's column is added afterwards.",
        intercept_after_clipping,
        ("sealed door of logistic regression, auto", f"sensitivity of second moment {_AR}"),
        "code of thesis ch. 3",
    ),
    Mutant(
        "longer than the public length",
        "hushfit.data.rows._scaling",
        "Records are divided by the public length, and those beyond it stay longer than one.",
        longer_than_the_public_length,
        (
            f"sensitivity of gradient, public length {_RO}",
            f"sensitivity of gradient with moment, public length {_AR}",
        ),
    ),
    Mutant(
        "ranges from the rows",
        "hushfit.data.rows._bounds",
        "Columns are scaled by their smallest and largest value, which one outlier changes for "
        "all rows.",
        ranges_from_the_rows,
        ("sealed door of logistic regression, bounded", "sealed door of bounded scaler"),
        "all the papers' experiments",
    ),
)
