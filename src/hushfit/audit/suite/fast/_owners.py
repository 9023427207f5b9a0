"""Fast checks: conversations, payments and consent of data owners."""

import base64
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.audit.attacks import (
    RELATIONS,
    ROWS,
    USUAL_BUDGET,
    Canary,
    Neighbours,
    OwnerAttack,
    owner_attacks,
)
from hushfit.audit.checks import Finding, check_conversation, check_quote
from hushfit.audit.suite.fast._attacks import attacked
from hushfit.audit.suite.fast._check import Check
from hushfit.data import DataSource, as_source
from hushfit.data.tables import parse_schema
from hushfit.errors import HushfitError, LedgerError
from hushfit.federated import (
    DPADMM,
    DVP,
    IPPADMM,
    MADMM,
    PPADMM,
    RADMM,
    Algorithm,
    Network,
    Owner,
    Run,
    Seat,
    SharedSolver,
    deployment,
)
from hushfit.losses import Squared
from hushfit.penalties import Zero
from hushfit.privacy import Ledger, Relation
from hushfit.problem import Problem
from hushfit.solvers import SSADMM


def _algorithms() -> dict[str, Algorithm]:
    return {
        "pp-admm": PPADMM(steps=3, eta=5.0),
        "ipp-admm": IPPADMM(steps=4, eta=5.0),
        "ipp-admm, laplace gate": IPPADMM(steps=4, eta=5.0, gate="laplace"),
        "dvp": DVP(steps=3, eta=5.0),
        "m-admm": MADMM(steps=3, eta=5.0),
        "r-admm": RADMM(steps=4, eta=5.0),
        "dp-admm": DPADMM(steps=3),
        "shared": SharedSolver(SSADMM(steps=4)),
    }


def _seat(relation: Relation, columns: int = 2) -> Seat:
    names = ("victim", "other")
    problem = Problem(Squared(1.0), Zero(), ROWS, columns, relation, fit_intercept=False)
    return Seat(
        "victim",
        Network.complete(names),
        problem,
        dict.fromkeys(names, ROWS),
        dict.fromkeys(names, USUAL_BUDGET),
    )


def _alternating_message(k: int) -> Vector:
    return np.full(2, 0.1 * (-1) ** k)


def owners() -> Iterator[Check]:
    """Conversations, prices, attacks, payments and consent of data owners."""
    for name in _algorithms():
        yield Check(f"conversation of {name}", partial(_conversation, name))
        yield Check(f"price of owner, {name}", partial(_owner_price, name))
    for relation in RELATIONS:
        for name in owner_attacks(relation):
            yield Check(
                f"attack on {name} ({relation})", partial(_owner_attack, name, relation), attacks=1
            )
    for name in ("dvp", "r-admm", "dp-admm"):
        yield Check(f"attack on owner, {name}", partial(_other_owner, name), attacks=1)
    yield Check("payments and journal of an owner", _owner_books)
    yield Check("consent of an owner", _owner_consent)


def _conversation(name: str, seed: int) -> list[Finding]:
    relation = Relation.REPLACE_ONE
    source = Canary().neighbours(relation).first
    return check_conversation(
        _algorithms()[name], _seat(relation), source, _alternating_message, name, seed
    )


def _owner_price(name: str, seed: int) -> list[Finding]:
    found = []
    for relation in RELATIONS:
        seat = _seat(relation)
        quote = _algorithms()[name].plan(seat).quote(seat.problem, seat.budget)
        found += check_quote(quote, seat.budget, ROWS, relation, name)
    return found


def _owner_attack(name: str, relation: Relation, seed: int) -> list[Finding]:
    attack = owner_attacks(relation)[name]
    return attacked(attack.white_box, attack.claim, name, seed)


def _diagonal(relation: Relation) -> Neighbours:
    """Opposite labels on a record between the axes, where the sum of absolute values is largest."""
    tables = []
    for label in (-1e4, 1e4):
        X, y = np.zeros((ROWS, 2)), np.full(ROWS, 1e4)
        X[0], y[0] = 1.0, label
        tables.append(as_source(X, y, fit_intercept=False))
    return Neighbours(tables[0], tables[1], 0, "opposite labels on a record between the axes")


def _other_owner(name: str, seed: int) -> list[Finding]:
    relation = Relation.REPLACE_ONE
    neighbours = _diagonal(relation)
    attack = OwnerAttack(
        _algorithms()[name],
        _seat(relation),
        neighbours,
        _alternating_message,
        gaussian=name == "dp-admm",
    )
    return attacked(attack.white_box, attack.claim, f"owner, {name}", seed)


