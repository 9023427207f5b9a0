"""Model files: strict JSON with a hash, written atomically, validated when read."""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from hushfit._json import no_key_twice
from hushfit.data import FeatureBounds
from hushfit.data.schema import Schema
from hushfit.errors import InvalidArgument
from hushfit.estimators import (
    PredictionRanges,
    PrivateElasticNet,
    PrivateHuberRegressor,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivatePoissonRegressor,
    PrivateRidge,
    feature_ranges,
)
from hushfit.features import AdditiveMap, FeatureMap, KnotMasses, RowProfile, stored_map
from hushfit.models._inference_file import (
    INFERENCE_FIELD,
    described_inference,
    restore_inference,
    stored_design,
)
from hushfit.models._model import Model, PaidReceipt, Provenance, restore_names
from hushfit.privacy import Budget, Guarantee, Relation
from hushfit.unit import WEIGHTINGS

FORMAT = "hushfit-model"
VERSION = 1
_CLASSIFIERS: dict[str, Any] = {
    "logistic-regression": PrivateLogisticRegression,
    "linear-svc": PrivateLinearSVC,
}
_REGRESSORS: dict[str, Any] = {
    "linear-regression": PrivateLinearRegression,
    "ridge": PrivateRidge,
    "lasso": PrivateLasso,
    "elastic-net": PrivateElasticNet,
    "huber-regressor": PrivateHuberRegressor,
    "poisson-regressor": PrivatePoissonRegressor,
}
_KINDS = _CLASSIFIERS | _REGRESSORS
_SETTINGS = (
    *("epsilon", "delta", "adjacency", "penalty", "alpha", "l1_ratio", "solver"),
    *("feature_bounds", "fit_intercept", "nonfinite"),
)
# Older files lack these, and have the defaults.
_PERSON_SETTINGS = ("person_weight", "rows_per_person")
_CHOICES = {"scaling": "unit", "pos_label": None}
# Parameters of regressors that are about a run and not about the model.
OF_A_RUN = {
    *("ledger", "random_state", "verbose"),
    *("inference", "cov_type", "even_weights", "expected_mean"),
}
# Only files of models with a feature map have these: the map, and where the rows lie on it.
_MAP_FIELDS = ("feature_map", "row_profile")
# Only files of regressors have this: what columns and predictions are clipped to.
_RANGE_FIELD = "ranges"
# Only files of models with a threshold have this: one number per class.
_THRESHOLD_FIELDS = ("threshold",)
# Types of a setting in a file; objects were replaced by their description when it was written.
_SETTING_TYPES: dict[str, Any] = {
    "penalty": str | None,
    "alpha": int | float | str,
    "l1_ratio": int | float | str,
    "solver": str,
    "feature_bounds": list | str | None,
    "fit_intercept": bool,
    "nonfinite": str,
    "person_weight": str,
    "rows_per_person": int | None,
    "target_bounds": list | None,
    "max_count": int | float,
    "positive": bool,
    "threshold": int | float,
    "scaling": int | float | str,
    "pos_label": str | int | float | bool,
}
_FIELDS = (
    *(
        "format",
        "version",
        "kind",
        "settings",
        "classes",
        "features",
        "coef",
        "intercept",
        "standard_error",
    ),
    *("steps", "schema", "guarantee", "receipt", "provenance", "hash"),
)
_MAX_BYTES = 1 << 30


def read_model(path: str | os.PathLike[str]) -> tuple[Model, str]:
    """Read a model and the verified hash of its contents.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from hushfit import PrivateLogisticRegression, save_model
    >>> from hushfit.models import read_model
    >>> fitted = PrivateLogisticRegression(float("inf"), classes=[0, 1])
    >>> fitted = fitted.fit(np.array([[0.2], [0.8]] * 20), np.array([0, 1] * 20))
    >>> path = tempfile.mkdtemp() + "/model.json"
    >>> digest = save_model(fitted, path)
    >>> model, found = read_model(path)
    >>> found == digest
    True
    """
    try:
        if os.stat(path).st_size > _MAX_BYTES:
            raise InvalidArgument(
                f"{os.fspath(path)} is larger than any model file. Check the path."
            )
        return _parsed(Path(path).read_bytes())
    except InvalidArgument as error:
        raise InvalidArgument(f"{os.fspath(path)}: {error}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InvalidArgument(
            f"the model {os.fspath(path)} cannot be read ({reason}). Check the path."
        ) from None


