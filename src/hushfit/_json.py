"""JSON objects in which no key comes twice.

Of two equal keys some readers take the first and some the last. A hash over what was read would not
tell that the file shows another value to a person, or to another program.
"""

from typing import Any


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object of JSON from its keys and values, for ``object_pairs_hook`` of `json.loads`.

    Parameters
    ----------
    pairs : list of (str, value)

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If a key comes twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found
