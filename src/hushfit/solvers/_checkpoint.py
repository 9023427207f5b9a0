"""Checkpoints: stored releases, so that an interrupted run need not repeat its queries.

A checkpoint is the transcript: noisy answers, public from the moment they exist, so the file holds
nothing private. A solver is a function of its answers; given them again it repeats the same
iterates and continues where it stopped. Queries from there on are new and must be paid for: a file
that was copied could otherwise be continued twice on one payment.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from hushfit.errors import InvalidArgument
from hushfit.release import Released

_FORMAT = "hushfit-checkpoint-1"


def save_checkpoint(path: str | os.PathLike[str], transcript: Iterable[Released]) -> None:
    """Write the releases so far.

    The file is replaced as a whole, so that a crash leaves the old one or the new one.
    """
    target = Path(path)
    releases = [
        {"name": released.name, "answer": released.answer.tolist()} for released in transcript
    ]
    scratch = target.with_name(target.name + ".partial")
    scratch.write_text(json.dumps({"format": _FORMAT, "releases": releases}))
    os.replace(scratch, target)


def load_checkpoint(path: str | os.PathLike[str]) -> list[Released]:
    """Read the releases of an interrupted run, for ``Curator(..., replay=...)``.

    Parameters
    ----------
    path : path-like
        What ``run(..., checkpoint=path)`` wrote.

    Returns
    -------
    list of Released

    Raises
    ------
    InvalidArgument
        If the file is not a checkpoint.
    """
    try:
        content = json.loads(Path(path).read_text())
        if content["format"] != _FORMAT:
            raise ValueError(content["format"])
        return [
            Released(str(item["name"]), np.array(item["answer"], dtype=np.float64))
            for item in content["releases"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArgument(
            f"{path} is not a hushfit checkpoint ({error}). Delete it to start again."
        ) from None
