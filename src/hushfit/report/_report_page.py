"""One self-contained page about a model. All of it is post-processing of releases, or scores on
rows that were held out.
"""

import math
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from hushfit.data.schema import CategoricalColumn, NumericColumn
from hushfit.models import Model
from hushfit.privacy import Guarantee, labels_only, replaces_one
from hushfit.report._evaluate import Evaluation
from hushfit.report._figures import calibration_figure, forest_row, odds_figure, posterior
from hushfit.unit import PrivacyUnit

_SHOWN = 25
_PRIORS = (0.5, 0.1, 0.01)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_KINDS = {
    "PrivateLogisticRegression": "Logistic regression",
    "PrivateLinearSVC": "Linear support vector machine",
}


def report_page(model: Model, digest: str = "", evaluation: Evaluation | None = None) -> str:
    """Write a page about a model.

    Parameters
    ----------
    model : Model
    digest : str, default=""
        Hash of the model file.
    evaluation : Evaluation, optional
        Scores on held-out rows.

    Returns
    -------
    str
        HTML that loads no other file.
    """
    here = files(__package__)
    title = f"{_KINDS[type(model.estimator).__name__]} of {_target(model)}"
    sections = [
        _guarantee_section(model.guarantee),
        _odds(model.guarantee),
        _budget(model.guarantee),
        _coefficients(model),
        "" if evaluation is None else _evaluation(evaluation),
        _public(model),
        _provenance(model, digest),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><meta name="referrer" '
        'content="no-referrer">'
        f'<link rel="icon" href="data:,"><title>{escape(title)} · hushfit</title>'
        f"<style>{here.joinpath('page.css').read_text(encoding='utf-8')}</style></head><body>"
        f'<a class="skip" href="#content">Skip to the content</a>{_head(model, title, evaluation)}'
        f'<main id="content">{"".join(sections)}</main>'
        "<footer><div>Everything on this page follows from released, noisy "
        f"numbers{' or from the held-out rows named above' if evaluation else ''}; reading it "
        "costs no further "
        f"privacy.</div></footer><script>{here.joinpath('page.js').read_text(encoding='utf-8')}</script></body></html>\n"
    )


def _target(model: Model) -> str:
    return (
        "the target"
        if model.schema is None or model.schema.target is None
        else model.schema.target.name
    )


def _head(model: Model, title: str, evaluation: Evaluation | None) -> str:
    g = model.guarantee
    facts = [
        (
            "epsilon",
            "∞" if g.nonprivate else f"{g.epsilon:.4g}",
            "no guarantee" if g.nonprivate else "privacy loss of this model",
        ),
        ("delta", f"{g.delta:.3g}", "probability of exceeding it"),
        ("protects", _protected(g), _protection(g)),
        ("columns", f"{len(model.feature_names)}", f"{len(model.classes)} classes"),
    ]
    if evaluation is not None:
        facts.append(
            ("accuracy", f"{evaluation.accuracy:.1%}", f"on {evaluation.rows:,} held-out rows")
        )
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in facts
    )
    return (
        f'<header><div><p class="eyebrow">hushfit report</p><h1>{escape(title)}</h1>'
        f'<p class="lead">Classes: {escape(", ".join(map(str, model.classes)))}.</p><dl '
        f'class="facts">{cells}</dl></div></header>'
    )


def _protection(g: Guarantee) -> str:
    with_rows = g.unit.is_person and not labels_only(g.relation)
    return f"with all of their rows, {g.relation}" if with_rows else str(g.relation)


def _protected(g: Guarantee) -> str:
    if not labels_only(g.relation):
        return g.unit.in_words
    return "labels of one person, NOT features" if g.unit.is_person else "one label, NOT features"


def _section(key: str, title: str, body: str, long: bool = False) -> str:
    return (
        f'<section id="{key}" aria-labelledby="{key}-h"{" class=long" if long else ""}><h2 '
        f'id="{key}-h">{title}</h2>{body}</section>'
    )


def _guarantee_section(g: Guarantee) -> str:
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
    persons = _persons(g.unit) if g.unit.is_person else ""
    body = "".join([*paragraphs, persons, secure, *warnings, *notes])
    return _section("promise", "The guarantee", body)


