"""The tutorial's programs run, and its commands that pay nothing print what the page says."""

import re
import shlex
from pathlib import Path

import pytest

from hushfit.cli import run

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCKS = re.findall(r"^```(python|text|toml)\n(.*?)^```", TUTORIAL.read_text("utf-8"), re.M | re.S)
PROGRAMS = [text for kind, text in BLOCKS if kind == "python"]
COMMANDS = [
    (command, printed.splitlines())
    for kind, text in BLOCKS
    if kind == "text"
    for command, printed in re.findall(r"^\$ hushfit (.+)\n((?:(?!\$ ).*\n)+)", text, re.M)
]
# The first fit is refused, for its schema is not confirmed; all others pay.
FREE = [
    (command, printed)
    for command, printed in COMMANDS
    if command.startswith(("plan", "schema", "ledger init")) or printed[-1] == "exit code 2"
]
DRAFT = next(text for kind, text in BLOCKS if kind == "toml" and text.startswith("# Public"))


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """What each free command printed, after all programs, in a folder of its own."""
    folder = tmp_path_factory.mktemp("tutorial")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for program in PROGRAMS:
            exec(compile(program, str(TUTORIAL), "exec"), {})
        yield folder


def test_free_commands_print_what_the_page_says(walked, monkeypatch, capsys):
    monkeypatch.chdir(walked)
    for command, printed in FREE:
        code = run(shlex.split(command))
        out, err = capsys.readouterr()
        lines = [line.rstrip() for line in (out + err).splitlines() if line.strip()]
        lines += [f"exit code {code}"] if code else []
        page = [line.rstrip() for line in printed if line.strip()]
        if "..." not in map(str.strip, page):
            assert lines == page, command
            continue
        rest = iter(lines)  # in order, with others between
        assert all(line in rest for line in page if line.strip() != "..."), (command, lines)


def test_the_draft_of_the_page_is_the_beginning_of_the_file(walked, monkeypatch):
    monkeypatch.chdir(walked)
    assert run(["schema", "train.csv", "--target", "income", "-o", "shown.toml"]) == 0
    assert (walked / "shown.toml").read_text("utf-8").startswith(DRAFT.rstrip())


def test_there_is_something_to_test():
    assert len(FREE) == 12
    assert len(PROGRAMS) == 3
