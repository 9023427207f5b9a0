"""Formulas as MathML, which browsers draw by themselves: no script, no network."""

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
# Common forms that docutils' converter lacks.
_SPELLED_OUT = [(r"\\dots\b", r"\\ldots"), (r"\\frac(\d)(\d)", r"\\frac{\1}{\2}")]


def _drawn(node: Any, as_block: bool) -> str:
    """MathML of a node, or its source with a warning where docutils does not know a command."""
    source = node.astext()
    for pattern, form in _SPELLED_OUT:
        source = re.sub(pattern, form, source)
    try:
        return str(tex2mathml(source, as_block=as_block))
    except MathError as error:
        LOGGER.warning("no MathML for %r: %s", source, error, location=node, type="mathml")
        return f"<code>{escape(source)}</code>"


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(_drawn(node, as_block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="math">{_drawn(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
