"""Every planted bug is detected by every check that should, leaves no trace, and is on the page.

Random tests are seeded, except those of noise from the operating system, which have a false-alarm
rate of 1e-6 each.
"""

import warnings
from pathlib import Path

import pytest

from hushfit.audit import trimmed_checks

from . import MUTANTS, alarms_of, planted
from .__main__ import PAGE, TABLE

CHECKS = trimmed_checks()
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_noticed(name):
    mutant = MUTANTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for check in mutant.caught_by:
            with planted(mutant):
                assert alarms_of(CHECKS[check]), f"{check} raised no alarm"


def test_bugs_are_many_and_each_is_named_once_and_told_in_a_sentence():
    assert len(MUTANTS) >= 45
    for mutant in MUTANTS.values():
        assert mutant.caught_by
        assert set(mutant.caught_by) <= set(CHECKS)
        assert mutant.wrong.endswith(".")
        assert mutant.where.startswith("hushfit.")


@pytest.mark.parametrize(
    "name",
    ["one gradient for two", "dual without noise", "ranges from the rows", "paid afterwards"],
)
def test_nothing_of_a_bug_stays(name):
    mutant = MUTANTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for check in mutant.caught_by:
            with planted(mutant):
                pass
            assert not alarms_of(CHECKS[check])


def test_the_page_lists_exactly_the_bugs():
    listed = PAGE.read_text(encoding="utf-8").split(TABLE[0])[1].split(TABLE[1])[0]
    rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in listed.splitlines()
        if line.startswith("| ")
    ][1:]
    assert [row[0] for row in rows] == list(MUTANTS)
    for row, mutant in zip(rows, MUTANTS.values(), strict=True):
        assert row[1] == f"{mutant.wrong} (`{mutant.where}`)"
        assert "; ".join(mutant.caught_by) in row
    assert "missed" not in listed


def test_bugs_are_not_shipped():
    assert not any("mutant" in str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py"))
