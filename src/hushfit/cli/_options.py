"""Which options were written on the command line, and how they are written."""

import click


def written_options() -> set[str]:
    """The parameters that were written on the command line."""
    context = click.get_current_context()
    commandline = click.core.ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is commandline}


def as_written(name: str) -> str:
    """An option as it is written: `--even-weights`."""
    return f"--{name.replace('_', '-')}"
