"""Checks of which rows are read, and of sums over batches of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import binom, chi2, norm

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.audit.checks._examples import source_for
from hushfit.audit.checks._noise import LEVEL, Finding
from hushfit.audit.checks.boundary._recorded import persons_of
from hushfit.data import DataSource, SeededCoins
from hushfit.privacy import Relation, SeededSampler
from hushfit.release import Choice, Entropy, Gate, GatedStep, Mechanism, PermutedRun

_UNIT_ROUNDING = 1e-9


class WatchedRows:
    """A source that records which of its units, and which of their rows, are read."""

    def __init__(self, source: DataSource) -> None:
        self._source = source
        self.asked: list[IntVector | None] = []
        self.read: list[IntVector] = []

    def blocks(self, units: IntVector | None = None) -> Any:
        self.asked.append(units)
        found: list[Any] = list(self._source.blocks(units))
        places = np.arange(len(self._source.y))
        rows = [block.rows if len(block.rows) else places[block.place] for block in found]
        self.read.append(np.concatenate(rows) if rows else places[:0])
        return iter(found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def check_batches(
    mechanism: Mechanism,
    query: Any,
    source: DataSource,
    relation: Relation,
    draws: int = 400,
    seed: int = 0,
    level: float = LEVEL,
) -> list[Finding]:
    """Check that the rows a mechanism reads are the secret batch of its cost: of units, with all
    their rows.

    Parameters
    ----------
    mechanism : Mechanism
        One that draws batches.
    query : Query
        A query that it answers.
    source : DataSource
    relation : Relation
    draws : int, default=400
    seed : int, default=0
    level : float, default=1e-6
        False-alarm rate of each of two tests.

    Returns
    -------
    list of Finding
    """
    kind, n = type(mechanism).__name__, source.n_units
    entropy = Entropy(relation, SeededSampler(seed), SeededCoins(seed + 1))
    answers = []
    for _ in range(draws):
        watched: Any = WatchedRows(source)
        mechanism.answer(query, watched, 1.0, entropy)
        answers.append(watched)
    persons = persons_of(source)
    of_row = np.arange(n) if persons is None else persons.codes
    used = np.flatnonzero(np.broadcast_to(source.shares > 0, len(source.y)))
    together = Finding(
        f"{kind}: the rows of a unit are read together",
        all(_whole_units(rows, used, of_row) for one in answers for rows in one.read),
    )
    if isinstance(query, PermutedRun):
        asked = [one.asked for one in answers]
        return [*_order_findings(kind, asked, query, n, level), together]
    counts = np.array([[_reads(rows, of_row, n) for rows in one.read] for one in answers])
    rate = float(getattr(mechanism.cost(1.0, 1, n), "rate", 1.0))
    return [together, *_batch_findings(kind, counts, rate, level)]


def _batch_findings(kind: str, counts: IntVector, rate: float, level: float) -> list[Finding]:
    """Check batches by how often every access of every answer read each unit."""
    inside = counts.max(axis=1) > 0
    draws, n = inside.shape
    per_unit = inside.sum(axis=0)
    tails = [min(binom.cdf(k, draws, rate), binom.sf(k - 1, draws, rate)) for k in per_unit]
    p = min(1.0, n * 2 * min(tails))
    # The batch is secret and the same for every access of one answer.
    one_batch = bool((counts == counts[:, :1]).all())
    found = [
        Finding(
            f"{kind}: no row is read twice",
            int(counts.max()) <= 1,
            f"at most {int(counts.max())} times",
        ),
        Finding(f"{kind}: one answer reads one batch", one_batch),
        Finding(
            f"{kind}: rows are read at the accounted rate",
            p > level,
            f"rate {inside.mean():.4f} of {rate:.4f}, p = {p:.3g}",
        ),
    ]
    return [*found, _fresh_batches(kind, inside, level)] if 0 < rate < 1 else found


def _whole_units(rows: IntVector, used: IntVector, of_row: IntVector) -> bool:
    """Whether all used rows of every unit were read, or none."""
    expected = used[np.isin(of_row[used], of_row[rows])]
    return np.array_equal(np.unique(np.intersect1d(rows, used)), expected)


def _reads(rows: IntVector, of_row: IntVector, n_units: int) -> IntVector:
    """How often each unit was read: the largest number of reads of one of its rows."""
    of_unit = np.zeros(n_units, dtype=np.int64)
    np.maximum.at(of_unit, of_row, np.bincount(rows, minlength=len(of_row)))
    return of_unit


def _fresh_batches(kind: str, inside: Matrix, level: float) -> Finding:
    """Check that batches of consecutive answers agree as often as independent ones."""
    a, b = inside[:-1].astype(np.float64).ravel(), inside[1:].astype(np.float64).ravel()
    spread = a.std() * b.std()
    z = (
        float(((a - a.mean()) * (b - b.mean())).mean() / spread * np.sqrt(len(a)))
        if spread > 0
        else np.inf
    )
    # Rows of a batch of fixed size are slightly dependent; the factor 1.5 allows for that.
    p = 2 * float(norm.sf(abs(z) / 1.5))
    return Finding(f"{kind}: batches are independent", p > level, f"p = {p:.3g}")


def _order_findings(
    kind: str,
    accesses: Sequence[Sequence[IntVector | None]],
    run: PermutedRun,
    n: int,
    level: float,
) -> list[Finding]:
    """Check that each row is in each batch with probability proportional to its size, and that
    orders of consecutive answers are independent.
    """
    batches = len(run.passes.sizes)
    places = np.full((len(accesses), n), -1)
    for k, read in enumerate(accesses):
        for batch, rows in enumerate(read[:batches]):
            places[k, rows if rows is not None else slice(None)] = batch
    shares = np.array(run.passes.sizes) / n
    counts = np.array([np.bincount(column[column >= 0], minlength=batches) for column in places.T])
    expected = len(accesses) * shares
    p = min(
        1.0,
        n
        * min(
            float(chi2.sf(((row - expected) ** 2 / expected).sum(), batches - 1)) for row in counts
        ),
    )
    same = int((places[1:] == places[:-1]).all(axis=1).sum())
    agree = float((places[1:] == places[:-1]).mean())
    by_chance = float((shares**2).sum())
    z = (agree - by_chance) / np.sqrt(by_chance * (1 - by_chance) / (places.size - n)) / 1.5
    fresh = 2 * float(norm.sf(abs(z)))
    return [
        Finding(
            f"{kind}: every row is in each batch with the right probability",
            p > level,
            f"p = {p:.3g}",
        ),
        Finding(
            f"{kind}: orders are independent", fresh > level, f"{same} repeats, p = {fresh:.3g}"
        ),
        Finding(
            f"{kind}: no row is left out or read twice",
            bool((places >= 0).all() and (counts.sum(axis=1) == len(accesses)).all()),
        ),
    ]


def check_batch_sensitivity(
    name: str,
    query: Any,
    rows: Matrix,
    labels: Vector,
    draw_label: Callable[[np.random.Generator], float],
    pairs: int = 40,
    seed: int = 0,
) -> Finding:
    """Check the sensitivity of a sum in random batches: one more record changes it by at most its
    radius, a replaced one by at most the replace-one sensitivity.

    Parameters
    ----------
    name : str
    query : Query
        A query that may be evaluated on a batch.
    rows, labels : arrays
    draw_label : callable
        Maps a generator to a random admissible label.
    pairs : int, default=40
        Number of batches, each with two random records.
    seed : int, default=0

    Returns
    -------
    Finding
    """
    rng, n, worst = np.random.default_rng(seed), len(rows), 0.0
    inner = query.gradient if isinstance(query, GatedStep) else query
    answer = inner.scores if isinstance(inner, Gate | Choice) else inner
    weights = np.ones(inner.size) if inner.doubled is None else np.where(inner.doubled, 2.0, 1.0)

    def apart(a: Vector, b: Vector) -> float:
        return (
            float(np.abs(a - b).max())
            if isinstance(inner, Gate | Choice)
            else float(np.sqrt(weights @ (a - b) ** 2))
        )

    for k in range(pairs):
        others = np.flatnonzero(rng.random(n) < (0.0, 0.1, 0.5, 1.0)[k % 4])
        others, with_row = others[others != 0], np.unique(np.append(others, 0))
        answers = []
        for _ in range(2):
            X, y = rows.copy(), labels.copy()
            X[0], y[0] = 10 ** rng.uniform(-2, 2) * rng.normal(size=rows.shape[1]), draw_label(rng)
            source = source_for(inner.problem, X, y)
            answers.append(answer(source, with_row))
            worst = max(worst, apart(answers[-1], answer(source, others)) / inner.radius())
        worst = max(worst, apart(*answers) / inner.sensitivity(Relation.REPLACE_ONE))
    return Finding(
        f"{name}: in every batch",
        worst <= 1 + _UNIT_ROUNDING,
        f"worst batch at {worst:.4f} of the bound",
    )
