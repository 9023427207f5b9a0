"""Effects of the numeric columns of an additive model."""

from html import escape
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.data import FeatureBounds
from hushfit.data.schema import DateColumn, NumericColumn
from hushfit.estimators import PrivatePoissonRegressor, feature_ranges
from hushfit.features import AdditiveMap, KnotMasses, RowProfile, hat_means
from hushfit.models import Model
from hushfit.report.sections._document import section
from hushfit.report.sections._figures import shape_figure


def shapes_section(model: Model) -> str:
    """Shape functions of the numeric columns of an additive model; nothing for another."""
    fitted = model.estimator
    if not isinstance(fitted.feature_map_, AdditiveMap):
        return ""
    numeric = [j for j, span in enumerate(fitted.feature_map_.spans) if span.intervals]
    if not numeric:
        return ""
    profile, labels = fitted.row_profile_, _ranges(model)
    scale = profile.length or 1.0
    grids = []
    for k, label in enumerate(model.outputs or [None]):
        output = () if label is None else (k,)
        shapes = {j: fitted.towards_ * fitted.shape_values(j, *output)[1] / scale for j in numeric}
        strongest = sorted(numeric, key=lambda j: -_spread(shapes[j], profile.masses.get(j)))
        figures = [
            _figure(model.feature_names[j], shapes[j], profile.masses.get(j), labels[j])
            for j in strongest
        ]
        heading = "" if label is None else f"<h3>Towards {escape(str(label))}</h3>"
        grids.append(f'{heading}<div class="shapes">{"".join(figures)}</div>')
    how = (
        f"<p>What each number adds to the {_what_it_adds_to(model)}, by its value: straight lines "
        "between knots. "
        "Each has its own scale and the mean zero over the rows; the strongest come first. "
        f"{_length_note(profile) if model.predicts_classes else ''}</p>"
    )
    note = (
        '<p class="note">Dashed: the released second moment shows no rows about these knots, '
        "beyond what its noise could (two standard deviations): do not read the curve there. No "
        "error bands are drawn, because none has been shown to cover: the privacy noise shifts "
        "every knot, most where rows are few. Read small wiggles as noise.</p>"
    )
    return section("shapes", "Effects of the numbers", how + note + "".join(grids), long=True)


def _figure(name: str, shape: Vector, masses: KnotMasses | None, ends: tuple[str, str, str]) -> str:
    seen = [True] * len(shape) if masses is None else [bool(s) for s in masses.seen]
    drawn = shape_figure(name, shape.tolist(), seen, ends)
    return f"<figure><h4>{escape(name)}</h4>{drawn}</figure>"


def _what_it_adds_to(model: Model) -> str:
    if model.predicts_classes:
        return "log-odds" if hasattr(model.estimator, "predict_proba") else "margin"
    counts = isinstance(model.estimator, PrivatePoissonRegressor)
    return "logarithm of the prediction" if counts else "prediction"


def _length_note(profile: RowProfile) -> str:
    if profile.length is None:
        return "The effects are those on a row of length one; rows are longer, and effects smaller."
    return (
        "Rows are divided by their length before they are scored; the effects are those on a row "
        f"of the typical length, {profile.length:.2g}."
    )


def _spread(values: Any, masses: KnotMasses | None) -> float:
    """Standard deviation of a centred shape over the rows."""
    weights = hat_means(len(values) - 1) if masses is None else masses.weights
    return float(np.sqrt(weights @ values**2))


def _ranges(model: Model) -> dict[int, tuple[str, str, str]]:
    """Lowest, middle and highest value of each numeric input, by its number."""
    fitted, at, found = model.estimator, 0, {}
    thirds = np.array([0.0, 0.5, 1.0])
    if model.schema is not None:
        for column in model.schema.columns:
            if isinstance(column, NumericColumn):
                low, middle, high = column.original(thirds)
                found[at] = (_short(low), _short(middle), _short(high))
            elif isinstance(column, DateColumn) and column.parts[0] == "since":
                low, middle, high = column.original(thirds)
                found[at] = (low, middle, high)
            at += len(column.feature_names)
    elif fitted.feature_bounds is not None:
        bounds = FeatureBounds.parse(feature_ranges(fitted), int(fitted.n_features_in_))
        for j, (low, high) in enumerate(zip(bounds.low, bounds.high, strict=True)):
            found[j] = (_short(low), _short((low + high) / 2), _short(high))
    else:
        found = dict.fromkeys(range(int(fitted.n_features_in_)), ("0", "0.5", "1"))
    return found


def _short(value: float) -> str:
    """A number in a few characters."""
    if abs(value) >= 1e6 or (value != 0 and abs(value) < 1e-3):
        return f"{value:.2g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.0f}"  # years have no comma
    return f"{value:.3g}"