def model_json(model: Model) -> tuple[str, str]:
    """A model as JSON, and its hash.

    Parameters
    ----------
    model : Model

    Returns
    -------
    text : str
        The contents of a model file.
    digest : str
        SHA-256 over everything but the hash itself, in canonical form.
    """
    contents = described(model)
    digest = _digest(contents)
    return json.dumps({**contents, "hash": digest}, indent=1, allow_nan=False) + "\n", digest


def described(model: Model) -> dict[str, Any]:
    """A model as plain JSON values, without the hash.

    Parameters
    ----------
    model : Model

    Returns
    -------
    dict
    """
    fitted = model.estimator
    kind = next((kind for kind, cls in _KINDS.items() if type(fitted) is cls), None)
    if kind is None or not hasattr(fitted, "coef_"):
        raise InvalidArgument(
            f"{type(fitted).__name__} is not a fitted hushfit classifier or regressor. Fit one, "
            "then save it. Networks are saved by hushfit.torch.save_network."
        )
    coef, intercept = model.weights
    contents: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "settings": _described_settings(kind, fitted),
        "classes": model.classes,
        "features": model.feature_names,
        "coef": coef.tolist(),
        "intercept": intercept.tolist(),
        "standard_error": None if model.standard_error is None else model.standard_error.tolist(),
        "steps": int(fitted.n_iter_),
        "schema": None if model.schema is None else model.schema.to_dict(),
        "guarantee": model.guarantee.to_dict(),
        "receipt": None if model.receipt is None else asdict(model.receipt),
        "provenance": asdict(model.provenance),
        **_described_map(fitted),
        **({_RANGE_FIELD: _described_ranges(fitted)} if kind in _REGRESSORS else {}),
        **_described_threshold(kind, fitted),
        **described_inference(fitted, model.design),
    }
    return contents


def _described_settings(kind: str, fitted: Any) -> dict[str, Any]:
    """The settings as plain values; ranges in a form that does not depend on tuples."""
    described = {name: _plain(getattr(fitted, name)) for name in _stored_settings(kind)}
    return {**described, "feature_bounds": bounds_described(fitted), **_described_choices(fitted)}


def _described_choices(fitted: Any) -> dict[str, Any]:
    """The settings that only files of some classifiers have: those that are not the default."""
    if not is_classifier(fitted):
        return {}
    return {
        name: _plain(getattr(fitted, name))
        for name, default in _CHOICES.items()
        if getattr(fitted, name) != default
    }


def _stored_settings(kind: str) -> list[str]:
    """Names of the settings that a file of this kind has."""
    if kind in _CLASSIFIERS:
        return [*_SETTINGS, *_PERSON_SETTINGS]
    return sorted(set(_REGRESSORS[kind]().get_params()) - OF_A_RUN)


def _described_threshold(kind: str, fitted: Any) -> dict[str, Any]:
    """What a classifier compares probabilities with; nothing for other models."""
    if kind not in _CLASSIFIERS or fitted.threshold_ is None:
        return {}
    return {"threshold": fitted.threshold_.tolist()}


def _described_ranges(fitted: Any) -> dict[str, Any]:
    """What a regressor clips columns and predictions to, as plain values."""
    found = PredictionRanges.of(fitted)
    columns = None if found.low is None else [*map(_plain, (found.low, found.high, found.origin))]
    return {"target": list(found.target), "columns": columns}


def _described_map(fitted: Any) -> dict[str, Any]:
    """The feature map and the masses of its knots as plain values; nothing for a model without."""
    feature_map = fitted.feature_map_
    if feature_map is None:
        return {}
    return {"feature_map": feature_map.to_dict(), "row_profile": fitted.row_profile_.to_dict()}


def parse_model(raw: bytes) -> Model:
    """Read a model from the bytes of its file."""
    return _parsed(raw)[0]


