"""What a draft sees in one column of a table. Not private."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hushfit._typing import IntVector, Vector
from hushfit.data.schema import label_of, numbers_in

# Labels that a schema lists; with more of them, hashing takes over.
MAX_CATEGORIES = 50
MIN_NUMBERS = 3  # a column of two different numbers is a label, as 0 and 1 are
# Cells that are no numbers, up to which a column of numbers stays one.
_STRAY_SHARE = 0.001
# Texts that stand for a missing value, in any capitals. An empty cell always does.
_MARKERS = {
    *("?", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", ".", "-", "--", "..."),
    *("not available", "not applicable"),
}
# Words that do among numbers and dates; among other labels they are labels.
_UNKNOWNS = {
    *("unknown", "not known", "not recorded", "not measured", "unspecified", "unk", "n.a."),
    *("unbekannt", "k.a.", "k. a.", "keine angabe", "fehlend", "fehlt", "leer", "nicht bekannt"),
    *("nicht erhoben", "nicht gemessen", "inconnu", "inconnue", "nc", "non renseigné"),
    *("desconocido", "desconocida", "sconosciuto", "onbekend", "okänd", "ukjent", "ukendt"),
}
# Numbers that often do.
_SENTINELS = {-9.0, -99.0, -999.0, -9999.0, 999.0, 9999.0, 99999.0, 999999.0}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_COMMA_NUMBER = re.compile(r"[-+]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]+)(,[0-9]+)?$")
# Commas between thousands; the second form has a sure sign of it, another group or a point.
_GROUPED_NUMBER = re.compile(r"[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?$")
_SURELY_GROUPED = re.compile(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}[,.]")
_SIGNED_AMOUNT = re.compile(r"([$€£] ?[0-9][0-9.,]*|[-+]?[0-9][0-9.,]* ?[%$€£])$")
_ZERO_CODE = r"^0[0-9]+$"
# Words of a name that say that whole numbers are counts, not classes or codes.
_COUNT_WORDS = {"count", "counts", "number", "num", "nr", "n", "anzahl"}
# How dates are written: a pattern, and the formats that it may stand for.
_DATES = (
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?$"), (None,)),
    (re.compile(r"[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}$"), ("%Y/%m/%d",)),
    (re.compile(r"[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}$"), ("%d/%m/%Y", "%m/%d/%Y")),
    (re.compile(r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}$"), ("%d.%m.%Y",)),
    (re.compile(r"[0-9]{1,2}-[0-9]{1,2}-[0-9]{4}$"), ("%d-%m-%Y", "%m-%d-%Y")),
)
# Texts of a column that decide whether dates and decimal commas are looked for.
_LOOKED_AT = 20
# Different values are counted exactly up to here; then their share among the rows so far is kept.
_MOST_COUNTED = 200_000


@dataclass
class DistinctCount:
    """The number of different values of a column, and the rows that it was counted in."""

    numbers: Vector = field(default_factory=lambda: np.empty(0))
    texts: set[str] = field(default_factory=set)
    rows: int = 0

    def add(self, numbers: Vector, texts: Sequence[str], rows: int) -> None:
        """Count some more cells; ``numbers`` are sorted, each once."""
        if self.count <= _MOST_COUNTED:
            if len(numbers):
                known = self.numbers
                self.numbers = np.union1d(known, numbers) if len(known) else numbers
            self.texts.update(texts)
            self.rows += rows

    @property
    def count(self) -> int:
        return len(self.numbers) + len(self.texts)

    @property
    def share(self) -> float:
        """Different values per row."""
        return self.count / max(self.rows, 1)


@dataclass
class ColumnDraft:
    """What was found in one column so far.

    ``numbers`` and ``others`` count cells that are numbers and other texts; ``missing`` those that
    are empty or a mark of a missing value, such as "?".
    """

    # Keyed by the form in which they are compared, since equal categories may not be listed twice.
    labels: dict[str | None, str] = field(default_factory=dict)
    markers: Counter[str] = field(default_factory=Counter)
    unknowns: Counter[str] = field(default_factory=Counter)  # until `settle_unknowns`
    low: float = np.inf
    high: float = -np.inf
    rows: int = 0
    numbers: int = 0
    others: int = 0
    missing: int = 0
    fractions: int = 0
    zero_codes: int = 0
    commas: int = 0
    comma_low: float = np.inf
    comma_high: float = -np.inf
    grouped: int = 0
    surely_grouped: int = 0
    amounts: int = 0
    spaces: int = 0
    formats: Counter[str | None] = field(default_factory=Counter)
    first_date: str | None = None
    last_date: str | None = None
    unusable: str = ""  # why cells of this type are no values
    distinct: DistinctCount = field(default_factory=DistinctCount)

    def add(self, cells: Any) -> None:
        """Look at some more cells."""
        self.rows += len(cells)
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        if pa.types.is_string(cells.type):
            self._add_texts(cells)
        elif pa.types.is_nested(cells.type) or pa.types.is_binary(cells.type):
            self._refuse(cells, "its cells are lists or bytes; store numbers or labels")
        elif pa.types.is_duration(cells.type):
            self._refuse(cells, "its cells are durations; store numbers, such as days")
        elif _is_numeric(cells.type):
            self._add_typed_numbers(cells)
        else:
            self._add_texts(pc.cast(cells, pa.string()))

    def _refuse(self, cells: Any, why: str) -> None:
        self.unusable = why
        self.others += len(cells)

    def _add_typed_numbers(self, cells: Any) -> None:
        numbers = _array_of(pc.cast(cells, pa.float64(), safe=False))
        known = numbers[np.isfinite(numbers)]
        self.missing += len(cells) - len(known)
        self._add_numbers(known, np.ones(len(known), np.int64))

    def _add_texts(self, cells: Any) -> None:
        try:  # most columns of numbers are nothing else
            self._add_number_texts(cells, pc.cast(cells, pa.float64()))
            return
        except pa.ArrowInvalid:
            pass
        counts = pc.utf8_trim_whitespace(cells).value_counts()
        texts, sizes = counts.field("values"), counts.field("counts")
        is_number = pc.and_kleene(pc.is_valid(texts), pc.match_substring_regex(texts, _NUMBER))
        plain = texts.filter(is_number)
        self._add_number_texts(plain, pc.cast(plain, pa.float64()), sizes.filter(is_number))
        rest = pc.invert(is_number)
        others = zip(texts.filter(rest).to_pylist(), sizes.filter(rest).to_pylist(), strict=True)
        self._add_others({text or "": count for text, count in others})

    def _add_number_texts(self, cells: Any, numbers: Any, sizes: Any = None) -> None:
        self.missing += numbers.null_count
        values = _array_of(numbers)
        weights = np.ones(len(values), np.int64)
        if sizes is not None:
            weights = np.asarray(np.from_dlpack(sizes), dtype=np.int64)
        finite = np.isfinite(values)
        if not finite.all() or numbers.null_count:
            odd = int(weights[~finite].sum())
            self.missing += odd
            if odd:
                self.markers["NaN"] += odd
            values, weights = values[finite], weights[finite]
            cells = cells.filter(pc.is_finite(numbers))
        self._add_numbers(values, weights, cells)

    def _add_numbers(self, values: Vector, weights: IntVector, texts: Any = None) -> None:
        if not len(values):
            return
        different = np.unique(values)
        self.low, self.high = min(self.low, different[0]), max(self.high, different[-1])
        total = int(weights.sum())
        self.numbers += total
        self.fractions += int(weights[values != np.floor(values)].sum())
        self.distinct.add(different, (), total)
        if not self.fractions and texts is not None and _has_zero_codes(texts):
            self.zero_codes += 1
            self._list(texts.unique().to_pylist())
        elif len(self.labels) <= MAX_CATEGORIES:
            fewest = different[: MAX_CATEGORIES + 1].tolist()
            # What `label_of` makes of them, sooner.
            written = [f"{one:.0f}" if one.is_integer() else str(one) for one in fewest]
            self.labels.update(zip(written, written, strict=True))

    def _list(self, values: Any) -> None:
        """Add labels, while there are few."""
        if len(self.labels) <= MAX_CATEGORIES:
            for value in values[: MAX_CATEGORIES + 1]:
                label = label_of(value)
                self.labels.setdefault(label, str(label))

    def _add_others(self, counts: dict[str, int]) -> None:
        gaps = {text: n for text, n in counts.items() if not text or text.lower() in _MARKERS}
        self.missing += sum(gaps.values())
        self.markers.update({text: n for text, n in gaps.items() if text})
        words = {text: n for text, n in counts.items() if text.lower() in _UNKNOWNS}
        self.unknowns.update(words)
        kept = {text: n for text, n in counts.items() if text not in gaps and text not in words}
        self._add_labels(kept)
        self._add_dates(kept)
        self._add_commas(kept)

    def _add_labels(self, counts: dict[str, int]) -> None:
        total = sum(counts.values())
        self.others += total
        self.spaces += sum(n * text.count(" ") for text, n in counts.items())
        self._list(list(counts))
        self.distinct.add(np.empty(0), list(counts), total)

    def settle_unknowns(self) -> None:
        """Decide, after the last cell, what words such as unknown are: missing values among numbers
        and dates, and labels else.
        """
        words, self.unknowns = dict(self.unknowns), Counter()
        if self.is_numeric or self.has_comma_decimals or self.date_format[0]:
            self.missing += sum(words.values())
            self.markers.update(words)
        else:
            self._add_labels(words)

    def _add_dates(self, counts: dict[str, int]) -> None:
        for pattern, formats in _DATES:
            dates = _matching(pattern, counts)
            for written in formats if dates else ():
                readable = [found for text in dates if (found := _iso(text, written))]
                if len(readable) == len(dates):
                    self.formats[written] += sum(counts[text] for text in dates)
                    self._widen(min(readable), max(readable))

    def _widen(self, first: str, last: str) -> None:
        self.first_date = first if self.first_date is None else min(first, self.first_date)
        self.last_date = last if self.last_date is None else max(last, self.last_date)

    def _add_commas(self, counts: dict[str, int]) -> None:
        found = _matching(_COMMA_NUMBER, counts)
        if found:
            values = numbers_in(np.array(found, dtype=object), ",")
            self.commas += sum(counts[text] for text in found)
            self.comma_low = min(self.comma_low, float(values.min()))
            self.comma_high = max(self.comma_high, float(values.max()))
        for text in _matching(_GROUPED_NUMBER, counts):
            self.grouped += counts[text]
            self.surely_grouped += counts[text] * bool(_SURELY_GROUPED.match(text))
        self.amounts += sum(counts[text] for text in _matching(_SIGNED_AMOUNT, counts))

    @property
    def filled(self) -> int:
        """Cells with a value."""
        return self.numbers + self.others

    @property
    def repeats(self) -> bool:
        """Whether some value is in several rows."""
        return self.distinct.count < self.distinct.rows

    @property
    def date_format(self) -> tuple[bool, str | None]:
        """Whether nearly all values are dates, and how they are written."""
        if not self.formats:
            return False, None
        written, count = self.formats.most_common(1)[0]
        return count >= 0.95 * self.filled, written

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers, more than two, and not codes such as 007."""
        if self.others > _STRAY_SHARE * self.numbers or self.zero_codes or not self.numbers:
            return False
        return bool(self.fractions) or self.low < 0 or len(self.labels) >= MIN_NUMBERS

    @property
    def has_comma_decimals(self) -> bool:
        """Whether its numbers have decimal commas: all texts are such numbers."""
        return 0 < self.commas == self.others and not self.has_thousands

    @property
    def comma_range(self) -> tuple[float, float]:
        """Lowest and highest number, those with decimal commas among them."""
        return float(min(self.low, self.comma_low)), float(max(self.high, self.comma_high))

    @property
    def may_have_thousands(self) -> bool:
        """Whether all commas may stand between thousands, as in 1,234."""
        return 0 < self.grouped == self.others

    @property
    def has_thousands(self) -> bool:
        """Whether they do: some number shows it, or those without a comma are below a thousand."""
        return self.may_have_thousands and bool(
            self.surely_grouped or (self.numbers and self.high < 1000)
        )

    @property
    def has_amounts(self) -> bool:
        """Whether its texts are numbers with a sign such as % or $."""
        return 0 < self.amounts == self.others

    def settle_decimal(self, mark: str) -> None:
        """Take the decimal mark as known: texts with the other one are no numbers."""
        if mark == ".":
            self.commas = 0
        elif self.commas:
            self.commas, self.grouped = self.others, 0

    @property
    def is_text(self) -> bool:
        """Whether it looks like sentences."""
        return self.others > 0 and self.spaces >= 3 * self.others and self.distinct.share > 0.2

    @property
    def sentinels(self) -> list[float]:
        """Ends of its range that often stand for a missing value."""
        return sorted({self.low, self.high} & _SENTINELS)


