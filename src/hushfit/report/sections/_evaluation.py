"""Scores on held-out rows."""

from collections.abc import Iterable
from html import escape

from hushfit.report.scores import AnyEvaluation, Confusion
from hushfit.report.sections._document import section
from hushfit.report.sections._figures import calibration_figure


def evaluation_section(e: AnyEvaluation) -> str:
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
