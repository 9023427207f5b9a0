"""Figures as SVG text. Colours come from the page, text is in the reader's font, and each figure
has a text description.
"""

import math
import zlib
from collections.abc import Sequence
from html import escape
from typing import Any

from hushfit.forecast import Forecast
from hushfit.report.scores import CalibrationCell

_WIDE_BAND = 0.6  # beliefs after 50 percent, from which on curves are flat there
_STANDALONE = (
    "<style>text{font:13px "
    "sans-serif;fill:#1c2326}.soft{fill:#5c676c}.grid{stroke:#dfe2e0}.axis{stroke:#5c676c}"
    ".even{stroke:#5c676c;stroke-dasharray:4 "
    "4;fill:none}.curve{stroke:#0b6e69;stroke-width:2.5;fill:none}"
    ".band{fill:#0b6e69;opacity:.14}.dot{fill:#0b6e69}.strong{font-weight:650}</style>"
)


def posterior(prior: float, epsilon: float, delta: float) -> tuple[float, float]:
    """Smallest and largest posterior probability of an attacker, except with probability about
    delta.
    """
    # By exp(-epsilon) alone: exp(epsilon) overflows from 710 on.
    odds, shrunk = prior / (1 - prior), math.exp(-epsilon)
    low, high = odds * shrunk / (1 + odds * shrunk), odds / (odds + shrunk)
    return max(low - delta, 0.0), min(high + delta, 1.0)


def odds_figure(
    epsilon: float, delta: float, unit: str = "one row", seen: str = "the model"
) -> str:
    """Posterior against prior belief of an attacker who sees a release."""
    box = _Square(280)
    priors = [k / 50 for k in range(1, 50)]
    bounds = [posterior(prior, epsilon, delta) for prior in priors]
    upper = [
        (0.0, 0.0),
        *((p, high) for p, (_, high) in zip(priors, bounds, strict=True)),
        (1.0, 1.0),
    ]
    lower = [
        (0.0, 0.0),
        *((p, low) for p, (low, _) in zip(priors, bounds, strict=True)),
        (1.0, 1.0),
    ]
    low, high = posterior(0.5, epsilon, delta)
    parts = [
        box.frame("belief before", "belief after"),
        f'<path class="band" d="{box.path([*upper, *reversed(lower)])}Z"/>',
        f'<path class="curve" d="{box.path(upper)}"/><path class="curve" d="{box.path(lower)}"/>',
        f'<path class="even" d="{box.path([(0, 0), (1, 1)])}"/>',
        *_belief_dots(box, low, high),
    ]
    description = (
        f"An attacker who believed something about {unit} with probability 50 percent believes it "
        f"with {low:.0%} to {high:.0%} "
        f"after seeing {seen}. The shaded band shows the same for every starting belief."
    )
    return box.svg(f"What {seen} can change in an attacker's belief", description, parts)


def _belief_dots(box: "_Square", low: float, high: float) -> tuple[str, str]:
    """The beliefs after 50 percent: their labels are in the band where it is wide, since the curves
    are flat there, and beside it where it is narrow.
    """
    below, above = f"{low:.0%}", f"{high:.0%}"
    if high - low > _WIDE_BAND:
        return box.dot(0.5, high, above, "start", 10, 22), box.dot(0.5, low, below, "end", -10, -12)
    return box.dot(0.5, high, above, "end", -10), box.dot(0.5, low, below, "start", 10)


def calibration_figure(cells: Sequence[CalibrationCell]) -> str:
    """Predicted against observed frequency."""
    box = _Square(280)
    largest = max(cell.rows for cell in cells)
    dots = [
        f'<circle class="dot" cx="{box.x(c.predicted):.1f}" cy="{box.y(c.observed):.1f}" '
        f'r="{4 + 7 * math.sqrt(c.rows / largest):.1f}">'
        f"<title>predicted {c.predicted:.1%}, observed {c.observed:.1%}, {c.rows} rows</title>"
        "</circle>"
        for c in cells
    ]
    line = f'<path class="curve" d="{box.path([(c.predicted, c.observed) for c in cells])}"/>'
    description = "; ".join(
        f"predicted {c.predicted:.0%}, observed {c.observed:.0%}" for c in cells
    )
    even = f'<path class="even" d="{box.path([(0, 0), (1, 1)])}"/>'
    return box.svg(
        "Calibration on the held-out rows",
        description,
        [box.frame("predicted", "observed"), even, line, *dots],
    )


