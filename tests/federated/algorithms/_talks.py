"""Shared by the tests of the decentralised algorithms: owners' tables, seats, curators, and a run
in lockstep.
"""

import numpy as np

from hushfit import PrivateLogisticRegression
from hushfit.data import SeededCoins
from hushfit.federated import Network, Seat
from hushfit.privacy import Budget, SeededSampler
from hushfit.release.curator import Curator

NAMES = ["north", "east", "south", "west"]
RING = Network.ring(NAMES)


def tables(n=40, d=3, seed=0):
    """Owners of different sizes whose rows are distributed differently."""
    rng = np.random.default_rng(seed)
    w, found = rng.normal(size=d), {}
    for place, name in enumerate(NAMES):
        X = rng.normal(size=(n + 7 * place, d)) + 0.3 * place
        found[name] = (X, np.where(X @ w + rng.logistic(size=len(X)) > 0, 1, 0))
    return found


def model(epsilon=1.0, **settings):
    return PrivateLogisticRegression(epsilon=epsilon, delta=1e-5, classes=[0, 1], **settings)


def seats(network=RING, epsilon=1.0, parts=None, **settings):
    prepared = {
        who: model(epsilon, **settings).prepare(X, y) for who, (X, y) in (parts or tables()).items()
    }
    sizes = {who: ready.problem.n_units for who, ready in prepared.items()}
    budgets = dict.fromkeys(prepared, Budget(epsilon, 1e-5))
    return {
        who: (Seat(who, network, ready.problem, sizes, budgets), ready.source)
        for who, ready in prepared.items()
    }


def held(algorithm, places, curators):
    """Run all conversations in lockstep; the messages of each round, and the results."""
    conversations = {
        who: algorithm.converse(seat, curators[who]) for who, (seat, _) in places.items()
    }
    messages, results = (
        [{who: next(conversation) for who, conversation in conversations.items()}],
        {},
    )
    while not results:
        mail = {
            who: {
                n: messages[-1][n].copy()
                for n in places[who][0].neighbours
                if messages[-1][n] is not None
            }
            for who in conversations
        }
        sent = {}
        for who, conversation in conversations.items():
            try:
                sent[who] = conversation.send(mail[who])
            except StopIteration as end:
                results[who] = end.value
        if sent:
            messages.append(sent)
    return messages, results


def curators_for(algorithm, places, replays=None, sources=None):
    found = {}
    for number, (who, (seat, source)) in enumerate(places.items()):
        quote = algorithm.plan(seat).quote(seat.problem, seat.budget)
        found[who] = Curator(
            source if sources is None else sources[who],
            quote.plan,
            quote.multipliers,
            seat.problem.relation,
            SeededSampler(number),
            SeededCoins(number),
            quote.reserve,
            replay=() if replays is None else replays[who],
        )
    return found
