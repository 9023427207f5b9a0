"""Any sequence of grants, transfers, approvals and payments: total, ceilings and approvals hold.

Hypothesis acts for five people on one ledger on disk. What was paid is added up here once more, by
the closed form of Gaussian noise, and compared with the total and with every ceiling.
"""

import os
import tempfile
from contextlib import nullcontext, suppress
from dataclasses import replace
from math import erfc, exp, sqrt
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from _ledgers import DELTA, pay
from hushfit import Ledger
from hushfit.errors import ApprovalNeeded, BudgetExceeded, LedgerError
from hushfit.privacy import gaussian_mu
from hushfit.privacy.ledger import KEY_VARIABLE, issue_token
from hushfit.privacy.ledger._team import Admission, Team
from hushfit.privacy.ledger._verify import verify_ledger

TOTAL = 2.0
PEOPLE = ("lead", "second", "alice", "bob", "carol")
EPSILONS = (0.1, 0.3, 0.5, 0.8, 1.0, 1.4, 1.9)
QUICK = settings(max_examples=12, stateful_step_count=40, deadline=None)
people = st.sampled_from(PEOPLE)
mostly_lead = st.sampled_from(("lead", *PEOPLE))
epsilons = st.sampled_from(EPSILONS)


def spent_within(mu_squares, epsilon):
    """Whether Gaussian releases together are (epsilon, DELTA)-private: the exact delta."""
    mu = sqrt(sum(mu_squares))
    if mu == 0:
        return True

    def below(x):
        return erfc(-x / sqrt(2)) / 2

    return below(mu / 2 - epsilon / mu) - exp(epsilon) * below(-mu / 2 - epsilon / mu) <= DELTA