def _strict_json(raw: bytes) -> Any:
    """The contents of a model file: strict JSON with finite numbers and valid text."""
    try:
        contents = json.loads(
            raw,
            parse_constant=_no_constants,
            parse_int=_whole,
            parse_float=_real,
            object_pairs_hook=no_key_twice,
        )
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(
            "this is not JSON, or has a key twice, so it is not a model file. Use what save_model "
            "wrote."
        ) from None
    if not _is_unicode(contents):
        raise InvalidArgument(
            "the model file has text that is not Unicode. Use what save_model wrote."
        )
    return contents


def _parsed(raw: bytes) -> tuple[Model, str]:
    contents = _strict_json(raw)
    if not isinstance(contents, dict) or contents.get("format") != FORMAT:
        raise InvalidArgument("this is JSON, but not a model file. Use what save_model wrote.")
    if contents.get("version") != VERSION:
        raise InvalidArgument(
            f"the model file has version {contents.get('version')!r}, this hushfit reads version "
            f"{VERSION}. Use the hushfit "
            "that wrote it, or a newer one."
        )
    kind = contents.get("kind")
    if not _complete_fields(set(contents), isinstance(kind, str) and kind in _REGRESSORS):
        odd = sorted(set(contents) ^ set(_FIELDS))
        raise InvalidArgument(
            f"the model file has missing or unknown fields {odd}. Use what save_model wrote, "
            "unedited."
        )
    stated = contents.pop("hash")
    if stated != (found := _digest(contents)):
        raise InvalidArgument(
            "the model file was changed after it was written: it states the hash "
            f"{str(stated)[:12]}..., its contents have "
            f"{found[:12]}.... Get the original, or fit again."
        )
    try:
        return model_from(contents), found
    except InvalidArgument:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise InvalidArgument(
            f"the model file has a field of the wrong type ({type(error).__name__})."
        ) from None


def _complete_fields(found: set[str], regressor: bool) -> bool:
    """Whether all fields are there, optional ones with those that belong to them, and no other."""
    always = {*_FIELDS, _RANGE_FIELD} if regressor else {*_FIELDS}
    thresholds = set() if regressor else {*_THRESHOLD_FIELDS}
    groups = ({*_MAP_FIELDS}, {INFERENCE_FIELD}, thresholds)
    optional: set[str] = set().union(*(group for group in groups if group <= found))
    return found == always | optional


def _digest(contents: Mapping[str, Any]) -> str:
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any) -> Any:
    """A setting as a JSON value; an object becomes its description, and a model that is read back
    cannot be refitted with it.
    """
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(item) for item in np.asarray(value).tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def model_from(contents: dict[str, Any]) -> Model:
    """A model from the contents of its file, without the hash.

    Parameters
    ----------
    contents : dict

    Returns
    -------
    Model
    """
    kind = contents["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidArgument(
            f"the model file has kind={kind!r}. Known kinds: {', '.join(_KINDS)}."
        )
    schema = None if contents["schema"] is None else Schema.from_dict(contents["schema"])
    estimator = _estimator(kind, contents)
    features = contents["features"]
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise InvalidArgument("the features of the model file are not a list of names.")
    design = None
    if INFERENCE_FIELD in contents:
        restore_inference(contents[INFERENCE_FIELD], estimator, features, _numbers)
        design = stored_design(contents[INFERENCE_FIELD], schema)
    expected = None if schema is None else Model(estimator, schema, design=design).feature_names
    if len(features) != estimator.n_features_in_ or expected not in (None, features):
        raise InvalidArgument(
            "the features, coefficients and schema of the model file do not belong together."
        )
    if schema is None:
        restore_names(estimator, features)
    return Model(
        estimator,
        schema,
        _standard_error(contents["standard_error"], estimator),
        None if contents["receipt"] is None else _receipt(contents["receipt"]),
        _provenance(contents["provenance"]),
        design,
    )


