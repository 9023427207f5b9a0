"""Bugs of owners that send more than their releases, or send before they have paid."""

import base64
import json
from types import SimpleNamespace

import numpy as np

from hushfit.federated import _owner as owners
from hushfit.federated import deployment as deployments
from hushfit.federated.algorithms import _ipp_admm as ipp_admm
from hushfit.federated.algorithms import _pp_admm as pp_admm
from hushfit.federated.algorithms import _r_admm as r_admm
from hushfit.federated.algorithms import _shared as shared
from hushfit.federated.algorithms._subproblem import MessageHistory, dual_step
from hushfit.federated.deployment import _owner_config, _refusal, _run_spec

from ._mutant import Mutant, swapped, together
from .solvers import exact_gradient, rows_behind


def exact_minimiser_sent():
    def alternate(subproblem, settings, curator):
        words = MessageHistory(subproblem.seat, settings.bound)
        own = dual = np.zeros(subproblem.seat.problem.shape)
        for _ in range(settings.steps):
            query = subproblem.query(own, words.last, dual)
            own = curator.release(pp_admm.NAME, query).reshape(dual.shape)
            exact = query(rows_behind(curator), None).reshape(dual.shape)
            words.record((yield exact.ravel()), own)
            dual = dual_step(subproblem.eta, own, words.last, dual)
        return words.average(settings.average_last)

    return swapped(pp_admm, alternate=alternate)


def gradient_recycled_from_the_rows():
    original_converse = r_admm.RADMM.converse
    held = {}

    def converse(self, seat, curator):
        held["curator"] = curator
        return original_converse(self, seat, curator)

    def recycled(subproblem, linear, released):
        problem = subproblem.seat.problem
        return exact_gradient(problem, held["curator"], released, problem.loss.slope_bound)

    return together(swapped(r_admm.RADMM, converse=converse), swapped(r_admm, recycled=recycled))


def gate_without_noise():
    def _opens(self, curator, query, own, spoken, quiet):
        norm = ipp_admm.GradientNorm(query, own)
        return bool(norm(rows_behind(curator), None)[0] >= self._tau(curator, query))

    return swapped(ipp_admm.IPPADMM, _opens=_opens)


def noise_shared_among_owners():
    """Each owner adds a share of the noise, as for secure aggregation, but sends its messages
    unprotected.
    """
    original = shared.SharedSolver.converse

    class _LessNoise:
        def __init__(self, curator, owners):
            curator._multipliers = {
                name: m / np.sqrt(owners) for name, m in curator._multipliers.items()
            }
            self.curator = curator

        def release(self, name, query):
            return self.curator.release(name, query)

        def __getattr__(self, name):
            return getattr(self.curator, name)

    def converse(self, seat, curator):
        return original(self, seat, _LessNoise(curator, 4))

    return swapped(shared.SharedSolver, converse=converse)


def drawn_again_after_a_crash():
    """The journal is only in memory, and an owner whose run is already paid continues without
    it.
    """
    original_pay, original_journal = owners.Owner._pay, owners.Journal

    def _pay(self, ledger):
        if not any(self.run.is_paid_by(receipt) for receipt in ledger.entries):
            return original_pay(self, ledger)
        return None

    in_memory = SimpleNamespace(
        open=lambda name, folder, terms: original_journal.open(name, None, terms)
    )
    return together(swapped(owners.Owner, _pay=_pay), swapped(owners, Journal=in_memory))


def paid_after_the_first_message():
    original_turn, original_pay = owners.Owner.turn, owners.Owner._pay

    def turn(self, number, heard):
        message = original_turn(self, number, heard)
        if number == 0 and self.ledger is not None:
            original_pay(self, self.ledger)
        return message

    return swapped(owners.Owner, turn=turn, _pay=lambda self, ledger: None)


def run_in_any_encoding():
    def unpacked(text):
        return _run_spec.RunSpec.from_dict(json.loads(base64.b64decode(text)))

    return swapped(_run_spec.RunSpec, unpacked=staticmethod(unpacked))


FEDERATED = (
    Mutant(
        "exact minimiser sent",
        "hushfit.federated.algorithms._pp_admm",
        "An owner releases a noisy minimiser and sends its neighbours the exact one.",
        exact_minimiser_sent,
        ("conversation of pp-admm",),
    ),
    Mutant(
        "gradient recycled from the rows",
        "hushfit.federated.algorithms._r_admm",
        "Recycled steps use the exact gradient of the rows instead of the released one.",
        gradient_recycled_from_the_rows,
        ("conversation of r-admm",),
        "R-ADMM as often coded",
    ),
    Mutant(
        "gate without noise",
        "hushfit.federated.algorithms._ipp_admm",
        "Whether an owner sends a message depends on the exact norm of its gradient.",
        gate_without_noise,
        ("conversation of ipp-admm", "conversation of ipp-admm, laplace gate"),
    ),
    Mutant(
        "noise divided among owners",
        "hushfit.federated.algorithms._shared",
        "Each owner adds a share of the noise, as for secure aggregation, but sends its messages "
        "unprotected.",
        noise_shared_among_owners,
        ("attack on owner, shared (replace-one)", "attack on owner, shared (add-remove)"),
    ),
    Mutant(
        "drawn again after a crash",
        "hushfit.federated._owner",
        "An owner that is restarted draws new noise for messages that were already sent.",
        drawn_again_after_a_crash,
        ("payments and journal of an owner",),
    ),
    Mutant(
        "paid after the first message",
        "hushfit.federated._owner",
        "An owner is charged after its first message.",
        paid_after_the_first_message,
        ("payments and journal of an owner",),
    ),
    Mutant(
        "restored journal",
        "hushfit.federated._owner",
        "An owner continues from a restored journal, and draws again what the ledger records as "
        "released.",
        lambda: swapped(owners.Owner, _refuse_old_journal=lambda self: None),
        ("payments and journal of an owner",),
        "hushfit 0.1",
    ),
    Mutant(
        "run without consent",
        "hushfit.federated.deployment._owner_config",
        "An owner takes part in every run below its ceiling, whether it has approved it or not.",
        lambda: swapped(_owner_config.OwnerConfig, _require_approval=lambda self, spec: None),
        ("consent of an owner",),
        "hushfit 0.1",
    ),
    Mutant(
        "run quoted in its refusal",
        "hushfit.federated.deployment._refusal",
        "A refusal quotes the run's description, which the engine may have filled in at the owner.",
        lambda: together(
            swapped(_refusal, told_to_others=str), swapped(deployments, told_to_others=str)
        ),
        ("consent of an owner",),
        "hushfit 0.1",
    ),
    Mutant(
        "run in any encoding",
        "hushfit.federated.deployment._run_spec",
        "The description of a run is also read as UTF-16, in which base64 around a secret is "
        "still a text.",
        run_in_any_encoding,
        ("consent of an owner",),
        "hushfit 0.1",
    ),
)
