"""Models as ONNX graphs, for serving without Python. Imported by name: needs
``pip install hushfit[onnx]``.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hushfit.data import FeatureBounds
from hushfit.data.schema import OrdinalTarget
from hushfit.errors import InvalidArgument
from hushfit.estimators import PredictionRanges, PrivatePoissonRegressor, feature_ranges
from hushfit.features import AdditiveMap
from hushfit.models._model import Model
from hushfit.models._onnx_scorer import scorer_nodes
from hushfit.models._ranker_file import RankingModel

_OPSET = 18


def export_onnx(model: Model | RankingModel, path: str | os.PathLike[str]) -> None:
    """Write a model as an ONNX graph over encoded features.

    Parameters
    ----------
    model : Model or RankingModel
        Any linear model, or a ranker whose feature map is data.
    path : path or str
        Where to write it.

    Notes
    -----
    The input ``X`` has one float column for each of ``model.feature_names``. The outputs are
    ``margins`` of shape (n, 1) for two classes or (n, classes), and for a model with probabilities
    ``probabilities`` of shape (n, classes); of a model of numbers, ``predictions`` of shape (n, 1),
    inside the public range (of grades, their positions). Of a ranker they are ``scores`` of shape
    (n, 1), one for each document. The graph includes bounds and the map of
    an additive model. The guarantee is stored as metadata, the positive class of two, and the
    threshold if there is one: the class with the largest probability in proportion to its number
    there is predicted.
    """
    fitted = model.estimator
    if isinstance(model, RankingModel):
        nodes, constants = scorer_nodes(fitted)
        outputs = {"scores": 1}
    elif model.predicts_classes:
        nodes, constants = _margins(fitted)
        outputs = {"margins": len(fitted.coef_)}
        if hasattr(fitted, "predict_proba"):
            nodes += _probabilities(len(model.classes))
            outputs["probabilities"] = len(model.classes)
    else:
        nodes, constants = _predictions(fitted)
        outputs = {"predictions": 1}
    graph = helper.make_graph(
        nodes,
        "hushfit",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", int(fitted.n_features_in_)])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])
            for name, width in outputs.items()
        ],
        [
            numpy_helper.from_array(np.asarray(value, dtype=np.float32), name)
            for name, value in constants.items()
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
    about = _about_lists(model) if isinstance(model, RankingModel) else _metadata(model)
    helper.set_model_props(made, about)
    onnx.checker.check_model(made)
    Path(path).write_bytes(made.SerializeToString())


def _about_lists(model: RankingModel) -> dict[str, str]:
    names = () if model.schema is None else model.schema.columns
    features = {"features": repr(list(names))} if names else {}
    return {"guarantee": model.guarantee.to_json(), **features}


def _metadata(model: Model) -> dict[str, str]:
    target = None if model.schema is None else model.schema.target
    grades = target.categories if isinstance(target, OrdinalTarget) else ()
    threshold = model.estimator.threshold_ if model.predicts_classes else None
    return {
        "guarantee": model.guarantee.to_json(),
        "classes": repr(model.classes),
        "features": repr(model.feature_names),
        **({"grades": repr(list(grades))} if grades else {}),
        **({} if threshold is None else {"threshold": repr(threshold.tolist())}),
        **({"positive": repr(model.outputs[0])} if len(model.outputs) == 1 else {}),
    }


def _node(operator: str, inputs: str, output: str, **attributes: Any) -> Any:
    """A node of the graph; its inputs are named in one text."""
    return helper.make_node(operator, inputs.split(), [output], **attributes)


def _clipped() -> list[Any]:
    """Columns clipped to the constants ``low`` and ``high``."""
    return [_node("Max", "X low", "raised"), _node("Min", "raised high", "clipped")]


def _bounded() -> list[Any]:
    """Clipped columns mapped to [0, 1], with the constant ``width``."""
    return [_node("Sub", "clipped low", "shifted"), _node("Div", "shifted width", "bounded")]


def _linear(record: str, output: str = "sum") -> list[Any]:
    """Records times the constant ``coef``, plus ``intercept``."""
    return [_node("MatMul", f"{record} coef", "product"), _node("Add", "product intercept", output)]


def _predictions(fitted: Any) -> tuple[list[Any], dict[str, Any]]:
    """Clipped columns, a product, for counts the exponential, and the range of the target."""
    nodes: list[Any] = []
    ranges, record = PredictionRanges.of(fitted), "X"
    low, high = ranges.target
    constants: dict[str, Any] = {
        "coef": fitted.coef_[:, None],
        "intercept": [[fitted.intercept_]],
        "lowest": [[low]],
        "highest": [[high]],
    }
    if ranges.low is not None and ranges.high is not None:
        constants |= {"low": ranges.low[None], "high": ranges.high[None]}
        nodes, record = nodes + _clipped(), "clipped"
        if fitted.feature_map_ is not None:
            constants["width"] = (ranges.high - ranges.low)[None]
            nodes, record = nodes + _bounded(), "bounded"
    if fitted.feature_map_ is not None:
        made, values = _mapped(fitted.feature_map_, record)
        nodes, constants, record = nodes + made, constants | values, "mapped"
    nodes, mean = nodes + _linear(record), "sum"
    if isinstance(fitted, PrivatePoissonRegressor):
        nodes.append(_node("Exp", "sum", "rate"))
        mean = "rate"
    nodes += [
        _node("Max", f"{mean} lowest", "no_lower"),
        _node("Min", "no_lower highest", "predictions"),
    ]
    return nodes, constants


def _margins(fitted: Any) -> tuple[list[Any], dict[str, Any]]:
    """The margin of a scaled record: bounded and mapped features, a product, and a division by the
    record's norm, or by what of it exceeds a public length.
    """
    if fitted.inference:
        return _bounded_margins(fitted)
    coef, intercept = fitted.coef_, fitted.intercept_
    nodes, record = [_node("Constant", "", "axis", value_ints=[1])], "X"
    constants: dict[str, Any] = {"unit": [[float(bool(fitted.fit_intercept))]], "tiny": [[1e-30]]}
    if fitted.feature_bounds is not None:
        bounds = FeatureBounds.parse(feature_ranges(fitted), int(fitted.n_features_in_))
        constants |= {
            "low": bounds.low[None],
            "high": bounds.high[None],
            "width": (bounds.high - bounds.low)[None],
        }
        nodes, record = nodes + _clipped() + _bounded(), "bounded"
        if fitted.feature_map_ is None:
            intercept = intercept + coef @ bounds.low
            coef = coef * (bounds.high - bounds.low)
    if fitted.feature_map_ is not None:
        made, values = _mapped(fitted.feature_map_, record)
        nodes, constants, record = nodes + made, constants | values, "mapped"
    constants |= {"coef": coef.T, "intercept": intercept[None]}
    nodes += [
        *_linear(record),
        _node("ReduceSumSquare", f"{record} axis", "square", keepdims=1),
        _node("Add", "square unit", "whole"),
        _node("Max", "whole tiny", "safe"),
        _node("Sqrt", "safe", "length"),
    ]
    divisor = "length"
    if fitted.scaling != "unit":
        constants |= {"longest": [[fitted.public_length]], "once": [[1.0]]}
        nodes += [
            _node("Div", "length longest", "relative"),
            _node("Max", "relative once", "excess"),
        ]
        divisor = "excess"
    nodes.append(_node("Div", f"sum {divisor}", "margins"))
    return nodes, constants


def _bounded_margins(fitted: Any) -> tuple[list[Any], dict[str, Any]]:
    """The margin of a record that keeps its length: clipped columns and a product."""
    bounds = FeatureBounds.parse(feature_ranges(fitted), int(fitted.n_features_in_))
    constants = {
        "low": bounds.low[None],
        "high": bounds.high[None],
        "coef": fitted.coef_.T,
        "intercept": fitted.intercept_[None],
    }
    return [*_clipped(), *_linear("clipped", "margins")], constants


def _mapped(feature_map: Any, record: str) -> tuple[list[Any], dict[str, Any]]:
    """The additive map: hat functions of every knot, ``max(0, 1 - |K v - k|)``, times the values
    at the knots; other columns as they are, and indicators of missing values.
    """
    if not isinstance(feature_map, AdditiveMap):
        raise InvalidArgument(
            f"the feature map {type(feature_map).__name__} has no form in ONNX. Apply it before "
            "the graph."
        )
    spans = feature_map.spans
    knots = sum(span.intervals + 1 for span in spans if span.intervals)
    inputs, outputs = feature_map.n_inputs, feature_map.n_outputs
    spread, numbers = np.zeros((inputs, knots)), np.zeros((1, knots))
    values, passed = np.zeros((knots, outputs)), np.zeros((inputs, outputs))
    indicators, fills, at = np.zeros((inputs, outputs)), np.zeros((1, inputs)), 0
    for j, (span, fill) in enumerate(zip(spans, feature_map.fills, strict=True)):
        fills[0, j] = np.nan if fill is None else fill
        if span.has_indicator:
            indicators[j, span.start + span.width - 1] = 1.0
        if not span.intervals:
            passed[j, span.start] = 1.0
            continue
        own = slice(at, at + span.intervals + 1)
        spread[j, own], numbers[0, own] = span.intervals, np.arange(span.intervals + 1)
        values[own, span.shape] = feature_map.table(span)
        at = own.stop
    constants = {
        "spread": spread,
        "knots": numbers,
        "at_knots": values,
        "passed": passed,
        "indicators": indicators,
        "fills": fills,
        "one": [[1.0]],
        "zero": [[0.0]],
    }
    nodes = [
        _node("IsNaN", record, "missing"),
        _node("Where", f"missing fills {record}", "filled"),
        _node("Max", "filled zero", "above"),
        _node("Min", "above one", "within"),
        _node("MatMul", "within spread", "positions"),
        _node("Sub", "positions knots", "distances"),
        _node("Abs", "distances", "far"),
        _node("Sub", "one far", "near"),
        _node("Relu", "near", "hats"),
        _node("MatMul", "hats at_knots", "shapes"),
        _node("MatMul", "filled passed", "others"),
        _node("Cast", "missing", "marks", to=TensorProto.FLOAT),
        _node("MatMul", "marks indicators", "marked"),
        _node("Add", "shapes others", "columns"),
        _node("Add", "columns marked", "mapped"),
    ]
    return nodes, constants


def _probabilities(n_classes: int) -> list[Any]:
    if n_classes > 2:
        return [_node("Softmax", "margins", "probabilities", axis=1)]
    return [
        _node("Sigmoid", "margins", "second"),
        _node("Neg", "margins", "against"),
        _node("Sigmoid", "against", "first"),
        _node("Concat", "first second", "probabilities", axis=1),
    ]
