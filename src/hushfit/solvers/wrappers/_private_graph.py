"""A graph over the columns, public or private: weights of neighbours are drawn towards each other.

A graph estimated from the rows is a release like any other, and a deterministic one has no privacy
at all (docs/algorithms/private-graph.md). So it comes from the caller, who knows it without reading
the rows, or from a noisy second moment.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy import sparse

from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.constraints import Constraint, generalised, graph
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import Door, Plan, Planned, SecondMoment
from hushfit.solvers.base import Iterate, Solver, finished, settled

_MOMENT = "second moment"
# A column is a node if the noise of its correlations is at most this; correlations below twice the
# noise are treated as zero.
_MAX_NOISE = 0.25
_MIN_CORRELATION = 0.1
# Weight of the identity, mixed into the correlations so that they can be inverted despite the
# noise.
_SHRINKAGE = 0.01
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False)
class Graph:
    """Pairs of columns, and whether their weights should be equal (+1) or opposite (-1)."""

    edges: IntVector
    signs: Vector

    def constraint(self, d: int) -> Constraint:
        """A = [edges; identity] as in the papers; without edges, the identity."""
        if len(self.edges) == 0:
            return generalised(sparse.eye_array(d, format="csr"))
        return graph(self.edges, d, self.signs, with_identity=True)


Watch: TypeAlias = Callable[[Graph], None]


@dataclass(frozen=True, eq=False)
class PublicGraph:
    """A solver for constraints, with a public graph: one known without reading the rows.

    Parameters
    ----------
    solver : Solver
        One that takes a constraint, such as `DPSADMM`.
    edges : array of int, shape (n_edges, 2)
        Pairs of columns.
    signs : array, optional
        +1 for weights that should be equal (the default), -1 for opposite ones.
    watch : callable, optional
        Called with the `Graph` when the run starts.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.solvers import DPSADMM, PublicGraph
    >>> PublicGraph(DPSADMM(steps=100), edges=np.array([[0, 1], [1, 2]])).edges.shape
    (2, 2)
    """

    solver: Solver
    edges: IntVector
    signs: Vector | None = None
    watch: Watch | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        _require_constrained(self.solver)

    def for_budget(self, budget: Budget, problem: Problem) -> "PublicGraph":
        """The same with its solver settled."""
        return replace(self, solver=settled(self.solver, budget, problem))

    @property
    def _graph(self) -> Graph:
        edges = np.asarray(self.edges)
        return Graph(
            edges,
            np.ones(len(edges)) if self.signs is None else np.asarray(self.signs, dtype=np.float64),
        )

    def _guided(self, problem: Problem) -> Problem:
        return _with_graph(
            problem, graph(self.edges, problem.n_features, self.signs, with_identity=True)
        )

    def plan(self, problem: Problem) -> Plan:
        return self.solver.plan(self._guided(problem))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        if self.watch is not None:
            self.watch(self._graph)
        return self.solver.iterates(self._guided(problem), door)

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        return finished(self.solver, self._guided(problem), door, average)


@dataclass(frozen=True, eq=False)
class PrivateGraph:
    """A solver for constraints, preceded by a private estimate of the graph.

    The second moment of the records is released once, with noise. Projection on positive
    semi-definite matrices, centring, normalisation to correlations and the graphical lasso are
    post-processing of the release.

    Parameters
    ----------
    solver : Solver
        One that takes a constraint, such as `DPSADMM`.
    share : float, default=0.1
        Share of the budget (of mu squared) for the second moment.
    alpha : float or None
        Weight of the graphical lasso on correlations; None takes twice the noise, and at least 0.1.
    watch : callable, optional
        Called with the `Graph` once it is known. It is a function of the release, so it may be
        shown.

    Examples
    --------
    >>> from hushfit.solvers import DPSADMM, PrivateGraph
    >>> PrivateGraph(DPSADMM(steps=100), share=0.1).share
    0.1
    """

    solver: Solver
    share: float = 0.1
    alpha: float | None = None
    watch: Watch | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidArgument(
                f"share={self.share!r} is outside (0, 1). A graph estimated from the rows is a "
                "release and must be paid for. Give a share such as 0.1, or a public graph."
            )
        if self.alpha is not None and not self.alpha > 0:
            raise InvalidArgument(
                f"alpha={self.alpha!r} is not positive. Use None to choose it from the noise."
            )
        _require_constrained(self.solver)

    def for_budget(self, budget: Budget, problem: Problem) -> "PrivateGraph":
        """The same with its solver settled."""
        return replace(self, solver=settled(self.solver, budget, problem))

    def plan(self, problem: Problem) -> Plan:
        inner = self.solver.plan(_with_graph(problem, _some_graph(problem.n_features)))
        shares = inner.shares()
        if _MOMENT in shares:
            raise InvalidArgument(
                f"{self.solver!r} releases a {_MOMENT!r} itself. Use a solver such as DPSADMM()."
            )
        inner_parts = [
            replace(part, share=(1 - self.share) * shares[part.name]) for part in inner.parts
        ]
        return Plan((Planned(_MOMENT, SecondMoment, 1, self.share), *inner_parts))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        door.release(_MOMENT, SecondMoment(problem))
        estimated = self._estimated(problem, door)
        if self.watch is not None:
            self.watch(estimated)
        yield from self.solver.iterates(
            _with_graph(problem, estimated.constraint(problem.n_features)), door
        )

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        estimated = self._estimated(problem, door)
        return finished(
            self.solver,
            _with_graph(problem, estimated.constraint(problem.n_features)),
            door,
            average,
        )

    def _estimated(self, problem: Problem, door: Door) -> Graph:
        """The graph that the release on the transcript gives."""
        answer = next(released.answer for released in door.transcript if released.name == _MOMENT)
        query = SecondMoment(problem)
        noise = (
            door.noise_multiplier(_MOMENT) * query.sensitivity(problem.relation) / problem.n_units
        )
        return graph_of_moment(
            query.matrix(answer) / problem.n_units, noise, problem.fit_intercept, self.alpha
        )


def _require_constrained(solver: Solver) -> None:
    if not solver.takes_constraint:
        raise InvalidArgument(
            f"{type(solver).__name__} takes no constraint, so it would ignore the graph. Use "
            "'dp-sadmm' or 'dp-vradmm'."
        )


def _some_graph(d: int) -> Constraint:
    """Some graph, with an edge if possible: plans depend on the constraint only in refusals."""
    edges = np.array([(0, 1)] if d > 1 else [], dtype=np.int64).reshape(-1, 2)
    return Graph(edges, np.ones(len(edges))).constraint(d)


def _with_graph(problem: Problem, constraint: Constraint) -> Problem:
    if problem.constraint is not None:
        raise InvalidArgument(
            "The problem already has a constraint. Give a constraint or a graph, not both."
        )
    return replace(problem, constraint=constraint)


def graph_of_moment(
    M: Matrix, noise: float, has_constant: bool, alpha: float | None = None
) -> Graph:
    """The graph of partial correlations in a noisy second moment.

    Parameters
    ----------
    M : symmetric array
        Mean of the records' outer products, with noise.
    noise : float
        Standard deviation of the noise on its diagonal; off the diagonal it is smaller by the
        square root of two.
    has_constant : bool
        Whether the last column is the intercept's, from which the means are known; then it is no
        node.
    alpha : float or None
        Weight of the graphical lasso; None takes twice the noise of a correlation, and at least
        0.1.

    Returns
    -------
    Graph
    """
    S = _centred(_positive(M)) if has_constant else _positive(M)
    nodes = np.flatnonzero(_visible_columns(np.diag(S), noise))
    if len(nodes) < 2:
        return Graph(np.empty((0, 2), dtype=np.int64), np.empty(0))
    variances = np.diag(S)[nodes]
    correlations = S[np.ix_(nodes, nodes)] / np.sqrt(np.outer(variances, variances))
    by_noise = max(_MIN_CORRELATION, 2 * noise / (math.sqrt(2) * float(variances.min())))
    precision = _sparse_inverse(correlations, by_noise if alpha is None else alpha)
    row, column = np.nonzero(np.triu(np.abs(precision) > _ROUNDING, 1))
    # The precision of two columns has the opposite sign of their partial correlation.
    return Graph(np.column_stack([nodes[row], nodes[column]]), -np.sign(precision[row, column]))


def _positive(M: Matrix) -> Matrix:
    """The nearest positive semi-definite matrix."""
    eigenvalues, vectors = np.linalg.eigh(M)
    return np.asarray((vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T)


def _centred(M: Matrix) -> Matrix:
    """Second moment around the mean, which the constant's column holds: a Schur complement."""
    weight = max(float(M[-1, -1]), np.finfo(float).tiny)
    return np.asarray(M[:-1, :-1] - np.outer(M[:-1, -1], M[-1, :-1]) / weight)


def _visible_columns(variances: Vector, noise: float) -> BoolVector:
    """Columns whose variance is large enough against the noise to estimate correlations."""
    return np.asarray(variances > max(noise / (math.sqrt(2) * _MAX_NOISE), 1e-12))


def _sparse_inverse(correlations: Matrix, alpha: float) -> Matrix:
    from sklearn.covariance import graphical_lasso
    from sklearn.exceptions import ConvergenceWarning

    shrunk = (1 - _SHRINKAGE) * correlations + _SHRINKAGE * np.eye(len(correlations))
    with warnings.catch_warnings():
        # An approximate minimiser is still a function of the release, and still a graph.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return np.asarray(graphical_lasso(shrunk, alpha=alpha)[1])
        except FloatingPointError:
            # Too ill-conditioned: use plain correlations instead of partial ones.
            return np.asarray(-np.where(np.abs(correlations) > alpha, correlations, 0.0))