def plan_figure(forecasts: Sequence[Forecast], standalone: bool = False) -> str:
    """Expected loss of accuracy against epsilon, both logarithmic, with its range."""
    width, height, left, bottom, top, right = 520, 340, 76, 52, 44, 18
    low = min(math.log10(f.epsilon) for f in forecasts) - 0.05
    high = max(math.log10(f.epsilon) for f in forecasts) + 0.05
    floor, ceiling = -4.0, math.log10(0.5)

    def x(epsilon: float) -> float:
        return left + (width - left - right) * (math.log10(epsilon) - low) / (high - low)

    def y(loss: float) -> float:
        level = min(max(math.log10(max(loss, 1e-9)), floor), ceiling)
        return top + (height - top - bottom) * (ceiling - level) / (ceiling - floor)

    rows = "".join(
        f'<line class="grid" x1="{left}" x2="{width - right}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>'
        f'<text class="soft" x="{left - 8}" y="{y(v) + 4:.1f}" text-anchor="end">{100 * v:g}</text>'
        for v in (0.0001, 0.001, 0.01, 0.1)
    )
    columns = "".join(
        f'<line class="grid" x1="{x(v):.1f}" x2="{x(v):.1f}" y1="{top}" y2="{height - bottom}"/>'
        f'<text class="soft" x="{x(v):.1f}" y="{height - bottom + 18}" '
        f'text-anchor="middle">{v:g}</text>'
        for v in round_steps(10**low, 10**high)
    )
    upper = [(x(f.epsilon), y(f.loss_high)) for f in forecasts]
    lower = [(x(f.epsilon), y(f.loss_low)) for f in forecasts]
    title, middle = "Accuracy that privacy is expected to cost", (top + height - bottom) / 2
    parts = [
        rows,
        columns,
        f'<path class="band" d="{_line([*upper, *reversed(lower)])}Z"/>',
        f'<path class="curve" d="{_line([(x(f.epsilon), y(f.loss)) for f in forecasts])}"/>',
        f'<text class="strong" x="{left}" y="18">{title}</text>',
        f'<text class="soft" x="{left}" y="35">shaded: nine cases in ten</text>',
        f'<text class="soft" x="{(left + width - right) / 2:.0f}" y="{height - 10}" '
        'text-anchor="middle">epsilon (privacy loss, log scale)</text>',
        f'<text class="soft" transform="translate(18 {middle:.0f}) rotate(-90)" '
        'text-anchor="middle">points of accuracy lost (log scale)</text>',
    ]
    description = "; ".join(f"epsilon {f.epsilon:g}: {100 * f.loss:.2f} points" for f in forecasts)
    return _svg(
        width,
        height,
        "Expected loss of accuracy",
        description,
        [_STANDALONE if standalone else "", *parts],
    )


def round_steps(low: float, high: float) -> list[float]:
    """Round numbers between two positive ones, at about equal ratios: powers of ten times 1, 2
    and 5, or those alone if there are many.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1, 2, 5) if high / low < 1e4 else (1,)
    found = [float(f"{digit}e{power}") for power in powers for digit in digits]
    return [value for value in found if low <= value <= high]


def shape_figure(
    name: str,
    values: Sequence[float],
    seen: Sequence[bool],
    ends: tuple[str, str, str],
) -> str:
    """A piecewise linear function of one column; dashed about knots where no rows are seen.

    ``ends`` are the lowest, the middle and the highest value of the column as text. The scale is
    that of the knots where rows are seen.
    """
    largest = max([abs(v) for v, shown in zip(values, seen, strict=True) if shown], default=0.0)
    reach = _rounded_up(largest or max(map(abs, values)))
    width, height, left, top, bottom = 260.0, 150.0, 44.0, 10.0, 26.0
    right, last = 10.0, len(values) - 1

    def x(k: float) -> float:
        return left + (width - left - right) * k / last

    def y(value: float) -> float:
        within = min(max(value / reach, -1.1), 1.1)
        return top + (height - top - bottom) * (1 - within) / 2

    marks = "".join(
        f'<line class="{"axis" if v == 0 else "grid"}" x1="{left}" x2="{width - right}" '
        f'y1="{y(v):.1f}" y2="{y(v):.1f}"/><text class="soft" x="{left - 6}" y="{y(v) + 4:.1f}" '
        f'text-anchor="end">{v:+.2g}</text>'
        for v in (reach, 0.0, -reach)
    ).replace(">+0<", ">0<")
    places = (0.0, last / 2, float(last))
    shown = ends if len("".join(ends)) < 24 else (ends[0], "", ends[2])  # no room for three dates
    ticks = "".join(
        f'<text class="soft" x="{x(k):.1f}" y="{height - 6}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
        for k, text, anchor in zip(places, shown, ("start", "middle", "end"), strict=True)
    )
    parts = [
        f'<path class="{"curve" if seen[k] and seen[k + 1] else "even"}" '
        f'd="{_line([(x(k), y(values[k])), (x(k + 1), y(values[k + 1]))])}"/>'
        for k in range(last)
    ]
    dots = [
        f'<circle class="dot" cx="{x(k):.1f}" cy="{y(v):.1f}" r="3.5"/>'
        for k, v in enumerate(values)
        if seen[k]
    ]
    description = (
        f"From {ends[0]} to {ends[2]}: "
        + ", ".join(f"{v:+.2g}" for v in values)
        + ("" if all(seen) else ". Dashed parts have too few rows to be told from none.")
    )
    return _svg(width, height, f"Effect of {name}", description, [marks, ticks, *parts, *dots])


def bars_figure(
    name: str,
    group: str | None,
    edges: Sequence[float],
    shares: Sequence[float],
    noise: Sequence[float],
) -> str:
    """A noisy histogram: bars from zero, each with two standard deviations of its noise."""
    width, height, left, bottom, top = 320.0, 150.0, 6.0, 22.0, 8.0
    highest = max(max(s + 2 * e for s, e in zip(shares, noise, strict=True)), 1e-9)
    each = (width - 2 * left) / len(shares)

    def y(share: float) -> float:
        return top + (height - bottom - top) * (1 - min(max(share, 0.0), highest) / highest)

    parts = []
    for k, (share, error) in enumerate(zip(shares, noise, strict=True)):
        x, middle = left + k * each, left + (k + 0.5) * each
        parts.append(
            f'<rect class="bar" x="{x + 1:.1f}" y="{y(share):.1f}" width="{each - 2:.1f}" '
            f'height="{y(0.0) - y(share):.1f}"><title>{edges[k]:.4g} to {edges[k + 1]:.4g}: '
            f"{share:.1%}</title></rect>"
            f'<line class="axis" x1="{middle:.1f}" x2="{middle:.1f}" '
            f'y1="{y(share - 2 * error):.1f}" y2="{y(share + 2 * error):.1f}"/>'
        )
    axis = f'<line class="axis" x1="{left}" x2="{width - left}" y1="{y(0.0)}" y2="{y(0.0)}"/>'
    places = ((left, edges[0], "start"), (width - left, edges[-1], "end"))
    marks = "".join(
        f'<text class="soft" x="{x}" y="{height - 5}" text-anchor="{anchor}">{tick(edge)}</text>'
        for x, edge, anchor in places
    )
    description = ", ".join(
        f"{edges[k]:.4g} to {edges[k + 1]:.4g}: {max(share, 0.0):.1%}"
        for k, share in enumerate(shares)
    )
    title = f"Histogram of {name}" + ("" if group is None else f", {group}")
    return _svg(width, height, title, description, [*parts, axis, marks])


def three_digits(value: float, sign: str = "") -> str:
    """A number with three significant digits, large ones without an exponent."""
    text = f"{value:{sign}.3g}"
    return f"{float(text):{sign},.0f}" if "e+" in text and abs(value) < 1e12 else text


def tick(value: float) -> str:
    """A number at an axis, large ones without an exponent."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def _rounded_up(value: float) -> float:
    """The next number with one significant digit; one for zero."""
    if value == 0.0:
        return 1.0
    step = 10.0 ** math.floor(math.log10(value))
    return math.ceil(value / step) * step


