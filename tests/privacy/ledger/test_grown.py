"""Histories that grow: one sequence for all payments, and nobody sees more than they were given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushfit import Ledger
from hushfit.privacy import GaussianCost
from hushfit.privacy.ledger import _disk_ledger
from hushfit.privacy.ledger._grown import Grown


@given(st.lists(st.tuples(st.integers(0, 8), st.lists(st.integers(0, 9), max_size=3)), max_size=12))
def test_grown_sequences_are_as_tuples(steps):
    made = [(Grown[int](), ())]
    for place, items in steps:
        before, plain = made[place % len(made)]
        made.append((before.after(items), (*plain, *items)))
    for grown, plain in made:
        assert (len(grown), tuple(grown), bool(grown)) == (len(plain), plain, bool(plain))
        assert tuple(reversed(grown)) == plain[::-1]
        assert [grown[k] for k in range(-len(plain), len(plain))] == [*plain, *plain]
        assert (grown[-2:-1], grown[1:], grown[:-1]) == (plain[-2:-1], plain[1:], plain[:-1])
        assert grown == Grown(plain)
        assert (hash(grown), repr(grown)) == (hash(plain), repr(plain))
        assert grown != plain
        for outside in (len(plain), -len(plain) - 1):
            with pytest.raises(IndexError):
                grown[outside]


def test_payments_copy_no_history(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = Ledger.create(path, "rows", 1e6, 1e-6)
    ledger.team.grant(ledger.account.author().name, epsilon=1e5)

    def histories():
        ledger.charge(GaussianCost(50.0), "fit", "replace-one")
        ledger.spent()  # reads what was just recorded
        (state,) = (s for (place, *_), s in _disk_ledger._VERIFIED.items() if place == str(path))
        team = state.team
        return state.chain, state.receipts, team.payments, team.grants[0].receipts

    first = histories()
    lengths, contents = [len(history) for history in first], [tuple(history) for history in first]
    for _ in range(5):
        last = histories()
    for earlier, later in zip(first, last, strict=True):
        assert later._items is earlier._items
    assert [len(history) for history in first] == lengths
    assert [tuple(history) for history in first] == contents
    assert [len(history) for history in last] == [length + 5 for length in lengths]
