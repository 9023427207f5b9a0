"""Deterministic audits: sensitivities by hill climbing, runs replayed from their releases, and
side channels compared.

Each returns `Finding` objects; a failed check does not raise.
"""

import io
import json
import logging
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeAlias

import numpy as np

from hushfit._typing import Vector
from hushfit.audit._curators import seeded_curator
from hushfit.audit.checks._examples import source_for
from hushfit.audit.checks._noise import Finding
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.models import Model, model_json
from hushfit.privacy import Budget, Relation, labels_only, replaces_one
from hushfit.problem import Problem
from hushfit.release import Choice, ClippedGradient, Gate, GatedStep, LossDrop, SteepestCorner
from hushfit.solvers import Solver, run

# Allowance for the rounding of the distance itself.
_ROUNDING = 1e-9
Table: TypeAlias = tuple[Any, Any] | tuple[Any, Any, Any]
"""Rows and labels, and the ids of persons if they are the units."""
_EXTREMES = (np.nan, np.inf, 1e200, 1e-200, 0.0)


# Sensitivity


@dataclass(frozen=True, eq=False)
class Fuzzed:
    """The worst pair of neighbours that a search found.

    Parameters
    ----------
    ratio : float
        Distance of the two answers over the sensitivity; above 1, the proof or the code is wrong.
    records : pair of (x, y)
        The rows that differ; None is the null record.
    """

    ratio: float
    records: tuple[tuple[Vector, float], tuple[Vector, float]]

    @property
    def exceeded(self) -> bool:
        return not self.ratio <= 1 + _ROUNDING


def fuzz_sensitivity(
    query: Any,
    relation: Relation | str,
    rows: Vector,
    labels: Vector,
    *,
    draw_label: Callable[[np.random.Generator], float],
    row: int = 0,
    starts: int = 4,
    climbs: int = 120,
    seed: int = 0,
    make_source: Callable[[Problem, Any, Vector], DataSource] = source_for,
) -> Fuzzed:
    """Search, by hill climbing, for neighbours that exceed the sensitivity of a query.

    Parameters
    ----------
    query : Query
        At public values; it has a ``problem``.
    relation : Relation or str
    rows, labels : arrays
        The table around the replaced record.
    draw_label : callable
        Maps a generator to a random admissible label.
    row : int, default=0
        The position of the record.
    starts, climbs : int
        Random initial pairs, and proposals tried from each.
    seed : int, default=0
    make_source : callable
        Maps a problem, rows and labels to a source.

    Returns
    -------
    Fuzzed
    """
    relation, rng, d = Relation.parse(relation), np.random.default_rng(seed), rows.shape[1]
    answer, apart, bound = measured_distance(query, relation)

    def table(position: int, place: int, x: Vector, y: float) -> DataSource:
        X, own = rows.copy(), labels.copy()
        own[position] = y
        if not labels_only(relation):
            # The null record under add-remove; a NaN row counts as such.
            X[position] = np.nan if place == 1 and not replaces_one(relation) else x
        return make_source(query.problem, X, own)

    # Where features are public they stay, and any row may be the one with the largest effect.
    positions = range(len(rows)) if labels_only(relation) else (row,)

    def ratio(pair: Sequence[tuple[Vector, float]]) -> float:
        moves = []
        for position in positions:
            tables = (table(position, place, x, y) for place, (x, y) in enumerate(pair))
            moves.append(apart(*map(answer, tables)))
        return max(moves) / bound

    best = Fuzzed(-1.0, ((rows[row], float(labels[row])), (rows[row], float(labels[row]))))
    for start in range(starts):
        pair = [random_record(rng, d, draw_label, extreme=start == starts - 1) for _ in range(2)]
        here = ratio(pair)
        for step in range(climbs):
            moved = moved_records(pair, rng, step, draw_label)
            there = ratio(moved)
            if not there <= here:
                pair, here = moved, there
        if not here <= best.ratio:
            best = Fuzzed(here, (pair[0], pair[1]))
    return best


