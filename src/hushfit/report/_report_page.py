"""One self-contained page about a model. All of it is post-processing of releases, or scores on
rows that were held out.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from markupsafe import Markup

from hushfit._pages import rendered
from hushfit.data import FeatureBounds
from hushfit.data.schema import (
    OTHER,
    CountTarget,
    DateColumn,
    NumericColumn,
    OrdinalTarget,
)
from hushfit.estimators import PredictionRanges, PrivatePoissonRegressor, feature_ranges
from hushfit.features import AdditiveMap, KnotMasses, RowProfile, hat_means
from hushfit.models import Model
from hushfit.privacy import Guarantee, labels_only, replaces_one
from hushfit.report._class_scores import Confusion
from hushfit.report._evaluate import AnyEvaluation
from hushfit.report._evaluator_points import Evidence, Point, evaluator_points
from hushfit.report._figures import (
    calibration_figure,
    forest_row,
    forest_table,
    odds_figure,
    posterior,
    shape_figure,
)
from hushfit.report._interval_section import intervals_body

_PRIORS = (0.5, 0.1, 0.01)
_KINDS = {
    "PrivateLogisticRegression": "Logistic regression",
    "PrivateLinearSVC": "Linear support vector machine",
    "PrivateLinearRegression": "Linear regression",
    "PrivateRidge": "Ridge regression",
    "PrivateLasso": "Lasso",
    "PrivateElasticNet": "Elastic net",
    "PrivateHuberRegressor": "Robust (Huber) regression",
    "PrivatePoissonRegressor": "Poisson regression",
}
_OTHER = f"={OTHER}"


def report_page(
    model: Model,
    digest: str = "",
    evaluation: AnyEvaluation | None = None,
    evidence: Evidence | None = None,
) -> str:
    """Write a page about a model.

    Parameters
    ----------
    model : Model
    digest : str, default=""
        Hash of the model file.
    evaluation : Evaluation or NumberEvaluation, optional
        Scores on held-out rows.
    evidence : Evidence, optional
        The total of its data set, and what attacks measured.

    Returns
    -------
    str
        HTML that loads no other file.
    """
    title = f"{kind_in_words(model)} of {target_name(model)}"
    sections = [
        guarantee_section(model.guarantee),
        odds_section(model.guarantee),
        budget_section(model.guarantee),
        _shapes(model),
        _coefficients(model),
        "" if evaluation is None else _evaluation(evaluation),
        points_section(evaluator_points(model, evidence)),
        _public(model),
        _provenance(model, digest),
    ]
    held_out = " or from the held-out rows named above" if evaluation else ""
    return document(title, lead(model), _facts(model, evaluation), sections, held_out)


def kind_in_words(model: Model) -> str:
    """What kind of model it is."""
    kind = _KINDS[type(model.estimator).__name__]
    additive = isinstance(model.estimator.feature_map_, AdditiveMap)
    return f"Additive {kind.lower()}" if additive else kind


def document(
    title: str,
    lead: str,
    facts: Sequence[tuple[str, str, str]],
    sections: Sequence[str],
    held_out: str = "",
) -> str:
    """A whole page: its title, a sentence, facts with a value and a remark each, and sections."""
    return rendered(
        __package__,
        "report.html",
        title=title,
        lead=lead,
        facts=facts,
        sections=map(Markup, sections),
        held_out=held_out,
    )


def target_name(model: Model) -> str:
    """The name of what is predicted."""
    return (
        "the target"
        if model.schema is None or model.schema.target is None
        else model.schema.target.name
    )


def _facts(model: Model, evaluation: AnyEvaluation | None) -> list[tuple[str, str, str]]:
    facts = [
        *budget_facts(model.guarantee),
        ("columns", f"{len(model.feature_names)}", _of_target(model)),
    ]
    if evaluation is not None:
        facts.append((*evaluation.headline, f"on {evaluation.rows:,} held-out rows"))
    return facts


def _of_target(model: Model) -> str:
    return f"{len(model.classes)} classes" if model.predicts_classes else "to predict a number"


def lead(model: Model) -> str:
    """What is predicted, in a sentence."""
    if model.predicts_classes:
        return f"Classes: {', '.join(map(str, model.classes))}."
    target = None if model.schema is None else model.schema.target
    if isinstance(target, OrdinalTarget):
        return f"Grades: {' < '.join(target.categories)}."
    low, high = PredictionRanges.of(model.estimator).target
    what = "Counts" if isinstance(target, CountTarget) else "Numbers"
    return f"{what} from {low:g} to {high:g}; predictions never leave this range."


def budget_facts(g: Guarantee, of: str = "this model") -> list[tuple[str, str, str]]:
    """Epsilon, delta and what is protected, for the head of a page."""
    return [
        (
            "epsilon",
            "∞" if g.nonprivate else f"{g.epsilon:.4g}",
            "no guarantee" if g.nonprivate else f"privacy loss of {of}",
        ),
        ("delta", f"{g.delta:.3g}", "probability of exceeding it"),
        ("protects", _protected(g), _protection(g)),
    ]


def _protection(g: Guarantee) -> str:
    with_rows = g.unit.is_person and not labels_only(g.relation)
    return f"with all of their {g.unit.record}s, {g.relation}" if with_rows else str(g.relation)


def _protected(g: Guarantee) -> str:
    if not labels_only(g.relation):
        return g.unit.in_words
    several = g.unit.is_person or g.unit.record == "list"
    return f"labels of {g.unit.in_words}, NOT features" if several else "one label, NOT features"


def section(key: str, title: str, body: str, long: bool = False) -> str:
    return (
        f'<section id="{key}" aria-labelledby="{key}-h"{" class=long" if long else ""}><h2 '
        f'id="{key}-h">{title}</h2>{body}</section>'
    )


def guarantee_section(g: Guarantee) -> str:
    bold = [f'<p class="warning"><strong>{escape(line)}</strong></p>' for line in g.warnings]
    stated = str(g).replace("\n", " ").split("Taken as public:")[0]
    for line in g.warnings:
        stated = stated.removeprefix(line).lstrip()
    paragraphs = [*bold, f"<p>{escape(stated)}</p>"]
    warnings = [
        f'<p class="warning">{escape(note)}</p>'
        for note in g.notes
        if "outside the guarantee" in note
    ]
    notes = [
        f'<p class="note">{escape(note)}</p>'
        for note in g.notes
        if "outside the guarantee" not in note
    ]
    noise = (
        "The noise was drawn exactly, from a cryptographic generator."
        if g.secure
        else (
            "The noise came from a seeded generator: whoever knows the seed can remove it. For "
            "tests and simulations only."
        )
    )
    secure = f'<p class="{"note" if g.secure else "warning"}">{noise}</p>'
    persons = _persons(g) if g.unit.is_person else ""
    body = "".join([*paragraphs, persons, secure, *warnings, *notes])
    return section("promise", "The guarantee", body)


def _persons(g: Guarantee) -> str:
    """How the rows, or lists, of one person are put together."""
    unit, records = g.unit, f"{g.unit.record}s"
    column = "the ids given" if unit.column is None else f"column {unit.column}"
    full = f", and one with {unit.full_weight} {records} or more counts as one"
    weights = (
        f"every person counts once, however many {records} they have: with k {records}, each "
        "weighs 1/k"
        if unit.total_weight_is_public
        else f"a person with few {records} counts less: with k {records}, each weighs "
        f"1/max(k, {unit.full_weight}){full}"
    )
    hidden = (
        ("Not hidden", f"whose {unit.record} each is, how many there are, and all features")
        if labels_only(g.relation)
        else (
            "Also hidden",
            f"how many {records} a person has, and how many {records} there are in all",
        )
    )
    pairs = [
        ("One person", f"all {records} with the same id, by {column}"),
        (
            f"{records.capitalize()} used",
            f"at most the first {unit.rows_per_person:,} of each person",
        ),
        ("Weights", weights),
        hidden,
    ]
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs)
    return f'<dl class="papers persons">{rows}</dl>'


def odds_section(g: Guarantee, seen: str = "this model") -> str:
    title = f"What epsilon means for {g.unit.in_words}"
    if g.nonprivate:
        body = (
            f'<p class="warning">Epsilon is infinite: {seen} may reveal everything about '
            f"{g.unit.in_words}.</p>"
        )
        return section("odds", title, body)
    items = []
    for prior in _PRIORS:
        low, high = posterior(prior, g.epsilon, g.delta)
        digits = 0 if prior >= 0.1 else 1
        items.append(
            f"<li>Believed at {prior:.0%} before,<br><b>{low:.{digits}%} to {high:.{digits}%}</b> "
            "after.</li>"
        )
    further = (
        ""
        if g.unit.is_person
        else f" About a person with several {g.unit.record}s it can move further."
    )
    intro = (
        f"<p>Take an attacker who knows everything about the table except {_unknown(g)}, and who "
        f"sees {seen}. Their belief can move, "
        f"but not far: the odds change by a factor of at most e<sup>{g.epsilon:.3g}</sup> = "
        f"{math.exp(min(g.epsilon, 700)):.3g} either "
        f"way.{further}</p>"
    )
    caption = (
        f"The band holds except with probability about {g.delta:.2g}. The dashed line is an "
        "attacker who learns nothing."
    )
    drawn = odds_figure(g.epsilon, g.delta, g.unit.in_words, seen)
    figure = f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"
    return section(
        "odds",
        title,
        f'{intro}<div class="pair">{figure}<ul class="beliefs">{"".join(items)}</ul></div>',
    )


def _unknown(g: Guarantee) -> str:
    """What the attacker does not know."""
    record = g.unit.record
    if labels_only(g.relation):
        several = g.unit.is_person or record == "list"
        return f"the labels of {g.unit.in_words}" if several else "the label of one row"
    if g.unit.is_person:
        return (
            f"whether a certain person, with all of their {record}s, or somebody else is in it"
            if replaces_one(g.relation)
            else f"whether a certain person, with all of their {record}s, is in it"
        )
    return (
        f"whether one {record} is a certain person's or another's"
        if replaces_one(g.relation)
        else f"whether one certain {record} was used"
    )


def budget_section(g: Guarantee) -> str:
    total = sum(release.share for release in g.releases) or 1.0
    label = "; ".join(f"{r.name}: {r.share / total:.0%}" for r in g.releases)
    bar = "".join(
        f'<span class="c{k % 6}" style="flex:{r.share / total:.4f}" title="{escape(r.name)}: '
        f'{r.share / total:.1%}"></span>'
        for k, r in enumerate(g.releases)
    )
    rows = "".join(
        f'<tr><td><span class="swatch c{k % 6}"></span>{escape(r.name)}</td><td '
        f'class="n">{r.share / total:.1%}</td>'
        f'<td class="n">{r.count}</td><td class="n">{r.noise_multiplier:.3g} ×</td>'
        f"<td>{escape(r.sampling)}</td></tr>"
        for k, r in enumerate(g.releases)
    )
    head = (
        '<tr><th>release</th><th class="n">share</th><th class="n">times</th><th '
        'class="n">noise</th><th>rows read</th></tr>'
    )
    intro = (
        "<p>Everything that was computed from the rows and left the curator. Noise is a multiple "
        f"of the sensitivity, the most that {g.unit.in_words} can change the answer (the noise "
        "multiplier); shares are of the budget in the accountant's unit, which adds up.</p>"
    )
    body = (
        f'{intro}<div class="budget" role="img" aria-label="Shares of the budget. '
        f'{escape(label)}">{bar}</div>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Releases">'
        f'<table class="releases"><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
    )
    return section("budget", "Where the budget went", body)


def _shapes(model: Model) -> str:
    """Shape functions of the numeric columns of an additive model; nothing for another."""
    fitted = model.estimator
    if not isinstance(fitted.feature_map_, AdditiveMap):
        return ""
    numeric = [j for j, span in enumerate(fitted.feature_map_.spans) if span.intervals]
    if not numeric:
        return ""
    profile, scale = fitted.row_profile_, fitted.row_profile_.length or 1.0
    labels = _ranges(model)
    grids = []
    for k, label in enumerate(model.outputs or [None]):
        output = () if label is None else (k,)
        shapes = {j: fitted.towards_ * fitted.shape_values(j, *output)[1] / scale for j in numeric}
        figures = []
        for j in sorted(numeric, key=lambda j: -_spread(shapes[j], profile.masses.get(j))):
            found = profile.masses.get(j)
            seen = [True] * len(shapes[j]) if found is None else [bool(s) for s in found.seen]
            drawn = shape_figure(model.feature_names[j], shapes[j].tolist(), seen, labels[j])
            title = escape(model.feature_names[j])
            figures.append(f"<figure><h4>{title}</h4>{drawn}</figure>")
        heading = "" if label is None else f"<h3>Towards {escape(str(label))}</h3>"
        grids.append(f'{heading}<div class="shapes">{"".join(figures)}</div>')
    what = "log-odds" if hasattr(fitted, "predict_proba") else "margin"
    if not model.predicts_classes:
        counts = isinstance(fitted, PrivatePoissonRegressor)
        what = "logarithm of the prediction" if counts else "prediction"
    how = (
        f"<p>What each number adds to the {what}, by its value: straight lines between knots. "
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


def _coefficients(model: Model) -> str:
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


def points_section(points: Sequence[Point]) -> str:
    """What an evaluator must be told."""
    rows = "".join(
        f"<dt>{escape(point.title)}</dt><dd>{_with_code(point.answer)}"
        f"{' <b>To be stated by the owner of the data.</b>' if point.open else ''}</dd>"
        for point in points
    )
    intro = (
        "<p>The points that NIST SP 800-226 asks about a guarantee of differential privacy. "
        "<code>hushfit report --json</code> prints them for programs.</p>"
    )
    return section(
        "evaluator", "For an evaluator", f'{intro}<dl class="papers points">{rows}</dl>', long=True
    )


def _with_code(text: str) -> str:
    """Text in which what stands between backticks is code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(parts))


