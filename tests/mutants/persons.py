"""Bugs in privacy units: a person contributes more than a row may, or the number of rows shows."""

import math

import numpy as np

from hushfit import model_selection
from hushfit import unit as units
from hushfit.data.rows import DenseBlock, _source
from hushfit.data.rows import _persons as persons
from hushfit.estimators import _classifiers as classifiers
from hushfit.privacy import ObjectiveCost
from hushfit.problem import Problem
from hushfit.release import mechanism
from hushfit.release.mechanisms import _batches as batches
from hushfit.release.mechanisms import _vocabulary as vocabulary
from hushfit.release.mechanisms import perturbed_minimiser as minimiser
from hushfit.release.queries import _column_histogram as quantile
from hushfit.release.queries import _gradient as gradient
from hushfit.release.queries import _margin_histogram as histogram
from hushfit.release.queries import _score as score

from ._mutant import Mutant, swapped, together


def _with_shares(shares):
    """Weights of rows as a function of the numbers of rows, of their places and of the bound."""

    def weights(self):
        counts = np.bincount(self.codes, minlength=self.n_persons)[self.codes]
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], self.codes)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return shares(counts, place - starts, self.unit.rows_per_person)

    return lambda: swapped(persons.Persons, shares=property(weights))


def _one_row_counts_in_full(counts, place, most):
    """The first row weighs one, and all rows together weigh one more."""
    return (place < most) / np.minimum(counts, most) + (place == 0) * (counts > 1)


def _bound_not_applied(counts, place, most):
    return 1 / np.minimum(counts, most)


def _dropped_rows_counted(counts, place, most):
    return (place < most) / counts


def rows_drawn():
    """A batch of as many rows, on average, as it should have persons."""

    def answer(self, query, source, noise_multiplier, entropy):
        drawn = self.units(len(source.y), entropy.coins)
        return mechanism.gaussian_answer(query, source, drawn, noise_multiplier, entropy)

    return together(
        swapped(batches.Sampling, answer=answer),
        swapped(_source._InMemory, _rows_of=lambda self, units: units),
    )


def rounding_of_one_row():
    return swapped(Problem, rows_per_unit=property(lambda self: 1))


def mean_over_rows():
    original = gradient.ClippedGradient.__call__

    def __call__(self, source, units):
        return original(self, source, units) * (source.n_units / len(source.y))

    return swapped(gradient.ClippedGradient, __call__=__call__)


def problem_of_rows():
    """The estimator states and divides by the number of rows."""
    original = classifiers._PrivateLinearClassifier.accept

    def accept(self, result, guarantee, prepared):
        fitted = original(self, result, guarantee, prepared)
        fitted.coef_ = fitted.coef_ * (prepared.problem.n_units / len(prepared.source.y))
        return fitted

    return swapped(classifiers._PrivateLinearClassifier, accept=accept)


def grid_of_rows():
    def gaussian_answer(query, source, units, multiplier, entropy, least_move=1.0):
        grid = mechanism.NoiseGrid.of(
            query, multiplier, entropy.relation, len(source.y), least_move=least_move
        )
        entropy.take_from_reserve(query.size, 2 * grid.log2_deviation - 1)
        noise = mechanism._gaussian_noise(query, grid.log2_deviation, entropy.sampler)
        return grid.noisy(query(source, units), noise)

    return swapped(batches, gaussian_answer=gaussian_answer)


def by_linear_algebra():
    """Products with all records of a block at once, whose last bits depend on their number."""

    def margins(self, w):
        found = np.concatenate([records @ w for _, records in self._records()])
        return np.where(self.scale == 0, np.nan, found)

    def lengths(self, A):
        parts = [np.linalg.norm(records @ A, axis=1) for _, records in self._records()]
        return np.concatenate(parts)

    return swapped(DenseBlock, margins=margins, lengths=lengths)


def determinant_of_one_row():
    def _inside_cost(self, noise_multiplier, count):
        return ObjectiveCost(noise_multiplier, self.kappa, self.rank, count)

    determinant = property(lambda self: self.rank * math.log1p(self.kappa))
    return together(
        swapped(minimiser.GaussianInside, _inside_cost=_inside_cost),
        swapped(minimiser.LaplaceInside, _log_determinant=determinant),
    )


def threshold_of_one_row():
    original = vocabulary.Thresholded.threshold

    def threshold(self, scale, rows_per_unit=1):
        return original(self, scale)

    return swapped(vocabulary.Thresholded, threshold=threshold)


def float_counts():
    def whole_shares(shares, n_units):
        return shares, 1.0

    def total(self, source, units):
        return np.array([(source.shares * np.clip(np.nan_to_num(source.y), 0.0, 1.0)).sum()])

    return together(
        swapped(histogram, whole_shares=whole_shares),
        swapped(quantile, whole_shares=whole_shares),
        swapped(score.TotalScore, __call__=total),
    )


