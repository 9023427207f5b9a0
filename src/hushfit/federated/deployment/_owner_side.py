"""An owner in a real run, for any transport: it checks the run, exchanges greetings, takes turns,
and logs requests.
"""

import json
import os
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock, RLock
from typing import Any, TypeAlias

import numpy as np

from hushfit._typing import Vector
from hushfit.data.tables import CodedRows
from hushfit.errors import HushfitError, InvalidArgument, OldJournal
from hushfit.federated._journal import Standing, packed, standing_on_disk
from hushfit.federated._owner import Owner
from hushfit.federated.deployment._envelope import Envelopes, Greeting, Identity
from hushfit.federated.deployment._owner_config import OwnerConfig
from hushfit.federated.deployment._refusal import RunRefused, told_to_others
from hushfit.federated.deployment._run_spec import RunSpec

Post: TypeAlias = Callable[[str, str, bytes, float], bytes | None]
"""Sends bytes to a neighbour under a topic and returns the reply; None if none came in time."""

HELLO, WORD = "hello", "word"
_OK = b"ok"
_MAX_REFUSALS_LOGGED = 100  # per attempt
_MAX_EVENT_BYTES, _LONGEST_REASON = 1 << 24, 500
_WINDOW = 3  # rounds behind or ahead of its own from which a message is accepted


