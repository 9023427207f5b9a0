"""Numbers persons by their ids: a hash table of 128-bit keys, filled batch by batch.

The key of a whole number of up to 64 bits is the number itself. Any other id has a keyed SipHash
(Aumasson and Bernstein, 2012) as its key, so no choice of ids makes two of them meet except with
probability about 2**-127 for each pair. The key of an id is a function of that id alone.
"""

import numpy as np

from hushfit.kernels._compile import compiled

_OPTIONS = {"nogil": True, "error_model": "numpy"}
_U = np.uint64
_LOW = _U(0xFFFFFFFF)
_HALF = _U(32)
_FIRST, _SECOND = _U(0x9E3779B97F4A7C15), _U(0xD6E8FEB86659FD93)
_NEGATIVE = _U(1)
_TEXT = _U(2)  # set in the first word of a hashed key, which no number's key has
_MISSING = -1
# Most digits of a whole number of 64 bits.
_MOST_DIGITS = 20
_PLUS, _MINUS, _DOT, _ZERO, _NINE, _COLON = 43, 45, 46, 48, 57, 58
_E = 101
_LOWER = 32  # the bit that makes an ASCII letter a small one
_NO_ASCII = 128
_TRUE, _FALSE = (np.frombuffer(word, np.uint8) for word in (b"true", b"false"))
_REGION_BITS = 10
_REGION_SHIFT = _U(64 - _REGION_BITS)


@compiled(inline="always", **_OPTIONS)
def _rotated(word, bits):
    return (word << _U(bits)) | (word >> _U(64 - bits))


@compiled(inline="always", **_OPTIONS)
def _round(a, b, c, d):
    a += b
    b = _rotated(b, 13) ^ a
    a = _rotated(a, 32)
    c += d
    d = _rotated(d, 16) ^ c
    a += d
    d = _rotated(d, 21) ^ a
    c += b
    b = _rotated(b, 17) ^ c
    c = _rotated(c, 32)
    return a, b, c, d


@compiled(**_OPTIONS)
def siphash(data, start, stop, secret):
    """SipHash-2-4 with 128 bits of output, as two words."""
    k0, k1 = secret[0], secret[1]
    a, b = k0 ^ _U(0x736F6D6570736575), k1 ^ _U(0x646F72616E646F6D) ^ _U(0xEE)
    c, d = k0 ^ _U(0x6C7967656E657261), k1 ^ _U(0x7465646279746573)
    whole = start + (stop - start) // 8 * 8
    for i in range(start, whole, 8):
        word = _U(0)
        for j in range(8):
            word |= _U(data[i + j]) << _U(8 * j)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a ^= word
    word = _U((stop - start) & 0xFF) << _U(56)
    for j in range(stop - whole):
        word |= _U(data[whole + j]) << _U(8 * j)
    d ^= word
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= word
    c ^= _U(0xEE)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    first = a ^ b ^ c ^ d
    b ^= _U(0xDD)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return first, a ^ b ^ c ^ d


@compiled(**_OPTIONS)
def _is_blank(byte):
    return 28 <= byte <= 32 or 9 <= byte <= 13


@compiled(**_OPTIONS)
def _is_digit(byte):
    return _ZERO <= byte <= _NINE


@compiled(**_OPTIONS)
def _stripped(data, start, stop):
    """Where a text begins and ends without blanks around it."""
    while start < stop and _is_blank(data[start]):
        start += 1
    while stop > start and _is_blank(data[stop - 1]):
        stop -= 1
    return start, stop


@compiled(**_OPTIONS)
def _whole_number(data, start, stop):
    """Whether a text is how a whole number of 64 bits is written, also after it became a float or
    decimal; its sign and its size.
    """
    negative = data[start] == _MINUS
    first = start + 1 if negative or data[start] == _PLUS else start
    last = stop
    while last - first > 2 and data[last - 1] == _ZERO:
        last -= 1
    last = last - 1 if last < stop and data[last - 1] == _DOT else stop
    digits = last - first
    if digits < 1 or digits > _MOST_DIGITS or (data[first] == _ZERO and digits > 1):
        return False, False, _U(0)
    size = _U(0)
    for i in range(first, last):
        if data[i] < _ZERO or data[i] > _NINE:
            return False, False, _U(0)
        digit = _U(data[i] - _ZERO)
        if size > _U(1844674407370955161) or (size == _U(1844674407370955161) and digit > _U(5)):
            return False, False, _U(0)
        size = size * _U(10) + digit
    if negative and size > _U(1) << _U(63):
        return False, False, _U(0)
    return True, negative and size > _U(0), size


@compiled(**_OPTIONS)
def text_keys(data, offsets, secret, keys, missing):
    """Write the keys of texts; blank ones are missing.

    Blanks around a text do not count. A whole number has one key however it is written: 7, 7.0;
    and the words true and false are 1 and 0.
    """
    for i in range(offsets.shape[0] - 1):
        start, stop = _stripped(data, offsets[i], offsets[i + 1])
        if start == stop:
            missing[i] = True
            continue
        whole, negative, size = _whole_number(data, start, stop)
        if whole:
            keys[i, 0] = _NEGATIVE if negative else _U(0)
            keys[i, 1] = _U(0) - size if negative else size
            continue
        if _is_word(data, start, stop, _TRUE):
            keys[i, 0], keys[i, 1] = _U(0), _U(1)
            continue
        if _is_word(data, start, stop, _FALSE):
            keys[i, 0], keys[i, 1] = _U(0), _U(0)
            continue
        first, second = siphash(data, start, stop, secret)
        keys[i, 0], keys[i, 1] = first | _TEXT, second


