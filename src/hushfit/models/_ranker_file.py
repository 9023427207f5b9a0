"""Files of ranking models: strict JSON with a hash, as those of other models."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit._write import write_whole
from hushfit.data.lists import RankingSchema
from hushfit.errors import InvalidArgument
from hushfit.estimators import STORED_MAPS, PrivateRanker, feature_map_from
from hushfit.models._file import (
    _digest,
    _plain,
    _receipt,
    _strict_json,
    bounds_described,
    bounds_read,
)
from hushfit.models._fit_tables import payment_of
from hushfit.models._model import PaidReceipt, Provenance
from hushfit.privacy import Guarantee

RANKER_FORMAT = "hushfit-ranker"
_VERSION = 1
_SETTINGS = (
    *("epsilon", "delta", "unit", "loss", "scorer", "solver", "adjacency", "max_grade"),
    *("max_list_length", "hidden", "feature_bounds", "lists_per_person"),
)
_FIELDS = (
    *("format", "version", "settings", "weights", "n_features", "steps", "schema", "guarantee"),
    *("receipt", "provenance", "hash"),
)


# Stands in a file for a feature map that is code.
_ELSEWHERE = {"kind": "elsewhere"}


@dataclass(frozen=True, eq=False)
class RankingModel:
    """A fitted ranker with its schema, receipt and provenance.

    Parameters
    ----------
    estimator : PrivateRanker
    schema : RankingSchema or None
    receipt : PaidReceipt or None
    provenance : Provenance
    """

    estimator: PrivateRanker
    schema: RankingSchema | None = None
    receipt: PaidReceipt | None = None
    provenance: Provenance = Provenance()

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the model."""
        return self.estimator.privacy_

    def predict(self, X: Any) -> Vector:
        """The score of each document: within a list, higher is nearer to the top.

        Parameters
        ----------
        X : array of shape (n_documents, n_features)

        Returns
        -------
        array of shape (n_documents,)
        """
        return np.asarray(self.estimator.predict(X))


def save_ranker(
    model: PrivateRanker | RankingModel,
    path: str | os.PathLike[str],
    *,
    without_map: bool = False,
) -> str:
    """Write a ranking model to a file, atomically.

    Parameters
    ----------
    model : PrivateRanker or RankingModel
        Fitted; with a linear scorer, a network, or a feature map that is data: `LayerMap`,
        `QuadraticMap` or `ChainedMaps`.
    path : path or str
    without_map : bool, default=False
        Leave the feature map out, if it is code: it must then be given to `load_ranker` again.

    Returns
    -------
    str
        SHA-256 of the contents.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateRanker
    >>> from hushfit.models import load_ranker, save_ranker
    >>> X, qid = np.random.default_rng(0).random((400, 3)), np.repeat(np.arange(40), 10)
    >>> ranker = PrivateRanker(epsilon=1.0, delta=1e-4).fit(X, np.tile([0, 1], 200), qid=qid)
    >>> digest = save_ranker(ranker, "ranker.json")
    >>> load_ranker("ranker.json").guarantee.epsilon
    1.0
    """
    whole, record = paid_ranker(model)
    text, digest = ranker_json(whole, without_map=without_map)
    record(digest)  # before the file exists: every model file is in the ledger
    write_whole(Path(path), text)
    return digest


def paid_ranker(
    model: PrivateRanker | RankingModel,
) -> tuple[RankingModel, Callable[[str], None]]:
    """A ranker as its file describes it, and what records the hash of the file in its ledger."""
    if isinstance(model, RankingModel):
        return model, lambda digest: None
    paid, record = payment_of(model)
    return RankingModel(model, receipt=paid, provenance=Provenance.now()), record


def ranker_json(model: RankingModel, *, without_map: bool = False) -> tuple[str, str]:
    """A ranking model as JSON, and its hash.

    Parameters
    ----------
    model : RankingModel
    without_map : bool, default=False
        As for `save_ranker`.

    Returns
    -------
    text, digest : str
    """
    fitted = model.estimator
    if not isinstance(fitted, PrivateRanker) or not hasattr(fitted, "weights_"):
        raise InvalidArgument(f"{type(fitted).__name__} is not a fitted ranker. Fit one first.")
    scorer = _written_scorer(fitted.scorer, without_map)
    contents = {
        "format": RANKER_FORMAT,
        "version": _VERSION,
        "settings": {
            **{name: _plain(getattr(fitted, name)) for name in _SETTINGS},
            "scorer": scorer,
            "feature_bounds": bounds_described(fitted),
        },
        "weights": fitted.weights_.tolist(),
        "n_features": int(fitted.n_features_in_),
        "steps": int(fitted.n_iter_),
        "schema": None if model.schema is None else asdict(model.schema),
        "guarantee": fitted.privacy_.to_dict(),
        "receipt": None if model.receipt is None else asdict(model.receipt),
        "provenance": asdict(model.provenance),
    }
    digest = _digest(contents)
    return json.dumps({**contents, "hash": digest}, indent=1, allow_nan=False) + "\n", digest


