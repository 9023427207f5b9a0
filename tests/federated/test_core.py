"""Owners, their network, their journals: what holds for every algorithm."""

import json
import os
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from hushfit import Ledger, PrivateLinearSVC, PrivateLogisticRegression
from hushfit.errors import BudgetExceeded, InvalidArgument, LedgerError, UnknownName
from hushfit.federated import (
    ALGORITHMS,
    PPADMM,
    Agreement,
    Network,
    Owner,
    Run,
    Seat,
    SharedSolver,
    fit_together,
    simulate,
)
from hushfit.federated._protocol import received, sum_over_owners
from hushfit.privacy import Budget, GaussianCost, Receipt, Relation, Spent
from hushfit.release import ClippedGradient, Plan, Planned

pytestmark = pytest.mark.filterwarnings(
    "ignore::hushfit.errors.InsecureNoiseWarning", "ignore::hushfit.errors.WeakGuaranteeWarning"
)

NAMES = ["north", "east", "south", "west"]
NETWORKS = {
    "ring": Network.ring(NAMES),
    "star": Network.star(NAMES),
    "complete": Network.complete(NAMES),
    "path": Network(NAMES, [("north", "east"), ("east", "south"), ("south", "west")]),
    "random": Network.random(NAMES, 2.0, seed=3),
}


def tables(n=60, d=4, names=NAMES, seed=0):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    found = {}
    for place, name in enumerate(names):
        X = rng.normal(size=(n + 7 * place, d)) + 0.3 * place  # sizes and distributions differ
        found[name] = (X, np.where(X @ w + rng.logistic(size=len(X)) > 0, 1, 0))
    return found


def model(epsilon=1.0, **settings):
    return PrivateLogisticRegression(epsilon=epsilon, delta=1e-5, classes=[0, 1], **settings)


MADE = []


@pytest.fixture(autouse=True)
def journals_are_closed():
    yield
    while MADE:
        MADE.pop().close()


def owners(
    algorithm=None,
    network="ring",
    folders=None,
    ledgers=None,
    epsilon=1.0,
    name="a-run",
    seed=5,
    n=60,
):
    estimator = model(epsilon)
    prepared = {who: estimator.prepare(X, y) for who, (X, y) in tables(n).items()}
    sizes = {who: ready.problem.n_units for who, ready in prepared.items()}
    budgets = dict.fromkeys(prepared, Budget(epsilon, 1e-5))
    run = Run(name, algorithm or PPADMM(steps=4))
    made = []
    for place, (who, ready) in enumerate(prepared.items()):
        seat = Seat(who, NETWORKS[network], ready.problem, sizes, budgets)
        random_state = None if seed is None else seed + place
        made.append(
            Owner(
                ready.source,
                seat,
                run,
                (ledgers or {}).get(who),
                (folders or {}).get(who),
                random_state,
            )
        )
        MADE.append(made[-1])
    return made


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_sums_reach_every_owner(network):
    estimator = model()
    prepared = {who: estimator.prepare(X, y) for who, (X, y) in tables().items()}
    sizes = {who: ready.problem.n_units for who, ready in prepared.items()}
    budgets = dict.fromkeys(prepared, Budget(1.0, 1e-5))
    vectors = {who: np.arange(3.0) + place**2 for place, who in enumerate(NAMES)}
    talks = {
        who: sum_over_owners(
            Seat(who, network, prepared[who].problem, sizes, budgets), vectors[who], 1e9
        )
        for who in NAMES
    }
    sent, totals = {who: next(talk) for who, talk in talks.items()}, {}
    while len(totals) < len(NAMES):
        inboxes = {
            who: {n: sent[n] for n in network.neighbours(who) if sent[n] is not None}
            for who in NAMES
        }
        for who, talk in talks.items():
            try:
                sent[who] = talk.send(inboxes[who])
            except StopIteration as end:
                totals[who] = end.value
    for total in totals.values():
        np.testing.assert_array_equal(total, sum(vectors.values()))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_words_travel_along_edges_only_and_all_owners_learn(algorithm):
    together = fit_together(model(8.0), tables(400), NETWORKS["path"], algorithm, random_state=1)
    X = np.concatenate([X for X, _ in tables(400).values()])
    y = np.concatenate([y for _, y in tables(400).values()])
    for name, fitted in together.models.items():
        assert fitted.score(X, y) > 0.6, name
    assert set(together.guarantees) == set(NAMES)
    assert together.epsilon() == 8.0
    assert together.epsilon(person_in_one_table=False) == 32.0


