"""Intervals beside those of three rivals: ``python -m benchmarks.interval_rivals``.

All are (epsilon, 1e-6)-private under replace-one, on columns and targets in [-1, 1], and see the
same rows. Where a rival would need budget for something that we cannot give it fairly, it gets it
for nothing, so its widths are lower bounds.

sufficient statistics   one noisy second moment of (x, 1, y), a parametric bootstrap of 200 tables
objective perturbation  a random linear term in the objective, the delta method; no regulariser is
                        added and its curvature and scores are taken without noise
little bootstraps       estimates of disjoint parts of 40 p rows, clipped to the box of twice the
                        true coefficients, a noisy mean; sampling variance is taken without noise

Results are kept in ``out/interval_rivals.jsonl``; ``--write`` stores them in
``benchmarks/results/interval_rivals.json`` and writes the table of docs/algorithms/inference.md.
"""

import argparse
import math
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from benchmarks._kept import chosen, keep, kept, store, with_stored
from benchmarks._report import ROOT, markdown
from benchmarks.coverage import (
    DELTA,
    LEVEL,
    MOST_COUNT,
    PAGE,
    Cell,
    coefficients,
    columns,
    errors_without_privacy,
    fitted,
    grid,
    refused,
    seconds,
    targets,
)
from hushfit.privacy import gaussian_mu

KEPT = ROOT / "out" / "interval_rivals.jsonl"
RESULTS = Path(__file__).parent / "results" / "interval_rivals.json"
MARKS = "<!-- rivals: begin -->", "<!-- rivals: end -->"
OURS, MOMENTS, OBJECTIVE, PARTS = "ours", "sufficient", "objective", "little bootstraps"
NAMES = {
    OURS: "this",
    MOMENTS: "noisy sufficient statistics",
    OBJECTIVE: "objective perturbation",
    PARTS: "little bootstraps",
}
BOOTSTRAPS, ROWS_PER_PART = 200, 40
CELLS = [cell for cell in grid() if cell.design == "correlated" and refused(cell) is None]
# The largest size of a residual, in which noise is measured.
LARGEST = {"logistic": 1.0, "linear": 2.0, "counts": float(MOST_COUNT)}
ROUNDS = 3, 10, 30