def _estimator(kind: str, contents: dict[str, Any]) -> Any:
    settings = contents["settings"]
    if not isinstance(settings, dict) or not _complete(settings, kind):
        raise InvalidArgument(
            "the settings of the model file are incomplete. Use what save_model wrote, unedited."
        )
    fitted = (_classifier if kind in _CLASSIFIERS else _regressor)(kind, contents)
    fitted.feature_map_, fitted.row_profile_ = _feature_map(contents)
    if fitted.feature_map_ is not None:
        fitted.set_params(features=_setting_of(fitted.feature_map_))
    weights = fitted.coef_.shape[-1]
    outputs_of_map = weights if fitted.feature_map_ is None else fitted.feature_map_.n_outputs
    if outputs_of_map != weights:
        raise InvalidArgument(
            f"the feature map of the model file has {outputs_of_map} outputs, and there are "
            f"{weights} coefficients."
        )
    fitted.n_features_in_ = weights if fitted.feature_map_ is None else fitted.feature_map_.n_inputs
    steps = contents["steps"]
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
        raise InvalidArgument(f"the model file has steps={steps!r}. It should be a count.")
    fitted.n_iter_ = steps
    fitted.privacy_ = Guarantee.from_dict(contents["guarantee"])
    return fitted


def _classifier(kind: str, contents: dict[str, Any]) -> Any:
    classes = contents["classes"]
    if not isinstance(classes, list) or len(classes) < 2 or not _one_type(classes):
        raise InvalidArgument(
            "the classes of the model file are not a list of at least two labels of one type."
        )
    fitted = _CLASSIFIERS[kind](**_settings(contents["settings"]), classes=classes)
    outputs = 1 if len(classes) == 2 else len(classes)
    fitted.coef_ = _numbers(contents["coef"], "coef", outputs, None)
    fitted.intercept_ = _numbers([contents["intercept"]], "intercept", 1, outputs)[0]
    fitted.classes_ = np.array(classes)
    fitted.threshold_ = _threshold(contents, len(classes))
    fitted.positive_  # noqa: B018  # refuses one that is no class
    return fitted


def _regressor(kind: str, contents: dict[str, Any]) -> Any:
    if contents["classes"] != []:
        raise InvalidArgument("the model file is of a regressor, and has classes.")
    fitted = _REGRESSORS[kind](**_settings(contents["settings"]))
    fitted.coef_ = _numbers(contents["coef"], "coef", 1, None)[0]
    fitted.intercept_ = float(_numbers([contents["intercept"]], "intercept", 1, 1)[0, 0])
    made = _feature_map(contents)[0]
    n_columns = len(fitted.coef_) if made is None else made.n_inputs
    _ranges(contents[_RANGE_FIELD], n_columns).restore(fitted)
    return fitted


def _ranges(described: dict[str, Any], n_columns: int) -> PredictionRanges:
    low, high = _numbers([described["target"]], "ranges", 1, 2)[0].tolist()
    columns = described["columns"]
    if set(described) != {"target", "columns"} or not low < high:
        raise InvalidArgument("the ranges of the model file are not those of target and columns.")
    if columns is None:
        return PredictionRanges((low, high))
    return PredictionRanges((low, high), *_numbers(columns, "ranges", 3, n_columns))


def _setting_of(feature_map: FeatureMap) -> Any:
    """What ``features`` is of a model with a map: a further fit chooses its own knots."""
    return feature_map.kind if isinstance(feature_map, AdditiveMap) else feature_map


def _feature_map(contents: dict[str, Any]) -> tuple[FeatureMap | None, RowProfile]:
    """The feature map and where the rows lie on it, if the file has them."""
    if "feature_map" not in contents:
        return None, RowProfile()
    made, masses = stored_map(contents["feature_map"]), {}
    described = contents["row_profile"]
    intervals = made.intervals if isinstance(made, AdditiveMap) else ()
    for column, found in described["masses"].items():
        knots = intervals[int(column)] + 1
        masses[int(column)] = KnotMasses(
            _numbers([found["masses"]], "row_profile", 1, knots)[0],
            _numbers([found["noise"]], "row_profile", 1, knots)[0],
        )
    length = described["length"]
    if length is not None:
        length = float(_numbers([[length]], "row_profile", 1, 1)[0, 0])
    return made, RowProfile(length, masses)


def _threshold(contents: dict[str, Any], n_classes: int) -> Any:
    """What the probabilities of the classes are compared with, if the file has it."""
    if "threshold" not in contents:
        return None
    threshold = _numbers([contents["threshold"]], "threshold", 1, n_classes)[0]
    if contents["kind"] != "logistic-regression" or not (threshold > 0).all():
        raise InvalidArgument(
            "the threshold of the model file is not positive, or its model has no probabilities. "
            "Use what save_model wrote, unedited."
        )
    return threshold


