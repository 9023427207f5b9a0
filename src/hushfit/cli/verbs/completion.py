"""``hushfit completion``: print the shell completion script."""

import click


@click.command(
    "completion",
    short_help="Print the shell completion script.",
    epilog="\b\nExample:\n  hushfit completion bash >> ~/.bashrc",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL, to be sourced by it."""
    from click.shell_completion import get_completion_class

    from hushfit.cli._app import app

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell} is not supported.")
    # The template alone: click would also run the shell to get its version.
    complete = kind(app, {}, "hushfit", "_HUSHFIT_COMPLETE")
    click.echo(complete.source_template % complete.source_vars())
