"""Entry point of the command line: finds the verb, runs it, and turns every error into one sentence
and an exit code.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from hushfit._version import __version__
from hushfit.cli._dry_run import Rehearsed, print_rehearsed
from hushfit.cli._printing import print_json, print_message
from hushfit.cli._wording import in_options
from hushfit.errors import ApprovalNeeded, BudgetExceeded, HushfitError, LedgerError, OutOfMemory

OK, UNEXPECTED, BAD_INPUT, OVER_BUDGET, LEDGER_FAULT, INTERRUPTED = 0, 1, 2, 3, 4, 130
NEEDS_APPROVAL = "needs approval"  # kind of an error, for programs

# Verb: module and one line of help, so that `hushfit --help` imports none of them.
VERBS = {
    "schema": "Draft the public description of a table.",
    "discover": "Find the frequent labels of columns privately, paying first.",
    "describe": "Release means, quantiles and shares with intervals, paying first.",
    "fit": "Fit a model with a privacy guarantee, paying first.",
    "predict": "Predict labels, numbers, counts or grades of new rows.",
    "evaluate": "Score a model on rows it has not seen.",
    "report": "Write one page about a model: guarantee, budget, coefficients.",
    "card": "Write a model card (Markdown with a YAML head).",
    "export": "Write a model as an ONNX graph, for serving without Python.",
    "plan": "Estimate cost and accuracy of a fit, before reading a row.",
    "ledger": "Manage the budget of data sets.",
    "studio": "Work in the browser: table, plan, fit, budget, models.",
    "audit": "Attack an algorithm, or show how a model's algorithm was attacked.",
    "federate": "Fit one model with owners who do not pool their rows.",
    "owner": "Take part in a federation with your own rows.",
    "completion": "Print the shell completion script.",
}

EPILOG = """\b
Exit codes: 0 done; 1 unexpected error; 2 bad input; 3 over budget;
            4 ledger error; 130 interrupted.
A non-zero code from `fit` means that the output was not written. Code 3 also
means that nothing was spent.

\b
Examples:
  hushfit schema patients.csv --target readmitted -o schema.toml
  hushfit ledger init ledger.db --dataset patients --epsilon 3 --delta 1e-6
  hushfit fit patients.csv --schema schema.toml --epsilon 1 --delta 1e-6 \\
      --ledger ledger.db --dataset patients -o model.json
  hushfit report model.json -o report.html
"""


class Verbs(click.Group):
    """Loads a verb's module when the verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"hushfit.cli.verbs.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            similar = get_close_matches(args[0], VERBS, n=1)
            if not similar:
                raise
            text = f"{error.message} Did you mean {similar[0]}?"
            raise click.UsageError(text, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=Verbs,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="hushfit")
def app() -> None:
    """Fit models on sensitive rows and release only what a differential-privacy proof allows."""


def main() -> None:
    """Entry point of the `hushfit` program."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader is gone; a second error at exit is of no use
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Parameters
    ----------
    arguments : sequence of str
        Without the name of the program.

    Returns
    -------
    int
        The exit code. No exception is raised.
    """
    as_json = "--json" in arguments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module="hushfit")
        for category in _own_warnings():
            warnings.simplefilter("always", category)
        warnings.showwarning = _show_warning
        return _guarded(list(arguments), as_json)


def _guarded(arguments: list[str], as_json: bool) -> int:
    try:
        app.main(arguments, prog_name="hushfit", standalone_mode=False, obj=tuple(arguments))
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except Rehearsed as end:
        print_rehearsed(end, as_json)
        return OK
    except (click.Abort, KeyboardInterrupt):
        return _refused(
            "interrupted", "Interrupted. Payments that were made stay.", INTERRUPTED, as_json
        )
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()  # the help itself, as click has it for a verb without a subcommand
        return BAD_INPUT
    except click.ClickException as error:
        text = f"{error.format_message()} See `{_verb_of(error)} --help`."
        return _refused("usage", text, BAD_INPUT, as_json)
    except BudgetExceeded as error:
        return _refused("over budget", str(error), OVER_BUDGET, as_json)
    except ApprovalNeeded as error:
        return _refused(NEEDS_APPROVAL, str(error), LEDGER_FAULT, as_json)
    except LedgerError as error:
        # Messages may be sent on, for instance to a coordinator; notes name servers and roles, and
        # are for the local user only.
        for note in getattr(error, "__notes__", ()):
            print_message(note, word="note")
        return _refused("ledger", str(error), LEDGER_FAULT, as_json)
    except MemoryError as error:
        known = "This needs more memory than there is. Payments that were made stay."
        text = str(error) if isinstance(error, OutOfMemory) else known
        return _refused("out of memory", text, UNEXPECTED, as_json)
    except HushfitError as error:
        text = in_options(str(error), _options(arguments))
        return _refused("bad input", text, BAD_INPUT, as_json)
    except BrokenPipeError:
        return OK
    except Exception as error:
        if os.environ.get("HUSHFIT_TRACEBACK"):
            raise
        # The text of an unexpected error might quote a row, so only its type is shown.
        text = (
            f"Unexpected {type(error).__name__}. Please report it; HUSHFIT_TRACEBACK=1 shows the "
            "details."
        )
        return _refused("unexpected", text, UNEXPECTED, as_json)
    return OK


def _options(arguments: Sequence[str]) -> dict[str, str]:
    """The option of each argument that the verb takes."""
    verb = next((word for word in arguments if not word.startswith("-")), "")
    if verb not in VERBS:
        return {}
    command = import_module(f"hushfit.cli.verbs.{verb}").command
    return {param.name: param.opts[-1] for param in command.params if param.opts[-1][:2] == "--"}


def _verb_of(error: click.ClickException) -> str:
    """The verb whose use was wrong, with the name of the program."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    return "hushfit" if context is None else context.command_path


def _refused(kind: str, text: str, code: int, as_json: bool) -> int:
    if as_json:
        print_json({"error": {"kind": kind, "message": text, "exit_code": code}})
    else:
        print_message(text)
    return code


def _own_warnings() -> list[type[Warning]]:
    from hushfit import errors

    return [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, Warning)
    ]


def _show_warning(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
    if category in _own_warnings():
        print_message(in_options(str(message), {}), word="warning")