def _owner_books(seed: int) -> list[Finding]:
    """Check that an owner pays once, before its first message, and repeats its messages after a
    restart.
    """
    source = Canary().neighbours(Relation.REPLACE_ONE).first
    ledger = Ledger(100.0, USUAL_BUDGET.delta)
    seat, algorithm = _seat(Relation.REPLACE_ONE), PPADMM(steps=3, eta=5.0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        owner = Owner(source, seat, Run("audit", algorithm), ledger, folder)
        paid_first = len(ledger.entries) == 1
        received: dict[str, Vector] = {}
        messages = []
        for k in range(2):
            messages.append(owner.turn(k, received))
            received = {"other": _alternating_message(k)}
        owner.close()
        again = Owner(source, seat, Run("audit", algorithm), ledger, folder)
        repeated = [again.turn(k, {}) for k in range(2)]
        rewritten = [one.answer for one in again._contract.curator.transcript]
        again.close()
    same = all(
        a is not None and b is not None and np.array_equal(a, b)
        for a, b in zip(messages, repeated, strict=True)
    )
    same_journal = len(rewritten) == 2 and all(
        a is not None and np.array_equal(a, b) for a, b in zip(messages, rewritten, strict=True)
    )
    return [
        Finding(
            "owner: pays before its first message", paid_first, f"{len(ledger.entries)} entries"
        ),
        Finding("owner: pays once", len(ledger.entries) == 1, f"{len(ledger.entries)} entries"),
        Finding(
            "owner: repeats its messages after a restart",
            same and same_journal,
            "" if same and same_journal else "another message for the same round",
        ),
        _old_journal(source, seat, algorithm),
    ]


def _old_journal(source: DataSource, seat: Seat, algorithm: Algorithm) -> Finding:
    """Check that an owner does not continue from a journal restored from a backup."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ledger = Ledger.create(Path(folder) / "ledger.db", "audit", 100.0, USUAL_BUDGET.delta)
        owner = Owner(source, seat, Run("audit", algorithm), ledger, folder)
        journal = Path(folder) / "audit.journal"
        owner.turn(0, {})
        if not journal.exists():
            return Finding(
                "owner: does not continue from an old journal", False, "it writes no journal"
            )
        backup = journal.read_bytes()
        owner.turn(1, {"other": _alternating_message(0)})
        owner.close()
        journal.write_bytes(backup)
        try:
            Owner(source, seat, Run("audit", algorithm), ledger, folder).close()
        except LedgerError:
            return Finding("owner: does not continue from an old journal", True)
    return Finding(
        "owner: does not continue from an old journal", False, "it would draw a round again"
    )


def _owner_consent(seed: int) -> list[Finding]:
    """Check that an owner takes part only in approved runs, and that a refusal reveals nothing of
    the run's description.
    """
    schema = parse_schema(_CONSENT_SCHEMA).schema
    names = ("victim", "other")
    spec = deployment.RunSpec(
        "audit", "pp-admm", {"steps": 3}, Network.complete(names), dict.fromkeys(names, ROWS),
        dict.fromkeys(names, USUAL_BUDGET), deployment.terms_of(schema),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        place = Path(home)
        (place / "schema.toml").write_text(_CONSENT_SCHEMA, encoding="utf-8")
        owner = deployment.OwnerConfig(
            "victim",
            place,
            ("rows.csv",),
            place / "schema.toml",
            "ledger.db",
            "victim",
            place,
            USUAL_BUDGET,
        )
        agreed = replace(owner, approved={spec.run: spec.fingerprint})
        alone = _refusal(lambda: owner.consider(spec)) is not None
        other = _refusal(lambda: agreed.consider(replace(spec, settings={"steps": 4}))) is not None
        willing = _refusal(lambda: agreed.consider(spec)) is None
    packed = json.dumps({**spec.to_dict(), "algorithm": _MARK})
    refusals = [
        _refusal(partial(deployment.RunSpec.unpacked, _coded(packed, code)))
        for code in ("utf-8", "utf-16", "utf-32")
    ]
    foreign = _refusal(
        partial(deployment.RunSpec.unpacked, _coded(json.dumps(spec.to_dict()), "utf-16"))
    )
    return [
        Finding(
            "owner: takes part in approved runs only",
            alone and other and willing,
            f"{alone}, {other}, {willing}",
        ),
        Finding("owner: reads no other encoding than UTF-8", foreign is not None),
        Finding(
            "owner: a refusal quotes nothing of the run",
            not any(_MARK in str(text) for text in refusals),
        ),
    ]


_MARK = "came-with-the-run"
_CONSENT_SCHEMA = """
[target]
name = "ill"
kind = "categorical"
categories = ["no", "yes"]
[columns.age]
kind = "numeric"
low = 0
high = 100
"""


def _coded(text: str, encoding: str) -> str:
    return base64.b64encode(text.encode(encoding)).decode("ascii")


def _refusal(act: Callable[[], Any]) -> str | None:
    """The message sent to others if it is refused, else None."""
    try:
        act()
    except HushfitError as error:
        return deployment.told_to_others(error)
    return None
