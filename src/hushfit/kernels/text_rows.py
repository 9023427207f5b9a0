"""Where rows of delimited text end: line breaks that are not between quotation marks."""

import numpy as np

from hushfit.kernels._compile import compiled

QUOTE = ord('"')
_FEED, _RETURN = ord("\n"), ord("\r")


@compiled(nogil=True, error_model="numpy")
def last_end(text, marks, delimiter):
    """End of the last whole row of a text that begins with a row.

    ``marks`` are the places of all quotation marks: only there does it change what a line break
    means. A mark counts at the beginning of a cell, and after one that closes a cell: then it goes
    on with it. A carriage return at the very end may be the first half of a line break.
    """
    starts, stops = np.empty(marks.shape[0] + 1, np.int64), np.empty(marks.shape[0] + 1, np.int64)
    spans, start, quoted = 0, 0, False
    for mark in marks:
        before = text[mark - 1]
        ended = before in (_FEED, _RETURN)
        if quoted:
            start, quoted = mark + 1, False
        elif mark == start or before == delimiter or ended:
            starts[spans], stops[spans] = start, mark
            spans += 1
            quoted = True
    if not quoted:
        starts[spans], stops[spans] = start, text.shape[0]
        spans += 1
    for span in range(spans - 1, -1, -1):
        for i in range(stops[span] - 1, starts[span] - 1, -1):
            if text[i] == _FEED or (text[i] == _RETURN and i + 1 < text.shape[0]):
                return i + 1
    return 0