@pytest.mark.parametrize("network", ["ring", "path"])
def test_without_noise_pp_admm_finds_the_minimum_of_all_rows(network):
    """Owners of different sizes: every row counts the same."""
    ridge = 0.05
    together = fit_together(
        model(np.inf),
        tables(),
        NETWORKS[network],
        PPADMM(steps=400, eta=0.02, ridge=ridge, average_last=0.0),
    )
    pooled = _pooled_optimum(ridge)
    for fitted in together.models.values():
        found = np.append(fitted.coef_[0], fitted.intercept_)
        np.testing.assert_allclose(found, pooled, atol=2e-5)


def _pooled_optimum(ridge):
    """By Newton's method on unit records with the ridge on the intercept too."""
    X = np.concatenate([X for X, _ in tables().values()])
    y = 2.0 * np.concatenate([y for _, y in tables().values()]) - 1
    records = np.column_stack([X, np.ones(len(X))])
    records /= np.linalg.norm(records, axis=1, keepdims=True)
    w = np.zeros(records.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(y * (records @ w)))
        gradient = -records.T @ (y * p) / len(y) + ridge * w
        hessian = (records * (p * (1 - p))[:, None]).T @ records / len(y) + ridge * np.eye(len(w))
        w -= np.linalg.solve(hessian, gradient)
    return w


def test_without_noise_a_shared_solver_is_the_solver():
    together = fit_together(model(np.inf), tables(), "ring", SharedSolver("proximal-gd"))
    X = np.concatenate([X for X, _ in tables().values()])
    y = np.concatenate([y for _, y in tables().values()])
    alone = model(np.inf, solver="proximal-gd").fit(X, y)
    for fitted in together.models.values():
        np.testing.assert_allclose(fitted.coef_, alone.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    "algorithm", [PPADMM(steps=4), SharedSolver("proximal-gd")], ids=["pp-admm", "shared"]
)
@pytest.mark.parametrize("stop", [0, 1, 3])
def test_a_run_goes_on_after_a_crash_as_if_nothing_had_happened(tmp_path, algorithm, stop):
    """One owner's process is killed after some rounds and restarted with its journal; the noise of
    these rounds stays the same.
    """
    folders = {name: tmp_path / name for name in NAMES}
    ledgers = {name: Ledger(1.0, 1e-5) for name in NAMES}
    first = owners(algorithm, folders=folders, ledgers=ledgers, seed=None)
    sent, mail = [], {name: {} for name in NAMES}
    for number in range(stop):
        round_messages = {owner.name: owner.turn(number, mail[owner.name]) for owner in first}
        mail = {
            o.name: {
                n: round_messages[n] for n in o.seat.neighbours if round_messages[n] is not None
            }
            for o in first
        }
        sent.append(round_messages)
    for owner in first:
        owner.close()
    second = owners(algorithm, folders=folders, ledgers=ledgers, seed=None)
    assert [owner.turns_taken for owner in second] == [stop] * 4
    talk = simulate(second)
    for number, round_messages in enumerate(sent):
        for name, message in round_messages.items():
            assert (message is None) == (name not in talk.said[number])
            if message is not None:
                np.testing.assert_array_equal(talk.said[number][name], message)
    assert all(len(ledger.entries) == 1 for ledger in ledgers.values())  # paid once


def test_a_round_is_answered_once_and_in_order():
    owner = owners()[0]
    message = owner.turn(0, {})
    np.testing.assert_array_equal(owner.turn(0, {"east": np.full(5, 9.0)}), message)
    for number in (2, -1, 7):
        with pytest.raises(InvalidArgument, match="is at round 1"):
            owner.turn(number, {})


def test_a_lost_journal_is_refused(tmp_path):
    folders = {name: tmp_path / name for name in NAMES}
    ledgers = {name: Ledger(2.0, 1e-5) for name in NAMES}
    for owner in owners(folders=folders, ledgers=ledgers):
        owner.turn(0, {})
        owner.close()
    os.remove(folders["north"] / "a-run.journal")
    for _ in range(3):  # at every attempt
        with pytest.raises(LedgerError, match="journal is gone"):
            owners(folders=folders, ledgers=ledgers)
    elsewhere = {name: tmp_path / "other" / name for name in NAMES}
    for _ in range(6):
        with pytest.raises(LedgerError, match="journal is gone"):
            owners(folders=elsewhere, ledgers=ledgers)
    assert len(ledgers["north"].entries) == 1


