"""Several rows per person: accuracy of person-level fits, by how a person's rows are put together.

No public table of this size has real ids, so persons are made: rows of one class that resemble each
other are dealt to persons with 1 to 40 rows each, most of them with few. Everything is replace-one
and protects a person, except where the table says that it protects a row.

python -m benchmarks.persons [--sets kddcup99 covtype] [--epsilons .1 .4 1.6] [--repeats 12]
"""

import argparse
import math
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from scipy.optimize import brentq

from benchmarks import sets
from benchmarks._report import markdown, publish
from benchmarks.accuracy import ADJACENCY, DELTA, progress, standard_error, unit_rows
from hushfit import PrivateLogisticRegression
from hushfit.errors import InsecureNoiseWarning
from hushfit.privacy import gaussian_mu
from hushfit.solvers.newton._whitened import Settings

SETS = ["kddcup99", "covtype"]
EPSILONS = (0.1, 0.4, 1.6)
REPEATS = 12
MOST_ROWS = 40
TAIL = 2.0  # a person has k rows with probability proportional to k**-TAIL
TEST_SHARE = 0.2
ALLOWANCE = 0.002
YARDSTICK = "rows: as many as there are persons"
# The rival's clipping norm and step size in units of the default rule: the best on the test rows of
# kddcup99, of {1, 2, 4} x {0.5, 1, 2} (``--tune``).
RIVAL = {0.1: (2.0, 0.5), 0.4: (2.0, 1.0), 1.6: (1.0, 2.0)}
RIVAL_GRID = tuple((clip, step) for clip in (1.0, 2.0, 4.0) for step in (0.5, 1.0, 2.0))


# ---------------------------------------------------------------- persons


