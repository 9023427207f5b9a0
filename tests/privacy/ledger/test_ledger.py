"""The ledger in memory: charge before release, once, and only in its own process."""

import copy
import gc
import math
import pickle
import subprocess
import sys
import threading
from dataclasses import dataclass, fields
from decimal import Decimal, localcontext

import pytest
from sklearn.base import BaseEstimator, clone

from hushfit.errors import BudgetExceeded, InvalidArgument, LedgerError
from hushfit.preprocessing._pipeline_account import PipelineAccount
from hushfit.privacy import (
    ApproximateCost,
    Budget,
    Cost,
    GaussianCost,
    Ledger,
    PoissonGaussianCost,
    PureCost,
    Relation,
    ThresholdedGaussianCost,
    calibrate,
    compose,
    filtered_epsilon,
    gaussian_mu,
    usable,
)
from hushfit.privacy._budget import Spent
from hushfit.privacy.ledger._reserve import LEAST_DELTA


def gaussian_of(epsilon, delta=1e-6):
    return GaussianCost(1 / gaussian_mu(epsilon, delta))


def test_costs_compose_and_epsilons_do_not_add():
    """Two fits at 0.9 compose to 1.31."""
    ledger = Ledger(2.0, 1e-6, adaptive=False)
    ledger.charge(gaussian_of(0.9), "first", "replace-one")
    receipt = ledger.charge(gaussian_of(0.9), "second", Relation.REPLACE_ONE)
    assert ledger.spent().epsilon == pytest.approx(1.31, abs=0.005)
    assert ledger.spent() == receipt.total
    assert ledger.spent().delta == 1e-6
    assert [entry.label for entry in ledger.entries] == ["first", "second"]
    assert receipt.number == 2
    assert ledger.total_cost == GaussianCost(gaussian_of(0.9).noise_multiplier, 2)


def test_refusal_says_what_to_do_and_records_nothing():
    ledger = Ledger(1.0, 1e-6, adaptive=False)
    ledger.charge(gaussian_of(0.9), "LogisticRegression", "replace-one")
    before = ledger.entries
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.charge(gaussian_of(0.9), "LogisticRegression", "replace-one")
    assert str(refusal.value) == (
        "LogisticRegression would bring the total to epsilon=1.31, over the ledger's 1 (spent so "
        "far: 0.9). Nothing "
        "was released. Ask for a smaller epsilon (at delta=1e-06 up to 0.395 fits), or reuse a "
        "model you have already paid for."
    )
    assert ledger.entries == before


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("spent", [(), (0.3,), (0.9,), (0.2, 0.2, 0.4), (PureCost(0.05), 0.5)])
@pytest.mark.parametrize("delta", [None, 1e-8])
def test_the_largest_fit_is_taken_and_a_larger_one_is_not(adaptive, spent, delta):
    ledger = Ledger(1.0, 1e-6, adaptive=adaptive)
    for cost in spent:
        paid = cost if isinstance(cost, Cost) else gaussian_of(cost)
        ledger.charge(paid, "fit", "replace-one")
    largest, at = ledger.largest_fit(delta), delta or 1e-6
    assert largest > 0

    def fit_of(epsilon):
        rest, _ = usable(Budget(epsilon, at))
        return gaussian_of(rest.epsilon, rest.delta)

    with pytest.raises(BudgetExceeded, match="up to"):
        ledger.charge(fit_of(largest * 1.01), "fit", "replace-one")
    ledger.charge(fit_of(largest), "fit", "replace-one")


def test_the_largest_fit_of_a_new_ledger_is_its_budget():
    assert Ledger(1.0, 1e-6).largest_fit() == 1.0
    assert Ledger(0.25, 1e-9, adaptive=False).largest_fit() == 0.25
    assert Ledger(math.inf, 1e-6).largest_fit() == math.inf
    with pytest.raises(InvalidArgument):
        Ledger(1.0, 1e-6).largest_fit(2.0)


