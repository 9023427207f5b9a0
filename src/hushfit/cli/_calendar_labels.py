"""Days of the week and months as labels, in their own order rather than that of the alphabet."""

from collections.abc import Sequence
from typing import Final

_LEAST: Final = 3  # letters that tell days and months apart
_CYCLES: Final = (
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag"),
    ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
    ("mo", "di", "mi", "do", "fr", "sa", "so"),
    ("mo", "tu", "we", "th", "fr", "sa", "su"),
    (
        *("january", "february", "march", "april", "may", "june"),
        *("july", "august", "september", "october", "november", "december"),
    ),
    (
        *("januar", "februar", "märz", "april", "mai", "juni"),
        *("juli", "august", "september", "oktober", "november", "dezember"),
    ),
)


def in_calendar_order(labels: Sequence[str]) -> list[str]:
    """Labels in the order of the calendar if they are days or months, whole or shortened.

    Parameters
    ----------
    labels : sequence of str

    Returns
    -------
    list of str
        As given if they are something else.
    """
    for cycle in _CYCLES:
        places = [_place(label, cycle) for label in labels]
        if len(places) > 1 and None not in places and len(set(places)) == len(places):
            return [labels[k] for k in sorted(range(len(labels)), key=lambda k: places[k] or 0)]
    return list(labels)


def _place(label: str, cycle: Sequence[str]) -> int | None:
    """Place of a day or month that a label names; None if it names none."""
    text = label.casefold().rstrip(".")
    for place, name in enumerate(cycle):
        if text == name or (len(text) >= _LEAST and name.startswith(text)):
            return place
    return None
