"""One self-contained page about an audit: what the attacker saw, how well it distinguished the
tables, and what the claim forbids.
"""

import math
from collections.abc import Sequence
from html import escape

import numpy as np
from markupsafe import Markup

from hushfit._pages import rendered
from hushfit._typing import Vector
from hushfit.audit._bounds import EVENTS, Counted, Verdict
from hushfit.audit.attacks import Audit

_MEANING = {
    Verdict.CONSISTENT: "The attack came close to the claim and did not exceed it.",
    Verdict.VIOLATED: (
        "The tables were distinguished better than the claim allows. The guarantee is wrong."
    ),
    Verdict.NO_POWER: (
        "The attack stayed so far below the claim that it proves little, neither for nor against "
        "the claim."
    ),
}
_ABOUT_TABLES = "Made with artificial tables: this page holds no private information."
_BINS = 60
_SIDE = 300.0


def audit_page(audit: Audit) -> str:
    """Write an HTML page about an audit.

    Parameters
    ----------
    audit : Audit

    Returns
    -------
    str
        HTML that loads no other file.
    """
    claim, bound = audit.claim, audit.bound
    facts = [
        ("claimed epsilon", f"{claim.epsilon:.4g}", f"at delta {claim.delta:.2g}"),
        ("measured", f"≥ {audit.measured:.3g}", f"with {_percent(1 - bound.level)} confidence"),
        ("measured / claimed", f"{audit.ratio:.0%}", f"{audit.trials:,} trials"),
        ("attacker saw", audit.view, str(claim.relation)),
    ]
    sections = [_pictures(audit), _numbers(audit), _reading(audit)]
    return rendered(
        __package__,
        "audit.html",
        title=f"Audit of {audit.name}",
        lead=_MEANING[audit.verdict],
        verdict=str(audit.verdict),
        facts=facts,
        sections=map(Markup, sections),
        footer=_ABOUT_TABLES if audit.canary else "",
    )


def _pictures(audit: Audit) -> str:
    shown = _shown_event(audit)
    score = (
        "log-likelihood ratio of all releases"
        if audit.view == "white-box"
        else "score of the output"
    )
    left = (
        f"<figure>{_histogram(audit, shown, score)}<figcaption>Scores of the trials on the "
        '<b style="color:var(--one)">first</b> and on the <b style="color:var(--two)">second</b> '
        "table. The dashed line is the "
        "threshold that was chosen on a quarter of the trials and tested on the "
        "others.</figcaption></figure>"
    )
    right = (
        f"<figure>{_roc(audit, shown)}<figcaption>The ROC curve of the attack. A mechanism that "
        "keeps the claim can never get into the "
        "shaded region, for any attacker. The true curve is in the band around the measured one, "
        f"all of it with confidence {1 - audit.bound.level:.4g}: where the band reaches out of the "
        "region, nothing was broken. The box, a confidence region of the true rates of the tested "
        "event, is what the verdict rests on."
        "</figcaption></figure>"
    )
    bars = (
        f"<figure>{_bars(audit)}<figcaption>"
        "Lower bounds on epsilon. The first makes no "
        "assumption. The second assumes the claimed distribution of the noise and bounds its "
        "size.</figcaption></figure>"
    )
    return _section(
        "pictures", "What the attacker achieved", f'<div class="pair">{left}{right}</div>{bars}'
    )


def _shown_event(audit: Audit) -> Counted:
    """The event with the smallest p-value under the claim."""
    return min(audit.bound.events, key=lambda event: event.p_value(audit.claim.curve))


def _histogram(audit: Audit, event: Counted, label: str) -> str:
    both = np.concatenate([audit.first, audit.second])
    low, high = np.quantile(both, [0.001, 0.999])
    low, high = (low - 1.0, high + 1.0) if low == high else (low, high)
    edges = np.linspace(low, high, _BINS + 1)
    shares = [
        np.histogram(np.clip(scores, low, high), edges)[0] / len(scores)
        for scores in (audit.first, audit.second)
    ]
    top = max(float(share.max()) for share in shares)
    frame = _Frame(low, high, 0.0, 1.05 * top)
    areas = [
        f'<path class="{name}" d="{frame.steps(edges, share)}"/>'
        for name, share in zip(("first", "second"), shares, strict=True)
    ]
    cut = min(max(event.threshold, low), high)
    line = (
        f'<line class="cut" x1="{frame.x(cut):.1f}" x2="{frame.x(cut):.1f}" y1="{frame.y(0):.1f}" '
        f'y2="{frame.y(1.05 * top):.1f}"/>'
    )
    words = (
        f"Scores on the first table have mean {audit.first.mean():.3g}, on the second "
        f"{audit.second.mean():.3g}."
    )
    return frame.svg(
        "Scores on the two tables", words, [frame.axes(label, "share of trials"), *areas, line]
    )


