"""Models as MLflow models of the pyfunc flavour. Imported by name: needs
``pip install hushfit[mlflow]``.

What MLflow stores is the model file of `hushfit.save_model`, unchanged: JSON (or the weights of a
network), with its hash. Nothing is pickled, and loading runs no code but hushfit's.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from mlflow import pyfunc

from hushfit._version import __version__
from hushfit.estimators import PrivateFeatureSelector
from hushfit.models import Model, is_network, load_model, save_model
from hushfit.privacy import Guarantee

__all__ = ["save_pyfunc"]

_FILE = "model.hushfit"
_NETWORK = "hushfit.torch."


def save_pyfunc(model: Any, path: str | os.PathLike[str], **settings: Any) -> None:
    """Write a model as a folder that ``mlflow.pyfunc.load_model`` reads.

    Parameters
    ----------
    model : Model, RankingModel, PipelineModel, or a fitted estimator
        Also a network that `hushfit.torch.save_network` writes with its architecture.
    path : path or str
        A folder that does not exist yet, or is empty.
    **settings
        For ``mlflow.pyfunc.save_model``, such as ``signature`` or ``input_example``.

    Notes
    -----
    ``predict`` takes a data frame: the raw columns of the table for a model with a schema, or the
    features. It returns classes, numbers or grades, the scores of documents, or the selected
    columns. The guarantee is among the metadata of the MLflow model.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.mlflow import save_pyfunc
    >>> X, y = np.array([[0.2], [0.8]] * 500), np.array([0, 1] * 500)
    >>> fitted = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1]).fit(X, y)
    >>> save_pyfunc(fitted, "model")
    >>> "hushfit_guarantee" in mlflow.pyfunc.load_model("model").metadata.metadata
    True
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / _FILE
        _write(model, file)
        guarantee = _read(file).guarantee
        about = {"hushfit_guarantee": json.dumps(guarantee.to_dict()), **_budget(guarantee)}
        pyfunc.save_model(
            path=os.fspath(path),
            loader_module=__name__,
            data_path=os.fspath(file),
            **{"pip_requirements": _requirements(file), "metadata": about, **settings},
        )


def _write(model: Any, file: Path) -> None:
    fitted = model.estimator if isinstance(model, Model) else model
    if not type(fitted).__module__.startswith(_NETWORK):
        save_model(model, file)
        return
    from hushfit.torch import save_network  # loads torch, which other models do not need

    save_network(model, file)


def _read(file: Path) -> Any:
    if not is_network(file):
        return load_model(file)
    from hushfit.torch import load_network

    return load_network(file)


def _budget(guarantee: Guarantee) -> dict[str, Any]:
    return {
        "epsilon": "inf" if guarantee.nonprivate else guarantee.epsilon,
        "delta": guarantee.delta,
        "adjacency": str(guarantee.relation),
        "unit_of_privacy": guarantee.unit.in_words,
    }


def _requirements(file: Path) -> list[str]:
    extra = "mlflow,torch" if is_network(file) else "mlflow"
    return [f"hushfit[{extra}]=={__version__}"]


class _Predictor:
    """What MLflow calls: the answers of a model to the rows of a frame."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, frame: Any, params: Any = None) -> Any:
        """Classes, numbers or grades of rows, scores of documents, or selected columns."""
        fitted = self.model.estimator
        if isinstance(self.model, Model):
            return self.model.predict(
                self._as_fitted(frame, has_schema=self.model.schema is not None)
            )
        rows = self._as_fitted(frame)
        if isinstance(fitted, PrivateFeatureSelector):
            return fitted.transform(rows)
        return fitted.predict(rows)

    def _as_fitted(self, frame: Any, *, has_schema: bool = False) -> Any:
        """The frame, or an array if the model was fitted to columns without names."""
        fitted = self.model.estimator
        first = fitted.steps[0][1] if hasattr(fitted, "steps") else fitted
        named = has_schema or hasattr(first, "feature_names_in_") or hasattr(first, "schema_")
        return frame if named else np.ascontiguousarray(frame)


def _load_pyfunc(path: str) -> _Predictor:
    """Called by MLflow, which knows this module by its name."""
    return _Predictor(_read(Path(path)))