def test_a_full_ledger_says_that_no_fit_is_possible():
    ledger = Ledger(1.0, 1e-6)
    rest, _ = usable(Budget(1.0, 1e-6))
    ledger.charge(gaussian_of(rest.epsilon, rest.delta), "fit", "replace-one")
    assert ledger.largest_fit() == 0.0
    with pytest.raises(
        BudgetExceeded, match="No further fit with Gaussian noise is possible: reuse"
    ):
        ledger.charge(gaussian_of(0.1), "fit", "replace-one")


def test_near_miss_is_told_with_enough_digits():
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(BudgetExceeded, match=r"epsilon=1\.0000\d+, over the ledger's 1 "):
        ledger.charge(gaussian_of(1.00001), "fit", "replace-one")
    with pytest.raises(BudgetExceeded, match="no privacy"):
        ledger.charge(GaussianCost(0.0), "fit", "replace-one")


@pytest.mark.parametrize("parts", [2, 7])
def test_shares_that_fill_the_budget_exactly_all_pass(parts):
    """All but the reserve for discrete noise, which fits withhold as well."""
    ledger = Ledger(1.0, 1e-6, adaptive=False)
    spendable, _ = usable(Budget(1.0, 1e-6))
    share = GaussianCost(math.sqrt(parts) / gaussian_mu(spendable.epsilon, spendable.delta))
    for _ in range(parts):
        ledger.charge(share, "share", "replace-one")
    assert ledger.spent().epsilon == pytest.approx(spendable.epsilon, rel=1e-9)
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureCost(1e-4), "more", "replace-one")


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 1.0, 5.0, 800.0, 1e5, 1e12])
@pytest.mark.parametrize("delta", [LEAST_DELTA, 1e-100, 1e-6, 0.5])
def test_the_reserve_covers_a_thousand_fits_at_every_epsilon(epsilon, delta):
    """The theorem of docs/proofs/noise.md, for fits that use their whole share, in 400 digits."""
    rest, loss = usable(Budget(epsilon, delta))
    with localcontext(prec=400):
        lost, largest = 999 * Decimal(loss), Decimal(loss) / 200
        filled = Decimal(rest.epsilon) + Decimal("1e-9") * Decimal(epsilon)
        assert (1 + largest / 4) * filled + lost <= Decimal(epsilon)
        failed = Decimal(rest.delta) + Decimal("1e-340")
        assert (lost / 4).exp() * failed <= Decimal(delta)


def test_a_delta_without_room_for_the_reserve_is_refused():
    with pytest.raises(InvalidArgument, match=r"delta=1e-310 is below 1e-300.*larger one"):
        usable(Budget(1.0, 1e-310))


def test_what_was_calibrated_can_be_paid():
    budget = Budget(1.0, 1e-6)
    strength = calibrate(lambda s: PoissonGaussianCost(1 / s, 0.02, 100), budget, "replace-one")
    ledger = Ledger(1.0, 1e-6, adaptive=False)
    ledger.charge(PoissonGaussianCost(1 / strength, 0.02, 50), "half", "replace-one")
    ledger.charge(PoissonGaussianCost(1 / strength, 0.02, 50), "half", "replace-one")
    assert 0.99 < ledger.spent().epsilon <= 1.0


def test_relations_are_not_mixed():
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(LedgerError, match="second ledger"):
        ledger.charge(gaussian_of(0.1), "fit", "add-remove")
    assert ledger.entries == ()
    Ledger(1.0, 1e-6, adjacency="add-remove").charge(gaussian_of(0.1), "fit", "add-remove")


def test_a_failing_charge_records_nothing():
    ledger = Ledger(1.0, 1e-6)
    for cost, label, relation in [
        (3.0, "fit", "replace-one"),
        (PureCost(0.1), 3, "replace-one"),
        (PureCost(0.1), "", "x"),
    ]:
        with pytest.raises(InvalidArgument):
            ledger.charge(cost, label, relation)
    assert ledger.entries == ()
    assert ledger.spent() == Spent(0.0, 1e-6)