def _roc(audit: Audit, event: Counted) -> str:
    frame = _Frame(0.0, 1.0, 0.0, 1.0)
    rates = np.unique(np.concatenate([np.linspace(0, 1, 201), np.geomspace(1e-5, 1, 60)]))
    most = audit.claim.curve.most(rates)
    limit = list(zip(rates.tolist(), most.tolist(), strict=True))
    first, second = (audit.first, audit.second) if event.above else (-audit.second, -audit.first)
    thresholds = np.quantile(np.concatenate([first, second]), np.linspace(1, 0, 201))
    curve = [(float((second >= t).mean()), float((first >= t).mean())) for t in thresholds]
    band = _band(curve, len(first), len(second), audit.bound.level)
    level = audit.bound.level / EVENTS / 2
    low_hit, high_alarm = event.at_least(level), event.at_most(level)
    hit, alarm = event.hits / event.hit_trials, event.alarms / event.alarm_trials
    box = (
        f'<path class="box" d="M{frame.x(alarm):.1f} '
        f"{frame.y(hit):.1f}H{frame.x(high_alarm):.1f}V{frame.y(low_hit):.1f}"
        f'H{frame.x(alarm):.1f}Z"/>'
    )
    parts = [
        frame.axes("false alarms", "detections", percent=True),
        f'<path class="forbidden" d="{frame.path([*limit, (0.0, 1.0)])}Z"/>',
        f'<path class="limit" d="{frame.path(limit)}"/>',
        f'<path class="even" d="{frame.path([(0, 0), (1, 1)])}"/>',
        f'<path class="band" d="{frame.path(band)}Z"/>',
        f'<path class="curve thin" d="{frame.path([(0.0, 0.0), *curve, (1.0, 1.0)])}"/>',
        box,
        f'<circle class="dot" cx="{frame.x(alarm):.1f}" cy="{frame.y(hit):.1f}" r="5"/>',
        f'<text class="soft" x="{frame.x(0.03):.1f}" y="{frame.y(0.95):.1f}">forbidden</text>',
    ]
    words = f"The tested event has {hit:.1%} detections at {alarm:.2%} false alarms."
    return frame.svg("ROC curve of the attack, and what the claim forbids", words, parts)


def _band(
    curve: Sequence[tuple[float, float]], hits: int, alarms: int, level: float
) -> list[tuple[float, float]]:
    """A region that the whole true curve is in, except with probability ``level``: both
    distribution functions are within the bound of Dvoretzky, Kiefer, Wolfowitz and Massart.
    """
    rise, shift = (math.sqrt(math.log(4 / level) / (2 * n)) for n in (hits, alarms))
    upper = [(max(alarm - shift, 0.0), min(hit + rise, 1.0)) for alarm, hit in curve]
    lower = [(min(alarm + shift, 1.0), max(hit - rise, 0.0)) for alarm, hit in curve]
    above = [(0.0, 0.0), (0.0, min(rise, 1.0)), *upper, (1.0, 1.0)]
    return [*above, (1.0, max(1 - rise, 0.0)), *reversed(lower), (min(shift, 1.0), 0.0)]


def _bars(audit: Audit) -> str:
    bars = [
        ("claimed", audit.claim.epsilon, "claimed"),
        ("no assumption", audit.bound.direct, "proved"),
    ]
    if audit.bound.family is not None:
        bars.append(("noise distribution as claimed", audit.bound.family, "assumed"))
    widest = 1.15 * max(value for _, value, _ in bars) or 1.0  # room for the number
    words = "; ".join(f"{name}: epsilon {value:.3g}" for name, value, _ in bars)
    rows = "".join(
        f'<span>{escape(name)}</span><span><i class="{css}" style="width:{100 * value / widest:.1f}'
        f'%"></i><b>{value:.3g}</b></span>'
        for name, value, css in bars
    )
    return f'<div class="levels" role="img" aria-label="{escape(words)}">{rows}</div>'


