"""Where rows of delimited text end: line breaks that are not between quotation marks."""

import numpy as np

from hushfit.kernels._compile import compiled

_QUOTE, _FEED, _RETURN = ord('"'), ord("\n"), ord("\r")


@compiled(nogil=True, error_model="numpy")
def last_end(text, delimiter):
    """End of the last whole row of a text that begins with a row. A quotation mark counts at the
    beginning of a cell; a carriage return at the very end may be the first half of a line break.
    """
    end, quoted, begins = 0, False, True
    for i in range(text.shape[0]):
        byte = text[i]
        if quoted:
            quoted = byte != _QUOTE
            # A second mark after this one goes on with the cell.
            begins = not quoted
            continue
        if byte == _QUOTE and begins:
            quoted = True
        elif byte == _FEED or (byte == _RETURN and i + 1 < text.shape[0]):
            end, begins = i + 1, True
        else:
            begins = byte == delimiter
    return np.int64(end)