class Participant:
    """One owner in one attempt at a run.

    Parameters
    ----------
    config : OwnerConfig
        The owner's own file.
    asked : str
        The run, as `RunSpec.packed` wrote it; checked here.
    post : callable
        ``post(neighbour, topic, message, seconds) -> reply or None``.
    """

    def __init__(self, config: OwnerConfig, asked: Any, post: Post) -> None:
        self._config, self._asked, self._post = config, asked, post
        self._events = Events(config.state)
        self._instance = secrets.token_hex(8)
        self._lock, self._inbox_lock = RLock(), Lock()
        self._inbox: dict[int, dict[str, bytes]] = {}
        self._spec: RunSpec | None = None
        self._envelopes: Envelopes | None = None
        self._rows: CodedRows | None = None
        self._owner: Owner | None = None
        self._messages_refused = 0

    def answer(self, topic: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Reply to the coordinator: the result, or why not. No text in it depends on the rows."""
        topics = {
            "consider": self._consider,
            "read": self._read,
            "open": self._open,
            "turn": self._turn,
        }
        try:
            with self._lock:
                if topic not in topics:
                    raise InvalidArgument(f"{topic!r} is no request of a coordinator.")
                return {"instance": self._instance, **topics[topic](body)}
        except (HushfitError, OSError) as error:
            self._events.note("refused", topic=topic, why=str(error))
            return {"instance": self._instance, "refused": told_to_others(error)}

    def _consider(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if self._envelopes is None:
            spec = RunSpec.unpacked(self._asked)
            asked = spec.budgets.get(self._config.name)
            if asked is not None:
                self._events.note(
                    "asked",
                    run=spec.run,
                    attempt=spec.attempt,
                    algorithm=spec.algorithm,
                    epsilon=asked.epsilon,
                    delta=asked.delta,
                    owners=list(spec.active),
                    protects=spec.unit.in_words,
                    fingerprint=spec.fingerprint,
                )
            self._config.consider(spec)
            _require_same_run(self._config.state, spec)
            me = Identity.read(self._config.name, self._config.kit / "startup")
            self._envelopes = Envelopes(
                me,
                spec.run,
                spec.attempt,
                spec.neighbours(me.name),
                self._config.peers,
                spec.attempt_fingerprint,
            )
            self._spec = spec
        return {"agreed": True}

    def _read(self, body: Mapping[str, Any]) -> dict[str, Any]:
        spec, _ = self._considered()
        if self._rows is None:
            self._rows = self._config.read_rows(spec)
        return {"ready": True}

    def _open(self, body: Mapping[str, Any]) -> dict[str, Any]:
        spec, envelopes = self._considered()
        for name in spec.neighbours(self._config.name):
            reply = self._post(name, HELLO, self._hello(name), spec.turn_timeout / 3)
            if reply is None:
                return {"missing": [name]}
            if not reply:
                raise RunRefused(
                    f"{name} refused the greeting of {self._config.name}; the events of {name} say "
                    "why.",
                    "a neighbour refused its greeting; the events of both say why.",
                )
            greeting = envelopes.greeted(reply)
            self._refuse_old_journals(greeting)
            envelopes.accept(greeting)
        if self._rows is None:
            raise InvalidArgument(
                f"{self._config.name} has not read its rows. Ask it to read first."
            )
        if self._owner is None:
            self._owner = self._config.open_owner(spec, self._rows)
            self._events.note(
                "open", run=spec.run, turns=self._owner.turns_taken, spent=self._spent()
            )
        return {"turns": self._owner.turns_taken, "finished": self._owner.weights is not None}

    def _standing(self) -> Standing:
        spec, _ = self._considered()
        return (
            standing_on_disk(spec.run, self._config.state)
            if self._owner is None
            else self._owner.standing
        )

    def _hello(self, receiver: str) -> bytes:
        """A greeting with this owner's position and the last round received from the neighbour."""
        _, envelopes = self._considered()
        standing = self._standing()
        return envelopes.hello(receiver, standing.turns, standing.last_received_from(receiver))

    def _refuse_old_journals(self, greeting: Greeting) -> None:
        """Refuse old journals. A message is in the journal before it is sent: an owner whose
        message was received in a round that its journal lacks has an old copy.
        """
        mine = self._standing()
        received = mine.last_received_from(greeting.name)
        if greeting.heard >= mine.turns:
            raise OldJournal(
                f"{greeting.name} has received a message of {self._config.name} in round "
                f"{greeting.heard}, but the journal here ends before round {mine.turns}: it is an "
                "old copy. Restore the latest one, or start a run with a new name."
            )
        if received >= greeting.turns:
            raise RunRefused(
                f"{greeting.name} sent a message in round {received}, but its journal ends before "
                f"round {greeting.turns}: it is an old copy. {greeting.name} must restore the "
                "latest one.",
                "a neighbour's journal is an old copy; its own events say whose.",
            )

    def _spent(self) -> dict[str, float]:
        ledger = self._config.open_ledger()
        spent = ledger.spent()
        return {"epsilon": spent.epsilon, "delta": spent.delta, "budget": ledger.budget.epsilon}

    def _considered(self) -> tuple[RunSpec, Envelopes]:
        if self._spec is None or self._envelopes is None:
            raise InvalidArgument(
                f"{self._config.name} has not agreed to this run. Ask it to consider first."
            )
        return self._spec, self._envelopes

    def _turn(self, body: Mapping[str, Any]) -> dict[str, Any]:
        spec, _ = self._considered()
        owner, number, silent = self._owner, body.get("round"), body.get("silent")
        if (
            owner is None
            or not isinstance(number, int)
            or isinstance(number, bool)
            or not isinstance(silent, list)
        ):
            raise InvalidArgument(
                f"{self._config.name} cannot take a turn: a turn needs a round and a list of "
                "silent owners."
            )
        received: dict[str, Vector] = {}
        if number == owner.turns_taken and number > 0:
            expected = {name for name in spec.neighbours(owner.name) if name not in silent}
            with self._inbox_lock:
                messages = {
                    name: message
                    for name, message in self._inbox.get(number - 1, {}).items()
                    if name in expected
                }
            if expected - set(messages):
                return {"missing": sorted(expected - set(messages))}
            received = {
                name: np.frombuffer(message, dtype="<f8") for name, message in messages.items()
            }
        sent = owner.turn(number, received)
        unconfirmed = [] if sent is None else self._broadcast(number, sent)
        if unconfirmed:
            return {"missing": unconfirmed}
        self._forget(number)
        if owner.weights is not None and number + 1 == owner.turns_taken:
            self._finish(owner, spec)
        return {"silent": sent is None, "finished": owner.weights is not None}

    def _broadcast(self, number: int, sent: Vector) -> list[str]:
        """Send a message to the neighbours; returns those that did not confirm it."""
        spec, envelopes = self._considered()
        message, names = (
            np.ascontiguousarray(sent, dtype="<f8").tobytes(),
            spec.neighbours(self._config.name),
        )

        def send(name: str) -> bool:
            # Time out before the coordinator does, or this owner would seem to be gone.
            return (
                self._post(
                    name, WORD, envelopes.closed(name, number, message), spec.turn_timeout / 3
                )
                == _OK
            )

        if len(names) < 2:
            return [name for name in names if not send(name)]
        with ThreadPoolExecutor(min(len(names), 8)) as pool:
            return [
                name
                for name, confirmed in zip(names, pool.map(send, names), strict=True)
                if not confirmed
            ]

    def _forget(self, number: int) -> None:
        with self._inbox_lock:
            for old in [n for n in self._inbox if n < number - _WINDOW]:
                del self._inbox[old]

    def received(self, topic: str, raw: Any) -> bytes:
        """Handle what claims to be a neighbour's greeting or message. The reply is empty if it was
        refused.
        """
        try:
            if not isinstance(raw, bytes) or len(raw) > self._config.most_message_bytes:
                size = len(raw) if isinstance(raw, bytes) else type(raw).__name__
                raise InvalidArgument(
                    f"a message of {size} bytes is over the limit of "
                    f"{self._config.most_message_bytes}. It was refused."
                )
            if topic == HELLO:
                _, envelopes = self._considered()
                return self._greeting_reply(envelopes.greeted(raw))
            return self._store(raw)
        except (HushfitError, OSError) as error:
            self.refuse_message(topic, str(error))
            return b""

    def _greeting_reply(self, greeting: Greeting) -> bytes:
        """This owner's greeting, also if journals do not match: it states under signature what was
        received.
        """
        _, envelopes = self._considered()
        try:
            self._refuse_old_journals(greeting)
            envelopes.accept(greeting)
        except HushfitError as error:
            self.refuse_message(HELLO, str(error))
        return self._hello(greeting.name)

    def refuse_message(self, topic: str, why: str) -> None:
        """Log a refused message; further ones are not logged above a limit."""
        with self._inbox_lock:
            self._messages_refused += 1
            count = self._messages_refused
        if count <= _MAX_REFUSALS_LOGGED:
            self._events.note("message refused", topic=topic, why=why)
        if count == _MAX_REFUSALS_LOGGED:
            self._events.note(
                "message refused",
                topic=topic,
                why="further refused messages are not logged.",
            )

    def _store(self, raw: bytes) -> bytes:
        """Store a message: one for each sender and round, near the current round of this owner."""
        _, envelopes = self._considered()
        sender, number, message = envelopes.opened(raw)
        at = self._owner.turns_taken if self._owner is not None else 0
        if abs(number - at) > _WINDOW or number < 0:
            raise InvalidArgument(
                f"a message of {sender} is for round {number}, but {self._config.name} is at round "
                f"{at}. It was refused."
            )
        if len(message) % 8:
            raise InvalidArgument(
                f"a message of {sender} for round {number} has {len(message)} bytes, not a "
                "multiple of 8. It was refused."
            )
        with self._inbox_lock:
            stored = self._inbox.setdefault(number, {}).setdefault(sender, message)
        if stored != message:
            raise InvalidArgument(
                f"{sender} has sent another message for round {number} before. It was refused."
            )
        return _OK

    def _finish(self, owner: Owner, spec: RunSpec) -> None:
        assert owner.weights is not None
        outcome = {
            "run": spec.run,
            "weights": packed(owner.weights.ravel()),
            "shape": list(owner.weights.shape),
            "rounds": owner.turns_taken - 1,
            "guarantee": owner.guarantee.to_dict(),
            "receipt": owner.receipt,
            "terms": spec.terms,
            "units": owner.seat.problem.n_units,
            "dropped": list(spec.dropped),
        }
        _write_whole(outcome_path(self._config, spec.run), outcome)
        self._events.note("finished", run=spec.run, rounds=outcome["rounds"])

    def close(self) -> None:
        """Close journal and rows."""
        with self._lock:
            if self._owner is not None:
                self._owner.close()
            if self._rows is not None:
                self._rows.close()


class Events:
    """Log of an owner, one JSON line per event, on its own disk; it holds no content of messages.

    A full file is stored until the next one is full too, so that no one can fill the disk.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "events.jsonl"

    def note(self, what: str, **details: Any) -> None:
        if len(str(details.get("why", ""))) > _LONGEST_REASON:
            details["why"] = str(details["why"])[:_LONGEST_REASON] + "..."
        if self.path.exists() and self.path.stat().st_size > _MAX_EVENT_BYTES:
            self.path.replace(self.path.with_name("events-before.jsonl"))
        line = json.dumps(
            {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "what": what, **details},
            default=str,
        )
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def read(self, start: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Complete lines from a position in the file, and the position after them."""
        if not self.path.exists():
            return [], start
        with self.path.open("rb") as file:
            start = start if start <= self.path.stat().st_size else 0  # the file was replaced
            file.seek(start)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        return [json.loads(line) for line in whole.splitlines()], start + len(whole)


def outcome_path(config: OwnerConfig, run: str) -> Path:
    """Path of the result of a run."""
    return config.state / f"{run}.outcome.json"


def _require_same_run(folder: Path, spec: RunSpec) -> None:
    """Refuse a run that was described differently before under the same name."""
    described = {"run": spec.run, "fingerprint": spec.fingerprint}
    path = folder / f"{spec.run}.run.json"
    if not path.exists():
        _write_whole(path, described)
    elif _read_whole(path) != described:
        raise RunRefused(
            f"run {spec.run} was described differently before. Give another run another name.",
            "the run was described differently before. Give another run another name.",
        )


def _read_whole(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None


def _write_whole(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
