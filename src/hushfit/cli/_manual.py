"""The manual page, generated from the texts of ``--help``."""

from collections.abc import Iterator

import click

from hushfit.cli._app import VERBS, app

_HEAD = """# The `hushfit` command

This page is generated from the program's help texts (`python -m hushfit.cli._manual >
docs/cli.md`). [The tutorial](tutorial.md) shows the verbs with real output.
"""

_PLAN = """
## The rule behind `hushfit plan`

With `x = s * sqrt(d + 1) / (n * mu)`, where n is the number of rows, d of encoded columns, s is 2
for replace-one and 1 for add-remove, and mu is the Gaussian parameter of (epsilon, delta), the
default solver is expected to lose `0.24 * x**0.69` of accuracy against a fit without privacy, and
nine cases in ten are within a factor of 2.7 of that. The rule is a least-squares line, in
logarithms, through 61 measurements: eight tables of 6,500 to 80,000 rows and 33 to 301 columns,
epsilon from 0.05 to 1.6 at delta 1e-8, both relations on three of them. It does not depend on your
labels: a rare class or a very easy problem can be outside. The noise that `plan` prints is not an
estimate but the exact calibration.
"""


def manual() -> str:
    """The whole page as Markdown."""
    parts = [_HEAD, _entry("hushfit", app)]
    parts += [_entry(f"hushfit {name}", command) for name, command in _commands()]
    return "\n".join(parts) + _PLAN


def _commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(app, help_option_names=["-h", "--help"])
    for verb in VERBS:
        command = app.get_command(context, verb)
        assert command is not None
        yield verb, command
        if isinstance(command, click.Group):
            yield from (
                (f"{verb} {name}", command.commands[name]) for name in sorted(command.commands)
            )


def _entry(title: str, command: click.Command) -> str:
    context = click.Context(
        command,
        info_name=title,
        max_content_width=100,
        terminal_width=100,
        help_option_names=["-h", "--help"],
    )
    return f"## `{title}`\n\n```text\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    click.echo(manual(), nl=False)