def test_an_infinite_budget_keeps_the_books():
    ledger = Ledger(math.inf, 1e-6)
    ledger.charge(GaussianCost(0.0), "oracle", "replace-one")
    assert ledger.spent().epsilon == math.inf


class Holder(BaseEstimator):
    def __init__(self, ledger=None):
        self.ledger = ledger


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy of a list": lambda ledger: copy.deepcopy([ledger])[0],
    "clone": lambda ledger: clone(Holder(ledger)).ledger,
    "pickle": lambda ledger: pickle.loads(pickle.dumps(ledger)),
    "pickle of an estimator": lambda ledger: pickle.loads(pickle.dumps(Holder(ledger))).ledger,
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_share_the_account(way):
    ledger = Ledger(1.0, 1e-6, name="patients")
    other = COPIES[way](ledger)
    other.charge(gaussian_of(0.6), "via the copy", "replace-one")
    assert ledger.spent() == other.spent()
    assert other.account is ledger.account
    with pytest.raises(BudgetExceeded):
        ledger.charge(gaussian_of(0.9), "via the original", "replace-one")


def test_copy_of_the_account_is_the_account():
    account = Ledger(1.0, 1e-6).account
    assert copy.copy(account) is account
    assert copy.deepcopy(account) is account


def test_a_pickle_that_outlives_its_ledger_finds_later_charges():
    ledger = Ledger(1.0, 1e-6)
    saved = pickle.dumps(ledger)
    ledger.charge(gaussian_of(0.9), "after pickling", "replace-one")
    del ledger
    gc.collect()
    back = pickle.loads(saved)
    assert len(back.entries) == 1
    with pytest.raises(BudgetExceeded):
        back.charge(gaussian_of(0.9), "again", "replace-one")


def test_racing_threads_never_overspend():
    """Sixteen threads attempt a hundred payments each; as many succeed as in sequence."""
    ledger, cost = Ledger(1.0, 1e-6), GaussianCost(20.0)
    fits = 0
    while filtered_epsilon([cost] * (fits + 1), ledger.budget, "replace-one") <= 1.0:
        fits += 1
    start, paid = threading.Barrier(16), []

    def race():
        start.wait()
        for _ in range(100):
            try:
                paid.append(ledger.charge(cost, "fit", "replace-one").number)
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=race) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(paid) == list(range(1, fits + 1))
    assert len(ledger.entries) == fits
    assert ledger.spent().epsilon <= 1.0


@dataclass(frozen=True)
class ReentrantCost(ThresholdedGaussianCost, kind="sly"):
    """Makes another payment the first time its pair is computed."""

    def directions(self, relation):
        if LATER:
            LATER.pop()()
        return super().directions(relation)


del Cost.kinds["sly"]  # other tests need not know of it


LATER = []


@pytest.mark.parametrize("kind", ["memory", "pipeline"])
def test_a_charge_inside_a_charge_makes_the_outer_one_void(kind):
    own = Ledger(1.0, 1e-6)
    ledger = (
        own if kind == "memory" else Ledger.over(PipelineAccount(own.budget, own.relation, None))
    )
    LATER.append(lambda: ledger.charge(GaussianCost(6.0), "inner", "replace-one"))
    with pytest.raises(LedgerError, match="while another charge was being decided"):
        ledger.charge(ReentrantCost(6.0, 1e-9), "outer", "replace-one")
    assert [(entry.number, entry.label) for entry in ledger.entries] == [(1, "inner")]
    assert LATER == []


def test_the_reserve_is_kept_of_delta_as_well():
    """A release that may reveal everything with probability delta leaves nothing for discrete
    noise.
    """
    for adaptive in (True, False):
        with pytest.raises(BudgetExceeded):
            Ledger(1.0, 1e-6, adaptive=adaptive).charge(
                ApproximateCost(0.5, 1e-6), "fit", "replace-one"
            )
        Ledger(1.0, 1e-6, adaptive=adaptive).charge(
            ApproximateCost(0.5, (1 - 2e-5) * 1e-6), "fit", "replace-one"
        )