def _has_zero_codes(texts: Any) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, _ZERO_CODE)).as_py())


def _array_of(numbers: Any) -> Vector:
    """Arrow's floats for numpy, without missing ones. Its own ``to_numpy`` and ``fill_null`` would
    import pandas, which takes longer than to read most tables.
    """
    return np.asarray(np.from_dlpack(numbers.drop_null()), dtype=np.float64)


def _is_numeric(kind: Any) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _iso(text: str, written: str | None) -> str | None:
    """A date in ISO notation; None if it is none."""
    try:
        found = (
            date.fromisoformat(text[:10]) if written is None else datetime.strptime(text, written)
        )
    except ValueError:
        return None
    return found.strftime("%Y-%m-%d").zfill(10)


def _matching(pattern: re.Pattern[str], counts: dict[str, int]) -> list[str]:
    """The texts of a pattern; none of them if the first texts are all different from it."""
    texts = list(counts)
    if not any(pattern.match(text) for text in texts[:_LOOKED_AT]):
        return []
    return [text for text in texts if pattern.match(text)]


def named_like_counts(name: str) -> bool:
    """Whether the name of a column says that it counts something."""
    words = words_in(name)
    return bool(words) and bool(_COUNT_WORDS & {words[0], words[-1]})


def words_in(name: str) -> list[str]:
    """The words of a column's name: patient_nbr, PatientNbr and "patient nbr" have the same."""
    return [word.lower() for word in _WORD.findall(name)]