def _evaluation(e: AnyEvaluation) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{escape(value)}</td><td>{escape(meaning)}</td>'
        "</tr>"
        for name, value, meaning in e.lines()
    )
    table = (
        '<table class="scores"><thead><tr><th>score</th><th class="n">value</th><th>meaning</th>'
        "</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )
    warning = (
        f'<p class="warning">Computed without noise from {e.rows:,} rows declared as held '
        "out of training. Scores on training "
        f"rows would not be covered by the guarantee. {escape(e.independence)}</p>"
    )
    by_class = "" if e.confusion is None else _by_class(e.confusion)
    if not e.calibration:
        return section("evaluation", "On held-out rows", warning + table + by_class)
    what = (
        f"the probability of {e.positive}" if e.positive else "the probability of the chosen label"
    )
    caption = (
        f"Calibration of {escape(what)}: dots on the dashed line are right on average; their size "
        "shows the number of rows."
    )
    figure = (
        f"<figure>{calibration_figure(e.calibration)}<figcaption>{caption}</figcaption></figure>"
    )
    return section(
        "evaluation",
        "On held-out rows",
        f'{warning}<div class="pair"><div class="scroll" tabindex="0" role="region" '
        f'aria-label="Scores">{table}</div>{figure}</div>{by_class}',
    )


def _by_class(confusion: Confusion) -> str:
    """Recall and precision of each class, and which was taken for which."""
    rows = matrix = ""
    for score, counts in zip(confusion.by_class, confusion.counts, strict=True):
        name = f'<tr><td class="name">{escape(score.label)}</td>'
        shares = (
            "–" if share is None else f"{share:.1%}" for share in (score.recall, score.precision)
        )
        rows += f"{name}{_number_cells([f'{score.rows:,.0f}', *shares])}</tr>"
        matrix += f"{name}{_number_cells(f'{count:,.0f}' for count in counts)}</tr>"
    head = "".join(f'<th class="n">{text}</th>' for text in ("rows", "recall", "precision"))
    taken = "".join(f'<th class="n">{escape(label)}</th>' for label in confusion.classes)
    return (
        "<h3>By class</h3><p class='note'>Recall is the share of the rows of a class that were "
        "recognised, precision the share of right ones among those taken for it.</p>"
        f"<table><thead><tr><th>class</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
        "<h3>Which class was taken for which</h3>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Which class was taken for '
        f'which"><table class="matrix"><thead><tr><th>true \\ predicted</th>{taken}</tr></thead>'
        f"<tbody>{matrix}</tbody></table></div>"
    )


def _number_cells(texts: Iterable[str]) -> str:
    return "".join(f'<td class="n">{text}</td>' for text in texts)


def _public(model: Model) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in model.guarantee.public)
    body = (
        "<p>The guarantee assumes that these are public. If one of them was learnt from the rows, "
        f"it was leaked.</p><ul>{items}</ul>"
    )
    if model.schema is not None:
        rows = "".join(
            f'<tr><td class="name">{escape(c.name)}</td><td>{c.kind}</td>'
            f"<td>{escape(c.stated)}</td></tr>"
            for c in model.schema.columns
        )
        table = (
            "<table><thead><tr><th>column</th><th>kind</th><th>range or vocabulary</th></tr>"
            f"</thead><tbody>{rows}</tbody></table>"
        )
        body += (
            f"<details><summary>The schema, {len(model.schema.columns)} columns</summary>"
            f'<div class="scroll" tabindex="0" role="region" aria-label="Schema">{table}</div>'
            "</details>"
        )
    return section("public", "What was assumed public", body, long=True)


def _shown_settings(model: Model) -> dict[str, Any]:
    settings = model.estimator.get_params()
    shown = ("features", "scaling", "solver", "penalty", "alpha")
    return {name: settings[name] for name in shown if name in settings}


def _provenance(model: Model, digest: str) -> str:
    made = model.provenance
    pairs = [
        ("Model", digest and f"sha256 {digest}"),
        ("Schema", made.schema_hash and f"sha256 {made.schema_hash}"),
        ("Made", made.created),
        ("Command", made.command),
        ("Versions", ", ".join(f"{name} {version}" for name, version in made.versions.items())),
        (
            "Settings",
            ", ".join(f"{key}={value!r}" for key, value in _shown_settings(model).items()),
        ),
        ("Steps", f"{model.estimator.n_iter_}, fixed in advance"),
        (
            "Ledger",
            model.receipt
            and (
                f"{model.receipt.dataset}, payment {model.receipt.number}, entry "
                f"{model.receipt.hash}"
            ),
        ),
    ]
    rows = "".join(
        f'<dt>{name}</dt><dd class="mono">{escape(str(value))}</dd>'
        for name, value in pairs
        if value
    )
    return section("papers", "Provenance", f'<dl class="papers">{rows}</dl>')