def minimum(cell: Cell, Z: np.ndarray, y: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """The minimum of the loss plus a linear term, by Newton's method.

    It starts from the true coefficients: the minimum is the same, and fewer steps lead there.
    """
    w = coefficients(cell)
    for _ in range(25):
        score, H = score_and_curvature(cell, Z, y, w)
        step = np.linalg.solve(H + 1e-6 * np.eye(len(w)), score + linear)
        w = w - step * min(1.0, 5 / (1e-9 + np.linalg.norm(step)))
        if np.abs(step).max() < 1e-8:
            break
    return w


def residual_and_bend(cell: Cell, Z: np.ndarray, y: np.ndarray, w: np.ndarray):
    margin = Z @ w
    if cell.family == "linear":
        return margin - y, np.ones(len(y))
    if cell.family == "counts":
        rate = np.exp(np.minimum(margin, math.log(MOST_COUNT)))
        return rate - y, rate
    p = expit(margin)
    return p - (y > 0), p * (1 - p)


def score_and_curvature(cell: Cell, Z: np.ndarray, y: np.ndarray, w: np.ndarray):
    residual, bend = residual_and_bend(cell, Z, y, w)
    return Z.T @ residual, (Z * bend[:, None]).T @ Z


def sufficient_statistics(Z, y, mu, rng):
    """Linear models: estimate and standard errors by a parametric bootstrap."""
    p = Z.shape[1]
    scale = math.sqrt(2) * (p + 1) / mu
    V = np.column_stack([Z, y])
    seen = V.T @ V + symmetric_noise(1, p + 1, scale, rng)[0]
    A = _positive(seen[:p, :p], scale)
    estimate = np.linalg.solve(A, seen[:p, p])
    rest = max(seen[p, p] - estimate @ seen[:p, p], 1e-6 * len(y)) / len(y)
    again = symmetric_noise(BOOTSTRAPS, p + 1, scale, rng)
    sampled = math.sqrt(rest) * rng.normal(size=(BOOTSTRAPS, p)) @ np.linalg.cholesky(A).T
    moments = again[:, :p, p] + A @ estimate + sampled
    draws = np.linalg.solve(_positive(A + again[:, :p, :p], scale), moments[:, :, None])
    return estimate, np.std(draws[:, :, 0], axis=0)


def symmetric_noise(count, size, scale, rng):
    """Symmetric matrices whose entries have this deviation, those off the diagonal 1/sqrt(2)."""
    upper = np.triu(rng.normal(size=(count, size, size)) * scale / math.sqrt(2), 1)
    diagonal = scale * rng.normal(size=(count, size, 1)) * np.eye(size)
    return upper + upper.swapaxes(1, 2) + diagonal


def _positive(A, scale):
    values, vectors = np.linalg.eigh((A + A.swapaxes(-1, -2)) / 2)
    return (vectors * np.maximum(values, scale)[..., None, :]) @ vectors.swapaxes(-1, -2)


def objective_perturbation(cell, Z, y, mu, rng):
    p = Z.shape[1]
    noise = 2 * math.sqrt(p) * LARGEST[cell.family] / mu
    estimate = minimum(cell, Z, y, noise * rng.normal(size=p))
    residual, bend = residual_and_bend(cell, Z, y, estimate)
    inverse = np.linalg.inv((Z * bend[:, None]).T @ Z + 1e-6 * np.eye(p))
    V = inverse @ ((Z * residual[:, None] ** 2).T @ Z + noise**2 * np.eye(p)) @ inverse
    return estimate, np.sqrt(np.diag(V))


def little_bootstraps(cell, Z, y, mu, rng, plain_errors, goal):
    p = Z.shape[1]
    parts = np.array_split(rng.permutation(len(Z)), max(len(Z) // (ROWS_PER_PART * p), 2))
    box = 2 * np.abs(goal).max()
    found = [np.clip(minimum(cell, Z[k], y[k], np.zeros(p)), -box, box) for k in parts]
    noise = 2 * box * math.sqrt(p) / (len(parts) * mu)
    estimate = np.mean(found, axis=0) + noise * rng.normal(size=p)
    return estimate, np.sqrt(plain_errors**2 + noise**2)


def replication(cell: Cell, number: int) -> dict:
    """Which intervals cover and how wide they are, by method."""
    rng = np.random.default_rng([number, cell.n, cell.d, 7])
    X = columns(cell, cell.n, rng)
    y = targets(cell, X, rng)
    Z, goal = np.column_stack([np.ones(cell.n), X]), coefficients(cell)
    mu, found = gaussian_mu(cell.epsilon, DELTA), {}
    plain = errors_without_privacy(cell)
    own = fitted(cell, X, y, cell.epsilon, int(rng.integers(2**31)))
    if own.verdict != "none":
        found[OURS] = own.params, own.bse
    if cell.family == "linear":
        found[MOMENTS] = sufficient_statistics(Z, y, mu, rng)
    found[OBJECTIVE] = objective_perturbation(cell, Z, y, mu, rng)
    found[PARTS] = little_bootstraps(cell, Z, y, mu, rng, plain, goal)
    quantile = norm.ppf((1 + LEVEL) / 2)
    return {
        name: {
            "covered": float(np.mean(np.abs(estimate - goal) <= quantile * errors)),
            "width": float(np.median(errors / plain)),
        }
        for name, (estimate, errors) in found.items()
    }


def run(cells: list[Cell], replications: int) -> None:
    done = kept(KEPT)
    rounds = {min(most, replications) for most in (*ROUNDS, replications)}
    jobs = [(cell, most) for cell in cells for most in rounds]
    for cell, most in sorted(jobs, key=lambda job: seconds(job[0]) * job[1]):
        known = done.setdefault(cell.name, {})
        for number in range(most):
            if number not in known:
                known[number] = replication(cell, number)
                keep(KEPT, cell.name, number, known[number])


def summaries() -> list[dict]:
    done, lines = kept(KEPT), []
    for cell in CELLS:
        outcomes = list(done.get(cell.name, {}).values())
        if not outcomes:
            continue
        by_method = {}
        for name in NAMES:
            seen = [one[name] for one in outcomes if name in one]
            if seen:
                by_method[name] = {
                    key: float(pick([one[key] for one in seen]))
                    for key, pick in (("covered", np.mean), ("width", np.median))
                }
        lines.append({"cell": cell.name, "replications": len(outcomes), "methods": by_method})
    return lines


def table(lines: list[dict]) -> str:
    head = ["model", "rows", "columns", "epsilon", *NAMES.values(), "replications"]
    rows = []
    for line in lines:
        family, n, d, epsilon, _ = line["cell"].split("/")
        cells = []
        for name in NAMES:
            one = line["methods"].get(name)
            cells.append("" if one is None else f"{one['width']:.2f} ({one['covered']:.2f})")
        rows.append(
            [family, f"{int(n):,}", d, f"{float(epsilon):g}", *cells, str(line["replications"])]
        )
    return markdown(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--only", nargs="*", help="parts of the names of cells")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--stored", action="store_true", help="only what has been kept")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.stored:
        run(chosen(CELLS, given.only), given.replications)
    lines = with_stored(summaries(), RESULTS, [cell.name for cell in CELLS])
    print(table(lines))
    if given.write:
        store(RESULTS, lines, PAGE, MARKS, table(lines))


if __name__ == "__main__":
    main()