def measured_distance(
    query: Any, relation: Relation
) -> tuple[Callable[[DataSource], Vector], Callable[[Vector, Vector], float], float]:
    """The answer that a query's sensitivity bounds, its distance function, and the bound."""
    if isinstance(query, Gate | Choice):
        # The sensitivity bounds the change of each score by itself.
        return lambda source: query.scores(source, None), _largest, query.sensitivity(relation)
    if isinstance(query, SteepestCorner):
        # The sensitivity bounds the change of a vertex's utility; over all vertices that is the
        # sum of the largest changes of the entries.
        return (
            lambda source: (
                np.concatenate(list(query.utilities(query.sums(source), 2.0**40))) / 2.0**40
            ),
            _vertex_distance(query),
            (query.sensitivity(relation)),
        )
    if isinstance(query, GatedStep):
        return measured_distance(query.gradient, relation)
    weights = np.ones(query.size) if query.doubled is None else np.where(query.doubled, 2.0, 1.0)
    if isinstance(query, LossDrop):
        weights = np.ones(query.size)
    return (
        lambda source: query(source, None),
        lambda a, b: math.sqrt(float(weights @ (a - b) ** 2)),
        query.sensitivity(relation),
    )


def _largest(a: Vector, b: Vector) -> float:
    return float(np.abs(a - b).max())


def _vertex_distance(query: SteepestCorner) -> Callable[[Vector, Vector], float]:
    """Half the range of the changes of utility over all answers: entries are chosen separately,
    so their ranges add up.
    """
    sizes = [2 * query.problem.n_features] * query.problem.outputs + [
        2
    ] * query.problem.outputs * query.problem.fit_intercept

    def apart(a: Vector, b: Vector) -> float:
        return sum(float(np.ptp(part)) for part in np.split(a - b, np.cumsum(sizes)[:-1])) / 2

    return apart


def random_record(
    rng: np.random.Generator,
    d: int,
    draw_label: Callable[[np.random.Generator], float],
    extreme: bool,
) -> tuple[Vector, float]:
    x = 10 ** rng.uniform(-2, 2) * rng.normal(size=d)
    if extreme:
        x[rng.integers(d)] = _EXTREMES[rng.integers(len(_EXTREMES))]
    return x, draw_label(rng)


def moved_records(
    pair: Sequence[tuple[Vector, float]],
    rng: np.random.Generator,
    step: int,
    draw_label: Callable[[np.random.Generator], float],
) -> list[tuple[Vector, float]]:
    moved = [(x + 10 ** rng.uniform(-3, 1) * rng.normal(size=len(x)), y) for x, y in pair]
    if step % 4 == 0:
        moved = [(x, draw_label(rng)) for x, _ in moved]
    if step % 7 == 0:
        moved[1] = (-moved[0][0], moved[1][1])
    if step % 11 == 0:
        moved[1] = (moved[0][0], moved[1][1])
    return moved


def check_overwritten(
    name: str,
    query: Any,
    relation: Relation,
    rows: Vector,
    labels: Vector,
    draw_label: Callable[[np.random.Generator], float],
    seed: int = 0,
) -> Finding:
    """Check the sensitivity of a query after its arrays were overwritten: the new answers must
    satisfy the newly stated bound.
    """
    rng, tables = np.random.default_rng(seed), [(rows, labels)]
    for _ in range(12):
        X, y = rows.copy(), labels.copy()
        X[0], y[0] = random_record(rng, rows.shape[1], draw_label, extreme=False)
        tables.append((X, y))
    sources = [source_for(query.problem, X, y) for X, y in tables]
    answer, _, _ = measured_distance(query, relation)
    for source in sources:  # fills the caches
        answer(source)
    written = overwrite_arrays(query)
    answer, apart, bound = measured_distance(query, relation)
    answers = [answer(source) for source in sources]
    ratio = max(apart(one, answers[0]) for one in answers[1:]) / bound
    evidence = (
        f"neighbours at {ratio:.4f} of the bound after writing into "
        f"{', '.join(written) or 'nothing'}"
    )
    return Finding(
        f"{name} ({relation}): sensitivity after writing", ratio <= 1 + _ROUNDING, evidence
    )