class TeamMachine(RuleBasedStateMachine):
    """Five people act as they like; two of them are administrators at first."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        place = Path(self.folder.name)
        (place / "key").write_bytes(os.urandom(32))
        self.patch = pytest.MonkeyPatch()
        self.patch.setenv(KEY_VARIABLE, str(place / "key"))
        self.path = str(place / "ledger.db")
        tokens = {name: issue_token(name, "2999-01-01") for name in PEOPLE}
        Ledger.create(self.path, "patients", TOTAL, DELTA, token=tokens["lead"])
        self.ledgers = {
            name: Ledger(self.path, dataset="patients", token=token)
            for name, token in tokens.items()
        }
        self.ledgers["lead"].team.appoint("second")
        self.paid = []  # (payer, epsilon), in order
        self.counted = {}  # places of payments that count for each grant, by who holds it now
        self.approved = []  # (payer, epsilon) that a second person allowed

    def teardown(self):
        """Everything was recorded, and the ledger verifies from its first entry on."""
        charges = [e.body for e in self.lead.account.history() if e.kind == "charge"]
        problems = verify_ledger(self.path)
        self.patch.undo()
        self.folder.cleanup()
        assert [body["user"] for body in charges] == [name for name, _ in self.paid]
        assert problems == {"patients": []}

    @property
    def lead(self):
        return self.ledgers["lead"]

    @initialize(ceilings=st.lists(epsilons, max_size=2))
    def first_grants(self, ceilings):
        for name, epsilon in zip(("alice", "bob"), ceilings, strict=False):
            self.grant("lead", name, epsilon, late=False)

    @rule(name=people, epsilon=epsilons)
    def charge(self, name, epsilon):
        ledger = self.ledgers[name]
        limit = ledger.team.now.limit
        try:
            pay(ledger, epsilon)
        except (BudgetExceeded, ApprovalNeeded, LedgerError):
            return
        if limit is not None and epsilon > limit * 1.001:
            assert (name, epsilon) in self.approved
            self.approved.remove((name, epsilon))
        self.counted.get(name, set()).add(len(self.paid))  # if nobody has a grant yet, later
        self.paid.append((name, epsilon))

    @rule(by=mostly_lead, to=people, epsilon=epsilons, late=st.booleans())
    def grant(self, by, to, epsilon, late):
        with suppress(LedgerError):
            self.ledgers[by].team.grant(to, epsilon, until="2020-01-01" if late else None)
            self.counted.setdefault(to, self.payments_of(to))

    @rule(by=mostly_lead, giver=people, to=people, epsilon=st.none() | epsilons)
    def transfer(self, by, giver, to, epsilon):
        with suppress(LedgerError):
            self.ledgers[by].team.transfer(giver, to, epsilon)
            if epsilon is None:  # what was spent goes along, and what the new holder has paid
                self.counted[to] = self.counted.pop(giver) | self.payments_of(to)

    @rule(
        by=mostly_lead, whom=people | st.none(), act=st.sampled_from(["freeze", "thaw", "revoke"])
    )
    def change(self, by, whom, act):
        if act == "revoke" and whom is None:
            return
        with suppress(LedgerError):
            getattr(self.ledgers[by].team, act)(whom)

    @rule(by=mostly_lead, whom=people, act=st.sampled_from(["appoint", "dismiss"]))
    def administrators(self, by, whom, act):
        with suppress(LedgerError):
            getattr(self.ledgers[by].team, act)(whom)

    @rule(by=mostly_lead, epsilon=st.none() | epsilons)
    def limit(self, by, epsilon):
        with suppress(LedgerError):
            self.ledgers[by].team.set_limit(epsilon)

    @rule(by=mostly_lead, place=st.integers(0, 3), act=st.sampled_from(["approve", "decline"]))
    def decide(self, by, place, act):
        team = self.ledgers[by].team
        if place >= len(team.requests):
            return
        request = team.requests[-1 - place]
        alone = min(EPSILONS, key=lambda e: abs(e - team.now.epsilon_alone(request)))
        with suppress(LedgerError):
            getattr(team, act)(request.number)
            assert by != request.user
            if act == "approve":
                self.approved.append((request.user, alone))

    def payments_of(self, name):
        return {place for place, (payer, _) in enumerate(self.paid) if payer == name}

    def fits(self, places, epsilon):
        squares = [gaussian_mu(self.paid[place][1], DELTA) ** 2 for place in places]
        return spent_within(squares, epsilon)

    @invariant()
    def the_total_holds(self):
        assert self.fits(range(len(self.paid)), TOTAL)

    @invariant()
    def every_ceiling_holds(self):
        for grant in self.lead.team.grants:
            own = self.counted[grant.holder]
            assert self.payments_of(grant.holder) <= own
            assert grant.tally.count == len(own)
            assert grant.budget.epsilon <= TOTAL
            assert self.fits(own, grant.budget.epsilon)


def test_no_sequence_of_acts_and_payments_exceeds_total_or_ceiling():
    run_state_machine_as_test(TeamMachine, settings=QUICK)


def without_ceilings(self, receipt, user, day):
    return self.grant_of(user) if self.grants else None


def never_waits(self, receipt, user, day):
    self._refuse_unless_open(receipt.label, day)
    grant = self._grant_for(receipt, user, day)
    return Admission(None if grant is None else grant.number)


def spent_is_forgotten(self, grant, taker):
    """A whole grant that is handed over starts again from nothing."""
    fresh = replace(grant.under(self._ceiling(grant.budget)), holder=taker, receipts=())
    return self._with(replace(fresh, tally=type(grant.tally).of(grant.tally.terms)))


# What is wrong, and acts after which an invariant no longer holds.
FAULTS = {
    "ceilings are not enforced": (
        ("_grant_for", without_ceilings),
        [("grant", "lead", "alice", 0.5, False), ("charge", "alice", 0.8)],
    ),
    "large charges do not wait": (
        ("admission", never_waits),
        [("limit", "lead", 0.5), ("charge", "bob", 0.8)],
    ),
    "a transfer forgets what was spent": (
        ("_handed_over", spent_is_forgotten),
        [
            ("grant", "lead", "alice", 1.0, False),
            ("charge", "alice", 0.8),
            ("transfer", "lead", "alice", "carol", None),
        ],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_invariants_see_planted_faults(fault, monkeypatch):
    """Faults that reading a ledger has too, so that `verify` says nothing of them."""
    (name, wrong), acts = FAULTS[fault]
    for broken in (False, True):
        if broken:
            monkeypatch.setattr(Team, name, wrong)
        machine = TeamMachine()
        try:
            with pytest.raises(AssertionError) if broken else nullcontext():
                for act, *arguments in acts:
                    getattr(machine, act)(*arguments)
                    machine.every_ceiling_holds()
        finally:
            machine.patch.undo()
            machine.folder.cleanup()