def test_a_crash_between_paying_and_the_first_word_costs_nothing(tmp_path, monkeypatch):
    from hushfit.federated._journal import Journal

    folders = {name: tmp_path / name for name in NAMES}
    ledgers = {name: Ledger(1.0, 1e-5) for name in NAMES}
    with monkeypatch.context() as patched:
        patched.setattr(
            Journal,
            "note_receipt",
            lambda self, number: (_ for _ in ()).throw(OSError("disk full")),
        )
        with pytest.raises(OSError, match="disk full"):
            owners(folders=folders, ledgers=ledgers)
    simulate(owners(folders=folders, ledgers=ledgers))
    assert all(len(ledger.entries) == 1 for ledger in ledgers.values())


@pytest.mark.parametrize(
    "failure",
    [LedgerError("locked"), BudgetExceeded("another was faster")],
    ids=["locked", "refused"],
)
def test_a_journal_that_failed_to_pay_does_not_speak_on_what_another_paid(
    tmp_path, monkeypatch, failure
):
    """Both would draw their own noise, and together reveal more than one payment covers."""
    first, second = (
        {name: tmp_path / place / name for name in NAMES} for place in ("first", "second")
    )
    ledgers = {name: Ledger(1.0, 1e-5) for name in NAMES}
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "charge", lambda *terms: (_ for _ in ()).throw(failure))
        with pytest.raises(type(failure)):
            owners(folders=second, ledgers=ledgers)
    for owner in owners(folders=first, ledgers=ledgers):
        owner.turn(0, {})
        owner.close()
    with pytest.raises(LedgerError, match="journal is gone"):
        owners(folders=second, ledgers=ledgers)
    assert len(ledgers["north"].entries) == 1


def test_journals_that_race_pay_each_for_itself(tmp_path, monkeypatch):
    from hushfit.federated._journal import Journal

    first, second = (
        {name: tmp_path / place / name for name in NAMES} for place in ("first", "second")
    )
    ledgers = {name: Ledger(3.0, 1e-5) for name in NAMES}
    honest = Journal.note_paying
    waiting = []

    def note_paying(self):
        if not waiting:
            waiting.append(self)
            for owner in owners(
                folders=second, ledgers=ledgers
            ):  # pays after the other has read the ledger and before it is charged
                owner.turn(0, {})
                owner.close()
        return honest(self)

    monkeypatch.setattr(Journal, "note_paying", note_paying)
    with pytest.raises(
        LedgerError, match="journal is gone"
    ):  # the others of the first group find their runs paid for
        owners(folders=first, ledgers=ledgers)
    assert [len(ledger.entries) for ledger in ledgers.values()] == [2, 1, 1, 1]
    again = owners(folders=second, ledgers=ledgers)
    assert all(owner.turns_taken == 1 for owner in again)


def test_runs_with_alike_names_are_told_apart():
    run = Run("a", PPADMM(steps=2))
    labels = {"a": True, "a-b": False, "a.b": False, "b": False}
    for name, expected in labels.items():
        label = Run(name, PPADMM(steps=2)).paid_as("0f")
        assert (
            run.is_paid_by(
                Receipt(1, label, GaussianCost(1.0), Relation.REPLACE_ONE, Spent(1.0, 1e-5))
            )
            is expected
        )


def test_a_turn_that_could_not_be_written_is_not_taken_again(tmp_path, monkeypatch):
    from hushfit.federated import _journal

    folders = {name: tmp_path / name for name in NAMES}
    owner = owners(folders=folders)[0]
    owner.turn(0, {})
    with monkeypatch.context() as patched:
        patched.setattr(
            _journal, "_append", lambda path, line: (_ for _ in ()).throw(OSError("disk full"))
        )
        with pytest.raises(OSError, match="disk full"):
            owner.turn(1, {})
    with pytest.raises(InvalidArgument, match="Start its process again"):
        owner.turn(1, {})


def test_a_run_keeps_its_budget(tmp_path):
    folders = {name: tmp_path / name for name in NAMES}
    for owner in owners(folders=folders, epsilon=5.0):
        owner.turn(0, {})
        owner.close()
    with pytest.raises(InvalidArgument, match="another budget"):
        owners(folders=folders, epsilon=0.1)