class _Square:
    """A unit square with axes in percent."""

    def __init__(self, side: float) -> None:
        self.side, self.left, self.top = side, 58.0, 14.0

    def x(self, share: float) -> float:
        return self.left + self.side * share

    def y(self, share: float) -> float:
        return self.top + self.side * (1 - share)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return _line([(self.x(a), self.y(b)) for a, b in points])

    def frame(self, below: str, beside: str) -> str:
        lines = []
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            x, y = self.x(share), self.y(share)
            lines.append(
                f'<line class="grid" x1="{x}" x2="{x}" y1="{self.y(0)}" y2="{self.y(1)}"/>'
            )
            lines.append(
                f'<line class="grid" x1="{self.x(0)}" x2="{self.x(1)}" y1="{y}" y2="{y}"/>'
            )
            lines.append(
                f'<text class="soft" x="{x}" y="{self.y(0) + 20}" '
                f'text-anchor="middle">{share:.0%}</text>'
            )
            lines.append(
                f'<text class="soft" x="{self.left - 8}" y="{y + 4}" '
                f'text-anchor="end">{share:.0%}</text>'
            )
        middle = self.top + self.side / 2
        lines.append(
            f'<text x="{self.x(0.5)}" y="{self.y(0) + 40}" text-anchor="middle">{below}</text>'
        )
        lines.append(
            f'<text transform="translate(12 {middle}) rotate(-90)" '
            f'text-anchor="middle">{beside}</text>'
        )
        return "".join(lines)

    def dot(
        self, x: float, y: float, label: str, anchor: str, shift: float, drop: float = 4
    ) -> str:
        at = f'x="{self.x(x) + shift:.1f}" y="{self.y(y) + drop:.1f}" text-anchor="{anchor}"'
        return (
            f'<circle class="dot" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="6"/><text '
            f'class="strong" {at}>{label}</text>'
        )

    def svg(self, title: str, description: str, parts: Sequence[str]) -> str:
        return _svg(
            self.side + self.left + 22, self.side + self.top + 46, title, description, parts
        )


def _line(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _svg(width: float, height: float, title: str, description: str, parts: Sequence[Any]) -> str:
    key = f"f{zlib.crc32((title + description).encode()):08x}"
    head = (
        f'<title id="{key}t">{escape(title)}</title><desc id="{key}d">{escape(description)}</desc>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="{key}t {key}d">'
        f"{head}{''.join(parts)}</svg>"
    )