def rows_dealt_to_folds():
    original = model_selection.HeldApart.of.__func__

    def of(cls, units, persons):
        if persons is None:
            return original(cls, units, persons)
        rows = np.flatnonzero(np.isin(np.arange(len(persons.codes)) % persons.n_persons, units))
        present, codes = np.unique(persons.codes[rows], return_inverse=True)
        return cls(rows, type(persons)(codes, len(present), persons.unit))

    return swapped(model_selection.HeldApart, of=classmethod(of))


def charges_for_rows_taken():
    return together(
        swapped(units.AccountUnit, objection=lambda self, charged, earlier=(): None),
        swapped(units.AccountUnit, units_at_once=lambda self, charged: 1),
    )


_PERSONS = "hushfit.data.rows._persons"
_RO, _AR = "(replace-one)", "(add-remove)"

PERSONS = (
    Mutant(
        "weights that add up to two",
        _PERSONS,
        "A person's first row has the weight one beside the weights of all rows, which add up to "
        "one.",
        _with_shares(_one_row_counts_in_full),
        (
            "persons: weights",
            f"persons: sensitivity of gradient, logistic {_RO}",
            f"persons: sensitivity of second moment {_AR}",
            f"attack on proximal-gd, person of 40 rows {_RO}",
        ),
    ),
    Mutant(
        "bound on rows not applied",
        _PERSONS,
        "Rows beyond rows_per_person are used too, with the weight of the others.",
        _with_shares(_bound_not_applied),
        (
            "persons: weights",
            f"persons: rows of gradient, squared {_RO}",
            f"persons: rows of histogram of columns {_RO}",
        ),
    ),
    Mutant(
        "dropped rows counted",
        _PERSONS,
        "Weights are one over the number of all rows of a person, also of those that are not used, "
        "so that their total is private.",
        _with_shares(_dropped_rows_counted),
        ("persons: weights", f"persons: rows of gradient, hinge {_RO}"),
    ),
    Mutant(
        "rows sampled",
        "hushfit.release.mechanisms._batches",
        "A batch is of rows, each drawn by itself, and its cost is that of drawing persons.",
        rows_drawn,
        (
            "persons: rows read by Poisson batches",
            "persons: rows read by batches of fixed size",
            "persons: rows read by gated batches",
        ),
    ),
    Mutant(
        "rounding of one row",
        "hushfit.problem",
        "The bound on rounding is that of one row, though every row of a person is rounded.",
        rounding_of_one_row,
        (
            f"persons: sensitivity of second moment {_AR}",
            f"persons: sensitivity of gradient in a metric {_AR}",
            f"persons: sensitivity of gradient, squared {_AR}",
        ),
    ),
    Mutant(
        "mean over rows",
        "hushfit.release.queries._gradient",
        "A sum over persons is divided by the number of rows.",
        mean_over_rows,
        (
            f"persons: rows of gradient, softmax {_RO}",
            f"persons: sensitivity of gradient, logistic {_AR}",
        ),
    ),
    Mutant(
        "number of rows in the weights",
        "hushfit.estimators._classifiers",
        "Fitted weights are divided by the number of rows, which is private.",
        problem_of_rows,
        ("persons: sealed door of logistic regression, auto",),
    ),
    Mutant(
        "number of rows in the noise grid",
        "hushfit.release.mechanism",
        "The step of the noise grid depends on the number of rows in its last bits, and released "
        "numbers are multiples of it.",
        grid_of_rows,
        (
            "persons: sealed door of logistic regression, auto",
            "persons: sealed door of lasso",
        ),
    ),
    Mutant(
        "margins that depend on the position",
        "hushfit.data.rows._array_blocks",
        "Margins and lengths come from a matrix product, whose last bits depend on how many rows "
        "stand before.",
        by_linear_algebra,
        (
            "persons: positions",
            f"persons: rows of margin histogram at margins {_RO}",
        ),
    ),
    Mutant(
        "determinant of one row",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "The curvature of a person is accounted for as if it had one direction, though several "
        "small eigenvalues have a larger determinant.",
        determinant_of_one_row,
        ("price of steep objectives of persons", "price of steep objectives of persons, pure"),
    ),
    Mutant(
        "threshold of one row",
        "hushfit.release.mechanisms._vocabulary",
        "The threshold of a vocabulary is that for one new text, and a person can have many.",
        threshold_of_one_row,
        ("persons: distribution of vocabularies",),
    ),
    Mutant(
        "float weights in counts",
        "hushfit.release.queries._margin_histogram",
        "Counts are sums of the floats 1/k, which depend on the order of the rows.",
        float_counts,
        (
            f"persons: rows of margin histogram {_RO}",
            f"persons: rows of histogram of columns {_RO}",
            f"persons: rows of total of scores {_RO}",
        ),
    ),
    Mutant(
        "folds that split a person",
        "hushfit.model_selection._draws",
        "A search deals rows to fitting and scoring, so that a person is in both.",
        rows_dealt_to_folds,
        ("persons: payment of search", "persons: sealed door of search"),
    ),
    Mutant(
        "row charged to an account of persons",
        "hushfit.unit",
        "An account that protects persons takes charges for single rows at their price.",
        charges_for_rows_taken,
        ("ledger",),
    ),
)
