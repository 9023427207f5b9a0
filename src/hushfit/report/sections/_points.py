"""What an evaluator must be told."""

from collections.abc import Sequence
from html import escape

from hushfit.report._evaluator_points import Point
from hushfit.report.sections._document import section


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
