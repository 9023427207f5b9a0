"""The scorer of a ranking model as nodes of an ONNX graph."""

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from hushfit.data import FeatureBounds
from hushfit.errors import InvalidArgument
from hushfit.estimators import ChainedMaps, LayerMap, PrivateRanker, QuadraticMap, feature_ranges

_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "cosine": "Cos"}


class _Graph:
    """Nodes that follow each other; the last one made is the current value."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.value = "X"

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [*inputs], [name], **attributes))
        return name

    def then(self, kind: str, *others: Any) -> None:
        """Apply a node to the current value and to constants."""
        self.value = self.node(kind, self.value, *map(self.constant, others))

    def layer(self, weights: Any, offsets: Any, activation: str) -> None:
        self.then("MatMul", weights)
        self.then("Add", np.asarray(offsets)[None])
        if activation != "linear":
            self.then(_ACTIVATIONS[activation])

    def products(self, width: int) -> None:
        """Append the products of all pairs of columns."""
        before = self.value
        picked = [
            # A product with an indicator matrix would spread missing values to other columns.
            self.node("Gather", before, self.whole_numbers(places), axis=1)
            for places in np.triu_indices(width)
        ]
        self.value = self.node("Concat", before, self.node("Mul", *picked), axis=1)

    def whole_numbers(self, values: Any) -> str:
        return self.node("Cast", self.constant(values), to=TensorProto.INT64)


def scorer_nodes(fitted: PrivateRanker) -> tuple[list[Any], dict[str, Any]]:
    """Nodes from documents ``X`` to ``scores``, and their constants.

    Parameters
    ----------
    fitted : PrivateRanker

    Returns
    -------
    nodes : list
    constants : dict of str to array
    """
    graph, width = _Graph(), int(fitted.n_features_in_)
    if fitted.feature_bounds is not None:
        bounds = FeatureBounds.parse(feature_ranges(fitted), width)
        graph.then("Max", bounds.low[None])
        graph.then("Min", bounds.high[None])
        graph.then("Sub", bounds.low[None])
        graph.then("Div", (bounds.high - bounds.low)[None])
    for one in _maps(fitted.scorer):
        if isinstance(one, LayerMap):
            graph.layer(one.weights, one.offsets, one.activation)
        else:
            graph.products(width)
        width = one.width(width)
    _replace_what_is_not_finite(graph)
    weights = fitted.weights_
    if fitted.scorer == "mlp":
        inner = width * int(fitted.hidden)
        outer = inner + int(fitted.hidden)
        graph.layer(weights[:inner].reshape(width, -1), weights[inner:outer], "relu")
        weights = weights[outer:]
    graph.then("MatMul", weights[:, None])
    graph.nodes.append(helper.make_node("Identity", [graph.value], ["scores"]))
    return graph.nodes, graph.constants


def _maps(scorer: Any) -> tuple[LayerMap | QuadraticMap, ...]:
    """The maps that a scorer applies to documents, one after the other."""
    if isinstance(scorer, str):
        return ()
    if isinstance(scorer, ChainedMaps):
        return tuple(one for one in scorer.maps if isinstance(one, LayerMap | QuadraticMap))
    if isinstance(scorer, LayerMap | QuadraticMap):
        return (scorer,)
    raise InvalidArgument(
        f"the feature map {type(scorer).__name__} is code, which has no form in ONNX. Use "
        "LayerMap, QuadraticMap or ChainedMaps, or apply the map before the graph and fit with "
        "scorer='linear'."
    )


def _replace_what_is_not_finite(graph: _Graph) -> None:
    """Missing and infinite values count as 0, as in predictions."""
    before = graph.value
    odd = graph.node("Or", graph.node("IsNaN", before), graph.node("IsInf", before))
    graph.value = graph.node("Where", odd, graph.constant([[0.0]]), before)