def test_other_settings_under_a_paid_name_are_refused(tmp_path):
    folders = {name: tmp_path / name for name in NAMES}
    ledgers = {name: Ledger(2.0, 1e-5) for name in NAMES}
    for owner in owners(PPADMM(steps=2), folders=folders, ledgers=ledgers):
        owner.close()
    with pytest.raises(InvalidArgument, match="other settings"):
        owners(PPADMM(steps=3), folders=folders, ledgers=ledgers)


def test_two_processes_cannot_hold_one_journal(tmp_path):
    folders = {name: tmp_path / name for name in NAMES}
    resumed = owners(folders=folders)
    with pytest.raises(InvalidArgument, match="running already"):
        owners(folders=folders)
    for owner in resumed:
        owner.close()


def test_a_line_that_a_crash_cut_short_is_dropped(tmp_path):
    folders = {name: tmp_path / name for name in NAMES}
    for owner in owners(folders=folders):
        owner.turn(0, {})
        owner.close()
    path = folders["north"] / "a-run.journal"
    with path.open("a") as file:
        file.write('{"heard": {}, "rel')
    resumed = owners(folders=folders)
    assert resumed[0].turns_taken == 1
    assert json.loads(path.read_text().splitlines()[-1])["said"] is not None


def test_an_empty_ledger_stops_an_owner_before_its_first_word(tmp_path):
    from hushfit.errors import BudgetExceeded

    ledgers = {name: Ledger(0.5 if name == "south" else 1.0, 1e-5) for name in NAMES}
    with pytest.raises(BudgetExceeded):
        owners(ledgers=ledgers)
    assert not ledgers["south"].entries


@pytest.mark.parametrize(
    "hostile",
    [np.full(5, np.nan), np.full(5, 1e300), np.zeros(3), np.full(5, np.inf)],
    ids=["nan", "huge", "short", "infinite"],
)
def test_hostile_words_are_made_harmless(hostile):
    default = np.ones(5)
    message = received({"east": hostile}, "east", default, 10.0)
    assert message.shape == (5,)
    assert np.linalg.norm(message) <= 10.0 * (1 + 1e-12)
    np.testing.assert_array_equal(received({}, "east", default, 10.0), default)
    owner = owners(PPADMM(steps=3))[0]
    owner.turn(0, {})
    assert np.all(np.isfinite(owner.turn(1, {"east": hostile, "west": hostile, "nobody": hostile})))


def test_the_first_word_depends_on_no_other_owner():
    """privacy_B 7, test 11: changing one owner's rows changes nothing at the others before they
    receive its message.
    """
    first, second = owners(n=60), owners(n=60)
    X, y = tables(60)["south"]
    changed = model().prepare(-X, 1 - y).source
    second[2] = Owner(changed, second[2].seat, second[2].run, random_state=99)
    for a, b in zip(first, second, strict=True):
        if a.name != "south":
            np.testing.assert_array_equal(a.turn(0, {}), b.turn(0, {}))


def test_bad_networks_are_refused():
    with pytest.raises(
        InvalidArgument, match=r"not connected: south, west cannot be reached from north"
    ):
        Network(NAMES, [("north", "east"), ("south", "west")])
    with pytest.raises(InvalidArgument, match="not an edge"):
        Network(NAMES, [("north", "north")])
    with pytest.raises(InvalidArgument, match="not an edge"):
        Network(NAMES, [("north", "nobody")])
    with pytest.raises(InvalidArgument, match="twice"):
        Network(["a", "a"], [])
    with pytest.raises(InvalidArgument, match="'complete', 'ring'"):
        Network.parse("square", NAMES)
    with pytest.raises(InvalidArgument, match="Make them the same"):
        Network.parse(Network.ring(["a", "b"]), NAMES)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_networks_are_read_back(network):
    assert Network.from_dict(json.loads(json.dumps(network.to_dict()))) == network


def test_a_large_random_network_is_connected():
    names = [f"owner-{i}" for i in range(100)]
    network = Network.random(names, 4.0, seed=1)
    assert len(network.edges) == 200
    assert max(network.depth(name) for name in names) == network.height


