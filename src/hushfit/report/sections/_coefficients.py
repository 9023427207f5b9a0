"""Coefficients, with what is known of their errors."""

from html import escape
from typing import Any

import numpy as np

from hushfit.data.schema import OTHER
from hushfit.estimators import PrivatePoissonRegressor
from hushfit.features import AdditiveMap
from hushfit.models import Model
from hushfit.report.sections._document import section
from hushfit.report.sections._forest import forest_row, forest_table
from hushfit.report.sections._intervals import intervals_body
from hushfit.report.sections._subject import target_name

_OTHER = f"={OTHER}"


def _shown_weights(model: Model) -> list[int]:
    """Coefficients that stand for themselves: all, but for those that make up a shape."""
    made = model.estimator.feature_map_
    if not isinstance(made, AdditiveMap):
        return list(range(model.weights[0].shape[1]))
    return [
        k
        for span in made.spans
        for k in range(span.start + span.intervals, span.start + span.width)
    ]


def coefficients_section(model: Model) -> str:
    if model.estimator.inference:
        return section("coefficients", "Coefficients", intervals_body(model), long=True)
    shown = _shown_weights(model)
    coef, intercept = model.shown_weights
    names = [*(model.weight_names[k] for k in shown), "(intercept)"]
    tables = []
    for k, own in enumerate(coef[:, shown]):
        values = np.append(own, intercept[k])
        errors = None if model.standard_error is None else model.standard_error[k][[*shown, -1]]
        tables.append(forest(names, values, errors, _direction(model, k)))
    how = (
        "The whiskers are two standard errors to each side: the effect of the privacy noise alone "
        "on the weight, estimated by replaying the fit with fresh noise on its released answers "
        f"({_quality_of_errors(model)}). A hollow dot means that zero is within two standard "
        "errors. Sampling error is not included."
        if model.standard_error is not None
        else _without_errors(model)
    )
    scale = _scale_note(model)
    return section(
        "coefficients",
        "Coefficients",
        f"<p>{how}</p><p class='note'>{scale}</p>{''.join(tables)}",
        long=True,
    )


def _quality_of_errors(model: Model) -> str:
    """How good standard errors by replays are, as measured."""
    if len(model.classes) > 2:
        return "of several classes often several times too large, rarely too small"
    return "usually good to a factor of two"


def _without_errors(model: Model) -> str:
    """Why coefficients have no standard errors."""
    if model.predicts_classes:
        return "No standard errors are known for this solver or penalty."
    return (
        "No standard errors: none are known for this kind of model, or the noise blurs the second "
        "moment that they would be computed from, and they could be several times too large. "
        "<code>hushfit fit --inference</code> gives intervals that cover."
    )


def _direction(model: Model, output: int) -> str:
    """What a positive weight of an output speaks for."""
    if not model.predicts_classes:
        return f"Towards a larger {target_name(model)}" if model.schema else "Towards larger values"
    return f"Towards {model.outputs[output]}"


def _scale_note(model: Model) -> str:
    """What a weight is a multiple of."""
    units = _units_in_words(model)
    if model.predicts_classes:
        return f"{units}; {_rows_in_words(model)}."
    if isinstance(model.estimator, PrivatePoissonRegressor):
        return f"{units}. A weight adds to the logarithm of the count: 0.7 doubles it."
    return f"{units}. A weight is what the column adds to the prediction, in units of the target."


def _rows_in_words(model: Model) -> str:
    if model.estimator.scaling == "unit":
        return "rows are scaled to unit length, so weights are those of a row of length one"
    what = "log-odds" if hasattr(model.estimator, "predict_proba") else "margin"
    return f"a weight is what the column adds to the {what}"


def _units_in_words(model: Model) -> str:
    if model.estimator.feature_map_ is not None:
        return "Labels are 0 or 1, and numbers are in the figures"
    if model.schema is None:
        return "Columns are in their own units"
    return (
        "Numbers are scaled from 0 at their lowest to 1 at their highest public value, labels are "
        "0 or 1"
    )


def _order(values: Any, errors: Any) -> Any:
    """Coefficients by their ratio to the standard error, largest first; by size without errors."""
    if errors is None:
        return np.argsort(-np.abs(values), kind="stable")
    ratios = np.divide(np.abs(values), errors, out=np.abs(values) * 1e300, where=errors > 0)
    return np.argsort(-ratios, kind="stable")


def _carries_nothing(name: str, value: float, error: float | None) -> bool:
    """Whether it is of unlisted labels and cannot be told from zero, as far as is known."""
    return name.endswith(_OTHER) and (error is None or abs(value) <= 2 * error)


def forest(names: list[str], values: Any, errors: Any, title: str) -> str:
    """Weights as a forest plot that can be searched and sorted; ``errors`` may be None."""
    margins = np.zeros(len(values)) if errors is None else 2 * errors
    largest = float(np.abs(values).max())
    reach = float(np.max(np.abs(values) + np.minimum(margins, largest or 1.0))) or 1.0
    rows: list[str] = []
    folded: list[str] = []
    for j in _order(values, errors):
        error = None if errors is None else float(errors[j])
        empty = _carries_nothing(names[j], float(values[j]), error)
        (folded if empty else rows).append(forest_row(names[j], float(values[j]), error, reach))
    columns = [("name", "feature", ""), ("value", "weight", " n")]
    if errors is not None:
        columns += [("se", "std. error", " n aside"), ("ratio", "ratio", " n aside")]
    return forest_table(title, columns, rows, reach, _folded(folded, errors is not None))


def _folded(rows: list[str], tested: bool) -> str:
    """Weights of unlisted labels that carry nothing, as far as is known, out of sight."""
    if not rows:
        return ""
    many = f"{len(rows)} weights" if len(rows) > 1 else "1 weight"
    what = " that carry nothing" if tested else ""
    return (
        f"<details><summary>{many} of unlisted labels ({escape(OTHER)}){what}"
        f'</summary><table class="folded"><tbody>{"".join(rows)}</tbody></table></details>'
    )
