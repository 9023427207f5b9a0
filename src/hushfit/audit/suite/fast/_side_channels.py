"""Fast checks: what estimators show beyond their noisy answers, and what they pay."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from hushfit.audit.checks import (
    LAYOUTS,
    Finding,
    check_cells,
    check_paid,
    check_scores,
    check_sealed,
    check_side_channels,
)
from hushfit.audit.suite._findings import other_labels, with_odd_cell, with_odd_label
from hushfit.audit.suite.fast._check import Check
from hushfit.data.schema import NumericColumn, Schema, encode
from hushfit.estimators import PrivateLasso, PrivateLinearSVC, PrivateLogisticRegression
from hushfit.model_selection import PrivateSearchCV
from hushfit.preprocessing import (
    BoundedScaler,
    PrivatePipeline,
    PrivateQuantileScaler,
    SchemaEncoder,
)
from hushfit.privacy import Budget, Relation
from hushfit.release import PoissonBatch
from hushfit.solvers import DPSGD, SSADMM

_MILD = Budget(1.0, 1e-6)


def _estimators() -> dict[str, Callable[[Any, int], Any]]:
    """Maps from ledger and seed to an estimator, all at the same budget."""

    def terms(ledger: Any, seed: int) -> dict[str, Any]:
        return {
            "epsilon": _MILD.epsilon,
            "delta": _MILD.delta,
            "ledger": ledger,
            "random_state": seed,
        }

    def model(ledger: Any = None, seed: int = 0, **more: Any) -> Any:
        return PrivateLogisticRegression(
            classes=[0, 1], **terms(ledger, seed), **{"solver": "proximal-gd", "verbose": 1, **more}
        )

    def pipeline(ledger: Any, seed: int) -> Any:
        steps = [
            ("scale", PrivateQuantileScaler(missing="middle")),
            ("fit", PrivateLogisticRegression(classes=[0, 1], solver="proximal-gd")),
        ]
        return PrivatePipeline(steps, **terms(ledger, seed))

    return {
        "logistic regression, auto": lambda ledger, seed: model(ledger, seed, solver="auto"),
        "logistic regression, bounded": lambda ledger, seed: model(
            ledger, seed, feature_bounds=(-3.0, 3.0)
        ),
        "logistic regression, objective": lambda ledger, seed: model(
            ledger, seed, solver="objective"
        ),
        "logistic regression, in batches": lambda ledger, seed: model(
            ledger, seed, solver=DPSGD(steps=3, sampling=PoissonBatch(0.5))
        ),
        "linear SVC, ss-admm": lambda ledger, seed: PrivateLinearSVC(
            classes=[0, 1], solver=SSADMM(steps=5), **terms(ledger, seed)
        ),
        "lasso": lambda ledger, seed: PrivateLasso(
            target_bounds=(0, 1), solver="proximal-gd", **terms(ledger, seed)
        ),
        "quantile scaler": lambda ledger, seed: PrivateQuantileScaler(**terms(ledger, seed)),
        "pipeline": pipeline,
        "search": lambda ledger, seed: PrivateSearchCV(
            PrivateLogisticRegression(classes=[0, 1], penalty="l2", solver="proximal-gd"),
            {"alpha": [1e-3, 1e-2]},
            expected_trials=3,
            **terms(ledger, seed),
        ),
    }


def _tables() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 3)), np.tile([0, 1], 30)
    tables = [(X, y)]
    for odd in (
        [0.0, 0.0, 0.0],
        [1e3, -1e3, 0.0],
        [1e300, -1e300, 0.0],
        [np.nan, 0.0, 1.0],
        [np.inf, 0.0, 0.0],
    ):
        other = X.copy()
        other[7] = odd
        tables.append((other, y))
    tables += [(cells, y) for cells in with_odd_cell(X, 7)]
    return [*tables, *other_labels(X, y)]


def _person_tables() -> list[tuple[Any, Any, Any]]:
    """Tables that differ in all rows of one person: in their values, their number, or both."""
    rng = np.random.default_rng(6)
    ids = np.array([f"person {k}" for k in np.sort(np.append(np.arange(40), np.arange(20)))])
    X, y, other = rng.normal(size=(60, 3)), np.tile([0, 1], 30), ids != "person 7"
    tables = []
    for rows in (
        X[:1],
        X[:2],
        rng.normal(size=(40, 3)),
        np.full((30, 3), 1e300),
        np.full((3, 3), np.nan),
        np.zeros((1, 3)),
    ):
        # The first row stands in one place: persons are numbered by it.
        later = len(rows) - 1
        tables.append(
            (
                np.concatenate([rows[:1], X[other], rows[1:]]),
                np.concatenate([[0], y[other], np.ones(later)]),
                np.array(["person 7", *ids[other].tolist(), *["person 7"] * later]),
            )
        )
    return tables


_WITH_GROUPS = (
    "logistic regression, auto",
    "logistic regression, objective",
    "logistic regression, in batches",
    "linear SVC, ss-admm",
    "lasso",
    "quantile scaler",
    "pipeline",
    "search",
)


def side_channels() -> Iterator[Check]:
    """Estimators on sealed doors, their payments, and what else they show."""
    for name in _WITH_GROUPS:
        yield Check(f"persons: sealed door of {name}", partial(_sealed_persons, name))
        yield Check(f"persons: payment of {name}", partial(_paid_persons, name))
    yield Check(
        "persons: side channels of logistic regression, auto",
        partial(_side_channel_persons, "logistic regression, auto"),
    )
    for name in _estimators():
        yield Check(f"sealed door of {name}", partial(_sealed, name))
        yield Check(f"payment of {name}", partial(_paid, name))
    for name in (
        "logistic regression, auto",
        "logistic regression, objective",
        "linear SVC, ss-admm",
        "lasso",
    ):
        yield Check(f"side channels of {name}", partial(_side_channel, name))
    yield Check("sealed door of bounded scaler", _sealed_scaler)
    yield Check("sealed door of encoder", _sealed_encoder)
    yield Check("scores of a search", _scores)
    yield Check("cells of a table", _cells_alone)
    yield Check("fits with secure noise", _secure_fits)


def _sealed(name: str, seed: int) -> list[Finding]:
    return check_sealed(partial(_estimators()[name], None, seed), _tables(), name)


def _sealed_persons(name: str, seed: int) -> list[Finding]:
    return check_sealed(partial(_estimators()[name], None, seed), _person_tables(), name)


def _paid_persons(name: str, seed: int) -> list[Finding]:
    X, y, ids = _person_tables()[2]
    make = _estimators()[name]
    return check_paid(
        lambda ledger: make(ledger, seed), X, y, _MILD, Relation.REPLACE_ONE, name, ids
    )


def _side_channel_persons(name: str, seed: int) -> list[Finding]:
    make = _estimators()[name]
    return check_side_channels(lambda: make(None, seed), _person_tables(), name)


def _paid(name: str, seed: int) -> list[Finding]:
    X, y = _tables()[0]
    make = _estimators()[name]
    return check_paid(lambda ledger: make(ledger, seed), X, y, _MILD, Relation.REPLACE_ONE, name)


def _scores(seed: int) -> list[Finding]:
    """Tables that differ in the label of one row; some of them are held out."""
    X, y = _tables()[0]
    tables = [(X, y.tolist()), *(pair for row in range(8) for pair in with_odd_label(X, y, row))]
    return [check_scores(partial(_estimators()["search"], None, seed), tables)]


def _side_channel(name: str, seed: int) -> list[Finding]:
    make = _estimators()[name]
    return check_side_channels(lambda: make(None, seed), _tables(), name)


def _sealed_scaler(seed: int) -> list[Finding]:
    """Check that replacing a row changes no other row of a public scaler's output."""
    scaled = [BoundedScaler(bounds=(-3.0, 3.0)).fit(X).transform(X) for X, _ in _tables()]
    others = np.arange(60) != 7
    moved = max(int((one[others] != scaled[0][others]).any(axis=1).sum()) for one in scaled)
    return [
        Finding(
            "bounded scaler: replacing a row changes no other",
            moved == 0,
            f"{moved} other rows changed",
        )
    ]


