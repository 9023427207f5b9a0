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
from hushfit.models._model import Model

_OPSET = 18


def export_onnx(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as an ONNX graph over encoded features.

    Parameters
    ----------
    model : Model
        Any linear model.
    path : path or str
        Where to write it.

    Notes
    -----
    The input ``X`` has one float column for each of ``model.feature_names``. The outputs are
    ``margins`` of shape (n, 1) for two classes or (n, classes), and for a model with probabilities
    ``probabilities`` of shape (n, classes). The guarantee is stored as metadata.
    """
    fitted = model.estimator
    nodes, constants = _margins(fitted)
    outputs = ["margins"]
    if hasattr(fitted, "predict_proba"):
        nodes += _probabilities(len(model.classes))
        outputs.append("probabilities")
    width = {"margins": len(fitted.coef_), "probabilities": len(model.classes)}
    graph = helper.make_graph(
        nodes,
        "hushfit",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", int(fitted.n_features_in_)])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width[name]])
            for name in outputs
        ],
        [
            numpy_helper.from_array(np.asarray(value, dtype=np.float32), name)
            for name, value in constants.items()
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
    metadata = {
        "guarantee": model.guarantee.to_json(),
        "classes": repr(model.classes),
        "features": repr(model.feature_names),
    }
    helper.set_model_props(made, metadata)
    onnx.checker.check_model(made)
    Path(path).write_bytes(made.SerializeToString())


def _margins(fitted: Any) -> tuple[list[Any], dict[str, Any]]:
    """The margin of a record of unit length: scaled features, a product, and a division by the
    record's norm.
    """
    coef, intercept = fitted.coef_, fitted.intercept_
    nodes, record = [], "X"
    constants: dict[str, Any] = {"unit": [[float(bool(fitted.fit_intercept))]], "tiny": [[1e-30]]}
    if fitted.feature_bounds is not None:
        bounds = FeatureBounds.parse(fitted.feature_bounds, coef.shape[1])
        constants |= {
            "low": bounds.low[None],
            "high": bounds.high[None],
            "width": (bounds.high - bounds.low)[None],
        }
        nodes += [
            helper.make_node("Max", ["X", "low"], ["raised"]),
            helper.make_node("Min", ["raised", "high"], ["clipped"]),
            helper.make_node("Sub", ["clipped", "low"], ["shifted"]),
            helper.make_node("Div", ["shifted", "width"], ["record"]),
        ]
        record = "record"
        intercept = intercept + coef @ bounds.low
        coef = coef * (bounds.high - bounds.low)
    constants |= {"coef": coef.T, "intercept": intercept[None]}
    nodes += [
        helper.make_node("MatMul", [record, "coef"], ["product"]),
        helper.make_node("Add", ["product", "intercept"], ["sum"]),
        helper.make_node("ReduceSumSquare", [record, "axis"], ["square"], keepdims=1),
        helper.make_node("Add", ["square", "unit"], ["whole"]),
        helper.make_node("Max", ["whole", "tiny"], ["safe"]),
        helper.make_node("Sqrt", ["safe"], ["length"]),
        helper.make_node("Div", ["sum", "length"], ["margins"]),
    ]
    nodes.insert(0, helper.make_node("Constant", [], ["axis"], value_ints=[1]))
    return nodes, constants


def _probabilities(n_classes: int) -> list[Any]:
    if n_classes > 2:
        return [helper.make_node("Softmax", ["margins"], ["probabilities"], axis=1)]
    return [
        helper.make_node("Sigmoid", ["margins"], ["second"]),
        helper.make_node("Neg", ["margins"], ["against"]),
        helper.make_node("Sigmoid", ["against"], ["first"]),
        helper.make_node("Concat", ["first", "second"], ["probabilities"], axis=1),
    ]
