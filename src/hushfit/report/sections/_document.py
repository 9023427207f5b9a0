"""A whole page, and one section of it."""

from collections.abc import Sequence

from markupsafe import Markup

from hushfit._pages import rendered


def document(
    title: str,
    lead: str,
    facts: Sequence[tuple[str, str, str]],
    sections: Sequence[str],
    held_out: str = "",
) -> str:
    """A whole page: its title, a sentence, facts with a value and a remark each, and sections."""
    return rendered(
        "hushfit.report",
        "report.html",
        title=title,
        lead=lead,
        facts=facts,
        sections=map(Markup, sections),
        held_out=held_out,
    )


def section(key: str, title: str, body: str, long: bool = False) -> str:
    return (
        f'<section id="{key}" aria-labelledby="{key}-h"{" class=long" if long else ""}><h2 '
        f'id="{key}-h">{title}</h2>{body}</section>'
    )
