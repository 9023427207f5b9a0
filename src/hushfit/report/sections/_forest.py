"""Tables of coefficients with their intervals drawn beside them (forest plots)."""

import math
import re
from collections.abc import Sequence
from html import escape

from hushfit.estimators import Line
from hushfit.report.sections._figures import three_digits, tick

_SHOWN = 25  # rows of a forest plot before "Show all"


def narrow(text: str) -> str:
    """What narrow screens show under a number, in place of a column of its own."""
    return f'<small class="narrow">{text}</small>' if text else ""


def forest_row(name: str, value: float, error: float | None, reach: float) -> str:
    """One coefficient: its position on the scale from -reach to reach, and two standard errors to
    each side.
    """
    margin = 2 * (error or 0.0)
    clear = abs(value) > margin
    ratio = abs(value) / error if error else math.inf
    digits = _digits(reach)
    beside = "" if error is None else f"± {error:,.{digits}f}"
    label = f"{value:.3g}" + (f", plus or minus {margin:.3g}" if error else "")
    track = _track(label, (value - margin, value, value + margin), clear, reach)
    cells = [
        f'<td class="name">{_breakable(name)}</td><td class="plot">{track}</td>'
        f'<td class="n">{value:+,.{digits}f}{narrow(beside)}</td>',
    ]
    if error is not None:
        cells += [
            f'<td class="n aside">{error:,.{digits}f}</td>',
            f'<td class="n aside">{f"{ratio:.1f}" if error else "–"}</td>',
        ]
    data = (
        f'data-name="{escape(name)}" data-value="{value!r}" data-size="{abs(value)!r}" '
        f'data-se="{error or 0.0!r}"'
    )
    return (
        f'<tr {data} data-ratio="{ratio if math.isfinite(ratio) else 1e9!r}">{"".join(cells)}</tr>'
    )


def interval_row(name: str, line: Line, texts: tuple[str, str], reach: float) -> str:
    """One coefficient with its interval, on the scale from -reach to reach; ``texts`` are the
    interval and its test. One without an error has no interval.
    """
    clear = line.std_err > 0 and (line.low > 0 or line.high < 0)
    label = f"{three_digits(line.coef)}, interval {texts[0]}"
    track = _track(label, (line.low, line.coef, line.high), clear, reach)
    data = (
        f'data-name="{escape(name)}" data-value="{line.coef!r}" data-se="{line.std_err!r}" '
        f'data-ratio="{abs(line.z)!r}"'
    )
    return (
        f'<tr {data}><td class="name">{_breakable(name)}</td><td class="plot">{track}</td>'
        f'<td class="n">{three_digits(line.coef, "+")}{narrow(texts[0])}</td>'
        f'<td class="n aside">{texts[0]}</td>'
        f'<td class="n aside">{texts[1]}</td></tr>'
    )


def _track(label: str, points: tuple[float, float, float], clear: bool, reach: float) -> str:
    """A dot on its interval; hollow unless the interval is clear of zero."""
    start, middle, stop = (_share(point, reach) for point in points)
    return (
        f'<span class="track" role="img" aria-label="{escape(label)}">'
        f'<i class="reach" style="left:{start:.2f}%;width:{stop - start:.2f}%"></i>'
        f'<i class="point{"" if clear else " faint"}" style="left:{middle:.2f}%"></i></span>'
    )


def forest_table(
    title: str,
    columns: Sequence[tuple[str, str, str]],
    rows: Sequence[str],
    reach: float,
    after: str,
) -> str:
    """Rows of a forest plot under heads that sort them: a key, a text and classes each."""
    heads = [
        f'<th class="{extra.strip()}" scope="col"><button type="button" '
        f'data-key="{key}">{text}</button></th>'
        for key, text, extra in columns
    ]
    end = float(f"{reach:.2g}")
    marks = (
        f"<span>{tick(-end)}</span><span style='left:50%'>0</span><span "
        f"style='left:100%'>{tick(end)}</span>"
    )
    plot = (
        f'<th class="plot" scope="col"><span class="scale" aria-hidden="true">{marks}</span></th>'
    )
    return (
        f"<div data-forest><h3>{escape(title)}</h3>"
        '<div class="bar" hidden><input type="search" placeholder="Find a feature" '
        'aria-label="Find a feature">'
        '<button type="button" data-more aria-expanded="false">Show all</button></div>'
        f'<table class="forest" data-shown="{_SHOWN}"><thead>'
        f"<tr>{heads[0]}{plot}{''.join(heads[1:])}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{after}</div>"
    )


def _breakable(name: str) -> str:
    """A name that may be broken after its signs."""
    return "<wbr>".join(escape(part) for part in re.split(r"(?<=[=_#/.-])", name))


def _digits(reach: float) -> int:
    """Decimals of numbers up to a reach: about three significant digits."""
    size = math.floor(math.log10(reach))
    return max(3 - size, 0) if size >= 0 else 2 - size


def _share(value: float, reach: float) -> float:
    return min(max(50 + 48 * value / reach, 0.0), 100.0)
