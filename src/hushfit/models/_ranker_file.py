"""Files of ranking models: strict JSON with a hash, as those of other models."""

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushfit.data.lists import RankingSchema
from hushfit.errors import InvalidArgument
from hushfit.estimators import PrivateRanker
from hushfit.models._file import (
    _digest,
    _plain,
    _receipt,
    _strict_json,
    write_whole,
)
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


def save_ranker(model: PrivateRanker | RankingModel, path: str | os.PathLike[str]) -> str:
    """Write a ranking model to a file, atomically.

    Parameters
    ----------
    model : PrivateRanker or RankingModel
        Fitted; with a linear scorer or a network.
    path : path or str

    Returns
    -------
    str
        SHA-256 of the contents.
    """
    whole = model if isinstance(model, RankingModel) else RankingModel(model)
    text, digest = ranker_json(whole)
    write_whole(Path(path), text)
    return digest


def ranker_json(model: RankingModel) -> tuple[str, str]:
    """A ranking model as JSON, and its hash.

    Parameters
    ----------
    model : RankingModel

    Returns
    -------
    text, digest : str
    """
    fitted = model.estimator
    if not isinstance(fitted, PrivateRanker) or not hasattr(fitted, "weights_"):
        raise InvalidArgument(f"{type(fitted).__name__} is not a fitted ranker. Fit one first.")
    if not isinstance(fitted.scorer, str):
        raise InvalidArgument(
            "A feature map is code, which a model file does not hold. Save coef_ and your map, or "
            "apply the map to X yourself and use scorer='linear'."
        )
    contents = {
        "format": RANKER_FORMAT,
        "version": _VERSION,
        "settings": {name: _plain(getattr(fitted, name)) for name in _SETTINGS},
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


def is_ranker(path: str | os.PathLike[str]) -> bool:
    """Whether a file is that of a ranking model; its contents are not checked."""
    try:
        with open(path, "rb") as file:
            return RANKER_FORMAT.encode() in file.read(200)
    except OSError:
        return False  # whoever reads it says why


def load_ranker(path: str | os.PathLike[str]) -> RankingModel:
    """Read a ranking model from a file. No code in it is run, and one that was changed is refused.

    Parameters
    ----------
    path : path or str

    Returns
    -------
    RankingModel
    """
    try:
        contents = _strict_json(Path(path).read_bytes())
        return _model(contents)
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


def _model(contents: Any) -> RankingModel:
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
        _estimator(contents),
        None if contents["schema"] is None else _schema(contents["schema"]),
        None if contents["receipt"] is None else _receipt(contents["receipt"]),
        Provenance(**contents["provenance"]),
    )


def _estimator(contents: dict[str, Any]) -> PrivateRanker:
    settings = contents["settings"]
    if sorted(settings) != sorted(_SETTINGS) or settings["scorer"] not in ("linear", "mlp"):
        raise InvalidArgument("the settings of the model file are not those of a ranker.")
    if settings["epsilon"] == "inf":
        settings = {**settings, "epsilon": math.inf}
    fitted = PrivateRanker(**settings)
    weights = np.array(contents["weights"], dtype=np.float64)
    d, hidden = contents["n_features"], settings["hidden"] if settings["scorer"] == "mlp" else 0
    if weights.shape != ((d + 2) * hidden if hidden else d,) or not np.isfinite(weights).all():
        raise InvalidArgument("the weights of the model file do not suit its scorer.")
    fitted.weights_, fitted.n_features_in_ = weights, d
    fitted.n_iter_ = int(contents["steps"])
    fitted.privacy_ = Guarantee.from_dict(contents["guarantee"])
    return fitted


def _schema(described: dict[str, Any]) -> RankingSchema:
    bounds = described["feature_bounds"]
    return RankingSchema(
        **{
            **described,
            "columns": tuple(described["columns"]),
            "feature_bounds": None if bounds is None else tuple(bounds),
        }
    )