def _persons(unit: PrivacyUnit) -> str:
    """How the rows of one person are put together."""
    column = "the ids given" if unit.column is None else f"column {unit.column}"
    full = f", and one with {unit.full_weight} rows or more counts as one"
    weights = (
        "every person counts once, however many rows they have: with k rows, each weighs 1/k"
        if unit.total_weight_is_public
        else "a person with few rows counts less: with k rows, each weighs "
        f"1/max(k, {unit.full_weight}){full}"
    )
    pairs = [
        ("One person", f"all rows with the same id, by {column}"),
        ("Rows used", f"at most the first {unit.rows_per_person:,} of each person"),
        ("Weights", weights),
        ("Also hidden", "how many rows a person has, and how many rows there are in all"),
    ]
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs)
    return f'<dl class="papers persons">{rows}</dl>'


def _odds(g: Guarantee) -> str:
    title = f"What epsilon means for {g.unit.in_words}"
    if g.nonprivate:
        body = (
            '<p class="warning">Epsilon is infinite: the model may reveal everything about '
            f"{g.unit.in_words}.</p>"
        )
        return _section("odds", title, body)
    items = []
    for prior in _PRIORS:
        low, high = posterior(prior, g.epsilon, g.delta)
        digits = 0 if prior >= 0.1 else 1
        items.append(
            f"<li>Believed at {prior:.0%} before,<br><b>{low:.{digits}%} to {high:.{digits}%}</b> "
            "after.</li>"
        )
    further = "" if g.unit.is_person else " About a person with several rows it can move further."
    intro = (
        f"<p>Take an attacker who knows everything about the table except {_unknown(g)}, and who "
        "sees "
        "this model. Their belief can move, "
        f"but not far: the odds change by a factor of at most e<sup>{g.epsilon:.3g}</sup> = "
        f"{math.exp(min(g.epsilon, 700)):.3g} either "
        f"way.{further}</p>"
    )
    caption = (
        f"The band holds except with probability about {g.delta:.2g}. The dashed line is an "
        "attacker who learns nothing."
    )
    drawn = odds_figure(g.epsilon, g.delta, g.unit.in_words)
    figure = f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"
    return _section(
        "odds",
        title,
        f'{intro}<div class="pair">{figure}<ul class="beliefs">{"".join(items)}</ul></div>',
    )


def _unknown(g: Guarantee) -> str:
    """What the attacker does not know."""
    if labels_only(g.relation):
        return "the labels of one person" if g.unit.is_person else "the label of one row"
    if g.unit.is_person:
        return (
            "whether a certain person, with all of their rows, or somebody else is in it"
            if replaces_one(g.relation)
            else "whether a certain person, with all of their rows, is in it"
        )
    return (
        "whether one row is a certain person's or another's"
        if replaces_one(g.relation)
        else "whether one certain row was used"
    )


def _budget(g: Guarantee) -> str:
    total = sum(release.share for release in g.releases) or 1.0
    label = "; ".join(f"{r.name}: {r.share / total:.0%}" for r in g.releases)
    bar = "".join(
        f'<span class="c{k % 5}" style="flex:{r.share / total:.4f}" title="{escape(r.name)}: '
        f'{r.share / total:.1%}"></span>'
        for k, r in enumerate(g.releases)
    )
    rows = "".join(
        f'<tr><td><span class="swatch c{k % 5}"></span>{escape(r.name)}</td><td '
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
        '<div class="scroll" tabindex="0" role="region" aria-label="Releases"><table>'
        f"<thead>{head}</thead><tbody>{rows}</tbody></table></div>"
    )
    return _section("budget", "Where the budget went", body)