def test_bad_arguments_are_refused():
    with pytest.raises(UnknownName, match="'pp-admm'"):
        fit_together(model(), tables(), algorithm="pp")
    with pytest.raises(InvalidArgument, match="neither a name"):
        fit_together(model(), tables(), algorithm=3)
    with pytest.raises(InvalidArgument, match=r"epsilons names \['nord'\]"):
        fit_together(model(), tables(), epsilons={"nord": 1.0})
    with pytest.raises(InvalidArgument, match="tables is empty"):
        fit_together(model(), {})
    with pytest.raises(InvalidArgument, match="does not name a run"):
        Run("../../etc", PPADMM())
    with pytest.raises(InvalidArgument, match="no sum over the records"):
        fit_together(model(), tables(), algorithm=SharedSolver("objective"))


def test_each_owner_spends_its_own_budget():
    ledgers = {name: Ledger(3.0, 1e-4) for name in NAMES}
    epsilons = {"north": 0.5, "east": 2.0}
    together = fit_together(
        model(),
        tables(),
        "ring",
        PPADMM(steps=3),
        epsilons=epsilons,
        deltas={"west": 1e-7},
        ledgers=ledgers,
    )
    assert [g.epsilon for g in together.guarantees.values()] == [0.5, 2.0, 1.0, 1.0]
    assert together.guarantees["west"].delta == 1e-7
    assert (
        0
        < ledgers["north"].spent().epsilon
        < ledgers["south"].spent().epsilon
        < ledgers["east"].spent().epsilon
    )


def test_several_classes_and_another_loss():
    rng = np.random.default_rng(0)
    parts = {name: (rng.normal(size=(80, 3)), rng.integers(0, 3, 80)) for name in NAMES}
    for estimator in (
        PrivateLogisticRegression(classes=[0, 1, 2]),
        PrivateLinearSVC(classes=[0, 1, 2]),
    ):
        for algorithm in (SharedSolver("proximal-gd"), PPADMM(steps=2)):
            if isinstance(algorithm, PPADMM) and isinstance(estimator, PrivateLinearSVC):
                algorithm = PPADMM(steps=2, eta=0.2)
            together = fit_together(estimator, parts, "ring", algorithm, random_state=0)
            assert together.model.coef_.shape == (3, 3)


def test_owners_must_agree_on_the_table():
    columns = {
        "age": {"kind": "numeric", "low": 0, "high": 100},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
    }
    other = {**columns, "age": {"kind": "numeric", "low": 0, "high": 120}}
    here, there = Agreement({"schema": columns}), Agreement({"schema": other})
    here.require_same("north", Agreement({"schema": dict(columns)}), "south")
    with pytest.raises(InvalidArgument, match=r"schema.age.high is 100 at north and 120 at south"):
        here.require_same("north", there, "south")
    swapped = Agreement({"schema": dict(reversed(columns.items()))})
    with pytest.raises(InvalidArgument, match="order of the columns"):
        here.require_same("north", swapped, "south")


def test_messages_are_counted_along_edges():
    together = fit_together(model(), tables(), "ring", PPADMM(steps=3), random_state=0)
    assert (together.talk.rounds, together.talk.broadcasts, together.talk.messages) == (3, 12, 24)
    assert together.talk.bytes == 24 * 5 * 8


def test_secure_noise_is_the_default():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        together = fit_together(model(), tables(), "ring", PPADMM(steps=2))
    assert all(guarantee.secure for guarantee in together.guarantees.values())


@dataclass(frozen=True)
class FailsAfterLooking:
    """Releases a gradient, then fails: whoever sees that has learnt something about the release."""

    def plan(self, seat):
        return Plan((Planned("gradient", ClippedGradient, 1),))

    def rounds(self, seat):
        return 1

    def converse(self, seat, curator):
        drawn = curator.release(
            "gradient", ClippedGradient(seat.problem, np.zeros(seat.problem.shape), 0.5)
        )
        SEEN.append(drawn)
        raise InvalidArgument("no further")
        yield drawn


SEEN = []


def test_a_turn_that_fails_after_a_release_draws_nothing_new_when_it_is_taken_again(tmp_path):
    folders = {name: tmp_path / name for name in NAMES}
    ledgers = {name: Ledger(1.0, 1e-5) for name in NAMES}
    SEEN.clear()
    for _ in range(3):
        owner = owners(FailsAfterLooking(), folders=folders, ledgers=ledgers, seed=None)[0]
        with pytest.raises(InvalidArgument, match="no further"):
            owner.turn(0, {})
        while MADE:
            MADE.pop().close()
    assert len(SEEN) == 3
    np.testing.assert_array_equal(SEEN[1], SEEN[0])
    np.testing.assert_array_equal(SEEN[2], SEEN[0])
