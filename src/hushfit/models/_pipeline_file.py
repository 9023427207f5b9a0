"""Files of pipelines and selectors: strict JSON with a hash, as those of other models.

Every kind of step has a list of what its fit learnt and how that is written. Nothing in a file
names code: a kind that is not listed here is refused.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from hushfit._typing import AnyArray, Matrix
from hushfit.data.schema import Schema
from hushfit.errors import InvalidArgument
from hushfit.estimators import PrivateFeatureSelector
from hushfit.features import stored_map
from hushfit.models._file import OF_A_RUN, _digest, _plain, _provenance, described, model_from
from hushfit.models._model import Model, Provenance
from hushfit.preprocessing import (
    BoundedScaler,
    PrivatePipeline,
    PrivateQuantileScaler,
    PublicFeatures,
    SchemaEncoder,
    Spread,
)
from hushfit.privacy import Guarantee

PIPELINE_FORMAT = "hushfit-pipeline"
_VERSION = 1
_FIELDS = ("format", "version", "settings", "steps", "guarantee", "provenance", "hash")
_SETTINGS = ("epsilon", "delta", "adjacency")


@dataclass(frozen=True, eq=False)
class PipelineModel:
    """A fitted pipeline, or a fitted selector, with its provenance.

    Parameters
    ----------
    estimator : PrivatePipeline or PrivateFeatureSelector
    provenance : Provenance
    """

    estimator: Any
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee."""
        guarantee: Guarantee = self.estimator.privacy_
        return guarantee

    def predict(self, X: Any) -> AnyArray:
        """Predictions of the pipeline.

        Parameters
        ----------
        X : array or data frame
            Rows as the pipeline was fitted to.

        Returns
        -------
        array of shape (n_rows,)

        Raises
        ------
        InvalidArgument
            If it is a selector, or a pipeline that only transforms.
        """
        return np.asarray(self._method("predict")(X))

    def predict_proba(self, X: Any) -> Matrix:
        """The probability of each class.

        Parameters
        ----------
        X : array or data frame
            Rows as the pipeline was fitted to.

        Returns
        -------
        array of shape (n_rows, n_classes)

        Raises
        ------
        InvalidArgument
            If it gives no probabilities.
        """
        return np.asarray(self._method("predict_proba")(X))

    def _method(self, name: str) -> Callable[[Any], Any]:
        found = getattr(self.estimator, name, None)
        if found is None:
            raise InvalidArgument(
                f"this {type(self.estimator).__name__} has no {name}. It may transform rows: "
                "estimator.transform(X)."
            )
        method: Callable[[Any], Any] = found
        return method


