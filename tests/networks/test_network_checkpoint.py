"""Interrupted fits go on where they stopped: no step is drawn twice, and nothing is paid twice."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _networks import CLASSES

from hushfit import Ledger
from hushfit.errors import BudgetExceeded, InvalidArgument, LedgerError
from hushfit.torch import NetworkGradient, PrivateMLPClassifier
from hushfit.torch._checkpoint import CLAIMED_AT_ONCE, Checkpoint, made_of, only_user_of
from hushfit.torch.solvers import NetworkAdam, NetworkSGD

STEPS = 3 * CLAIMED_AT_ONCE
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 6)).astype(np.float32), np.arange(60) % CLASSES
pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.WeakGuaranteeWarning")


class Killed(Exception):
    pass


def model(path, ledger=None, solver=None, **more):
    solver = solver or NetworkSGD(STEPS, 1.0, momentum=0.5, average_last=0.5)
    return PrivateMLPClassifier(
        (4,), classes=range(CLASSES), solver=solver, checkpoint=path, ledger=ledger, **more
    )


@pytest.fixture
def drawn(monkeypatch):
    """Weights at which gradients were computed from the rows."""
    calls = []
    compute = NetworkGradient.__call__

    def watched(self, source, units):
        calls.append(self.w.copy())
        if len(calls) == drawn_before_the_kill[0]:
            raise Killed
        return compute(self, source, units)

    drawn_before_the_kill = [0]
    monkeypatch.setattr(NetworkGradient, "__call__", watched)
    calls_and_kill = (calls, drawn_before_the_kill)
    return calls_and_kill


@pytest.mark.parametrize("kill_at", [1, 4, CLAIMED_AT_ONCE, CLAIMED_AT_ONCE + 1, STEPS])
def test_a_killed_fit_goes_on_without_drawing_or_paying_twice(tmp_path, drawn, kill_at):
    calls, kill = drawn
    kill[0] = kill_at
    path, ledger = tmp_path / "run", Ledger(1.0, 1e-6)
    with pytest.raises(Killed):
        model(path, ledger).fit(X, Y)
    assert len(ledger.entries) == 1
    kill[0] = 0
    before = len(calls)
    resumed = model(path, ledger).fit(X, Y)
    assert len(ledger.entries) == 1
    assert resumed.receipt_ == ledger.entries[0]
    # All steps that may have been drawn before are skipped: never more than were paid for.
    claimed = CLAIMED_AT_ONCE * -(-kill_at // CLAIMED_AT_ONCE)
    assert len(calls) - before == STEPS - claimed
    again = model(path, ledger).fit(X, Y)
    assert len(calls) - before == STEPS - claimed  # a finished fit is read, not repeated
    np.testing.assert_array_equal(again.predict_proba(X), resumed.predict_proba(X))


def test_a_ledger_on_disk_knows_the_payment_of_an_earlier_process(tmp_path, drawn):
    _, kill = drawn
    kill[0] = 3
    path, place = tmp_path / "run", tmp_path / "ledger.db"
    Ledger.create(place, dataset="d", epsilon=2.0, delta=1e-5)
    with pytest.raises(Killed):
        model(path, Ledger(place, dataset="d")).fit(X, Y)
    kill[0] = 0
    later = Ledger(place, dataset="d")
    assert model(path, later).fit(X, Y).receipt_.number == 1
    assert len(later.entries) == 1


def test_a_resumed_fit_continues_from_the_stored_state(tmp_path, drawn):
    _, kill = drawn
    seen = []
    kill[0] = 2 * CLAIMED_AT_ONCE + 1
    path = tmp_path / "run"
    adam = NetworkAdam(STEPS, 1.0)
    with pytest.raises(Killed):
        model(path, solver=adam, callbacks=[seen.append]).fit(X, Y)
    assert [one.step for one in seen] == [CLAIMED_AT_ONCE, 2 * CLAIMED_AT_ONCE]
    kill[0] = 0
    claimed_too_many = 3 * CLAIMED_AT_ONCE
    resumed = model(path, solver=adam).fit(X, Y)
    weights = np.concatenate([one.detach().numpy().ravel() for one in resumed.module_.parameters()])
    assert claimed_too_many == STEPS  # so the last stored weights are the result
    np.testing.assert_allclose(weights, seen[-1].weights.astype(np.float32))


def test_callbacks_see_nothing_that_is_not_on_disk(tmp_path):
    path, steps = tmp_path / "run", []

    def look(progress):
        with np.load(path) as stored:
            np.testing.assert_array_equal(stored["w"], progress.weights)
        steps.append(progress.step)

    model(path, callbacks=[look]).fit(X, Y)
    assert steps == [CLAIMED_AT_ONCE, 2 * CLAIMED_AT_ONCE, STEPS]


def test_a_checkpoint_of_another_fit_or_ledger_is_refused(tmp_path, drawn):
    _, kill = drawn
    kill[0] = 3
    path, ledger = tmp_path / "run", Ledger(1.0, 1e-6)
    with pytest.raises(Killed):
        model(path, ledger).fit(X, Y)
    kill[0] = 0
    other = Ledger(1.0, 1e-6)
    with pytest.raises(LedgerError, match="no payment number 1"):
        model(path, other).fit(X, Y)
    with pytest.raises(LedgerError, match="no payment"):
        model(path).fit(X, Y)
    with pytest.raises(InvalidArgument, match="another fit"):
        model(path, ledger, epsilon=0.5).fit(X, Y)
    with pytest.raises(InvalidArgument, match="another fit"):
        model(path, ledger).fit(X[:-1], Y[:-1])
    with pytest.raises(InvalidArgument, match="another fit"):
        model(path, ledger, solver=NetworkSGD(STEPS + 1, 1.0)).fit(X, Y)
    with pytest.raises(InvalidArgument, match="another fit"):
        model(path, ledger, solver=NetworkSGD(STEPS, 1.0, learning_rate=0.1)).fit(X, Y)
    (tmp_path / "text").write_text("no checkpoint")
    with pytest.raises(InvalidArgument, match="not a checkpoint"):
        model(tmp_path / "text", other).fit(X, Y)
    assert other.entries == ()


@pytest.mark.parametrize("path", [3, "", "."])
def test_what_is_no_path_of_a_file_is_refused_before_payment(path):
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(InvalidArgument, match="not the path of a file"):
        model(path, ledger).fit(X, Y)
    assert ledger.entries == ()


def test_two_fits_cannot_use_one_checkpoint_at_once(tmp_path):
    path = tmp_path / "run"
    with only_user_of(path), pytest.raises(InvalidArgument, match="Another process"):
        model(path).fit(X, Y)
    model(path).fit(X, Y)


@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
def test_a_resumed_seed_draws_other_noise(tmp_path, drawn):
    """A checkpoint that began the stream anew would use the first noise twice."""
    calls, kill = drawn
    solver = NetworkSGD(2 * CLAIMED_AT_ONCE, 1.0, 1e-9, learning_rate=1.0)
    plain = tmp_path / "plain"
    model(plain, solver=solver, random_state=5).fit(X, Y)
    first = calls[1] - calls[0]
    calls.clear()
    kill[0] = 3
    path = tmp_path / "run"
    with pytest.raises(Killed):
        model(path, solver=solver, random_state=5).fit(X, Y)
    np.testing.assert_array_equal(calls[1] - calls[0], first)
    kill[0] = 0
    calls.clear()
    model(path, solver=solver, random_state=5).fit(X, Y)
    later = calls[1] - calls[0]
    assert abs(np.corrcoef(first, later)[0, 1]) < 0.8


def test_claimed_steps_count_all_their_releases():
    assert made_of({"gradient": 30}, 10, 30) == {"gradient": 10}
    assert made_of({"a": 30, "b": 3}, 11, 30) == {"a": 11, "b": 2}
    assert made_of({"a": 30}, 40, 30) == {"a": 30}


def test_a_file_is_replaced_as_a_whole(tmp_path):
    model(tmp_path / "run").fit(X, Y)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run", "run.lock"]
    with np.load(tmp_path / "run") as stored:
        assert int(Checkpoint.load(tmp_path / "run", _fit(stored)).claimed) == STEPS


def _fit(stored):
    return json.loads(str(stored["head"]))["fit"]


KILLED = """
import os, signal, sys
import numpy as np
sys.path[:0] = sys.argv[4:]
from hushfit import Ledger
from test_network_checkpoint import X, Y, model

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

