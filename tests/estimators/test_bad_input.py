"""Bad input is refused by name, with the value and what to do, before any charge."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.covariance import GraphicalLasso

from _support import three_classes, two_classes
from hushfit import (
    Ledger,
    PrivateGraphLogisticRegression,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateRanker,
)
from hushfit.errors import (
    BudgetExceeded,
    HushfitError,
    InsecureNoiseWarning,
    InvalidArgument,
    LedgerError,
    NonFiniteRecords,
    PrivacyLeakWarning,
    TooFewRows,
    TooLittleDataWarning,
    UnknownName,
    UnsupportedRelation,
    WeakGuaranteeWarning,
)
from hushfit.penalties import L1, MCP, GroupLasso
from hushfit.preprocessing import BoundedScaler
from hushfit.privacy import gaussian_mu
from hushfit.release import FixedSizeBatch, PoissonBatch
from hushfit.solvers import (
    DPSADMM,
    DPVRADMM,
    MPADMM,
    SSADMM,
    ExactMinimiser,
    ProximalGradient,
    Tempered,
)

X, y = two_classes(n=100, d=3)
HOLED = np.where(np.arange(300).reshape(100, 3) == 7, np.nan, X)
SPARSE = sparse.csr_array(np.abs(X))
LETTERS = np.where(y > 0, "a", "b")
HUGE = 10**400  # an integer beyond the largest float
WITH_HUGE_CELL = X.astype(object)
WITH_HUGE_CELL[7, 1] = HUGE

# Case, settings of the estimator, rows, labels, what is raised, and words of its message: the value
# and the remedy.
CASES = [
    # shapes
    ("a vector for X", {}, X[:, 0], y, ValueError, ["Expected 2D array", "reshape"]),
    ("three dimensions", {}, X[None], y, ValueError, ["dim 3"]),
    ("no columns", {}, X[:, :0], y, ValueError, ["0 feature"]),
    ("one row", {}, X[:1], y[:1], ValueError, ["1 sample", "minimum of 2"]),
    ("no rows", {}, X[:0], y[:0], ValueError, ["0 sample"]),
    ("too few labels", {}, X, y[:50], ValueError, ["100", "50"]),
    ("a table of labels", {}, X, np.column_stack([y, y]), ValueError, ["2) instead"]),
    ("complex numbers", {}, X + 1j, y, InvalidArgument, ["Complex data", "real ones"]),
    (
        "two columns of one name",
        {},
        pd.DataFrame(X, columns=["age", "age", "bmi"]),
        y,
        InvalidArgument,
        ["'age'", "a name of its own"],
    ),
    (
        "words for numbers",
        {},
        np.full((100, 3), "word"),
        y,
        InvalidArgument,
        ["not a number", "Encode"],
    ),
    (
        "a column of words",
        {},
        pd.DataFrame({"age": X[:, 0], "ward": ["north", "south"] * 50}),
        y,
        InvalidArgument,
        ["columns of texts: 'ward'", "Encode"],
    ),
    # values
    (
        "nan, with nonfinite=raise",
        {"nonfinite": "raise"},
        HOLED,
        y,
        NonFiniteRecords,
        ["NaN", "nonfinite='fill'"],
    ),
    (
        "unknown treatment of nan",
        {"nonfinite": "drop"},
        X,
        y,
        InvalidArgument,
        ["'drop'", "'zero' or 'raise'"],
    ),
    # labels
    (
        "one class in y",
        {"classes": None},
        X,
        np.ones(100),
        InvalidArgument,
        ["got 1 class", "classes=[...]"],
    ),
    (
        "one public class",
        {"classes": [1.0]},
        X,
        np.ones(100),
        InvalidArgument,
        ["got 1 class", "classes=[...]"],
    ),
    ("a number of classes", {"classes": 2}, X, y, InvalidArgument, ["classes=2", "[0, 1]"]),
    ("a word for classes", {"classes": "ab"}, X, y, InvalidArgument, ["'ab'", "list of labels"]),
    (
        "a class named twice",
        {"classes": [1.0, -1.0, 1.0]},
        X,
        y,
        InvalidArgument,
        ["twice", "once"],
    ),
    (
        "a label that is not public",
        {"classes": [1.0, 2.0], "nonfinite": "raise"},
        X,
        y,
        InvalidArgument,
        ["1.0", "2.0", "Add it to classes"],
    ),
    (
        "letters where numbers are public",
        {"classes": [0, 1]},
        X,
        LETTERS,
        InvalidArgument,
        ["texts", "classes=[0, 1] are numbers"],
    ),
    (
        "real numbers as labels",
        {"nonfinite": "raise"},
        X,
        X[:, 0],
        InvalidArgument,
        ["not in classes", "Add it to classes"],
    ),
    # budget
    ("epsilon zero", {"epsilon": 0.0}, X, y, InvalidArgument, ["epsilon=0", "positive"]),
    ("epsilon negative", {"epsilon": -1.0}, X, y, InvalidArgument, ["epsilon=-1", "positive"]),
    ("epsilon nan", {"epsilon": float("nan")}, X, y, InvalidArgument, ["epsilon is NaN", "number"]),
    ("epsilon a word", {"epsilon": "small"}, X, y, InvalidArgument, ["epsilon='small'", "float"]),
    (
        "epsilon beyond floats",
        {"epsilon": HUGE},
        X,
        y,
        InvalidArgument,
        ["epsilon", "largest float", "smaller"],
    ),
    (
        "delta beyond floats",
        {"delta": HUGE},
        X,
        y,
        InvalidArgument,
        ["delta", "largest float", "smaller"],
    ),
    (
        "alpha beyond floats",
        {"penalty": "l2", "alpha": HUGE},
        X,
        y,
        InvalidArgument,
        ["ScaledL2.alpha", "smaller"],
    ),
    (
        "bounds beyond floats",
        {"feature_bounds": (0, HUGE)},
        X,
        y,
        InvalidArgument,
        ["feature_bounds", "(low, high)"],
    ),
    (
        "clip beyond floats",
        {"solver": SSADMM(clip=HUGE)},
        X,
        y,
        InvalidArgument,
        ["SSADMM.clip", "smaller"],
    ),
    (
        "steps beyond floats",
        {"solver": ProximalGradient(steps=HUGE)},
        X,
        y,
        InvalidArgument,
        ["ProximalGradient.steps", "smaller"],
    ),
    (
        "a cell beyond floats",
        {"nonfinite": "raise"},
        WITH_HUGE_CELL,
        y,
        InvalidArgument,
        ["largest float", "Scale that column"],
    ),
    ("delta zero", {"delta": 0.0}, X, y, InvalidArgument, ["delta=0", "small probability"]),
    ("delta one", {"delta": 1.0}, X, y, InvalidArgument, ["delta=1", "small probability"]),
    ("delta negative", {"delta": -0.1}, X, y, InvalidArgument, ["delta=-0.1", "small probability"]),
    (
        "delta above 1/n",
        {"delta": 0.02},
        X,
        y,
        WeakGuaranteeWarning,
        ["delta=0.02", "0.01", "well below"],
    ),
    (
        "more than the ledger has",
        {"epsilon": 9.0},
        X,
        y,
        BudgetExceeded,
        ["epsilon=9", "ledger's 3", "smaller epsilon"],
    ),
    (
        "no privacy on a private account",
        {"epsilon": np.inf},
        X,
        y,
        BudgetExceeded,
        ["no privacy", "smaller epsilon"],
    ),
    (
        "another relation",
        {"adjacency": "add-remove"},
        X,
        y,
        LedgerError,
        ["'add-remove'", "adjacency='replace-one'"],
    ),
    (
        "unknown relation",
        {"adjacency": "nearby"},
        X,
        y,
        InvalidArgument,
        ["'nearby'", "'replace-one', 'add-remove'"],
    ),
    # bounds
    (
        "bounds reversed",
        {"feature_bounds": (2, -1)},
        X,
        y,
        InvalidArgument,
        ["low=2", "high=-1", "low < high"],
    ),
    (
        "one bound reversed",
        {"feature_bounds": ([0, 5, 0], 3)},
        X,
        y,
        InvalidArgument,
        ["column 1", "low=5", "low < high"],
    ),
    ("bounds empty", {"feature_bounds": (1, 1)}, X, y, InvalidArgument, ["low=1", "low < high"]),
    (
        "bounds for other columns",
        {"feature_bounds": ([0, 0], [1, 1])},
        X,
        y,
        InvalidArgument,
        ["3 columns", "[0, 0]"],
    ),
    (
        "bounds without end",
        {"feature_bounds": (0, np.inf)},
        X,
        y,
        InvalidArgument,
        ["finite", "Write down"],
    ),
    (
        "bounds that are no pair",
        {"feature_bounds": 7},
        X,
        y,
        InvalidArgument,
        ["got 7", "(low, high)"],
    ),
    (
        "sparse, bounds off zero",
        {"feature_bounds": (-1, 1)},
        SPARSE,
        y,
        InvalidArgument,
        ["start at -1", "dense array"],
    ),
    # plans
    (
        "fewer rows than a batch",
        {"solver": ProximalGradient(sampling=FixedSizeBatch(500))},
        X,
        y,
        TooFewRows,
        ["500", "100", "smaller batch"],
    ),
    # names
    ("unknown solver", {"solver": "magic"}, X, y, UnknownName, ["'magic'", "'auto'"]),
    ("no solver at all", {"solver": 5}, X, y, InvalidArgument, ["solver=5", "'auto'"]),
    (
        "exact with privacy",
        {"solver": "exact"},
        X,
        y,
        InvalidArgument,
        ["epsilon=inf, not 1", "'auto'"],
    ),
    (
        "exact object with privacy",
        {"solver": ExactMinimiser()},
        X,
        y,
        InvalidArgument,
        ["epsilon=inf, not 1", "'auto'"],
    ),
    (
        "temperature of two classes",
        {"solver": Tempered(ProximalGradient())},
        X,
        y,
        InvalidArgument,
        ["more than two classes", "Use Recalibrated"],
    ),
    (
        "unknown penalty",
        {"penalty": "l3"},
        X,
        y,
        UnknownName,
        ["'l3'", "'l1'", "hushfit.penalties"],
    ),
    (
        "no penalty at all",
        {"penalty": 5},
        X,
        y,
        InvalidArgument,
        ["penalty=5", "hushfit.penalties"],
    ),
    (
        "alpha negative",
        {"penalty": "l2", "alpha": -1.0},
        X,
        y,
        InvalidArgument,
        ["alpha=-1", "Use 0"],
    ),
    (
        "l1_ratio above one",
        {"penalty": "elasticnet", "l1_ratio": 2.0},
        X,
        y,
        InvalidArgument,
        ["l1_ratio=2", "Use 1"],
    ),
    (
        "a corner for whitened descent",
        {"penalty": L1(0.1), "solver": "whitened-gd"},
        X,
        y,
        InvalidArgument,
        ["L1(alpha=0.1)", "prox-newton"],
    ),
    (
        "groups of other columns",
        {"penalty": GroupLasso(0.1, ((0, 9),))},
        X,
        y,
        InvalidArgument,
        ["GroupLasso", "does not suit 3", "Make it for that many"],
    ),
    # proofs: what an algorithm does not cover
    *(
        (
            f"not convex, for {name}",
            {"penalty": MCP(0.1), "solver": solver},
            X,
            y,
            InvalidArgument,
            ["MCP", "not convex", remedy],
        )
        for name, solver, remedy in (
            ("dp-sadmm", "dp-sadmm", "solver='ss-admm'"),
            ("dp-vradmm", "dp-vradmm", "solver='ss-admm'"),
            ("published mp-admm", MPADMM(form="published"), "Use mp-admm in its default form"),
            ("multi-step mp-admm", MPADMM(form="multi-step"), "Use mp-admm in its default form"),
        )
    ),
    *(
        (
            f"too long a step for {name}",
            {"solver": solver},
            X,
            y,
            InvalidArgument,
            [f"eta={eta:g} is outside", "smaller"],
        )
        for name, solver, eta in (
            ("ss-admm", SSADMM(eta=8.5), 8.5),
            ("mp-admm", MPADMM(eta=8.5), 8.5),
            ("multi-step mp-admm", MPADMM(form="multi-step", eta=8.5), 8.5),
            ("dp-sadmm", DPSADMM(eta=4.5), 4.5),
            ("dp-vradmm", DPVRADMM(eta=2.5), 2.5),
        )
    ),
    (
        "one noise without its proof",
        {"solver": DPVRADMM(noise="single")},
        X,
        y,
        UnsupportedRelation,
        ["'add-remove' only", "noise='two'"],
    ),
    (
        "a seed that is none",
        {"random_state": "seven"},
        X,
        y,
        InvalidArgument,
        ["'seven'", "None for secure noise"],
    ),
    (
        "a negative seed",
        {"random_state": -3},
        X,
        y,
        InvalidArgument,
        ["-3", "None for secure noise"],
    ),
]


@pytest.mark.parametrize(
    "Estimator", [PrivateLogisticRegression, PrivateLinearSVC], ids=lambda kind: kind.__name__
)
@pytest.mark.parametrize(
    ("settings", "rows", "labels", "error", "words"),
    [c[1:] for c in CASES],
    ids=[c[0] for c in CASES],
)
def test_bad_input_is_refused_before_anything_is_paid(
    Estimator, settings, rows, labels, error, words
):
    ledger = Ledger(3.0, 1e-6)
    model = Estimator(**{"classes": [-1.0, 1.0], "ledger": ledger, "random_state": 0, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.simplefilter("ignore", TooLittleDataWarning)
        with pytest.raises(error) as refusal:
            model.fit(rows, labels)
    missing = [word for word in words if word not in str(refusal.value)]
    assert not missing, f"{missing} not in {refusal.value}"
    assert ledger.entries == ()
    assert not hasattr(model, "coef_")


def test_predicting_a_cell_beyond_floats_is_refused_without_quoting_it():
    for kind, labels in (
        (PrivateLogisticRegression(classes=[-1.0, 1.0]), y),
        (PrivateLasso(target_bounds=(-1, 1), feature_bounds=(-9, 9)), y),
    ):
        kind.set_params(solver="proximal-gd", delta=1e-3, nonfinite="raise")
        model = kind.fit(X, labels)
        with pytest.raises(InvalidArgument, match="largest float"):
            model.predict(WITH_HUGE_CELL)


# Graph-guided fits: settings, and words of the refusal.
GRAPHS = {
    "dependent rows of A": (
        {"graph": [(0, 1)], "admm": DPVRADMM(strongly_convex=True, ridge=0.1)},
        ["full row rank", "(4, 3)", "strongly_convex=False"],
    ),
    "dependent rows of any private A": (
        {"graph": "private", "admm": DPVRADMM(strongly_convex=True, ridge=0.1)},
        ["full row rank", "strongly_convex=False"],
    ),
    "an estimator of the graph": ({"graph": GraphicalLasso()}, ["is a release", "graph='private'"]),
    "a covariance for the graph": ({"graph": np.cov(X.T)}, ["is a release", "graph='private'"]),
    "a private graph for nothing": (
        {"graph": "private", "graph_share": 0.0},
        ["must be paid for", "0.1"],
    ),
    "a private graph for everything": (
        {"graph": "private", "graph_share": 1.0},
        ["must be paid for", "0.1"],
    ),
    "too long a step": (
        {"graph": [(0, 1)], "admm": DPSADMM(eta=4.5)},
        ["eta=4.5 is outside", "smaller eta"],
    ),
    "a solver without constraints": ({"graph": [(0, 1)], "admm": SSADMM()}, ["SSADMM", "dp-sadmm"]),
}


@pytest.mark.parametrize(("settings", "words"), GRAPHS.values(), ids=GRAPHS)
def test_graphs_and_constraints_without_a_proof_are_refused_before_anything_is_paid(
    settings, words
):
    ledger = Ledger(3.0, 1e-6)
    model = PrivateGraphLogisticRegression(**{"classes": [-1.0, 1.0], "ledger": ledger, **settings})
    with pytest.raises(InvalidArgument) as refusal:
        model.fit(X, y)
    missing = [word for word in words if word not in str(refusal.value)]
    assert not missing, f"{missing} not in {refusal.value}"
    assert ledger.entries == ()
    assert not hasattr(model, "graph_")


def test_a_penalty_that_cannot_be_linearised_has_no_stage_of_objective_perturbation():
    class Jump:
        convex, separable, ridge = False, True, None

        def value(self, z):
            return float(np.count_nonzero(z))

        def prox(self, v, step):
            return np.where(v**2 > 2 * step, v, 0.0)

    ledger = Ledger(3.0, 1e-6)
    with pytest.raises(InvalidArgument, match=r"cannot be linearised.*'dpsc'"):
        PrivateLogisticRegression(
            penalty=Jump(), solver="objective", classes=[-1.0, 1.0], ledger=ledger
        ).fit(X, y)
    assert ledger.entries == ()


def test_fixed_size_batches_have_no_proof_for_adding_and_removing():
    ledger = Ledger(3.0, 1e-6, adjacency="add-remove")
    model = PrivateLogisticRegression(
        solver=ProximalGradient(sampling=FixedSizeBatch(10)),
        adjacency="add-remove",
        classes=[-1.0, 1.0],
        ledger=ledger,
    )
    with pytest.raises(UnsupportedRelation, match="replace-one"):
        model.fit(X, y)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    "make", [lambda: PoissonBatch(0.0), lambda: PoissonBatch(1.5), lambda: FixedSizeBatch(0)]
)
def test_batches_that_cannot_be_are_refused_when_written_down(make):
    with pytest.raises(InvalidArgument, match=r"=(0\.0|1\.5|0) must"):
        make()


def test_a_ledger_that_is_none_is_refused_before_the_rows_are_used():
    with pytest.raises(InvalidArgument, match=r"ledger=5.*Ledger\("):
        PrivateLogisticRegression(ledger=5, classes=[-1.0, 1.0]).fit(X, y)


@pytest.mark.usefixtures("quiet_fits")
def test_predicting_checks_its_rows():
    model = PrivateLogisticRegression(classes=[-1.0, 1.0], random_state=0, nonfinite="raise").fit(
        X, y
    )
    for rows, words in ((X[:, :2], "2 features"), (HOLED, "NaN"), (X[0], "Expected 2D array")):
        with pytest.raises(ValueError, match=words):
            model.predict(rows)


@pytest.mark.usefixtures("quiet_fits")
def test_more_classes_are_checked_like_two():
    rows, labels = three_classes(n=100, d=3)
    ledger = Ledger(3.0, 1e-6)
    with pytest.raises(InvalidArgument, match="not in classes"):
        PrivateLogisticRegression(
            classes=[0, 1, 5], ledger=ledger, random_state=0, nonfinite="raise"
        ).fit(rows, labels)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("kind", "relation"),
    [
        (PrivateLogisticRegression, "replace-one"),
        (PrivateLinearSVC, "add-remove"),
        (PrivateLogisticRegression, "label"),
    ],
)
def test_too_few_rows_to_tell_classes_are_said_before_anything_is_spent(kind, relation):
    X, y = two_classes(60)
    noise = 2.0 if relation == "replace-one" else 1.0
    needed = math.ceil(2 * noise * math.sqrt(X.shape[1] + 1) / gaussian_mu(0.01, 1e-6))
    ledger = Ledger(1.0, 1e-6)
    model = kind(epsilon=0.01, adjacency=relation, classes=[-1, 1], ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TooLittleDataWarning, match=f"^60 rows.*at least {needed} rows.*spent"):
            model.fit(X, y)
        assert ledger.entries == ()
        with pytest.raises(TooLittleDataWarning):
            model.quote(needed - 1, X.shape[1])
        model.quote(needed, X.shape[1])


def test_errors_have_one_base():
    raised = {case[4] for case in CASES if case[4].__module__ == "hushfit.errors"}
    errors = {kind for kind in raised if not issubclass(kind, Warning)}
    assert errors
    assert all(issubclass(kind, HushfitError) for kind in errors)


SECRET = 123456.75


@pytest.mark.parametrize("where", ["rows", "targets"])
def test_complex_numbers_are_refused_without_quoting_a_cell(where):
    rows, targets = X.astype(complex), y.astype(complex)
    rows[0, 0] = targets[0] = SECRET
    given = (rows, y) if where == "rows" else (X, targets)
    for fit in (
        PrivateLasso(target_bounds=(-1, 1), feature_bounds=(-9, 9)).fit,
        BoundedScaler(bounds=(-9, 9)).fit,
    )[: 2 if where == "rows" else 1]:
        with pytest.raises(InvalidArgument, match="complex numbers") as refusal:
            fit(*given)
        assert "123456" not in str(refusal.value)


@pytest.mark.parametrize(
    "held", [LETTERS, pd.Series(LETTERS, dtype="string"), np.array(["NaT"] * len(X), "M8[s]")]
)
def test_arrays_of_another_type_than_numbers_are_no_targets(held):
    """By their type alone, which is public, and before anything is paid."""
    ledger = Ledger(3.0, 1e-6)
    with pytest.raises(InvalidArgument, match=r"array of (texts|dates), and not of numbers"):
        PrivateLasso(target_bounds=(-1, 1), feature_bounds=(-9, 9), ledger=ledger).fit(X, held)
    assert ledger.entries == ()


@pytest.mark.parametrize("size", [0, -1, 1.5, "many"])
def test_no_table_has_such_a_size(size):
    classes, numbers = PrivateLogisticRegression(classes=[0, 1]), PrivateLasso(target_bounds=(0, 1))
    for quote in (classes.quote, numbers.quote, PrivateRanker().quote):
        for sizes in ((size, 3), (100, size)):
            with pytest.raises(InvalidArgument, match=r"at least 1"):
                quote(*sizes)


def test_a_quote_that_is_given_rows_does_not_print_them():
    rows = np.full((4, 3), SECRET)
    for quote in (PrivateLogisticRegression(classes=[0, 1]).quote, PrivateLasso().quote):
        with pytest.raises(InvalidArgument, match=r"n_units is ndarray.*not the rows") as refusal:
            quote(rows, np.zeros(4))
        assert "123456" not in str(refusal.value)