def overwrite_arrays(holder: Any) -> list[str]:
    """Overwrite every writeable array that a query, or a part of it, holds; return their names."""
    written = []
    for name, value in vars(holder).items():
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = ~value if value.dtype == bool else 1000 * value
            written.append(f"{type(holder).__name__}.{name}")
        elif is_dataclass(value) and not isinstance(value, type | Problem):
            written += overwrite_arrays(value)
    return written


def check_sensitivity(
    name: str, query: Any, relation: Relation | str, rows: Vector, labels: Vector, **search: Any
) -> Finding:
    """`fuzz_sensitivity` as a finding."""
    found = fuzz_sensitivity(query, relation, rows, labels, **search)
    return Finding(
        f"{name} ({relation}): sensitivity",
        not found.exceeded,
        f"worst neighbours at {found.ratio:.4f} of the bound",
    )


def check_order(
    name: str,
    query: Any,
    relation: Relation | str,
    rows: Vector,
    labels: Vector,
    shuffles: int = 6,
    make_source: Callable[[Problem, Any, Vector], DataSource] = source_for,
) -> Finding:
    """Check that a query sums records exactly: the answer is the same to the last bit in any order
    of the rows.

    Plain floating-point sums are not: one record changes the rounding of all that follow, which no
    sensitivity covers.

    Parameters
    ----------
    name : str
    query : Query
        At public values; it has a ``problem``.
    relation : Relation or str
    rows, labels : arrays
    shuffles : int, default=6
        Number of orders; always the same ones, so that the check is deterministic.
    make_source : callable
        Maps a problem, rows and labels to a source.

    Returns
    -------
    Finding
    """
    rng, (answer, _, _) = (
        np.random.default_rng(0),
        measured_distance(query, Relation.parse(relation)),
    )
    orders = [np.arange(len(rows)), *(rng.permutation(len(rows)) for _ in range(shuffles))]
    answers = [answer(make_source(query.problem, rows[order], labels[order])) for order in orders]
    apart = max(float(np.abs(other - answers[0]).max()) for other in answers[1:])
    return Finding(
        f"{name}: the answer does not depend on the order of the rows",
        apart == 0,
        f"answers up to {apart:.2g} apart",
    )


# Replay


class UnreadableSource:
    """A source without rows, which raises at every access."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the rows were accessed: {name}")


class UnreadableLabels:
    """A source whose features are public and whose labels nobody may read."""

    def __init__(self, source: DataSource) -> None:
        self.n_units, self.privacy_unit = source.n_units, source.privacy_unit
        self.public_rows = source.public_rows

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the solver read the rows: {name}")


def check_replay(
    solver: Solver, problem: Problem, source: DataSource, budget: Budget, seed: int = 0
) -> list[Finding]:
    """Check that a run is a function of its releases: replayed without any rows, it ends at the
    same weights, bit for bit.

    Parameters
    ----------
    solver : Solver
        Configured for the problem and the budget.
    problem : Problem
    source : DataSource
    budget : Budget
    seed : int, default=0

    Returns
    -------
    list of Finding
    """
    name = type(solver).__name__
    quote = solver.plan(problem).quote(problem, budget)
    curator = seeded_curator(source, quote, problem.relation, seed)
    w = run(solver, problem, curator).w
    no_rows: Any = UnreadableLabels(source) if labels_only(problem.relation) else UnreadableSource()
    again = seeded_curator(no_rows, quote, problem.relation, seed + 7, tuple(curator.transcript))
    try:
        same = run(solver, problem, again).w
    except AssertionError as error:
        return [Finding(f"{name}: replay", False, str(error))]
    made = {
        part.name: sum(released.name == part.name for released in curator.transcript)
        for part in quote.plan.parts
    }
    declared = {part.name: part.count for part in quote.plan.parts}
    same_queries = all(
        _same_query(a.query, b.query)
        for a, b in zip(curator.transcript, again.transcript, strict=True)
    )
    return [
        Finding(
            f"{name}: replay ends at the same weights",
            bool(np.array_equal(w, same)),
            f"{len(curator.transcript)} releases",
        ),
        Finding(f"{name}: queries are functions of the releases", same_queries),
        Finding(
            f"{name}: no release beyond the plan",
            all(made[key] <= declared[key] for key in made),
            f"{made} of {declared}",
        ),
    ]


def _same_query(a: Any, b: Any) -> bool:
    """Whether the public values of two queries agree to the last bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, ClippedGradient):
        return bool(np.array_equal(a.w, b.w)) and a.clip == b.clip
    return bool(a.size == b.size)


