"""Logistic regression whose weights follow a graph over the columns."""

from dataclasses import replace
from typing import Any

import numpy as np

from hushfit._typing import IntVector
from hushfit.errors import InvalidArgument
from hushfit.estimators._linear_classifiers import PrivateLogisticRegression
from hushfit.estimators._scaling import ChosenScaling
from hushfit.penalties import L1, Penalty
from hushfit.privacy import Budget
from hushfit.release import Terms
from hushfit.solvers import DPSADMM, DPVRADMM, PrivateGraph, PublicGraph
from hushfit.solvers.wrappers import Graph

_SOLVERS = {"dp-sadmm": DPSADMM, "dp-vradmm": DPVRADMM}


class PrivateGraphLogisticRegression(PrivateLogisticRegression):
    r"""Logistic regression with a graph-guided fused lasso and a differential-privacy guarantee.

    The penalty is :math:`\alpha (\sum_{(i,j)} |w_j - s_{ij} w_i| + \sum_i |w_i|)` over the edges of
    the graph.

    Parameters
    ----------
    graph : sequence of pairs of int, or "private"
        Edges between columns, known without reading the rows (an ontology, a grid, a chain).
        ``"private"`` estimates them from a noisy second moment, which ``graph_share`` of the budget
        pays for. A graph computed from the same rows in any other way would be a release without
        privacy.
    graph_share : float, default=0.1
        Share of the budget (of mu squared) for a private graph.
    alpha : float, default=1e-4
        Weight of the penalty, against the mean loss.
    admm : "dp-sadmm", "dp-vradmm", or a solver of ``hushfit.solvers`` that takes a constraint
    epsilon, delta, adjacency, feature_bounds, classes, fit_intercept, nonfinite, person_weight,
    rows_per_person, ledger, random_state, verbose, pos_label
        As for `PrivateLogisticRegression`.

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, privacy_
        As for `PrivateLogisticRegression`.
    graph_ : array of shape (n_edges, 2)
        The edges used. A private graph is a function of the releases.
    graph_signs_ : array of shape (n_edges,)
        +1 where weights are drawn to equal values, -1 where to opposite values.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateGraphLogisticRegression
    >>> X, y = np.array([[0.2, 0.3, 0.1], [0.8, 0.9, 0.7]] * 500), np.array([0, 1] * 500)
    >>> model = PrivateGraphLogisticRegression(
    ...     graph=[(0, 1), (1, 2)], epsilon=1.0, delta=1e-6, classes=[0, 1], feature_bounds=(0, 1)
    ... )
    >>> model.fit(X, y).predict(X[:2])
    array([0, 1])
    """

    def __init__(
        self,
        graph: Any = "private",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        graph_share: float = 0.1,
        alpha: float = 1e-4,
        admm: Any = "dp-sadmm",
        feature_bounds: Any = None,
        classes: Any = None,
        fit_intercept: bool = True,
        nonfinite: str = "fill",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        pos_label: Any = None,
    ) -> None:
        self.pos_label = pos_label
        self.graph = graph
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.graph_share = graph_share
        self.alpha = alpha
        self.admm = admm
        self.feature_bounds = feature_bounds
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.nonfinite = nonfinite
        self.person_weight = person_weight
        self.rows_per_person = rows_per_person
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    @property
    def solver(self) -> PublicGraph | PrivateGraph:
        """The solver that `fit` runs: ADMM with the graph."""
        inner = (
            _SOLVERS[self.admm]()
            if isinstance(self.admm, str) and self.admm in _SOLVERS
            else self.admm
        )
        if isinstance(inner, str):
            raise InvalidArgument(
                f"admm={inner!r} takes no graph. Use {' or '.join(map(repr, _SOLVERS))}."
            )
        if isinstance(self.graph, str) and self.graph == "private":
            return PrivateGraph(inner, self.graph_share, watch=self._store)
        return PublicGraph(inner, _edges(self.graph), watch=self._store)

    def _penalty(self) -> Penalty:
        return L1(self.alpha)

    def _store(self, graph: Graph) -> None:
        self.graph_, self.graph_signs_ = graph.edges, graph.signs

    def _terms(self, budget: Budget, scaling: ChosenScaling) -> Terms:
        terms = super()._terms(budget, scaling)
        if isinstance(self.graph, str):
            return terms
        public = (*terms.public, "the graph over the columns, given by the caller")
        return replace(terms, public=public)


def _edges(graph: Any) -> IntVector:
    """The edge list as given; anything else is refused, as it may be estimated from the rows."""
    try:
        pairs = np.asarray(graph)
    except ValueError:
        pairs = np.empty(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise InvalidArgument(
            f"graph={graph!r} is not a list of pairs of columns. A graph estimated from the rows "
            "is a release: use graph='private', which pays for it, or give edges that you know "
            "without looking at the rows."
        )
    return pairs
