"""The coordinator of a real run, for any transport: a clock that learns which owners have finished,
sent nothing or are gone, and no more.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from hushfit.federated.deployment._run_spec import RunSpec

Ask: TypeAlias = Callable[
    [Sequence[str], str, Mapping[str, Any], float], dict[str, dict[str, Any] | None]
]
"""Sends one request to some owners at the same time; None where no answer came in time."""

# an owner whose process is not up yet does not answer at all, so retrying is quicker than waiting
_START_RETRY_SECONDS = 1.5

RUNNING, FINISHED, REFUSED, LOST = "running", "finished", "refused", "lost"


@dataclass
class Progress:
    """Progress of a run; public, and all that a coordinator knows.

    Parameters
    ----------
    run : str
    attempt : int
    owners : list of str
        Owners that take part in this attempt.
    state : {"running", "finished", "refused", "lost"}
    rounds : int
        Rounds completed by all owners, in all attempts; after a resumption, the last one is
        repeated.
    seconds : list of float
        Duration of each round of this attempt.
    silent : list of str
        Owners that sent nothing in the last round.
    silences : dict of str to int
        Number of rounds of this attempt in which each owner sent nothing.
    lost : list of str
        Owners that did not answer, which ended the attempt.
    reasons : dict of str to str
        Why owners refused.
    """

    run: str
    attempt: int
    owners: list[str]
    state: str = RUNNING
    rounds: int = 0
    seconds: list[float] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    silences: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Clock:
    """Coordinates one attempt at a run.

    Parameters
    ----------
    spec : RunSpec
    ask : callable
    watch : callable
        Called with the progress after every step.
    start_timeout : float
        Seconds within which owners have to answer at the start.
    """

    def __init__(
        self,
        spec: RunSpec,
        ask: Ask,
        watch: Callable[[Progress], None],
        start_timeout: float = 60.0,
    ) -> None:
        self._spec, self._ask, self._watch, self._start_timeout = spec, ask, watch, start_timeout
        self.progress = Progress(spec.run, spec.attempt, list(spec.active))
        self._instances: dict[str, str] = {}

    def lead(self) -> Progress:
        """Run to the end, or until an owner refuses or is gone."""
        self._watch(self.progress)
        # No owner pays before all have agreed and are ready to start.
        if self._gather("consider", _START_RETRY_SECONDS) and self._gather(
            "read", self._spec.turn_timeout
        ):
            opened = self._gather("open", self._spec.turn_timeout)
            if opened is not None and not self._has_old_journal(
                {name: reply["turns"] for name, reply in opened.items()}
            ):
                self._run_rounds(min(reply["turns"] for reply in opened.values()))
        self._watch(self.progress)
        return self.progress

    def _gather(self, topic: str, timeout: float) -> dict[str, dict[str, Any]] | None:
        """Repeat a request until every owner has answered; owners start at different times."""
        answers: dict[str, dict[str, Any]] = {}
        waiting, until = list(self._spec.active), time.monotonic() + self._start_timeout
        while waiting:
            replies = self._ask(waiting, topic, {}, timeout)
            answers |= {
                name: reply
                for name, reply in replies.items()
                if reply is not None and "missing" not in reply
            }
            if self._refused(answers):
                return None
            waiting = [name for name in waiting if name not in answers]
            if waiting and time.monotonic() > until:
                self._end(LOST, waiting)
                return None
            if waiting:
                time.sleep(0.2)
        return answers

    def _has_old_journal(self, turns: Mapping[str, int]) -> bool:
        """Whether an owner is further behind than a crash can leave it: then its journal is an old
        copy, which would draw noise again.
        """
        most = max(turns.values())
        for name, taken in turns.items():
            if most - taken > 1:
                self.progress.reasons[name] = (
                    f"its journal ends at round {taken}, where others are at {most}: it is an old "
                    "copy. Restore the latest one, or start a run with a new name."
                )
                self._end(REFUSED, [])
        return bool(self.progress.reasons)

    def _run_rounds(self, least: int) -> None:
        """Run the rounds from the last one that all have answered: its messages are sent again, no
        noise is drawn again.
        """
        number, silent = max(0, least - 1), list[str]()
        self.progress.rounds = number
        while True:
            started = time.monotonic()
            replies = self._ask(
                self._spec.active,
                "turn",
                {"round": number, "silent": silent},
                self._spec.turn_timeout,
            )
            answers = {name: reply for name, reply in replies.items() if reply is not None}
            if self._refused(answers):
                return
            gone = {name for name, reply in replies.items() if reply is None}
            # An owner that could not send or receive a message is not at fault while another is
            # gone.
            gone = gone or {
                other for reply in answers.values() for other in reply.get("missing", [])
            }
            if gone:
                self._end(LOST, sorted(gone))
                return
            silent = sorted(name for name, reply in answers.items() if reply["silent"])
            if all(reply["finished"] for reply in answers.values()):
                self._end(FINISHED, [])
                return
            number += 1
            self._record_round(number, silent, time.monotonic() - started)

    def _record_round(self, rounds: int, silent: list[str], seconds: float) -> None:
        progress = self.progress
        progress.rounds, progress.silent = rounds, silent
        progress.seconds.append(round(seconds, 4))
        for name in silent:
            progress.silences[name] = progress.silences.get(name, 0) + 1
        self._watch(progress)

    def _refused(self, answers: Mapping[str, Mapping[str, Any]]) -> bool:
        reasons = {
            name: str(reply["refused"]) for name, reply in answers.items() if "refused" in reply
        }
        for name, reply in answers.items():
            if self._instances.setdefault(name, str(reply.get("instance"))) != str(
                reply.get("instance")
            ):
                reasons[name] = (
                    f"two processes answer as {name}: its kit is in use twice, or it was "
                    "restarted. Stop one of them."
                )
        if reasons:
            self.progress.reasons |= reasons
            self._end(REFUSED, [])
        return bool(reasons)

    def _end(self, state: str, lost: list[str]) -> None:
        self.progress.state, self.progress.lost = state, lost