def _sealed_encoder(seed: int) -> list[Finding]:
    texts = np.random.default_rng(1).choice(["a", "b"], 400)
    tables = []
    for odd in ("a", "b", "rare", None):
        column = [*texts.tolist(), odd]
        tables.append(({"text": column}, None))

    def make() -> Any:
        return _Known(SchemaEncoder(_schema(), discover=["text"], random_state=seed))

    return check_sealed(make, tables, "encoder")


def _cells_alone(seed: int) -> list[Finding]:
    """Check that replacing a cell changes no other cell that a schema reads."""

    def read(column: Any, cells: Any) -> Any:
        return encode({column.name: cells}, Schema((column,)))[0]

    return check_cells(LAYOUTS, read)


def _schema() -> Schema:
    return Schema((NumericColumn("age", 0, 100),))


class _Known:
    """An encoder fitted on a table with a public column next to the texts."""

    def __init__(self, encoder: SchemaEncoder) -> None:
        self._encoder = encoder

    def fit(self, X: Any, y: Any) -> "_Known":
        fitted = self._encoder.fit({**X, "age": [1.0] * len(X["text"])})
        for name, value in vars(fitted).items():
            if name.endswith("_"):
                setattr(self, name, value)
        return self


def _secure_fits(seed: int) -> list[Finding]:
    """Check that two fits without a seed share no noise and report secure noise."""
    X, y = _tables()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [
            PrivateLogisticRegression(classes=[0, 1], solver="proximal-gd").fit(X, y)
            for _ in range(2)
        ]
    same = np.array_equal(fits[0].coef_, fits[1].coef_)
    return [
        Finding("secure fits: two share no noise", not same),
        Finding("secure fits: they report secure noise", all(fit.privacy_.secure for fit in fits)),
    ]
