"""What the tutorial prints of ``hushfit plan``, which reads no rows, is what it prints."""

import re
import shlex
from pathlib import Path

import pytest

from hushfit.cli import run

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
PLANS = re.findall(
    r"^\$ hushfit (plan .+)\n((?:(?!```|\$ ).*\n)+)", TUTORIAL.read_text(encoding="utf-8"), re.M
)


@pytest.mark.parametrize(("command", "printed"), PLANS, ids=[command for command, _ in PLANS])
def test_a_plan_of_the_tutorial_is_what_the_command_prints(command, printed, capsys):
    assert run(shlex.split(command)) == 0
    out, err = capsys.readouterr()
    lines = [line.rstrip() for line in (out + err).splitlines()]
    assert [line for line in lines if line] == [
        line.rstrip() for line in printed.splitlines() if line.strip()
    ]


def test_the_tutorial_has_plans():
    assert len(PLANS) == 2
