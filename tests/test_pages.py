"""Pages are filled from templates, and every value is escaped."""

from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

import hushfit
from hushfit._pages import rendered

HOSTILE = "</h1><script>alert('1')</script>"
SOURCE = Path(hushfit.__file__).parent
VALUES = {
    "title": HOSTILE,
    "lead": HOSTILE,
    "facts": [(HOSTILE, HOSTILE, HOSTILE)],
    "sections": [HOSTILE],
    "held_out": HOSTILE,
}


def test_hostile_values_stay_text():
    page = rendered("hushfit.report", "report.html", **VALUES)
    assert page.count("<script>") == 1  # the page's own
    assert page.count("&lt;script&gt;alert(&#39;1&#39;)") == 8


def test_markup_of_ours_is_not_escaped_twice():
    page = rendered("hushfit.report", "report.html", **{**VALUES, "sections": [Markup("<p>a</p>")]})
    assert "<p>a</p>" in page
    assert isinstance(page, Markup)


def test_a_name_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="held_out"):
        rendered("hushfit.report", "report.html", **dict(list(VALUES.items())[:-1]))


@pytest.mark.parametrize("path", sorted(SOURCE.glob("**/templates/*")), ids=lambda path: path.name)
def test_no_template_turns_escaping_off(path):
    text = path.read_text(encoding="utf-8")
    assert "|safe" not in text.replace(" ", "")
    assert "autoescape" not in text
