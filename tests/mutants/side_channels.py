"""Side channels: what a fit prints, counts, stores or refuses, as a function of the rows."""

import logging
import warnings
from dataclasses import replace

import numpy as np

from hushfit.data.rows import _source
from hushfit.data.schema import _cells as cells
from hushfit.data.schema import _schema as schemas
from hushfit.errors import WeakGuaranteeWarning
from hushfit.estimators import _classifiers as classifiers
from hushfit.estimators import _linear as linear
from hushfit.estimators import _private_fit as fits
from hushfit.estimators import _regressors as regressors
from hushfit.estimators import encode_labels
from hushfit.solvers import Result

from ._mutant import Mutant, Shadow, swapped, together

_FIT = "hushfit.estimators._classifiers"


def after_the_fit(act):
    """A fit that also does ``act`` with its rows."""

    def patch():
        kind = classifiers._PrivateLinearClassifier
        original = kind.fit

        def fit(self, X, y, **more):
            fitted = original(self, X, y, **more)
            act(self, np.asarray(X, dtype=np.float64), np.asarray(y))
            return fitted

        return swapped(kind, fit=fit)

    return patch


def stops_when_it_fits():
    original = fits.run

    def private_run(solver, problem, curator, watch=None, checkpoint=None):
        source = curator._Curator__source
        largest = float(np.nanmax(np.abs(getattr(source, "X", np.zeros(1)))))
        result = original(solver, problem, curator, watch, checkpoint)
        return Result(result.w, max(1, result.steps - int(largest > 100)))

    return swapped(fits, run=private_run)


def stops_at_a_small_loss():
    """Training stops when the loss on the rows no longer decreases; n_iter_ is the number of
    steps.
    """
    original_fit = classifiers.private_fit

    def private_fit(source, problem, solver, terms, verbose=0):
        fitted = original_fit(source, problem, solver, terms)
        result = fitted.result
        w = np.atleast_2d(result.w)[0]
        margins = np.concatenate(
            [
                block.margins(w if problem.fit_intercept else np.append(w, 0.0))
                for block in source.blocks()
            ]
        )
        loss = float(np.logaddexp(0.0, -source.y * np.nan_to_num(margins)).sum())
        return replace(fitted, result=Result(result.w, 1 + int(1e3 * loss) % 1000))

    return swapped(classifiers, private_fit=private_fit)


def warns_of_large_rows():
    original = classifiers.private_fit

    def private_fit(source, problem, solver, terms, verbose=0):
        largest = float(np.nanmax(np.abs(source.X)))
        if largest > 10:
            warnings.warn(
                f"rows reach {largest:g} and were scaled", WeakGuaranteeWarning, stacklevel=2
            )
        return original(source, problem, solver, terms)

    return swapped(classifiers, private_fit=private_fit)


def logs_the_loss(self, X, y):
    logging.getLogger("hushfit").info(
        "training accuracy %.4f", float((self.predict(np.nan_to_num(X)) == y).mean())
    )


def stores_class_counts(self, X, y):
    self.class_count_ = np.array([float((y == label).sum()) for label in self.classes_])


def stores_feature_means(self, X, y):
    self.mean_ = np.nanmean(X, axis=0)


def refuses_missing_values():
    original = classifiers.validated_rows

    def validated_rows(estimator, X, y, **options):
        X, y = original(estimator, X, y, **options)
        if not np.isfinite(X).all():
            raise ValueError("Input contains NaN in row 7.")
        return X, y

    return swapped(classifiers, validated_rows=validated_rows)


def refuses_unknown_labels():
    def refusing(y, classes, check):
        X, y = check(y=y)
        return X, encode_labels(y, classes)

    return swapped(classifiers, with_unknown_labels=refusing)


def refuses_odd_targets():
    return swapped(regressors, with_missing_targets=lambda y, check: check(y=y))


def refuses_odd_cells():
    return swapped(linear, with_numbers=lambda X: X)


def drops_missing_rows():
    def validated_rows(estimator, X, y, **options):
        X, y = original(estimator, X, y, **options)
        complete = np.isfinite(X).all(axis=1)
        return np.ascontiguousarray(X[complete]), np.asarray(y)[complete]

    original = classifiers.validated_rows
    return swapped(classifiers, validated_rows=validated_rows)


def fills_with_the_mean():
    original = classifiers.as_source

    def as_source(X, y, **more):
        X = np.asarray(X, dtype=np.float64)
        return original(
            np.where(np.isfinite(X), X, np.nanmean(X, axis=0)) - np.nanmean(X, axis=0), y, **more
        )

    return swapped(classifiers, as_source=as_source)


def scaled_by_the_longest():
    """All rows are divided by the norm of the longest one, so that none is clipped."""
    rows = _source.row_kernels

    def unit_scales_dense(X, unit, out):
        rows.unit_scales_dense(X, unit, out)
        out[:] = np.where(out > 0, np.min(out, where=out > 0, initial=np.inf), 0.0)

    return swapped(_source, row_kernels=Shadow(rows, unit_scales_dense=unit_scales_dense))


