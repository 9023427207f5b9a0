"""One self-contained page about a table: statistics with intervals, and small histograms. All of it
is post-processing of one release.
"""

from collections.abc import Sequence
from html import escape

from hushfit.report.sections import (
    bars_figure,
    budget_facts,
    budget_section,
    document,
    guarantee_section,
    narrow,
    odds_section,
    section,
)
from hushfit.statistics import Bars, Description, Estimate, error_text, number_text

_SEEN = "these statistics"
_HEADS = ("statistic", "group", "interval", "estimate", "from", "to", "noise")


def description_page(description: Description, title: str = "Statistics of a table") -> str:
    """Write a page about a description.

    Parameters
    ----------
    description : Description
    title : str, default="Statistics of a table"

    Returns
    -------
    str
        HTML that loads no other file.
    """
    g = description.guarantee
    columns: dict[str, list[Estimate]] = {}
    for one in description.estimates:
        columns.setdefault(one.column, []).append(one)
    histograms = description.histograms()
    grids = description.answers.survey.grids
    logarithms = {name for name, grid in grids.items() if grid.column.transform != "none"}
    sections = [
        _reading(description),
        *(
            _column(
                k,
                name,
                own,
                {group: bars for (of, group), bars in histograms.items() if of == name},
                name in logarithms,
            )
            for k, (name, own) in enumerate(columns.items())
        ),
        guarantee_section(g),
        odds_section(g, _SEEN),
        budget_section(g),
        section(
            "public",
            "What was assumed public",
            f"<ul>{''.join(f'<li>{escape(fact)}</li>' for fact in g.public)}</ul>",
        ),
    ]
    facts = [
        *budget_facts(g, _SEEN),
        (g.unit.plural, f"{description.units:,}", "number; public"),
        ("intervals", f"{description.level:.0%}", "all together" if description.simultaneous else
         "each by itself"),
    ]  # fmt: skip
    lead = "Means, quantiles and shares, with intervals that cover sampling and noise."
    return document(title, lead, facts, sections)


def _reading(description: Description) -> str:
    """How the tables are to be read."""
    each = (
        "all intervals together cover their true values"
        if description.simultaneous
        else "each interval covers its true value"
    )
    more = (
        " Rows of one person are not independent; intervals here are those of independent persons "
        "with the largest variance that their rows allow, and so somewhat too wide."
        if description.guarantee.unit.is_person
        else ""
    )
    body = (
        f"<p>In {description.level:.0%} of samples {each} in the population that the "
        f"{escape(description.guarantee.unit.plural)} were drawn from. An interval has two parts: "
        "sampling, as in every survey, and the noise that protects privacy, whose standard "
        "deviation is in the last column (of quantiles: as a share of the values)."
        f"{more} Intervals of quantiles end on a public grid, and cover more often than stated.</p>"
    )
    return section("reading", "How to read this page", body)


def _column(
    number: int,
    name: str,
    own: Sequence[Estimate],
    histograms: dict[str | None, Bars],
    logarithmic: bool,
) -> str:
    figures = "".join(
        f"<figure>{_heading(group)}{_drawn(name, group, bars)}</figure>"
        for group, bars in histograms.items()
    )
    scale = " Bars are of equal width in logarithms." if logarithmic else ""
    drawn = (
        f'<div class="shapes">{figures}</div><p class="note">Share of the values in each bar; the '
        f"lines are two standard deviations of the noise to each side.{scale}</p>"
        if figures
        else ""
    )
    grouped = any(one.group for one in own)
    heads = [head for head in _HEADS if grouped or head != "group"]
    cells = "".join(f"<th{_kind(head)}>{head}</th>" for head in heads)
    reach = _reach(own)
    rows = "".join(_row(one, grouped, reach[_scale(one)]) for one in own)
    table = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Statistics of {escape(name)}">'
        f'<table class="statistics"><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table>'
        "</div>"
    )
    return section(f"column{number}", escape(name), table + drawn, long=True)


def _drawn(name: str, group: str | None, bars: Bars) -> str:
    return bars_figure(name, group, *(part.tolist() for part in bars))


def _heading(group: str | None) -> str:
    return "" if group is None else f"<h4>{escape(group)}</h4>"


def _scale(one: Estimate) -> bool:
    """Differences have a scale of their own, around zero."""
    return one.statistic.startswith("difference")


def _reach(own: Sequence[Estimate]) -> dict[bool, tuple[float, float]]:
    """Lowest and highest end of the intervals that share a scale."""
    found = {}
    for kind in (False, True):
        ends = [end for one in own if _scale(one) is kind for end in (one.low, one.high)]
        if ends:
            found[kind] = min(ends), max(ends)
    return found


def _kind(head: str) -> str:
    beside = dict.fromkeys(("from", "to", "noise"), "n aside")
    numbers = {"estimate": "n", "interval": "plot", **beside}
    return f' class="{numbers[head]}"' if head in numbers else ""


def _row(one: Estimate, grouped: bool, reach: tuple[float, float]) -> str:
    low, high = reach
    width = (high - low) or 1.0
    left, right, at = (2 + 96 * (end - low) / width for end in (one.low, one.high, one.value))
    label = f"{one.value:.3g}, from {one.low:.3g} to {one.high:.3g}"
    track = (
        f'<span class="track" role="img" aria-label="{label}">'
        f'<i class="reach" style="left:{left:.2f}%;width:{right - left:.2f}%"></i>'
        f'<i class="point" style="left:{at:.2f}%"></i></span>'
    )
    group = f"<td>{escape(one.group or '')}</td>" if grouped else ""
    ends = number_text(one.low), number_text(one.high)
    return (
        f'<tr><td class="name">{escape(one.name)}</td>{group}<td class="plot">{track}</td>'
        f'<td class="n">{number_text(one.value)}{narrow(" to ".join(ends))}</td>'
        f'<td class="n aside">{ends[0]}</td><td class="n aside">{ends[1]}</td>'
        f'<td class="n aside">{error_text(one.noise_error)}</td></tr>'
    )
