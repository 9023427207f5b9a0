"""Bugs of owners that say more than their releases, or speak before they have paid."""

import base64
import json
from types import SimpleNamespace

import numpy as np

from hushfit.federated import _owner as owners
from hushfit.federated.algorithms import _ipp_admm as ipp_admm
from hushfit.federated.algorithms import _pp_admm as pp_admm
from hushfit.federated.algorithms import _r_admm as r_admm
from hushfit.federated.algorithms import _shared as shared
from hushfit.federated.algorithms._subproblem import MessageHistory, dual_step
from hushfit.federated.deployment import _run_spec as deployment

from ._mutant import Mutant, swapped, together
from .solvers import exact_gradient, rows_behind


def minimiser_said_aloud():
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
    honest_converse = r_admm.RADMM.converse
    held = {}

    def converse(self, seat, curator):
        held["curator"] = curator
        return honest_converse(self, seat, curator)

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
    """Each owner adds a part of the noise, as if nobody saw its own words, and sends them in the
    open.
    """
    honest = shared.SharedSolver.converse

    class _Quieter:
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
        return honest(self, seat, _Quieter(curator, 4))

    return swapped(shared.SharedSolver, converse=converse)


def drawn_again_after_a_crash():
    """The journal is kept in memory, and an owner that finds its run paid for goes on without
    it.
    """
    honest_pay, honest_journal = owners.Owner._pay, owners.Journal

    def _pay(self, ledger):
        if not any(self.run.is_paid_by(receipt) for receipt in ledger.entries):
            return honest_pay(self, ledger)
        return None

    forgetful = SimpleNamespace(
        open=lambda name, folder, terms: honest_journal.open(name, None, terms)
    )
    return together(swapped(owners.Owner, _pay=_pay), swapped(owners, Journal=forgetful))


def paid_when_it_first_speaks():
    honest_turn, honest_pay = owners.Owner.turn, owners.Owner._pay

    def turn(self, number, heard):
        said = honest_turn(self, number, heard)
        if number == 0 and self.ledger is not None:
            honest_pay(self, self.ledger)
        return said

    return swapped(owners.Owner, turn=turn, _pay=lambda self, ledger: None)


def run_in_any_encoding():
    def unpacked(text):
        return deployment.RunSpec.from_dict(json.loads(base64.b64decode(text)))

    return swapped(deployment.RunSpec, unpacked=staticmethod(unpacked))


FEDERATED = (
    Mutant(
        "minimiser said aloud",
        "hushfit.federated.algorithms._pp_admm",
        "An owner releases a noisy minimiser and sends its neighbours the exact one.",
        minimiser_said_aloud,
        ("conversation of pp-admm",),
    ),
    Mutant(
        "gradient recycled from the rows",
        "hushfit.federated.algorithms._r_admm",
        "Recycled steps follow the gradient at the rows, in place of the one that was released.",
        gradient_recycled_from_the_rows,
        ("conversation of r-admm",),
        "R-ADMM as often coded",
    ),
    Mutant(
        "gate without noise",
        "hushfit.federated.algorithms._ipp_admm",
        "Whether an owner speaks depends on the exact norm of its gradient.",
        gate_without_noise,
        ("conversation of ipp-admm", "conversation of ipp-admm, laplace gate"),
    ),
    Mutant(
        "noise divided among owners",
        "hushfit.federated.algorithms._shared",
        "Each owner adds its part of the noise, as with secure sums, and sends its words in the "
        "open.",
        noise_shared_among_owners,
        ("attack on owner, shared (replace-one)", "attack on owner, shared (add-remove)"),
    ),
    Mutant(
        "drawn again after a crash",
        "hushfit.federated._owner",
        "An owner that is started again draws new noise for words that are out.",
        drawn_again_after_a_crash,
        ("books of an owner",),
    ),
    Mutant(
        "paid with the first word",
        "hushfit.federated._owner",
        "An owner is charged when it has spoken.",
        paid_when_it_first_speaks,
        ("books of an owner",),
    ),
    Mutant(
        "journal of yesterday",
        "hushfit.federated._owner",
        "An owner goes on from a journal that was restored, and draws again what the ledger knows "
        "to be out.",
        lambda: swapped(owners.Owner, _refuse_old_journal=lambda self: None),
        ("books of an owner",),
        "hushfit 0.1",
    ),
    Mutant(
        "run without consent",
        "hushfit.federated.deployment._run_spec",
        "An owner takes part in every run below its ceiling, whether it has approved it or not.",
        lambda: swapped(deployment.OwnerConfig, _require_approval=lambda self, spec: None),
        ("consent of an owner",),
        "hushfit 0.1",
    ),
    Mutant(
        "run quoted in its refusal",
        "hushfit.federated.deployment._run_spec",
        "A refusal repeats what came with the run, which the engine may have filled in at the "
        "owner.",
        lambda: swapped(deployment, told_to_others=str),
        ("consent of an owner",),
        "hushfit 0.1",
    ),
    Mutant(
        "run in any encoding",
        "hushfit.federated.deployment._run_spec",
        "The description of a run is read as UTF-16 too, in which base64 around a secret is still "
        "a text.",
        run_in_any_encoding,
        ("consent of an owner",),
        "hushfit 0.1",
    ),
)