def alike_first(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows in an order in which neighbours resemble each other: halved again and again at the
    median of the column that varies most.
    """
    if len(rows) <= 2 * MOST_ROWS:
        return rng.permutation(rows)
    column = X[rows, X[rows].var(axis=0).argmax()]
    # Ties are broken at random: a column of zeros and ones is halved all the same.
    halves = np.array_split(rows[np.lexsort((rng.random(len(rows)), column))], 2)
    return np.concatenate([alike_first(X, half, rng) for half in halves])


@lru_cache(maxsize=1)
def orders_of(name: str) -> list[np.ndarray]:
    """The rows of each class of a set, in an order in which neighbours resemble each other."""
    X, y = sets.load(name)
    rng = np.random.default_rng(0)
    return [alike_first(X, np.flatnonzero(y == label), rng) for label in sets.CLASSES]


def persons_for(name: str, seed: int) -> np.ndarray:
    """An id for each row: a person has some neighbours in the order of their class. Their number
    says nothing about what they are like.
    """
    rng = np.random.default_rng(seed)
    sizes = np.arange(1, MOST_ROWS + 1)
    chances = sizes**-TAIL / (sizes**-TAIL).sum()
    orders, used = orders_of(name), 0
    ids = np.empty(sum(map(len, orders)), dtype=np.int64)
    for rows in orders:
        counts = rng.choice(sizes, size=len(rows), p=chances)  # more than enough
        own = used + np.repeat(np.arange(len(rows)), counts)[: len(rows)]
        ids[rows], used = own, int(own[-1]) + 1
    return ids


def likeness(X: np.ndarray, ids: np.ndarray) -> float:
    """Share of the variance of the unit rows that is between persons, not within them."""
    Z = unit_rows(X)
    counts = np.bincount(ids)
    means = np.column_stack([np.bincount(ids, column) / counts for column in Z.T])
    several = counts[ids] > 1
    within = ((Z - means[ids])[several] ** 2).sum() / (several.sum() - (counts > 1).sum())
    return 1 - float(within / Z[several].var(axis=0).sum())


# ---------------------------------------------------------------- methods


@dataclass(frozen=True, eq=False)
class Training:
    """The training rows of one repeat."""

    X: np.ndarray
    y: np.ndarray
    ids: np.ndarray
    seed: int

    @property
    def n_persons(self) -> int:
        return len(np.unique(self.ids))


def fitted(
    rows: Training, epsilon: float, picked: np.ndarray | None = None, **settings: object
) -> np.ndarray:
    """Weights of a default fit: of all rows with their persons, or of some rows without."""
    model = PrivateLogisticRegression(
        epsilon=epsilon,
        delta=DELTA,
        adjacency=ADJACENCY,
        classes=sets.CLASSES,
        random_state=rows.seed,
        **settings,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        if picked is None:
            model.fit(rows.X, rows.y, groups=rows.ids)
        else:
            model.fit(rows.X[picked], rows.y[picked])
    return np.append(model.coef_[0], model.intercept_)


def mean_rule(rows: Training, epsilon: float) -> np.ndarray:
    return fitted(rows, epsilon)


def capped(full_weight: int) -> Callable[[Training, float], np.ndarray]:
    def fit(rows: Training, epsilon: float) -> np.ndarray:
        return fitted(rows, epsilon, person_weight="cap", rows_per_person=full_weight)

    return fit


def one_row_each(rows: Training, epsilon: float) -> np.ndarray:
    """A row-level fit of one random row of every person, which protects persons."""
    order = np.random.default_rng(rows.seed).permutation(len(rows.ids))
    return fitted(rows, epsilon, order[np.unique(rows.ids[order], return_index=True)[1]])


def converted(rows: Training, epsilon: float) -> np.ndarray:
    """A row-level fit so private that a group of ``MOST_ROWS`` rows has the guarantee.

    All releases of the default fit are Gaussian, so the group's mu is ``MOST_ROWS`` times a row's,
    exactly; epsilon / ``MOST_ROWS`` at a delta to match would need more noise. Replaces k rows by k
    rows: the number of rows is public here.
    """
    wanted = gaussian_mu(epsilon, DELTA) / MOST_ROWS
    own = brentq(lambda e: gaussian_mu(e, DELTA) - wanted, 1e-9, epsilon, xtol=1e-12)
    return fitted(rows, float(own), np.arange(len(rows.ids)))


def as_many_rows(rows: Training, epsilon: float) -> np.ndarray:
    """A row-level fit of random rows, as many as there are persons; protects a row only."""
    rng = np.random.default_rng(rows.seed)
    return fitted(rows, epsilon, rng.choice(len(rows.ids), rows.n_persons, replace=False))


@njit(nogil=True, fastmath=True)  # pragma: no cover
def clipped_person_sums(records, y, starts, w, bound, total):
    """Sum over persons of the sum of their rows' logistic gradients, clipped as one vector."""
    own = np.empty(len(w))
    total[:] = 0.0
    for p in range(len(starts) - 1):
        own[:] = 0.0
        for i in range(starts[p], starts[p + 1]):
            margin = 0.0
            for j in range(len(w)):
                margin += records[i, j] * w[j]
            slope = -y[i] / (1.0 + math.exp(y[i] * margin))
            for j in range(len(w)):
                own[j] += slope * records[i, j]
        square = 0.0
        for j in range(len(w)):
            square += own[j] * own[j]
        factor = min(1.0, bound / max(math.sqrt(square), 1e-300))
        for j in range(len(w)):
            total[j] += factor * own[j]


def clipped_sums(
    rows: Training, epsilon: float, factors: tuple[float, float] | None = None
) -> np.ndarray:
    """The rival: a person's gradients are added up and clipped as one vector, as in user-level
    DP-SGD, in the default's metric and with its steps (docs/algorithms/auto.md).

    ``factors`` scale clipping norm and steps. Noise is drawn in floating point, which is fine for a
    measurement.
    """
    clip_factor, step_factor = factors or RIVAL.get(epsilon, (1.0, 1.0))
    steps, moment_share, rng = 60, 0.1, np.random.default_rng(rows.seed)
    order = np.argsort(rows.ids, kind="stable")
    counts = np.unique(rows.ids, return_counts=True)[1]
    starts, n = np.append(0, np.cumsum(counts)), len(counts)
    Z, y = unit_rows(rows.X)[order], np.where(rows.y[order] == 1, 1.0, -1.0)
    mu, d = gaussian_mu(epsilon, DELTA), Z.shape[1]

    scale = math.sqrt(2) / (mu * math.sqrt(moment_share) * n)
    upper = np.triu(rng.standard_normal((d, d)) / math.sqrt(2), 1)
    noise = scale * (upper + upper.T + np.diag(rng.standard_normal(d)))
    A, dimension = whitening((Z.T * np.repeat(1 / counts, counts)) @ Z / n + noise, scale)

    nu = 2 * dimension / (mu * math.sqrt(1 - moment_share) * n)
    rule = Settings.for_noise(nu, dimension, steps).for_smooth(nu).for_columns(d)
    clip = clip_factor * rule.clip
    deviation = 2 * clip * math.sqrt(steps) / (mu * math.sqrt(1 - moment_share) * n)
    records, total = np.ascontiguousarray(Z @ A), np.empty(d)
    weights = rule.weights(steps)
    u, velocity, result = np.zeros(d), np.zeros(d), np.zeros(d)
    for t in range(steps):
        ahead = u + rule.momentum * velocity
        clipped_person_sums(records, y, starts, ahead, clip, total)
        g = total / n + deviation * rng.standard_normal(d)
        velocity = ahead - step_factor / clip_factor * rule.step(t, steps) * g - u
        u = u + velocity
        result += weights[t] * u
    return A @ result


def whitening(noisy: np.ndarray, scale: float) -> tuple[np.ndarray, float]:
    """The default's metric and effective dimension, from a noisy second moment."""
    d = len(noisy)
    noisy = noisy - (np.trace(noisy) - 1) / d * np.eye(d)
    released, vectors = np.linalg.eigh(noisy)
    edge, rest = scale * math.sqrt(2 * d), 0.0
    for _ in range(20):
        spikes = released > rest + edge
        rest = max(1 - released[spikes].sum(), 0.0) / max((~spikes).sum(), 1)
    kept = np.maximum(np.maximum(released - rest - edge, 0) + max(0.3 * edge, rest), 1e-5)
    for power in np.linspace(1, 0.3, 71):
        estimated = kept.max() * (kept / kept.max()) ** power
        if (released / estimated).sum() <= 0.9 * d:
            break
    if edge > 0.25 and released[-1] - rest > 1.1 * edge:
        estimated[-1] /= 0.49
    A = (vectors * estimated**-0.5) @ vectors.T
    return A, max(float((released / estimated).sum()), 1.0)


METHODS: dict[str, Callable[[Training, float], np.ndarray]] = {
    "mean (default)": mean_rule,
    "cap 2": capped(2),
    "cap 3": capped(3),
    "cap 5": capped(5),
    "one random row each": one_row_each,
    "clipped sums (user-level DP-SGD)": clipped_sums,
    f"rows, converted to groups of {MOST_ROWS}": converted,
    YARDSTICK: as_many_rows,
}


# ---------------------------------------------------------------- comparison


@dataclass(frozen=True)
class Cell:
    """One method on one set at one epsilon."""

    set: str
    epsilon: float
    method: str
    accuracy: float
    error: float
    lead: float
    lead_error: float

    @property
    def verdict(self) -> str:
        """Only the default has a goal: it loses no more than the allowance."""
        if self.method != "mean (default)":
            return "-"
        if self.lead >= -ALLOWANCE:
            return "pass"
        return "within error" if self.lead + 2 * self.lead_error >= -ALLOWANCE else "FAIL"

    def cells(self) -> list[str]:
        lead = "-" if self.method == YARDSTICK else f"{self.lead:+.4f}"
        lead_error = "-" if self.method == YARDSTICK else f"{self.lead_error:.4f}"
        own = f"{self.accuracy:.4f}", f"{self.error:.4f}", lead, lead_error, self.verdict
        return [self.set, f"{self.epsilon:g}", self.method, *own]


HEAD = ["set", "epsilon", "method", "accuracy", "s.e.", "lead on rows", "s.e.", "verdict"]


def repeats_of(name: str, repeats: int) -> Iterator[tuple[Training, Callable[[np.ndarray], float]]]:
    """Training rows, and the accuracy of weights on the rows of persons that were held out. Every
    repeat has its own persons: how many of them each class has is a matter of chance.
    """
    X, y = sets.load(name)
    for repeat in range(repeats):
        ids = persons_for(name, repeat)
        # A seed of its own: whether a person is held out must not follow from the number of rows.
        held = np.random.default_rng((repeat, 1)).random(ids.max() + 1)[ids] < TEST_SHARE
        Z, label = unit_rows(X[held]), y[held] == 1
        rows = Training(np.ascontiguousarray(X[~held]), y[~held], ids[~held], 1000 + repeat)

        def accuracy(w: np.ndarray, Z: np.ndarray = Z, label: np.ndarray = label) -> float:
            return float(np.mean((Z @ w > 0) == label))

        yield rows, accuracy


def compare(name: str, epsilons: tuple[float, ...], repeats: int) -> list[Cell]:
    """All methods on the same persons, held-out persons and seeds."""
    found: dict[tuple[float, str], list[float]] = {(e, m): [] for e in epsilons for m in METHODS}
    for done, (rows, accuracy) in enumerate(repeats_of(name, repeats), start=1):
        for epsilon, method in found:
            found[epsilon, method].append(accuracy(METHODS[method](rows, epsilon)))
        progress(done, repeats, f"{name}, persons")
    cells = []
    for (epsilon, method), values in found.items():
        leads = [a - b for a, b in zip(values, found[epsilon, YARDSTICK], strict=True)]
        mean, lead = statistics.fmean(values), statistics.fmean(leads)
        errors = standard_error(values), standard_error(leads)
        cells.append(Cell(name, epsilon, method, mean, errors[0], lead, errors[1]))
    return cells


def tune(name: str, epsilons: tuple[float, ...], repeats: int) -> None:
    """Accuracy of the rival for each of its settings."""
    found: dict[tuple[float, tuple[float, float]], list[float]] = {}
    for rows, accuracy in repeats_of(name, repeats):
        for epsilon in epsilons:
            for factors in RIVAL_GRID:
                w = clipped_sums(rows, epsilon, factors)
                found.setdefault((epsilon, factors), []).append(accuracy(w))
    for (epsilon, (clip, step)), values in found.items():
        error = standard_error(values)
        print(f"{epsilon:g} clip x{clip:g} step x{step:g}: {np.mean(values):.4f} +- {error:.4f}")


def described(name: str) -> str:
    """What the made persons are like."""
    X, _ = sets.load(name)
    ids = persons_for(name, 0)
    counts = np.bincount(ids)
    return (
        f"{name}: {len(counts):,} persons with {len(ids):,} rows, "
        f"{np.mean(counts == 1):.0%} of them with one, {np.mean(counts > 10):.1%} with more than "
        f"ten; {likeness(X, ids):.0%} of the variance is between persons."
    )


def run(requested: list[str], epsilons: tuple[float, ...], repeats: int) -> list[Cell]:
    """Compare, print and store the table."""
    reasons = {name: sets.missing(name) for name in requested}
    for reason in filter(None, reasons.values()):
        print(reason, file=sys.stderr)
    names = [name for name in requested if not reasons[name]] or ["adult"]
    cells, notes = [], []
    for name in names:
        notes.append(described(name))
        cells += compare(name, epsilons, repeats)
    title = (
        f"Several rows per person: {repeats} repeats, delta={DELTA:g}, {ADJACENCY}, made persons"
    )
    text = "\n".join(notes) + "\n\n" + markdown(HEAD, [cell.cells() for cell in cells])
    publish("persons", title, text, [{**asdict(c), "verdict": c.verdict} for c in cells])
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.persons", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--sets", nargs="+", choices=sets.SETS, default=SETS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--tune", action="store_true", help="the rival's settings only")
    given = parser.parse_args()
    if given.tune:
        tune(given.sets[0], tuple(given.epsilons), given.repeats)
    else:
        run(given.sets, tuple(given.epsilons), given.repeats)


if __name__ == "__main__":
    main()
