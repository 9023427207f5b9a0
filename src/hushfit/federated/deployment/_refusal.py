"""Refusals to take part in a run: for the owner's events, and for others."""

from hushfit.errors import InvalidArgument, OldJournal


class RunRefused(InvalidArgument):
    """An owner does not take part in a run.

    Parameters
    ----------
    why : str
        For the owner's own events.
    told : str
        For the coordinator. Nothing that came with the run is in it, and nothing of the owner's
        machine.
    """

    def __init__(self, why: str, told: str) -> None:
        super().__init__(why)
        self.told = told


def told_to_others(error: Exception) -> str:
    """The text of a refusal that a coordinator receives. What it has sent is never quoted: it may
    not have known all of it.
    """
    if isinstance(error, RunRefused):
        return error.told
    if isinstance(error, OldJournal):
        return "its journal is an old copy, with which it would draw released noise again."
    return "it cannot take part; its own events say why."