@compiled(**_OPTIONS)
def _is_word(data, start, stop, word):
    """Whether a text is a word of small letters, in letters of either case."""
    if stop - start != word.shape[0]:
        return False
    for j in range(word.shape[0]):  # noqa: SIM110 - compiled, where there is no all()
        if data[start + j] | _LOWER != word[j]:
            return False
    return True


@compiled(**_OPTIONS)
def mark_notations(data, offsets, marked):
    """Mark texts that may be one of several notations of the same, which are to be read one by one:
    all with letters beyond ASCII, and those that look like dates, times, or numbers that are not
    whole. Returns how many they are.
    """
    count = 0
    ascii_only = _is_ascii(data, offsets[0], offsets[-1])
    for i in range(offsets.shape[0] - 1):
        start, stop = offsets[i], offsets[i + 1]
        beyond = not ascii_only and not _is_ascii(data, start, stop)
        if beyond or _has_notations(data, start, stop):
            marked[i] = True
            count += 1
    return count


@compiled(**_OPTIONS)
def _is_ascii(data, start, stop):
    bits = np.uint8(0)
    for byte in data[start:stop]:
        bits |= byte
    return bits < _NO_ASCII


@compiled(**_OPTIONS)
def _has_notations(data, start, stop):
    start, stop = _stripped(data, start, stop)
    if start == stop or data[start] > _NINE:
        return False
    return _may_be_moment(data, start, stop) or _may_be_decimal(data, start, stop)


@compiled(**_OPTIONS)
def _may_be_moment(data, start, stop):
    """Whether a text begins like 03:04 or 2020-01-, or is like 2020-01."""
    size = stop - start
    if size < 5 or not (_is_digit(data[start]) and _is_digit(data[start + 1])):
        return False
    if data[start + 2] == _COLON:
        return True
    return size >= 7 and data[start + 4] == _MINUS and (size == 7 or data[start + 7] == _MINUS)


@compiled(**_OPTIONS)
def _may_be_decimal(data, start, stop):
    """Whether a text has the characters of a number that is not plainly a whole one of 64 bits.

    Digits around one letter e alone are no number: codes in base 16 look like that.
    """
    plain = data[start] != _PLUS
    for j in range(start, stop):
        byte = data[j]
        if _is_digit(byte) or byte | _LOWER == _E:
            continue
        if byte == _DOT:
            plain = False
        elif byte not in (_MINUS, _PLUS):
            return False
        elif j > start:
            if data[j - 1] | _LOWER != _E:
                return False
            plain = False
    return not plain and not _whole_number(data, start, stop)[0]


@compiled(inline="always", **_OPTIONS)
def _hashed(first, second, secret):
    word = (second ^ secret[2]) * _FIRST
    word ^= word >> _HALF
    word = (word ^ first ^ secret[3]) * _SECOND
    word ^= word >> _HALF
    word *= _FIRST
    return word ^ (word >> _HALF)


@compiled(**_OPTIONS)
def enter_keys(keys, filled, slots, secret):
    """Enter known keys into an empty table with more slots than keys, a power of two."""
    shift, mask = _shift(slots.shape[0]), slots.shape[0] - 1
    for code in range(filled):
        word = _hashed(keys[code, 0], keys[code, 1], secret)
        place = np.int64(word >> shift)
        while slots[place] != _U(0):
            place = (place + 1) & mask
        slots[place] = (word << _HALF) | _U(code + 1)


@compiled(**_OPTIONS)
def codes_of_keys(new, missing, keys, filled, slots, secret, words, order, codes):
    """Number rows by their keys; -1 if missing. Unknown keys are appended to ``keys``, of which
    ``filled`` are in use; returns how many are then.

    Rows are looked up in the order of their places in the table, so that memory is read forwards.
    ``keys`` needs space for all rows, and the table needs more slots than that.
    """
    rows = new.shape[0]
    shift, mask = _shift(slots.shape[0]), slots.shape[0] - 1
    ends = np.zeros((1 << _REGION_BITS) + 1, np.int64)
    for i in range(rows):
        words[i] = _hashed(new[i, 0], new[i, 1], secret)
        ends[np.int64(words[i] >> _REGION_SHIFT) + 1] += 1
    for region in range(1, ends.shape[0]):
        ends[region] += ends[region - 1]
    for i in range(rows):
        own = np.int64(words[i] >> _REGION_SHIFT)
        order[ends[own]] = i
        ends[own] += 1
    for q in range(rows):
        i = order[q]
        if missing[i]:
            codes[i] = _MISSING
            continue
        word = words[i]
        place = np.int64(word >> shift)
        codes[i] = _MISSING
        while codes[i] == _MISSING:
            slot = slots[place]
            known = np.int64(slot & _LOW) - 1
            if slot == _U(0):
                keys[filled, 0], keys[filled, 1] = new[i, 0], new[i, 1]
                codes[i] = filled
                filled += 1
                slots[place] = (word << _HALF) | _U(filled)
            elif (
                (slot >> _HALF) == (word & _LOW)
                and keys[known, 1] == new[i, 1]
                and keys[known, 0] == new[i, 0]
            ):
                codes[i] = known
            place = (place + 1) & mask
    return filled


@compiled(**_OPTIONS)
def codes_of_range(values, low, known, codes):
    """Number rows by whole numbers from ``low`` on, of which ``known`` has an entry for each, all
    -1 at first; returns how many different ones there are.
    """
    count = 0
    for i in range(values.shape[0]):
        place = np.int64(values[i] - low)
        if known[place] < 0:
            known[place] = count
            count += 1
        codes[i] = known[place]
    return count


@compiled(**_OPTIONS)
def _shift(slots):
    """Bits by which a word is shifted to give a place among slots."""
    bits = 0
    while 1 << bits < slots:
        bits += 1
    return _U(64 - bits)