def label_by_its_digits():
    """Integers keep all their digits, until a missing cell turns the column into floats."""
    original = schemas.label_of

    def label_of(cell):
        whole = isinstance(cell, int) and not isinstance(cell, bool)
        digits = isinstance(cell, str) and cell.isdecimal()
        return str(cell) if whole or digits else original(cell)

    return swapped(schemas, label_of=label_of)


def label_by_its_name():
    """Booleans are True and False, until one integer turns the column into integers."""
    original = schemas.label_of

    def label_of(cell):
        named = isinstance(cell, bool) or cell in ("True", "False")
        return str(cell) if named else original(cell)

    return swapped(schemas, label_of=label_of)


def dates_as_integers():
    """Dates are listed as numpy lists them: some as integers, until a text turns the column into
    objects.
    """

    def listed(values):
        return np.asarray(values).tolist()

    return together(swapped(schemas, listed=listed), swapped(cells, listed=listed))


_AUTO = "logistic regression, auto"

SIDE_CHANNELS = (
    Mutant(
        "early stopping by the loss",
        "hushfit.estimators._private_fit",
        "Training stops when the loss on the rows no longer decreases, and n_iter_ reveals the "
        "step.",
        stops_at_a_small_loss,
        (f"sealed door of {_AUTO}",),
    ),
    Mutant(
        "one step less for long rows",
        "hushfit.estimators._private_fit",
        "A run on a table with a very large row ends one step earlier.",
        stops_when_it_fits,
        (f"side channels of {_AUTO}",),
    ),
    Mutant(
        "warning with a value",
        _FIT,
        "A warning states the largest entry of the table.",
        warns_of_large_rows,
        (f"sealed door of {_AUTO}", f"side channels of {_AUTO}"),
    ),
    Mutant(
        "accuracy in the log",
        _FIT,
        "Training accuracy is logged, for convenience.",
        after_the_fit(logs_the_loss),
        (f"sealed door of {_AUTO}",),
    ),
    Mutant(
        "class counts stored",
        _FIT,
        "The fitted model has the number of rows of each class, as scikit-learn's have.",
        after_the_fit(stores_class_counts),
        (f"sealed door of {_AUTO}",),
    ),
    Mutant(
        "means stored",
        _FIT,
        "The fitted model has the exact means of the columns, for plots.",
        after_the_fit(stores_feature_means),
        (f"sealed door of {_AUTO}", "sealed door of logistic regression, objective"),
    ),
    Mutant(
        "error for some rows",
        _FIT,
        "A missing value raises an error that names its row.",
        refuses_missing_values,
        (f"side channels of {_AUTO}", f"sealed door of {_AUTO}"),
        "scikit-learn's own validation",
    ),
    Mutant(
        "error for some labels",
        _FIT,
        "A label that is missing, or not among the classes, raises an error before the payment.",
        refuses_unknown_labels,
        (f"side channels of {_AUTO}", f"sealed door of {_AUTO}"),
        "our own array classifiers",
    ),
    Mutant(
        "error for some targets",
        "hushfit.estimators._regressors",
        "A target that is missing, or no number, raises an error before the payment.",
        refuses_odd_targets,
        ("side channels of lasso", "sealed door of lasso"),
        "our own regressors",
    ),
    Mutant(
        "rows with missing values dropped",
        _FIT,
        "Rows with a missing value are left out, so that the number of rows reveals them.",
        drops_missing_rows,
        (f"sealed door of {_AUTO}",),
    ),
    Mutant(
        "centred by the means",
        _FIT,
        "Columns are centred by their exact means, which every record changes for all others.",
        fills_with_the_mean,
        (f"sealed door of {_AUTO}",),
    ),
    Mutant(
        "scaled by the longest row",
        "hushfit.data.rows._source",
        "All rows are divided by the norm of the longest, which one outlier changes for all rows.",
        scaled_by_the_longest,
        (f"sealed door of {_AUTO}", "sensitivity of second moment (add-remove)"),
    ),
    Mutant(
        "labels by all their digits",
        "hushfit.data.schema._schema",
        "Whole numbers beyond 2**53 are labels as they stand, and others once a missing cell makes "
        "the column one of floats.",
        label_by_its_digits,
        ("cells of a table",),
        "earlier versions of hushfit",
    ),
    Mutant(
        "an error for a cell that is no number",
        "hushfit.estimators._linear",
        "An array of objects is refused if one cell is no number, which tells of its row before "
        "anything is paid.",
        refuses_odd_cells,
        (f"sealed door of {_AUTO}", f"side channels of {_AUTO}"),
        "earlier versions of hushfit",
    ),
    Mutant(
        "truth values by name",
        "hushfit.data.schema._schema",
        "True is compared as a name, and as 1 once an integer makes the column one of integers.",
        label_by_its_name,
        ("cells of a table",),
        "earlier versions of hushfit",
    ),
    Mutant(
        "dates as integers",
        "hushfit.data.schema._schema",
        "Dates and durations are read as integers, and as dates once a text makes the column one "
        "of objects.",
        dates_as_integers,
        ("cells of a table",),
        "earlier versions of hushfit",
    ),
)
