"""The coefficients of a model with intervals: a forest plot, and the table of `summary`."""

import math
from html import escape
from typing import Final

import numpy as np

from hushfit.data import FeatureBounds
from hushfit.estimators import Inference, Line, feature_ranges
from hushfit.models import Model
from hushfit.report.sections._figures import three_digits
from hushfit.report.sections._forest import forest_table, interval_row

LEVEL: Final = 0.95
_UNITS: Final = {
    "identity": "in units of the target",
    "logit": "log-odds: 0.7 doubles the odds",
    "log": "logarithms of rate ratios: 0.7 doubles the rate",
}
_RATIOS: Final = {"logit": "odds ratio", "log": "rate ratio"}


def intervals_body(model: Model) -> str:
    """What the intervals are worth, the forest plot and the table, as HTML."""
    found: Inference = model.estimator.inference_
    sure = found.verdict == "good" and not found.hidden.any()
    said = "" if sure else f'<p class="warning">{escape(found.said(LEVEL))}</p>'
    table = (
        "<details><summary>The whole table, per unit</summary>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Coefficients per unit">'
        f"<pre>{escape(found.summary(LEVEL))}</pre></div></details>"
    )
    return f"{said}{_how(found)}{_forest(model, found)}{table}"


def _how(found: Inference) -> str:
    intervals = (
        f"<p>The whiskers are confidence intervals of {LEVEL:.0%}. They cover both errors: that "
        "other people might have been in the table, and the privacy noise. A hollow dot means that "
        "the interval contains zero, or that there is none. Those furthest from zero, in standard "
        "errors, come first.</p>"
        if found.verdict != "none"
        else ""
    )
    units = (
        f"Coefficients are {_UNITS[found.link]}. Those of numbers are shown per step of about a "
        "quarter of the public range, as named; those of labels are against the first label of the "
        f"column. Covariance: {found.cov_type}. {found.weighting}"
    )
    return f"{intervals}<p class='note'>{units}</p>"


def _forest(model: Model, found: Inference) -> str:
    steps = _steps(model)
    lines = [_per_step(line, step) for line, step in zip(_lines(found)[1:], steps, strict=True)]
    names = [_named(name, step) for name, step in zip(found.names[1:], steps, strict=True)]
    largest = max(abs(line.coef) for line in lines)
    ends = [max(abs(line.low), abs(line.high)) for line in lines]
    # One wide interval must not hide all others.
    reach = min(max(ends), 3 * largest) or 1.0
    rows = [
        interval_row(names[j], lines[j], _texts(lines[j], found.link), reach)
        for j in sorted(range(len(lines)), key=lambda j: -abs(lines[j].z))
    ]
    columns = [
        ("name", "column", ""),
        ("value", "coef", " n"),
        ("se", f"interval of {LEVEL:.0%}", " n aside"),
        ("ratio", _RATIOS.get(found.link, "P"), " n aside"),
    ]
    return forest_table(_direction(model), columns, rows, reach, "")


def _direction(model: Model) -> str:
    """What a positive coefficient speaks for."""
    if model.predicts_classes:
        return f"Towards {model.outputs[0]}"
    target = None if model.schema is None else model.schema.target
    return "Towards larger values" if target is None else f"Towards a larger {target.name}"


def _lines(found: Inference) -> list[Line]:
    """The lines of the table; without intervals, of coefficients alone."""
    plain = [Line(name, value, *5 * (0.0,), value, value) for name, value in found.named]
    lines = found.lines(LEVEL) or plain
    return [
        line if math.isfinite(line.std_err) else alone
        for line, alone in zip(lines, plain, strict=True)
    ]


def _steps(model: Model) -> list[float]:
    """For each column a round number of about a quarter of its public range; 1 for indicators."""
    fitted = model.estimator
    bounds = FeatureBounds.parse(feature_ranges(fitted), int(fitted.n_features_in_))
    return [
        1.0 if (low, high) == (0.0, 1.0) else _round(float(high - low) / 4)
        for low, high in zip(bounds.low, bounds.high, strict=True)
    ]


def _round(value: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten, by ratio."""
    power = math.floor(math.log10(value))
    steps = [digit * 10.0**power for digit in (1, 2, 5, 10)]
    return steps[int(np.argmin([abs(math.log(step / value)) for step in steps]))]


def _named(name: str, step: float) -> str:
    return name if step == 1.0 else f"{name}, per {step:,.10g}"


def _per_step(line: Line, step: float) -> Line:
    scaled = {
        key: step * value
        for key, value in line._asdict().items()
        if key not in ("name", "z", "pvalue")
    }
    return line._replace(**scaled)


def _texts(line: Line, link: str) -> tuple[str, str]:
    """The interval, and the ratio that it stands for or the test; neither of a coefficient that is
    hidden.
    """
    if not line.std_err:
        return "none", "&ndash;"
    interval = f"{three_digits(line.low)} to {three_digits(line.high)}"
    ratio = three_digits(math.exp(min(line.coef, 700))) if link in _RATIOS else _test(line.pvalue)
    return interval, ratio


def _test(pvalue: float) -> str:
    return f"{pvalue:.2g}" if pvalue >= 1e-4 else "&lt; 0.0001"
