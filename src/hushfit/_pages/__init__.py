"""Pages of HTML that load no other file: templates with escaping on, and one style for all.

A package that shows pages keeps its templates in a folder ``templates`` of its own. They extend
``base.html``, which has the style for light and dark screens and for phones, and import the macros
of ``parts.html``. Every value is escaped; markup that was made elsewhere, such as a figure, is
marked as such (`markupsafe.Markup`) where it is made.

rendered     A template of a package, filled with values
"""

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["rendered"]


def rendered(package: str, template: str, /, **values: Any) -> Markup:
    """A template of a package, filled with values.

    Parameters
    ----------
    package : str
        Whose folder ``templates`` has the template.
    template : str
        Name of its file.
    **values
        What the template names. A name that is missing is an error.

    Returns
    -------
    Markup
        HTML, safe to be put into another template.
    """
    return Markup(_environment(package).get_template(template).render(values))


@cache
def _environment(package: str) -> Environment:
    loader = ChoiceLoader([PackageLoader(package), PackageLoader(__name__)])
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for kind in ("css", "js"):
        # Style and script are files of ours: their quotes must stay quotes.
        made.globals[kind] = Markup(files(__name__).joinpath(f"page.{kind}").read_text("utf-8"))
    return made
