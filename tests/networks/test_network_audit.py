"""Attacks on fits of networks come close to the claimed epsilon, and notice half the noise.

False alarms: each audit has a confidence of 0.999, with fixed seeds.
"""

import subprocess
import sys

import pytest

from hushfit.audit import Claim, Verdict, lower_bound
from hushfit.audit._bounds import verdict_of
from hushfit.audit._network_names import NETWORK_ATTACKS
from hushfit.audit.attacks import USUAL_BUDGET
from hushfit.audit.networks import attack_network, one_run_network
from hushfit.privacy import Budget, Relation


def test_an_attack_with_a_canary_measures_half_of_the_claim():
    budget = Budget(6.0, 1e-3)
    found = attack_network("network dp-sgd", Relation.ADD_REMOVE, budget, 400)
    assert found.verdict is Verdict.CONSISTENT
    assert found.ratio >= 0.5
    # The same scores against a claim of a third of the epsilon, which would need more noise.
    claim = Claim.gaussian(2.0, 1e-3, Relation.ADD_REMOVE)
    assert verdict_of(lower_bound(found.first, found.second, claim), claim) is Verdict.VIOLATED


@pytest.mark.slow
@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ADD_REMOVE])
@pytest.mark.parametrize("name", NETWORK_ATTACKS)
def test_every_attack_measures_half_of_the_claim(name, relation):
    found = attack_network(name, relation, USUAL_BUDGET, 2000)
    assert found.verdict is Verdict.CONSISTENT
    assert found.ratio >= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ADD_REMOVE])
def test_one_whole_fit_measures_half_of_the_claim(relation):
    found = one_run_network(relation)
    assert found.verdict is Verdict.CONSISTENT
    assert found.ratio >= 0.5


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ADD_REMOVE])
def test_few_canaries_measure_something_and_notice_a_quarter_of_the_noise(relation):
    found = one_run_network(relation, canaries=20_000)
    assert found.verdict is Verdict.CONSISTENT
    assert found.ratio >= 0.25
    less = one_run_network(relation, canaries=20_000, guessed=0.1, noise=0.25)
    assert less.verdict is Verdict.VIOLATED


def test_the_audit_runs_without_torch_and_says_what_is_left_out():
    """In a process that finds no torch."""
    script = (
        "import importlib.util, sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError(name)\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'torch' else found(name, *a)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "from hushfit.audit.__main__ import main\n"
        "main(['--only', 'no such attack', '-o', sys.argv[1]], standalone_mode=False)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "/dev/null"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "networks are left out" in done.stdout
    assert "0 attacks" in done.stdout
