"""Drafts the target of a schema: classes, numbers, counts or grades. Not private."""

from typing import Any, Final

from hushfit.cli._column_draft import named_like_counts
from hushfit.data.schema import (
    CategoricalColumn,
    CountTarget,
    NumericColumn,
    OrdinalTarget,
    Target,
    number_of,
    rounded_outwards,
)
from hushfit.errors import InvalidArgument

KINDS: Final = ("categorical", "numeric", "count", "ordinal")
_MAX_CLASSES: Final = 50
# More different numbers than this are a measurement rather than codes of classes.
_MAX_NUMBERED_CLASSES: Final = 10

# Words for a class that is the absence of something: the other class is the positive one.
_NEGATIONS: Final = {
    *("0", "false", "no", "n", "f", "none", "neg", "negative", "absent", "normal", "healthy"),
    *("never", "control", "benign", "alive", "nein", "falsch", "negativ", "gesund", "lebend"),
    *("nie", "non", "faux", "négatif", "negatif", "nee", "nej", "nei", "não", "nao", "falso"),
    *("negativo", "ei", "ne", "nie", "нет"),
}

NOTES: Final = {
    "categorical": 'Classes to predict. Ordered ones are grades: kind = "ordinal", from the '
    "lowest to the highest.",
    "numeric": "Numbers to predict, by linear regression. Values outside low and high are clipped, "
    "and predictions stay inside; a narrow range means little noise.",
    "count": "Counts to predict, by Poisson regression. Larger ones than high are clipped; a small "
    'cap means little noise. If these are not counts: kind = "numeric", low and high.',
    "ordinal": "Grades, from the lowest to the highest. CHECK THE ORDER: the draft sorts numbers "
    "by size and everything else by the alphabet.",
}


def drafted_target(draft: Any, name: str, kind: str | None) -> Target:
    """The target as the rows suggest it, or as the given kind of it.

    Parameters
    ----------
    draft : ColumnDraft
        What was found in the column.
    name : str
    kind : str, optional

    Returns
    -------
    Target
    """
    if draft.has_thousands:
        raise InvalidArgument(
            f"the target {name!r} has numbers with commas between thousands, as in 1,234. Write "
            "them without; if they are decimal commas, say --decimal ','."
        )
    kind = kind or _likely_kind(draft, name)
    if kind == "categorical":
        classes = _labels(draft, name, _marked_classes(draft))
        return CategoricalColumn(name, classes, positive=_positive(classes))
    if kind == "ordinal":
        return _graded(name, _labels(draft, name))
    comma = draft.has_comma_decimals
    low, high = draft.comma_range if comma else (draft.low, draft.high)
    if not low < high:
        raise InvalidArgument(
            f"the target {name!r} has no two different numbers, so it is not {kind}. Choose "
            "another column, or --target-kind categorical."
        )
    low, high = rounded_outwards(float(low), float(high))
    if kind == "count":
        return _counted(name, low, high)
    return NumericColumn(name, low, high, decimal="," if comma else ".")


def _positive(classes: tuple[str, ...]) -> str | None:
    """Of two classes the one that is not a negation, and else the last; None of more."""
    if len(classes) != 2:
        return None
    first, last = classes
    return first if _is_negation(last) and not _is_negation(first) else last


def _is_negation(label: str) -> bool:
    """Whether a label says that something is absent: `nein`, `not readmitted`."""
    words = label.casefold().replace("_", " ").replace("-", " ").split()
    return bool(words) and (label.casefold() in _NEGATIONS or words[0] in ("not", "no", "non"))


def _likely_kind(draft: Any, name: str) -> str:
    if draft.has_comma_decimals:
        return "numeric"
    counted = not draft.fractions and draft.low == 0
    few = not draft.fractions and len(draft.labels) <= _MAX_NUMBERED_CLASSES
    if not draft.is_numeric or (few and not (counted and named_like_counts(name))):
        return "categorical"
    return "count" if counted else "numeric"


def _marked_classes(draft: Any) -> tuple[str, ...]:
    """Texts such as None or NA, which may be a class as well as a mark of missing values. Among
    words they are proposed as classes; among numbers, as in features, they are missing.
    """
    return tuple(draft.markers) if draft.others else ()


def note_on_target(draft: Any, target: Target) -> str:
    """What to know about the target, and about texts in it that may stand for missing values.

    Parameters
    ----------
    draft : ColumnDraft
    target : Target

    Returns
    -------
    str
    """
    note = NOTES[target.kind]
    if isinstance(target, CategoricalColumn) and target.positive is not None:
        note += "\nScores, intervals and reports speak of `positive`."
    if isinstance(target, CategoricalColumn) and draft.is_numeric and not draft.fractions:
        note += '\nThey are whole numbers: if they count something, kind = "count" and high.'
    marks = ", ".join(map(repr, draft.markers))
    if not marks:
        return note
    if isinstance(target, CategoricalColumn) and set(draft.markers) <= set(target.categories):
        what = (
            f"{marks} is listed as a class. If it stands for a missing value, delete it: rows with "
            "it are then not used."
        )
    else:
        what = (
            f"{marks} is taken for a missing value, and rows with it are not used. If it is a "
            "class, list it in categories."
        )
    return f"{note}\n{what}"


def _labels(draft: Any, name: str, further: tuple[str, ...] = ()) -> tuple[str, ...]:
    labels = tuple(sorted({*draft.labels.values(), *further}))
    if not 2 <= len(labels) <= _MAX_CLASSES:
        found = len(labels) if len(labels) <= _MAX_CLASSES else "too many"
        raise InvalidArgument(
            f"the target {name!r} has {found} different labels; hushfit predicts 2 to "
            f"{_MAX_CLASSES} classes. Choose another column, or group its values; for numbers and "
            "counts use --target-kind."
        )
    return labels


def _graded(name: str, labels: tuple[str, ...]) -> OrdinalTarget:
    return OrdinalTarget(name, tuple(sorted(labels, key=lambda text: (number_of(text), text))))


def _counted(name: str, low: float, high: float) -> CountTarget:
    if low < 0:
        raise InvalidArgument(
            f"the target {name!r} has numbers below 0, which are no counts. Use --target-kind "
            "numeric."
        )
    return CountTarget(name, high)
