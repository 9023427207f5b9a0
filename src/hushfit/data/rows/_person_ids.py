"""From ids to persons: which rows have the same id.

Ids are compared by what they say, not by their type (see `hushfit.data.rows._id_notation`). Frames
and files change the type of a column because of a single cell, and one file may hold as text what
another holds as numbers or dates. The rule is that no person may become two.

* Numbers by their value, whole ones exactly at any size: the number 7, the float 7.0 and the texts
  ``7``, ``7.00``, ``+7`` and `` 7 `` are one id, and so are 1e-07, ``1E-7`` and ``0.0000001``.
  Floats are compared by their shortest decimal text. Truth values, and the words for them, are 1
  and 0.
* Dates and moments by the instant, a moment without a zone as in UTC, midnight as the date:
  ``2020-01-02``, ``2020-01-02T00:00:00Z`` and ``2020-01-02 01:00+01:00`` are one id. Durations by
  their length.
* All other texts as they are written, without blanks around them and in the normal form C of
  Unicode: ``007`` is not ``7``, and ``a`` is not ``A``.
* Members of an enumeration by their value. Objects of any other type are refused.

A row without an id (a null, NaN, NaT or blank) is its own person. Texts such as ``NA`` are ids:
if they stood for missing ones, a person who has that id would lose protection.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from hushfit._typing import AnyArray, BoolVector, IntVector
from hushfit.data.rows._id_notation import exact_below, ids_of, incomparable, rounded
from hushfit.data.rows._persons import Persons
from hushfit.errors import InvalidArgument
from hushfit.kernels import person_ids as kernels
from hushfit.unit import PrivacyUnit

_FEWEST_TOGETHER, _MOST_TOGETHER = 1 << 16, 1 << 20
_MOST_PERSONS = 2**32 - 2
_DENSE = 4  # times as large as the number of rows may the range of ids be
_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def persons_of(ids: Any, n_rows: int, unit: PrivacyUnit) -> Persons:
    """The persons of rows.

    Parameters
    ----------
    ids : array-like, one id for each row
        A numpy array, a list, or a column of pandas, polars or pyarrow. Missing ids (None, NaN,
        NaT, blank) stand for persons of one row.
    n_rows : int
        How many rows there are.
    unit : PrivacyUnit

    Returns
    -------
    Persons

    Raises
    ------
    InvalidArgument
        If there are more or fewer ids than rows, if they cannot be compared, if all are equal, or
        if all are missing.
    """
    cells = _column(ids)
    if len(cells) != n_rows:
        # The number of rows is private.
        raise InvalidArgument("groups has not as many ids as X has rows. Give one for each row.")
    if isinstance(cells, np.ndarray) and _is_dense(cells):
        codes, n_ids = _dense_codes(cells)
        return _persons(codes, n_ids, n_ids, unit, "groups")
    index = PersonIndex()
    return index.persons([index.add(cells)], unit, "groups")


class PersonIndex:
    """Numbers for the ids of persons, batch by batch; holds at most two hundred bytes for each
    different id, and no row.
    """

    def __init__(self) -> None:
        self._secret = np.frombuffer(secrets.token_bytes(32), np.uint64)
        self._keys = np.empty((0, 2), np.uint64)
        self._slots = np.zeros(1, np.uint64)
        self.n_ids = 0

    def add(self, cells: Any) -> IntVector:
        """Number some cells: equal numbers for equal ids, also of earlier calls; -1 if missing.

        Parameters
        ----------
        cells : numpy array or pyarrow array

        Returns
        -------
        int array
        """
        codes = np.empty(len(cells), np.int64)
        start = 0
        while start < len(cells):
            # Small pieces while few ids are known, so that the table stays small too.
            size = min(max(self.n_ids, _FEWEST_TOGETHER), _MOST_TOGETHER)
            piece = slice(start, start + size)
            self._add(*self._keys_of(cells[piece]), codes[piece])
            start += size
        return codes

    def numbered(self, codes: Sequence[IntVector]) -> tuple[IntVector, int]:
        """The number of the person of each row, in the order of first rows, from what `add` gave,
        and how many persons there are; each row without an id is a person.
        """
        joined: IntVector = codes[0] if len(codes) == 1 else np.concatenate(codes)
        missing = np.flatnonzero(joined < 0)
        joined[missing] = self.n_ids + np.arange(len(missing))
        n_persons = self.n_ids + len(missing)
        # Hashes have a random key; by first rows a fit with a seed draws the same batches again.
        known = np.full(n_persons, -1, np.int64)
        kernels.codes_of_range(joined, np.int64(0), known, joined)
        return joined, n_persons

    def persons(self, codes: Sequence[IntVector], unit: PrivacyUnit, ids: str) -> Persons:
        """The persons of all rows, from what `add` gave; each row without an id is a person.

        Parameters
        ----------
        codes : sequence of int array
            In the order of the rows.
        unit : PrivacyUnit
        ids : str
            What to call the ids in a message.

        Returns
        -------
        Persons
        """
        joined, n_persons = self.numbered(codes)
        return _persons(joined, self.n_ids, n_persons, unit, ids)

    def _add(self, keys: AnyArray, missing: BoolVector, codes: IntVector) -> None:
        rows = len(keys)
        self._make_room(rows)
        scratch = np.empty(rows, np.uint64), np.empty(rows, np.int32)
        self.n_ids = kernels.codes_of_keys(
            keys, missing, self._keys, self.n_ids, self._slots, self._secret, *scratch, codes
        )

    def _make_room(self, rows: int) -> None:
        needed = self.n_ids + rows
        if needed > _MOST_PERSONS:
            raise InvalidArgument("There are more than four billion ids. Split the table.")
        if needed <= len(self._keys):
            return
        keys = np.empty((needed + needed // 2, 2), np.uint64)
        keys[: self.n_ids] = self._keys[: self.n_ids]
        self._keys, self._slots = keys, np.zeros(1 << (3 * needed).bit_length(), np.uint64)
        kernels.enter_keys(self._keys, self.n_ids, self._slots, self._secret)

    def _keys_of(self, cells: Any) -> tuple[AnyArray, BoolVector]:
        """The 128-bit key of each cell, and which are missing."""
        if isinstance(cells, np.ndarray):
            if cells.dtype.kind in "iub":
                return _number_keys(cells), np.zeros(len(cells), np.bool_)
            if cells.dtype.kind == "f":
                return self._float_keys(cells)
            return self._text_keys(_texts(cells))
        kind = str(cells.type)
        if kind == "null":
            return np.zeros((len(cells), 2), np.uint64), np.ones(len(cells), np.bool_)
        if kind in _TEXTS:
            return self._text_keys(_in_one_notation(cells))
        if kind.startswith(("int", "uint", "bool")):
            missing = np.asarray(cells.is_null().to_numpy(zero_copy_only=False), np.bool_)
            filled = cells.fill_null(False if kind == "bool" else 0)
            return _number_keys(filled.to_numpy(zero_copy_only=False)), missing
        if kind in ("float", "double", "halffloat"):
            return self._float_keys(cells.to_numpy(zero_copy_only=False))
        return self._text_keys(_arrow_texts(cells))

    def _float_keys(self, cells: AnyArray) -> tuple[AnyArray, BoolVector]:
        missing: BoolVector = np.isnan(cells)
        if not (np.abs(cells[~missing]) < exact_below(cells.dtype.type)).all():
            raise rounded()
        filled = np.where(missing, cells.dtype.type(0), cells)
        whole = filled.astype(np.int64)
        if np.array_equal(whole, filled):
            return _number_keys(whole), missing
        return self._text_keys(_read_once(cells))

    def _text_keys(self, texts: Any) -> tuple[AnyArray, BoolVector]:
        missing = np.asarray(texts.is_null().to_numpy(zero_copy_only=False), np.bool_).copy()
        keys = np.zeros((len(texts), 2), np.uint64)
        kernels.text_keys(*_bytes_of(texts), self._secret, keys, missing)
        return keys, missing


def _persons(codes: IntVector, n_ids: int, n_persons: int, unit: PrivacyUnit, ids: str) -> Persons:
    if n_ids == 0:
        raise InvalidArgument(
            f"No row has an id in {ids}, so nobody's rows can be put together. Give ids, or "
            "protect single rows."
        )
    if n_persons < 2:
        raise InvalidArgument(
            f"All ids in {ids} are equal: that is one person, and nothing can be fitted while "
            "hiding one person. Give the ids of at least two, or protect single rows."
        )
    return Persons(codes, n_persons, unit)


def _is_dense(cells: AnyArray) -> bool:
    """Whether ids are whole numbers so close together that a plain table of them is faster than
    one of hashes; both put the same rows together.
    """
    if cells.dtype.kind not in "iu" or len(cells) == 0:
        return False
    return int(cells.max()) - int(cells.min()) < _DENSE * len(cells)


def _dense_codes(cells: AnyArray) -> tuple[IntVector, int]:
    low = cells.min()
    known = np.full(int(cells.max()) - int(low) + 1, -1, np.int64)
    codes = np.empty(len(cells), np.int64)
    return codes, kernels.codes_of_range(cells, low, known, codes)


def _number_keys(cells: AnyArray) -> AnyArray:
    keys = np.zeros((len(cells), 2), np.uint64)
    keys[:, 1] = cells.astype(np.int64 if cells.dtype.kind != "u" else np.uint64).view(np.uint64)
    if cells.dtype.kind == "i":
        keys[:, 0] = cells < 0
    return keys


def _column(ids: Any) -> Any:
    """Ids as one array of numpy or pyarrow, in which no cell was changed because of another."""
    import pyarrow as pa

    if isinstance(ids, list | tuple):
        # numpy would turn the numbers of a mixed list into texts.
        cells = np.empty(len(ids), dtype=object)
        cells[:] = ids
        return cells
    if isinstance(ids, pa.ChunkedArray):
        return ids.combine_chunks()
    if isinstance(ids, pa.Array):
        return ids
    if not isinstance(ids, np.ndarray) and not _holds_objects(ids):
        # Columns of pandas and polars: numpy would turn whole numbers with a gap into floats.
        try:
            found = pa.array(ids, from_pandas=True)
            return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        except (pa.ArrowException, TypeError, ValueError, KeyError, OverflowError):
            pass
    cells = np.asarray(ids)
    if cells.ndim != 1:
        raise InvalidArgument(
            f"groups has {cells.ndim} dimensions. Give one id for each row, in one dimension."
        )
    return cells


def _holds_objects(ids: Any) -> bool:
    """Whether a column of pandas or polars holds Python objects, perhaps of several types, which
    pyarrow would convert to one, and polars hand over as addresses.
    """
    kind = getattr(ids, "dtype", "object")
    categories = getattr(kind, "categories", None)  # of a categorical column of pandas
    return str(getattr(categories, "dtype", kind)).lower() == "object"


def _texts(cells: AnyArray) -> Any:
    """The cells of a numpy array that has no numbers, or not only, as pyarrow texts."""
    import pyarrow as pa

    if cells.dtype.kind in "OUS":
        kind = pa.large_binary() if cells.dtype.kind == "S" else pa.large_string()
        try:
            return _in_one_notation(pa.array(cells, kind, from_pandas=True))
        except (pa.ArrowException, UnicodeError, TypeError, ValueError):
            pass  # not texts alone: read cell by cell
    return _read_once(cells) if cells.dtype.kind in "mMc" else _read(cells.tolist())


def _arrow_texts(cells: Any) -> Any:
    """The cells of a pyarrow array of another type as texts, read once for each different one."""
    import pyarrow as pa

    if isinstance(cells, pa.ExtensionArray):
        return _stored_texts(cells)
    if pa.types.is_fixed_size_binary(cells.type):
        return _in_one_notation(cells.cast(pa.large_binary()))
    try:
        coded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
    except pa.ArrowNotImplementedError:
        raise incomparable(str(cells.type)) from None
    return _read(_distinct(coded.dictionary)).take(coded.indices)


def _stored_texts(cells: Any) -> Any:
    """The cells of an extension type of pyarrow as texts."""
    import pyarrow as pa

    name = cells.type.extension_name
    if name.startswith("pandas."):  # periods, stored as numbers that depend on their length
        raise incomparable(name)
    if name != "arrow.uuid":
        storage = cells.storage
        return _read(storage.to_pylist()) if str(storage.type) in _TEXTS else _arrow_texts(storage)
    coded = cells.storage.cast(pa.binary(16)).dictionary_encode()
    return _read(UUID(bytes=one) for one in coded.dictionary.to_pylist()).take(coded.indices)


def _distinct(values: Any) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_time(values.type):  # Python has no nanoseconds
        values = values.cast(pa.string())
    # Scalars of numpy know the precision of floats, and years and fractions that Python has not.
    if pa.types.is_temporal(values.type) or pa.types.is_floating(values.type):
        return list(values.to_numpy(zero_copy_only=False))
    listed: list[Any] = values.to_pylist()
    return listed


def _read(cells: Iterable[Any]) -> Any:
    import pyarrow as pa

    return pa.array(ids_of(cells), pa.large_binary())


def _read_once(cells: AnyArray) -> Any:
    """The cells of a numpy array as texts, read once for each different one.

    As scalars of numpy: its lists have dates as integers, and all floats in one precision.
    """
    import pyarrow as pa

    distinct, places = np.unique(cells, return_inverse=True)
    return _read(list(distinct)).take(pa.array(places))


def _in_one_notation(texts: Any) -> Any:
    """Texts, where those that may be a notation of something else are replaced by the one notation
    of it. Ordinary texts are passed over by compiled code.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = texts.cast(pa.large_binary())
    marked = np.zeros(len(cells), np.bool_)
    if not kernels.mark_notations(*_bytes_of(cells), marked):
        return cells
    mask = pa.array(marked)
    coded = cells.filter(mask).dictionary_encode()
    read = _read(coded.dictionary.to_pylist()).take(coded.indices)
    return pc.replace_with_mask(cells, mask, read)


def _bytes_of(cells: Any) -> tuple[AnyArray, AnyArray]:
    """The bytes of an array of pyarrow's large binary type, and where each cell begins and ends."""
    _, offsets, data = cells.buffers()
    raw = np.zeros(1, np.uint8) if not data else np.frombuffer(data, np.uint8)
    if len(cells) == 0:
        return raw, np.zeros(1, np.int64)
    return raw, np.frombuffer(offsets, np.int64, len(cells) + 1, 8 * cells.offset)
