"""One way to save and to load everything that was fitted, but networks."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hushfit._write import write_whole
from hushfit.data.schema import schema_hash
from hushfit.errors import InvalidArgument
from hushfit.estimators import FormulaModel, PrivateFeatureSelector, PrivateRanker
from hushfit.models._file import _digest, _strict_json, model_json, read_model
from hushfit.models._fit_tables import payment_of
from hushfit.models._model import Model, Provenance
from hushfit.models._network_file import is_network
from hushfit.models._pipeline_file import (
    PIPELINE_FORMAT,
    PipelineModel,
    pipeline_from,
    pipeline_json,
)
from hushfit.models._ranker_file import (
    RankingModel,
    is_ranker,
    load_ranker,
    paid_ranker,
    ranker_json,
)
from hushfit.preprocessing import PrivatePipeline

_BEGINNING = 200


def save_model(model: Any, path: str | os.PathLike[str]) -> str:
    """Write a model to a file, atomically.

    If a fitted estimator was paid for from a `Ledger` on disk, the file names the payment, and the
    ledger records the hash of the file first, as ``hushfit fit`` does. Then reports name the
    account, and ``hushfit ledger verify --model`` checks the file.

    Parameters
    ----------
    model : Model, RankingModel, PipelineModel, or a fitted estimator
        A classifier, regressor, ranker, selector, or a pipeline of hushfit's own steps. Networks
        are saved by `hushfit.torch.save_network`.
    path : path or str
        Replaced if it exists.

    Returns
    -------
    str
        SHA-256 of the contents, as the file states it.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression, load_model, save_model
    >>> X, y = np.array([[0.2], [0.8]] * 500), np.array([0, 1] * 500)
    >>> fitted = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1]).fit(X, y)
    >>> digest = save_model(fitted, "model.json")
    >>> load_model("model.json").guarantee.epsilon
    1.0
    """
    made, record = _with_provenance(model)
    text, digest = _written(made)
    record(digest)  # before the file exists: every model file is in the ledger
    write_whole(Path(path), text)
    return digest


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file. No code in it is run, and one that was changed is refused.

    Parameters
    ----------
    path : path or str

    Returns
    -------
    Model, RankingModel or PipelineModel
        The fitted estimator is its ``estimator``.

    Raises
    ------
    InvalidArgument
        If the file cannot be read, is of another version, does not match its hash, or is not a
        model.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from hushfit import PrivateLogisticRegression, load_model, save_model
    >>> model = PrivateLogisticRegression(float("inf"), classes=[0, 1])
    >>> model = model.fit(np.array([[0.2], [0.8]] * 20), np.array([0, 1] * 20))
    >>> path = tempfile.mkdtemp() + "/model.json"
    >>> digest = save_model(model, path)
    >>> load_model(path).estimator.coef_.shape
    (1, 1)
    """
    if is_network(path):
        raise InvalidArgument(
            f"{os.fspath(path)} is a network. Read it with hushfit.torch.load_network."
        )
    if is_ranker(path):
        return load_ranker(path)
    return _load_pipeline(path) if is_pipeline(path) else read_model(path)[0]


def is_pipeline(path: str | os.PathLike[str]) -> bool:
    """Whether a file is that of a pipeline or selector; its contents are not checked."""
    try:
        with open(path, "rb") as file:
            return PIPELINE_FORMAT.encode() in file.read(_BEGINNING)
    except OSError:
        return False  # whoever reads it says why


def _with_provenance(model: Any) -> tuple[Any, Callable[[str], None]]:
    """A model as its file describes it, and what records the hash of the file in its ledger."""
    if isinstance(model, PrivateRanker | RankingModel):
        return paid_ranker(model)
    if isinstance(model, Model | PipelineModel):
        return model, lambda digest: None
    if isinstance(model, PrivatePipeline | PrivateFeatureSelector):
        return PipelineModel(model, Provenance.now()), lambda digest: None
    fitted = model.estimator_ if isinstance(model, FormulaModel) else model
    paid, record = payment_of(fitted)
    if isinstance(model, FormulaModel):
        schema = model.design.schema
        made = Provenance.now(schema_hash=schema_hash(schema))
        return Model(fitted, schema, None, paid, made, model.design), record
    return Model(model, receipt=paid, provenance=Provenance.now()), record


def _written(model: Any) -> tuple[str, str]:
    if isinstance(model, RankingModel):
        return ranker_json(model)
    return pipeline_json(model) if isinstance(model, PipelineModel) else model_json(model)


def _load_pipeline(path: str | os.PathLike[str]) -> PipelineModel:
    name = os.fspath(path)
    try:
        contents = _strict_json(Path(path).read_bytes())
        stated = contents.pop("hash", None)
        if stated != _digest(contents):
            raise InvalidArgument(
                "the file was changed after it was written. Get the original, or fit again."
            )
        return pipeline_from(contents)
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}") from None
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise InvalidArgument(
            f"{name}: a field has the wrong type ({type(error).__name__})."
        ) from None