@dataclass(frozen=True)
class _Written:
    """How a fitted attribute is written to JSON, and read back."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _numbers(value: Any) -> Any:
    array = np.array(value, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InvalidArgument("the pipeline file has a list with something other than numbers.")
    return array


def _typed(*kinds: type) -> _Written:
    def read(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise InvalidArgument("the pipeline file has a field of the wrong type.")
        return value

    return _Written(lambda value: value, read)


_ARRAY = _Written(lambda value: np.asarray(value).tolist(), _numbers)
_PLACES = _Written(lambda value: value.tolist(), lambda value: _numbers(value).astype(np.int64))
_LISTED = _Written(list, lambda value: _numbers(value).astype(np.int64).tolist())
_MARKS = _Written(lambda value: value.tolist(), lambda value: _numbers(value).astype(bool))
_NUMBER = _Written(float, float)
_MARK = _typed(bool)
_TEXT = _typed(str, type(None))
_TEXTS = _Written(list, lambda value: [str(text) for text in value])
_GUARANTEE = _Written(
    lambda value: None if value is None else value.to_dict(),
    lambda value: None if value is None else Guarantee.from_dict(value),
)
_COUNT = _typed(int)
_MAP = _Written(lambda value: value.to_dict(), stored_map)
_SCHEMA = _Written(lambda value: value.to_dict(), Schema.from_dict)
_SPREADS = _Written(
    lambda value: [None if s is None else [s.edges.tolist(), s.below.tolist()] for s in value],
    lambda value: [None if s is None else Spread(*map(_numbers, s)) for s in value],
)

# What a fit of each kind of step learns.
_STEPS: dict[str, tuple[Any, dict[str, _Written]]] = {
    "bounded-scaler": (
        BoundedScaler,
        {"low_": _ARRAY, "high_": _ARRAY, "row_norm_": _NUMBER, "_sparse": _MARK}
        | {"_flagged": _LISTED, "_id_column": _TEXT},
    ),
    "public-features": (
        PublicFeatures,
        {"feature_map_": _MAP, "row_norm_": _NUMBER, "_n_features_out": _COUNT}
        | {"_id_column": _TEXT},
    ),
    "quantile-scaler": (
        PrivateQuantileScaler,
        {"low_": _ARRAY, "high_": _ARRAY, "row_norm_": _NUMBER, "_sparse": _MARK}
        | {"_flagged": _LISTED}
        | {"seen_": _MARKS, "_median": _ARRAY, "spreads_": _SPREADS, "privacy_": _GUARANTEE},
    ),
    "schema-encoder": (
        SchemaEncoder,
        {"schema_": _SCHEMA, "_names": _TEXTS, "row_norm_": _NUMBER, "privacy_": _GUARANTEE},
    ),
    "feature-selector": (
        PrivateFeatureSelector,
        {"scores_": _ARRAY, "ranking_": _PLACES, "privacy_": _GUARANTEE},
    ),
}
_MODEL = "model"
# Settings that are objects; what a fit made of them is stored.
_OBJECTS = {"schema": None, "discover": (), "features": None}


def pipeline_json(model: PipelineModel) -> tuple[str, str]:
    """A pipeline, or a selector, as JSON, and its hash.

    Parameters
    ----------
    model : PipelineModel

    Returns
    -------
    text, digest : str
    """
    fitted = model.estimator
    if "privacy_" not in vars(fitted):
        raise InvalidArgument(f"{type(fitted).__name__} is not fitted. Fit it, then save it.")
    whole = isinstance(fitted, PrivatePipeline)
    steps = fitted.steps if whole else [("", fitted)]
    contents = {
        "format": PIPELINE_FORMAT,
        "version": _VERSION,
        "settings": {name: _plain(getattr(fitted, name)) for name in _SETTINGS} if whole else None,
        "steps": [{"name": name, **_step(part)} for name, part in steps],
        "guarantee": fitted.privacy_.to_dict(),
        "provenance": asdict(model.provenance),
    }
    digest = _digest(contents)
    return json.dumps({**contents, "hash": digest}, indent=1, allow_nan=False) + "\n", digest


def _step(part: Any) -> dict[str, Any]:
    for kind, (cls, learnt) in _STEPS.items():
        if type(part) is cls:
            given = part.get_params(deep=False)
            settings = {k: _plain(v) for k, v in given.items() if k not in {*OF_A_RUN, *_OBJECTS}}
            state = {name: how.write(getattr(part, name)) for name, how in learnt.items()}
            names = getattr(part, "feature_names_in_", None)
            columns = {
                "n_features": int(part.n_features_in_),
                "features": None if names is None else [str(name) for name in names],
            }
            return {"kind": kind, "settings": settings, "state": state, **columns}
    try:
        return {"kind": _MODEL, "model": described(Model(part))}
    except InvalidArgument:
        known = ", ".join(cls.__name__ for cls, _ in _STEPS.values())
        raise InvalidArgument(
            f"the step {type(part).__name__} cannot be written to a file. Steps may be {known}, "
            "and last a classifier or regressor. Save the last step alone, or pickle the pipeline."
        ) from None


def pipeline_from(contents: dict[str, Any]) -> PipelineModel:
    """Read what `pipeline_json` wrote; the hash was checked already.

    Parameters
    ----------
    contents : dict

    Returns
    -------
    PipelineModel
    """
    if {*contents, "hash"} != {*_FIELDS} or contents["version"] != _VERSION:
        raise InvalidArgument(
            "the pipeline file has another version, or missing or unknown fields. Use what "
            "save_model wrote, unedited."
        )
    steps = [(step["name"], _restored(step)) for step in contents["steps"]]
    provenance, settings = _provenance(contents["provenance"]), contents["settings"]
    if settings is None:
        return PipelineModel(steps[0][1], provenance)
    budget = {**settings, "epsilon": float(settings["epsilon"])}
    pipeline = PrivatePipeline(steps, **budget)
    pipeline.guarantee_ = pipeline.privacy_ = Guarantee.from_dict(contents["guarantee"])
    return PipelineModel(pipeline, provenance)


def _restored(step: dict[str, Any]) -> Any:
    kind = step["kind"]
    if kind == _MODEL:
        return model_from(step["model"]).estimator
    if kind not in _STEPS:
        raise InvalidArgument(f"the pipeline file has a step of the unknown kind {kind!r}.")
    cls, learnt = _STEPS[kind]
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in step["settings"].items()}
    part = cls(**settings)
    for name, how in learnt.items():
        setattr(part, name, how.read(step["state"][name]))
    if isinstance(part, PublicFeatures):
        part.set_params(features=part.feature_map_)
    part.n_features_in_ = int(step["n_features"])
    if step["features"] is not None:
        part.feature_names_in_ = np.array([str(name) for name in step["features"]], dtype=object)
    return part
