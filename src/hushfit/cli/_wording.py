"""Messages in terms of the command line: ``--epsilon 2``, not ``epsilon=2``."""

import re
from collections.abc import Mapping
from typing import Final

# Arguments of the library that have another name as options.
_RENAMED: Final = {"random_state": "--seed", "groups": "--person", "target_bounds": "the schema"}
_QUOTES: Final = "'\""
_VALUE: Final = r"'[^']*'|\"[^\"]*\"|[^\s,;:()]*[^\s,;:().]"


def in_options(text: str, options: Mapping[str, str]) -> str:
    """A message of the library as a user of the command line reads it.

    Parameters
    ----------
    text : str
        Such as ``epsilon=-1 is not ...``.
    options : mapping of str to str
        Option of each argument that the verb takes, such as ``--epsilon``.

    Returns
    -------
    str
    """
    text = text.replace("Leave random_state=None", "Leave --seed out")
    known = {**_RENAMED, **options}

    def written(found: re.Match[str]) -> str:
        return f"{known[found[1]]} {found[2].strip(_QUOTES)}"

    text = re.sub(rf"\b({'|'.join(known)})=({_VALUE})", written, text)
    return re.sub(r"\brandom_state\b", "--seed", text)
