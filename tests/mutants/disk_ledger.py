"""Bugs in the ledger on disk: second names, forks and forgeries that are not detected."""

from dataclasses import replace

from hushfit.models import _verify as model_checks
from hushfit.privacy.ledger import _chain, _sqlite, _team, _transaction, _verify

from ._mutant import Mutant, swapped


def any_place_will_do():
    return swapped(_sqlite, refuse_unsafe_place=lambda path, mounted: None)


def the_child_goes_on():
    return swapped(_transaction, _refuse_in_child=lambda process: None)


def later_entries_do_not_count():
    original = _verify.Anchor.is_in

    def is_in(self, chains):
        beyond = any(
            self.number is not None and self.number >= len(chain) for chain in chains.values()
        )
        return beyond or original(self, chains)

    return swapped(_verify.Anchor, is_in=is_in)


def seals_of_hashes():
    return swapped(_chain.Book, _seal=lambda self, dataset, opening, entry: entry.hash)


def the_receipt_is_enough():
    class Any:
        def __contains__(self, digest):
            return True

    return swapped(model_checks, _recorded=lambda chain, number: Any())


def the_promise_is_believed():
    return swapped(model_checks, _guarantee_problems=lambda model, charge, opening: iter(()))


def ceilings_are_advice():
    return swapped(_team.Team, _grant_for=lambda self, receipt, user, day: None)


def a_new_grant_is_a_clean_slate():
    return swapped(
        _team.Team, _in_hands_of=lambda self, person, grant: replace(grant, holder=person)
    )


def the_first_person_is_the_second():
    original = _team.Team._decided

    def decided(self, entry, state):
        return original(self, replace(entry, body={**entry.body, "user": "second"}), state)

    def of_anybody(self, entry):
        return None

    return swapped(_team.Team, _decided=decided, _refuse_stranger=of_anybody)


_CHECK = ("ledger on disk",)

DISK_LEDGER = (
    Mutant(
        "ledger under two names",
        "hushfit.privacy.ledger._sqlite",
        "A ledger file that is itself a mount point is paid into, as if it had no other name.",
        any_place_will_do,
        _CHECK,
    ),
    Mutant(
        "payment by a forked child",
        "hushfit.privacy.ledger._transaction",
        "A child process forked during a payment commits it too, and both processes regard it as "
        "theirs.",
        the_child_goes_on,
        _CHECK,
    ),
    Mutant(
        "older copy accepted",
        "hushfit.privacy.ledger._verify",
        "Entries in an export that the ledger lacks are taken for future entries.",
        later_entries_do_not_count,
        _CHECK,
    ),
    Mutant(
        "seals without the key",
        "hushfit.privacy.ledger._chain",
        "The seal of an entry is its hash although there is a key, so that anyone can compute it.",
        seals_of_hashes,
        _CHECK,
    ),
    Mutant(
        "any model for a receipt",
        "hushfit.models._verify",
        "A model with a genuine receipt verifies, even if the rest of the file was changed.",
        the_receipt_is_enough,
        _CHECK,
    ),
    Mutant(
        "guarantee not compared",
        "hushfit.models._verify",
        "A model's guarantee is not compared with the paid cost.",
        the_promise_is_believed,
        _CHECK,
    ),
    Mutant(
        "ceilings not enforced",
        "hushfit.privacy.ledger._team",
        "Whoever pays is not asked for a grant, and ceilings only stand in the record.",
        ceilings_are_advice,
        _CHECK,
    ),
    Mutant(
        "ceiling from now on",
        "hushfit.privacy.ledger._team",
        "A ceiling counts only what is paid under it, and not what its holder paid before, without "
        "a grant or under one that somebody else holds now.",
        a_new_grant_is_a_clean_slate,
        _CHECK,
    ),
    Mutant(
        "own charge approved",
        "hushfit.privacy.ledger._team",
        "Who approves a charge is not compared with who asked for it.",
        the_first_person_is_the_second,
        _CHECK,
    ),
)