def _written_scorer(scorer: Any, without_map: bool) -> str | dict[str, Any]:
    if isinstance(scorer, str):
        return scorer
    if isinstance(scorer, STORED_MAPS):
        described: dict[str, Any] = scorer.to_dict()
        return described
    if without_map:
        return _ELSEWHERE
    raise InvalidArgument(
        f"The feature map {type(scorer).__name__} is code, which a model file does not hold. Use "
        "LayerMap, QuadraticMap or ChainedMaps of hushfit.estimators, which are data; or save with "
        "without_map=True and give the map again: load_ranker(path, scorer=map); or apply the map "
        "to X yourself and use scorer='linear'."
    )


def is_ranker(path: str | os.PathLike[str]) -> bool:
    """Whether a file is that of a ranking model; its contents are not checked."""
    try:
        with open(path, "rb") as file:
            return RANKER_FORMAT.encode() in file.read(200)
    except OSError:
        return False  # whoever reads it says why


def load_ranker(path: str | os.PathLike[str], scorer: Any = None) -> RankingModel:
    """Read a ranking model from a file. No code in it is run, and one that was changed is refused.

    Parameters
    ----------
    path : path or str
    scorer : function or object with transform, optional
        The feature map of a model that was saved without it.

    Returns
    -------
    RankingModel

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateRanker
    >>> from hushfit.models import load_ranker, save_ranker
    >>> X, qid = np.random.default_rng(0).random((400, 3)), np.repeat(np.arange(40), 10)
    >>> ranker = PrivateRanker(epsilon=1.0, delta=1e-4).fit(X, np.tile([0, 1], 200), qid=qid)
    >>> digest = save_ranker(ranker, "ranker.json")
    >>> load_ranker("ranker.json").estimator.predict(X).shape
    (400,)
    """
    try:
        contents = _strict_json(Path(path).read_bytes())
        return _model(contents, scorer)
    except InvalidArgument as error:
        raise InvalidArgument(f"{os.fspath(path)}: {error}") from None
    except OSError as error:
        raise InvalidArgument(
            f"the model {os.fspath(path)} cannot be read ({error.strerror}). Check the path."
        ) from None
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise InvalidArgument(
            f"{os.fspath(path)}: a field has the wrong type ({type(error).__name__})."
        ) from None


def _model(contents: Any, scorer: Any) -> RankingModel:
    if not isinstance(contents, dict) or contents.get("format") != RANKER_FORMAT:
        raise InvalidArgument("this is not the file of a ranking model.")
    if contents.get("version") != _VERSION or sorted(contents) != sorted(_FIELDS):
        raise InvalidArgument(
            "the model file has another version, or missing or unknown fields. Use what "
            "save_ranker wrote, unedited."
        )
    stated = contents.pop("hash")
    if stated != _digest(contents):
        raise InvalidArgument(
            "the model file was changed after it was written. Get the original, or fit again."
        )
    return RankingModel(
        _estimator(contents, scorer),
        None if contents["schema"] is None else _schema(contents["schema"]),
        None if contents["receipt"] is None else _receipt(contents["receipt"]),
        Provenance(**contents["provenance"]),
    )


def _estimator(contents: dict[str, Any], given: Any) -> PrivateRanker:
    settings = contents["settings"]
    if sorted(settings) != sorted(_SETTINGS):
        raise InvalidArgument("the settings of the model file are not those of a ranker.")
    scorer = _scorer(settings["scorer"], given)
    epsilon = math.inf if settings["epsilon"] == "inf" else settings["epsilon"]
    bounds = bounds_read(settings["feature_bounds"])
    fitted = PrivateRanker(
        **{**settings, "scorer": scorer, "epsilon": epsilon, "feature_bounds": bounds}
    )
    weights = np.array(contents["weights"], dtype=np.float64)
    d = contents["n_features"]
    suits = weights.ndim == 1 and len(weights) == _n_weights(scorer, settings["hidden"], d, weights)
    if not suits or not np.isfinite(weights).all():
        raise InvalidArgument("the weights of the model file do not suit its scorer.")
    fitted.weights_, fitted.n_features_in_ = weights, d
    fitted.n_iter_ = int(contents["steps"])
    fitted.privacy_ = Guarantee.from_dict(contents["guarantee"])
    return fitted


def _scorer(written: Any, given: Any) -> Any:
    if written == _ELSEWHERE:
        if given is None:
            raise InvalidArgument(
                "the model was saved without its feature map, which is code. Give the map that it "
                "was fitted with: load_ranker(path, scorer=map), from Python."
            )
        return given
    if given is not None:
        raise InvalidArgument(
            "the model file has its own scorer. Leave scorer out; it is for files saved with "
            "without_map=True."
        )
    if isinstance(written, str):
        if written not in ("linear", "mlp"):
            raise InvalidArgument("the scorer of the model file is not known.")
        return written
    return feature_map_from(written)


def _n_weights(scorer: Any, hidden: int, n_features: int, weights: Any) -> int:
    """How many weights a scorer has; with a map that is code, as many as there are."""
    if scorer == "linear":
        return n_features
    if scorer == "mlp":
        return (n_features + 2) * hidden
    return scorer.width(n_features) if isinstance(scorer, STORED_MAPS) else len(weights)


def _schema(described: dict[str, Any]) -> RankingSchema:
    bounds = described["feature_bounds"]
    return RankingSchema(
        **{
            **described,
            "columns": tuple(described["columns"]),
            "feature_bounds": None if bounds is None else tuple(bounds),
        }
    )