# Side channels


def check_side_channels(
    make: Callable[[], Any], tables: Sequence[Table], name: str = "fit"
) -> list[Finding]:
    """Check that only the released numbers depend on the rows.

    Fits on every table with the same seed and compares: errors, warnings, log records, what was
    printed, names, types and shapes of all attributes, steps, guarantee, and the model file with
    its released numbers blanked.

    Parameters
    ----------
    make : callable
        Returns a fresh estimator; ``verbose`` output is compared too.
    tables : sequence of (X, y) or (X, y, groups)
        Neighbours in one row, or in all rows of one person: ordinary, large, NaN, ...
    name : str, default="fit"

    Returns
    -------
    list of Finding
    """
    seen = [observed_fit(make, table) for table in tables]
    failed = [observed["errors"] for observed in seen if observed["errors"]]
    # If all fits fail with the same error, there is nothing to compare.
    findings = [
        Finding(f"{name}: fits succeed", len(failed) < len(seen), failed[0][:300] if failed else "")
    ]
    for channel in seen[0]:
        values = [observed.get(channel) for observed in seen]
        same = all(value == values[0] for value in values)
        different = (
            "" if same else f"{values[0]!r} against {next(v for v in values if v != values[0])!r}"
        )
        findings.append(
            Finding(f"{name}: {channel} do not depend on the rows", same, different[:300])
        )
    return findings


class _LogRecorder(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] == "numba":
            return  # of the compiler, when a loop runs for the first time
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


def fitted_on(estimator: Any, table: Table) -> Any:
    """The estimator fitted on a table; with persons as units if the table has ids."""
    X, y, *ids = table
    return estimator.fit(X, y, groups=ids[0]) if ids else estimator.fit(X, y)


def observed_fit(make: Callable[[], Any], table: Table) -> dict[str, Any]:
    """All outputs of a fit except the released numbers."""
    out, err, recorder, root = io.StringIO(), io.StringIO(), _LogRecorder(), logging.getLogger()
    level = root.level
    root.addHandler(recorder)
    root.setLevel(logging.DEBUG)
    fitted, error = None, ""
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            warnings.simplefilter("always")
            try:
                fitted = fitted_on(make(), table)
            except Exception as problem:
                error = f"{type(problem).__name__}: {problem}"
    finally:
        root.removeHandler(recorder)
        root.setLevel(level)
    seen: dict[str, Any] = {
        "errors": error,
        "warnings": [f"{w.category.__name__}: {w.message}" for w in caught],
        "log lines": recorder.lines,
        "printed lines": (out.getvalue(), err.getvalue()),
        "attributes": {}
        if fitted is None
        else {key: _shape(value) for key, value in vars(fitted).items() if key.endswith("_")},
        "steps": getattr(fitted, "n_iter_", None),
        "guarantee": fitted.privacy_.to_json() if fitted is not None else None,
        "model files": "" if fitted is None else _blanked_file(fitted),
    }
    return seen


def _shape(value: Any) -> str:
    return f"{type(value).__name__}{np.shape(value) if isinstance(value, np.ndarray) else ''}"


def _blanked_file(fitted: Any) -> str:
    """The model file with every released number replaced by its shape."""
    try:
        contents = json.loads(model_json(Model(fitted))[0])
    except InvalidArgument:
        return "not a model that can be saved"
    for key in [
        key for key in contents if key in ("coef", "intercept", "digest", "sha256", "hash")
    ]:
        contents[key] = np.shape(contents[key])
    return json.dumps(contents, default=str, sort_keys=True)