when, pay = sys.argv[3], Ledger.charge
if when == "after the payment":
    Ledger.charge = lambda *given: kill(pay(*given))
model(sys.argv[1], Ledger(sys.argv[2], dataset="d"), callbacks=[kill]).fit(X, Y)
"""


@pytest.mark.parametrize(
    ("when", "not_drawn"),
    [
        ("after the payment", 0),
        # Stored and claimed steps are not drawn again.
        ("after the first stored steps", 2 * CLAIMED_AT_ONCE),
    ],
)
def test_a_process_that_was_killed_by_a_signal_is_continued_by_another(
    tmp_path, drawn, when, not_drawn
):
    """With SIGKILL, which no process can catch."""
    calls, _ = drawn
    path, place = tmp_path / "run", tmp_path / "ledger.db"
    Ledger.create(place, dataset="d", epsilon=2.0, delta=1e-5)
    script = [sys.executable, "-c", KILLED, path, place, when, Path(__file__).parent]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    ledger = Ledger(place, dataset="d")
    assert len(ledger.entries) == 1
    resumed = model(path, ledger).fit(X, Y)
    assert resumed.receipt_.number == 1
    assert len(ledger.entries) == 1
    assert len(calls) == STEPS - not_drawn


@pytest.mark.parametrize("pays", [False, True])
def test_a_payment_is_taken_up_by_its_own_run_alone(tmp_path, monkeypatch, pays):
    path, ledger = tmp_path / "run", Ledger(10.0, 1e-5)
    pay = Ledger.charge

    def killed(*given):
        if pays:
            pay(*given)
        raise Killed

    monkeypatch.setattr(Ledger, "charge", killed)
    with pytest.raises(Killed):
        model(path, ledger).fit(X, Y)
    monkeypatch.setattr(Ledger, "charge", pay)
    other = model(tmp_path / "other", ledger).fit(X, Y)
    own = model(path, ledger).fit(X, Y)
    assert (other.receipt_.number, own.receipt_.number) == ((2, 1) if pays else (1, 2))
    path.unlink()  # a new run, with a payment of its own
    assert model(path, ledger).fit(X, Y).receipt_.number == 3


def test_a_refused_payment_leaves_no_checkpoint(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(BudgetExceeded):
        model(path, Ledger(0.5, 1e-6)).fit(X, Y)
    assert not path.exists()