def _complete(settings: dict[str, Any], kind: str) -> bool:
    """Whether all settings are there and no other, those of persons together or not at all."""
    if kind in _REGRESSORS:
        return set(settings) == set(_stored_settings(kind))
    return set(settings) - set(_CHOICES) in (set(_SETTINGS), {*_SETTINGS, *_PERSON_SETTINGS})


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of an estimator, each of a type that it can have."""
    budget = Budget(
        math.inf if settings["epsilon"] == "inf" else settings["epsilon"], settings["delta"]
    )
    for name, kinds in _SETTING_TYPES.items():
        if name in settings and not isinstance(settings[name], kinds):
            raise InvalidArgument(
                f"the settings of the model file have {name} of the wrong type "
                f"({type(settings[name]).__name__})."
            )
    Relation.parse(settings["adjacency"])
    if settings.get("person_weight", "mean") not in WEIGHTINGS:
        raise InvalidArgument("the settings of the model file have an unknown person_weight.")
    return {
        **settings,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "feature_bounds": bounds_read(settings["feature_bounds"]),
    }


def bounds_described(fitted: Any) -> Any:
    """The ranges of the columns as plain values: the two ends, of two columns."""
    return _plain(FeatureBounds.stored(feature_ranges(fitted), int(fitted.n_features_in_)))


def bounds_read(described: Any) -> Any:
    """The setting that was described: a tuple of lists has the two ends."""
    return tuple(described) if isinstance(described, list) else described


def _one_type(labels: list[Any]) -> bool:
    kinds = {type(label) for label in labels}
    return len(kinds) == 1 and kinds <= {str, int, float, bool} and labels == sorted(set(labels))


def _numbers(value: Any, name: str, rows: int, columns: int | None) -> Any:
    array = np.array(value, dtype=object)
    if array.ndim != 2 or not all(
        isinstance(x, int | float) and not isinstance(x, bool) for x in array.flat
    ):
        raise InvalidArgument(f"{name} of the model file is not a table of numbers.")
    numbers = array.astype(np.float64)
    if (
        numbers.shape[0] != rows
        or (columns is not None and numbers.shape[1] != columns)
        or numbers.size == 0
    ):
        raise InvalidArgument(
            f"{name} of the model file has the shape {numbers.shape}, which does not fit its "
            "classes."
        )
    if not np.isfinite(numbers).all():
        raise InvalidArgument(f"{name} of the model file has a number that is not finite.")
    return numbers


def _standard_error(value: Any, estimator: Any) -> Any:
    if value is None:
        return None
    outputs, features = np.atleast_2d(estimator.coef_).shape
    return _numbers(value, "standard_error", outputs, features + 1)


def _receipt(value: Any) -> PaidReceipt:
    receipt = PaidReceipt(**value)
    if not (
        isinstance(receipt.dataset, str)
        and isinstance(receipt.number, int)
        and isinstance(receipt.hash, str)
    ):
        raise InvalidArgument("the receipt of the model file has a field of the wrong type.")
    return receipt


def _provenance(value: Any) -> Provenance:
    made = Provenance(**value)
    texts = [made.command, made.created, made.schema_hash, *made.versions, *made.versions.values()]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidArgument("the provenance of the model file has a field that is not text.")
    return made


def _is_unicode(contents: Any) -> bool:
    """Whether all text is valid Unicode: JSON can contain lone surrogates, which cannot be
    written.
    """
    try:
        json.dumps(contents, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(digits: str) -> int:
    """Refuse integers beyond 64 bits: no model needs them, and they break arithmetic elsewhere."""
    if len(digits) > 20 or not -(2**63) <= (number := int(digits)) < 2**63:
        raise InvalidArgument(
            f"{digits[:20]}... is too large a number for a model file. Use what save_model wrote."
        )
    return number


def _real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidArgument(
            f"{digits[:20]} is too large a number for a model file. Use what save_model wrote."
        )
    return number


def _no_constants(word: str) -> float:
    raise InvalidArgument(f"{word} is not strict JSON. Use what save_model wrote.")