def _coefficients(model: Model) -> str:
    coef, intercept = model.estimator.coef_, model.estimator.intercept_
    names = [*model.feature_names, "(intercept)"]
    binary = len(coef) == 1
    tables = []
    for k, own in enumerate(coef):
        label = model.classes[1] if binary else model.classes[k]
        values = np.append(own, intercept[k])
        errors = None if model.standard_error is None else model.standard_error[k]
        tables.append(_forest(names, values, errors, str(label)))
    how = (
        "The whiskers are two standard errors to each side: the effect of the privacy noise alone "
        "on the weight, estimated by replaying the fit with fresh noise on its released answers "
        "(usually good to a factor of two). A hollow dot means that zero is within two standard "
        "errors. Sampling error is not included."
        if model.standard_error is not None
        else ("No standard errors are known for this solver: its noise is not additive.")
    )
    scale = (
        "Numbers are scaled from 0 at their lowest to 1 at their highest public value, labels are "
        "0 or 1; rows are scaled to unit length."
    )
    return _section(
        "coefficients",
        "Coefficients",
        f"<p>{how}</p><p class='note'>{scale}</p>{''.join(tables)}",
        long=True,
    )


def _forest(names: list[str], values: Any, errors: Any, label: str) -> str:
    margins = np.zeros(len(values)) if errors is None else 2 * errors
    reach = float(np.max(np.abs(values) + np.minimum(margins, np.abs(values).max() or 1.0))) or 1.0
    order = np.argsort(-np.abs(values))
    rows = "".join(
        forest_row(names[j], float(values[j]), None if errors is None else float(errors[j]), reach)
        for j in order
    )
    columns = [
        ("name", "feature", ""),
        ("value", "weight", " n"),
        ("se", "std. error", " n se"),
        ("ratio", "ratio", " n ratio"),
    ]
    heads = [
        f'<th class="{extra.strip()}" scope="col"><button type="button" '
        f'data-key="{key}">{text}</button></th>'
        for key, text, extra in columns
    ]
    marks = (
        f"<span>{-reach:.2g}</span><span style='left:50%'>0</span><span "
        f"style='left:100%'>{reach:.2g}</span>"
    )
    plot = (
        f'<th class="plot" scope="col"><span class="scale" aria-hidden="true">{marks}</span></th>'
    )
    return (
        f"<div data-forest><h3>Towards {escape(label)}</h3>"
        '<div class="bar" hidden><input type="search" placeholder="Find a feature" '
        'aria-label="Find a feature">'
        '<button type="button" data-more aria-expanded="false">Show all</button></div>'
        f'<table class="forest" data-shown="{_SHOWN}"><thead>'
        f"<tr>{heads[0]}{plot}{''.join(heads[1:])}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _evaluation(e: Evaluation) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{escape(value)}</td><td>{escape(meaning)}</td>'
        "</tr>"
        for name, value, meaning in e.lines()
    )
    table = (
        '<table><thead><tr><th>score</th><th class="n">value</th><th>meaning</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    warning = (
        f'<p class="warning">Computed without noise from {e.rows:,} rows declared as held '
        "out of training. Scores on training "
        f"rows would not be covered by the guarantee. {escape(e.independence)}</p>"
    )
    if not e.calibration:
        return _section("evaluation", "On held-out rows", warning + table)
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
    return _section(
        "evaluation",
        "On held-out rows",
        f'{warning}<div class="pair"><div class="scroll" tabindex="0" role="region" '
        f'aria-label="Scores">{table}</div>{figure}</div>',
    )


def _public(model: Model) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in model.guarantee.public)
    body = (
        "<p>The guarantee assumes that these are public. If one of them was learnt from the rows, "
        f"it was leaked.</p><ul>{items}</ul>"
    )
    if model.schema is not None:
        rows = "".join(
            f'<tr><td class="name">{escape(c.name)}</td><td>{c.kind}</td>'
            f"<td>{escape(_stated(c))}</td></tr>"
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
    return _section("public", "What was assumed public", body, long=True)


def _stated(column: NumericColumn | CategoricalColumn) -> str:
    if isinstance(column, CategoricalColumn):
        return ", ".join(column.categories)
    fill = "" if column.fill is None else f", missing becomes {column.fill:g}"
    shape = "" if column.transform == "none" else f", {column.transform}"
    return f"{column.low:g} to {column.high:g}{shape}{fill}"


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
            ", ".join(
                f"{key}={getattr(model.estimator, key)!r}" for key in ("solver", "penalty", "alpha")
            ),
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
    return _section("papers", "Provenance", f'<dl class="papers">{rows}</dl>')
