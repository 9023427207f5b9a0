"""The intervals of a model in its file: covariances of coefficients, and what they are worth."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hushfit._typing import Matrix
from hushfit.data.design import Design, MainEffects
from hushfit.data.schema import Schema
from hushfit.errors import InvalidArgument
from hushfit.estimators import INTERCEPT, Inference, Parts, feature_ranges, middle_of

# Only files of models with intervals have this.
INFERENCE_FIELD = "inference"
_KEYS = {"cov_type", "title", "formula", "noise_ratio", "weakest", "last_step", "covariances"}
# Files of earlier versions lack it: all coefficients had intervals, up to a noise ratio of two.
_UNKNOWN, _USABLE = "unknown", 2.0
# Only files of fits with even weights have this.
_EVEN = "even_weights"
# Files of earlier versions lack this too.
_ALLOWANCE = "allowance"


def described_inference(fitted: Any, design: Design | None) -> dict[str, Any]:
    """The intervals of a fitted estimator as a field of its file; nothing if it has none."""
    if not fitted.inference:
        return {}
    found: Inference = fitted.inference_
    ratio = found.noise_ratio
    stated = {
        "cov_type": found.cov_type,
        "title": found.title,
        "formula": None if design is None else design.formula,
        "noise_ratio": ratio if math.isfinite(ratio) else "inf",
        "weakest": list(found.weakest),
        "last_step": found.last_step,
        _ALLOWANCE: found.allowance,
        _UNKNOWN: found.covariances[found.cov_type].unknown.tolist(),
        "covariances": {
            kind: {"sampling": parts.sampling.tolist(), "noise": parts.noise.tolist()}
            for kind, parts in found.covariances.items()
        },
    }
    if found.even_weights:
        stated[_EVEN] = True
    return {INFERENCE_FIELD: stated}


def restore_inference(
    stated: Mapping[str, Any],
    fitted: Any,
    names: Sequence[str],
    numbers: Callable[[Any, str, int, int], Matrix],
) -> None:
    """Give an estimator that was read from a file its intervals.

    ``numbers`` reads a table of finite numbers of a shape, and refuses anything else.
    """
    if set(stated) - {_UNKNOWN, _EVEN, _ALLOWANCE} != _KEYS or stated.get(_EVEN, True) is not True:
        raise _broken("has missing or unknown fields")
    even = {_EVEN: _EVEN in stated}
    try:
        fitted.set_params(inference=True, cov_type=stated["cov_type"], **even)
    except ValueError:
        raise _broken("is of a model that has none") from None
    p = len(names) + 1
    ratio = math.inf if stated["noise_ratio"] == "inf" else stated["noise_ratio"]
    ratio = float(numbers([[ratio]], INFERENCE_FIELD, 1, 1)[0, 0]) if ratio != math.inf else ratio
    unknown = np.zeros((p, p)) if _UNKNOWN not in stated else _matrix(stated[_UNKNOWN], p, numbers)
    ratio = math.inf if _UNKNOWN not in stated and ratio > _USABLE else ratio
    weakest, covariances = stated["weakest"], stated["covariances"]
    texts = [stated["title"], stated["cov_type"], *weakest]
    if not all(isinstance(text, str) for text in texts) or stated["cov_type"] not in covariances:
        raise _broken("has a text that is none, or lacks its covariance")
    found = {kind: _parts(each, unknown, numbers) for kind, each in covariances.items()}
    towards_classes = np.append(np.ravel(fitted.intercept_)[:1], np.ravel(fitted.coef_))
    params = fitted.towards_ * towards_classes
    fitted.keep_inference(
        Inference(
            (INTERCEPT, *names),
            params,
            found,
            stated["cov_type"],
            ratio,
            fitted.privacy_,
            stated["title"],
            fitted.link,
            middle_of(feature_ranges(fitted), len(names)),
            tuple(weakest),
            float(numbers([[stated["last_step"]]], INFERENCE_FIELD, 1, 1)[0, 0]),
            allowance=float(numbers([[stated.get(_ALLOWANCE, 0.0)]], INFERENCE_FIELD, 1, 1)[0, 0]),
            **even,
        )
    )


def stored_design(stated: Mapping[str, Any], schema: Schema | None) -> Design | None:
    """The columns that the coefficients belong to, by the schema or the formula of a file."""
    formula = stated["formula"]
    if schema is None and formula is None:
        return None
    if schema is None or not isinstance(formula, str | None):
        raise _broken("has a formula that is no text, or no schema for it")
    if formula is None:
        return MainEffects(schema)
    from hushfit.data.design.formula import FormulaDesign

    return FormulaDesign(formula, schema)


def _parts(stated: Mapping[str, Any], unknown: Matrix, numbers: Callable[..., Matrix]) -> Parts:
    p = len(unknown)
    return Parts(
        _matrix(stated["sampling"], p, numbers), _matrix(stated["noise"], p, numbers), unknown
    )


def _matrix(stated: Any, p: int, numbers: Callable[..., Matrix]) -> Matrix:
    found = numbers(stated, INFERENCE_FIELD, p, p)
    if (np.diag(found) < 0).any() or not np.allclose(found, found.T):
        raise _broken("has a covariance that is none")
    return found


def _broken(what: str) -> InvalidArgument:
    return InvalidArgument(
        f"{INFERENCE_FIELD} of the model file {what}. Use what save_model wrote, unedited."
    )