def _numbers(audit: Audit) -> str:
    level = audit.bound.level / EVENTS / 2
    rows = []
    for event in audit.bound.events:
        side = "at least" if event.above else "below"
        rows.append(
            f"<tr><td>score {side} {event.threshold:.3g}</td>"
            f"{_counted(event.hits, event.hit_trials, f'≥ {event.at_least(level):.4f}')}"
            f"{_counted(event.alarms, event.alarm_trials, f'≤ {event.at_most(level):.5f}')}"
            f'<td class="n">{event.p_value(audit.claim.curve):.2g}</td></tr>'
        )
    head = (
        '<tr><th>event</th><th class="n">detections</th><th class="n aside">true rate</th><th '
        'class="n">false alarms</th>'
        '<th class="n aside">true rate</th><th class="n">p<span class="aside"> under the claim'
        "</span></th></tr>"
    )
    intro = (
        "<p>Four events were chosen on a quarter of the trials and counted on the rest. All "
        "bounds together are wrong with probability at most "
        f"{audit.bound.level:.2g}. The p-value of the claim, corrected for the four events, is "
        f"{audit.bound.p_value:.2g}.</p>"
    )
    table = (
        '<div class="scroll" tabindex="0" role="region" aria-label="Events"><table>'
        f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
    canary = f"<p>The two tables: {escape(audit.canary)}.</p>" if audit.canary else ""
    return _section("numbers", "The counts", canary + intro + table)


def _counted(found: int, trials: int, rate: str) -> str:
    """A count with the bound of its rate: in a column of its own, or under it on narrow screens."""
    return (
        f'<td class="n">{found} / {trials}<small class="narrow">{rate}</small></td>'
        f'<td class="n aside">{rate}</td>'
    )


def _reading(audit: Audit) -> str:
    items = [
        f"The two tables are neighbours under <b>{audit.claim.relation}</b>, made for this "
        "algorithm such that its accounted epsilon is attained or "
        "nearly. An error that shows only on other tables is not found here.",
        "A lower bound below the claim is no proof of the claim: proofs are in docs/proofs. A "
        "lower bound above it proves that the claim is wrong, at "
        "the stated confidence.",
        "The white-box attacker sees every noisy answer and knows all rows but one; the black-box "
        "attacker sees the final weights. The guarantee holds "
        "against both.",
    ]
    return _section(
        "reading", "How to read this", f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
    )


def _section(key: str, title: str, body: str) -> str:
    return (
        f'<section id="{key}" aria-labelledby="{key}-h"><h2 '
        f'id="{key}-h">{title}</h2>{body}</section>'
    )


def _percent(share: float) -> str:
    return f"{100 * share:.8g} %"


class _Frame:
    """A square with axes."""

    def __init__(self, left: float, right: float, bottom: float, top: float) -> None:
        self.left, self.right, self.bottom, self.top = left, right, bottom, top
        self.margin, self.above = 62.0, 12.0

    def x(self, value: float) -> float:
        return self.margin + _SIDE * (value - self.left) / (self.right - self.left)

    def y(self, value: float) -> float:
        return self.above + _SIDE * (self.top - value) / (self.top - self.bottom)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self.x(a):.1f} {self.y(b):.1f}" for a, b in points)

    def steps(self, edges: Vector, heights: Vector) -> str:
        """Outline of a histogram, closed along the axis."""
        points = [(float(edges[0]), 0.0)]
        for low, high, height in zip(
            edges[:-1].tolist(), edges[1:].tolist(), heights.tolist(), strict=True
        ):
            points += [(low, height), (high, height)]
        return self.path([*points, (float(edges[-1]), 0.0)]) + "Z"

    def axes(self, below: str, beside: str, percent: bool = False) -> str:
        lines, low, high = [], self.y(self.bottom), self.y(self.top)
        for a in _ticks(self.left, self.right):
            x, text = self.x(a), f"{a:.0%}" if percent else f"{a:g}"
            lines.append(
                f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
            )
            lines.append(
                f'<text class="soft" x="{x:.1f}" y="{low + 20:.1f}" '
                f'text-anchor="middle">{text}</text>'
            )
        for b in _ticks(self.bottom, self.top):
            y, text = self.y(b), f"{100 * b:.6g}%"
            lines.append(
                f'<line class="grid" x1="{self.x(self.left):.1f}" x2="{self.x(self.right):.1f}" '
                f'y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            lines.append(
                f'<text class="soft" x="{self.margin - 8}" y="{y + 4:.1f}" '
                f'text-anchor="end">{text}</text>'
            )
        middle = self.margin + _SIDE / 2
        lines.append(
            f'<text class="soft" x="{middle}" y="{self.above + _SIDE + 42}" '
            f'text-anchor="middle">{escape(below)}</text>'
        )
        turned = f'transform="translate(14 {self.above + _SIDE / 2}) rotate(-90)"'
        lines.append(f'<text class="soft" {turned} text-anchor="middle">{escape(beside)}</text>')
        return "".join(lines)

    def svg(self, title: str, words: str, parts: Sequence[str]) -> str:
        return _svg(self.margin + _SIDE + 18, self.above + _SIDE + 50, title, words, parts)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, about five."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(
        factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= 0.99 * rough
    )
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.6g}") for k in range(first, last + 1)]


def _svg(width: float, height: float, title: str, words: str, parts: Sequence[str]) -> str:
    key = "a" + "".join(c for c in title.lower() if c.isalpha())[:12]
    head = f'<title id="{key}t">{escape(title)}</title><desc id="{key}d">{escape(words)}</desc>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="{key}t {key}d">'
        f"{head}{''.join(parts)}</svg>"
    )
