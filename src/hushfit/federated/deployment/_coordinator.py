"""The coordinator's side of a real run, whatever carries the messages: a clock that learns who
is done, silent or gone, and no more.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from hushfit.federated.deployment._run_spec import RunSpec

Ask: TypeAlias = Callable[
    [Sequence[str], str, Mapping[str, Any], float], dict[str, dict[str, Any] | None]
]
"""Puts one question to some owners at the same time; None where no answer came in time."""

# an owner whose process is not up yet does not answer at all, so asking again is quicker than
# waiting
_NEWCOMER_SECONDS = 1.5

RUNNING, FINISHED, REFUSED, LOST = "running", "finished", "refused", "lost"


@dataclass
class Progress:
    """How far a run is; public, and all that a coordinator knows.

    Parameters
    ----------
    run : str
    attempt : int
    owners : list of str
        That take part in this attempt.
    state : {"running", "finished", "refused", "lost"}
    rounds : int
        Done by all owners, in all attempts; after a resumption, the last one is done again.
    seconds : list of float
        Of each round of this attempt.
    silent : list of str
        Who said nothing in the last round.
    silences : dict of str to int
        How often each owner was silent in this attempt.
    lost : list of str
        Who did not answer, so that the attempt ended.
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
    """Leads one attempt at a run.

    Parameters
    ----------
    spec : RunSpec
    ask : callable
    watch : callable
        Told the progress after every step.
    start_timeout : float
        Seconds that owners have to come to the table.
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
        """Hold the run to its end, or to the first owner that refuses or is gone."""
        self._watch(self.progress)
        # Nobody pays before all have agreed and know that they can begin.
        if self._gather("consider", _NEWCOMER_SECONDS) and self._gather(
            "read", self._spec.turn_timeout
        ):
            opened = self._gather("open", self._spec.turn_timeout)
            if opened is not None and not self._apart(
                {name: reply["turns"] for name, reply in opened.items()}
            ):
                self._tick(min(reply["turns"] for reply in opened.values()))
        self._watch(self.progress)
        return self.progress

    def _gather(self, topic: str, timeout: float) -> dict[str, dict[str, Any]] | None:
        """Ask until every owner has answered; owners start at different moments."""
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

    def _apart(self, turns: Mapping[str, int]) -> bool:
        """Whether somebody is further behind than a crash can leave it: then its journal is an
        old copy, which would draw anew.
        """
        most = max(turns.values())
        for name, taken in turns.items():
            if most - taken > 1:
                self.progress.reasons[name] = (
                    f"its journal ends at round {taken}, where others are at {most}: it is an old "
                    "copy. Bring the last one back, or start "
                    "a run with a new name."
                )
                self._end(REFUSED, [])
        return bool(self.progress.reasons)

    def _tick(self, least: int) -> None:
        """Rounds, from the last one that everybody has answered: its words are sent again, none
        is drawn again.
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
            # A neighbour that got no word out or in is no culprit while someone else is gone.
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
            self._note(number, silent, time.monotonic() - started)

    def _note(self, rounds: int, silent: list[str], seconds: float) -> None:
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
                    "restarted. End one of them."
                )
        if reasons:
            self.progress.reasons |= reasons
            self._end(REFUSED, [])
        return bool(reasons)

    def _end(self, state: str, lost: list[str]) -> None:
        self.progress.state, self.progress.lost = state, lost
