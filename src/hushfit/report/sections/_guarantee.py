"""What a guarantee says: its facts, its text, what epsilon means, and its releases."""

import math
from html import escape

from hushfit.privacy import Guarantee, labels_only, replaces_one
from hushfit.report.sections._document import section
from hushfit.report.sections._figures import odds_figure, posterior

_PRIORS = (0.5, 0.1, 0.01)


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
    beliefs = "".join(_belief(prior, g) for prior in _PRIORS)
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
        f'{intro}<div class="pair">{figure}<ul class="beliefs">{beliefs}</ul></div>',
    )


def _belief(prior: float, g: Guarantee) -> str:
    low, high = posterior(prior, g.epsilon, g.delta)
    digits = 0 if prior >= 0.1 else 1
    return (
        f"<li>Believed at {prior:.0%} before,<br><b>{low:.{digits}%} to {high:.{digits}%}</b> "
        "after.</li>"
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
