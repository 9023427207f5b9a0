"""Which options were written on the command line, and which of them would be ignored."""

from collections.abc import Collection
from typing import Final

import click

# Options of `fit` that every kind of model takes.
OF_EVERY_FIT: Final = (
    *("tables", "schema_path", "epsilon", "delta", "ledger", "dataset", "seed"),
    *("format_", "encoding", "delimiter", "header", "output", "overwrite", "dry_run"),
    "as_json",
)


def written_options() -> set[str]:
    """The parameters that were written on the command line."""
    context = click.get_current_context()
    commandline = click.core.ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is commandline}


def as_written(name: str) -> str:
    """An option as it is written: `--even-weights`."""
    known = click.get_current_context().command.params
    return next(option.opts[-1] for option in known if option.name == name)


def refuse_ignored_options(used: Collection[str], why: str) -> None:
    """Refuse options that were written and would not be looked at: something else would be done,
    and perhaps be paid for, than was asked for.

    Parameters
    ----------
    used : collection of str
        Parameters that are looked at.
    why : str
        What is done, in words.
    """
    written = written_options() - set(used)
    ignored = [
        as_written(option.name)
        for option in click.get_current_context().command.params
        if option.name in written and option.name is not None
    ]
    if ignored:
        raise click.UsageError(f"{', '.join(ignored)} would be ignored: {why}. Leave it out.")