def test_what_is_refused_for_the_reserve_is_told():
    with pytest.raises(BudgetExceeded, match="less its reserve for discrete noise"):
        Ledger(1.0, 1e-6).charge(gaussian_of(0.999999), "fit", "replace-one")


def test_charges_have_no_names_of_plans():
    """Additions to an earlier charge could depend on its answer; what is fixed together is one
    charge.
    """
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(TypeError, match="plan"):
        ledger.charge(gaussian_of(0.1), "fit", "replace-one", plan="survey")
    assert "plan" not in {
        field.name for field in fields(ledger.charge(gaussian_of(0.1), "fit", "replace-one"))
    }


OTHER_PROCESS = """
import pickle, sys
from hushfit.errors import LedgerError
from hushfit.privacy import GaussianCost
ledger = pickle.loads(sys.stdin.buffer.read())
assert [entry.label for entry in ledger.entries] == ["here"], ledger.entries
assert 0 < ledger.spent().epsilon < 1
again = pickle.loads(pickle.dumps(ledger))
for one in (ledger, again):
    try:
        one.charge(GaussianCost(1e9), "there", "replace-one")
    except LedgerError as error:
        assert "on disk" in str(error) and "patients" in str(error), error
    else:
        raise SystemExit("paid from another process")
print("refused", repr(again))
"""


def test_another_process_may_look_but_not_pay():
    ledger = Ledger(1.0, 1e-6, name="patients")
    ledger.charge(gaussian_of(0.5), "here", "replace-one")
    there = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS],
        input=pickle.dumps(ledger),
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert there.returncode == 0, there.stderr.decode()
    assert there.stdout.decode().strip() == f"refused {ledger!r}"
    ledger.charge(gaussian_of(0.1), "here", "replace-one")


FORKED = """
import os, pickle
from hushfit.errors import LedgerError
from hushfit.privacy import GaussianCost, Ledger
ledger = Ledger(1.0, 1e-6)
saved = pickle.dumps(ledger)
child = os.fork()
if child == 0:
    refused = 0
    for one in (ledger, pickle.loads(saved)):
        try:
            one.charge(GaussianCost(1e9), "child", "replace-one")
        except LedgerError:
            refused += 1
    os._exit(0 if refused == 2 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
ledger.charge(GaussianCost(1e9), "parent", "replace-one")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_forked_child_holds_a_copy_that_refuses():
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode()


def test_repr_and_properties():
    ledger = Ledger(1.0, 1e-6, name="patients")
    assert repr(ledger) == (
        "Ledger('patients': spent epsilon=0, budget epsilon=1, delta=1e-06, replace-one, 0 entries)"
    )
    ledger.charge(gaussian_of(0.5), "fit", "replace-one")
    assert "spent epsilon=0.5," in repr(ledger)
    assert "1 entry)" in repr(ledger)
    assert (ledger.budget, ledger.relation, ledger.name) == (
        Budget(1.0, 1e-6),
        Relation.REPLACE_ONE,
        "patients",
    )
    assert compose([ledger.total_cost]) == ledger.total_cost


@pytest.mark.parametrize(
    "bad", [(0.0, 1e-6), (1.0, 0.0), (1.0, 1e-6, "both"), (1.0, 1e-6, "replace-one", 7)]
)
def test_bad_ledgers_are_refused(bad):
    with pytest.raises(InvalidArgument):
        Ledger(*bad)


def test_names_that_only_chance_gives_away_can_be_paid_for():
    """Counts under infinite noise reveal nothing, but a rare text may still be named."""
    ledger = Ledger(1.0, 1e-5)
    ledger.charge(ThresholdedGaussianCost(math.inf, 1e-7), "vocabulary", "replace-one")
    assert ledger.spent().epsilon < 1e-3
    with pytest.raises(BudgetExceeded):
        Ledger(1.0, 1e-8).charge(
            ThresholdedGaussianCost(math.inf, 1e-7), "vocabulary", "replace-one"
        )
