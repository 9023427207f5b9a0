"""Compiled loops over the persons of rows."""

from hushfit.kernels._compile import compiled

_OPTIONS = {"nogil": True, "error_model": "numpy"}


@compiled(**_OPTIONS)
def shares(codes, counts, most, full, out):
    """Write the weight of each row: one over the number of its person's used rows, or over ``full``
    if that is larger; 0 for rows after the first ``most`` of a person. ``counts`` starts at zero.
    """
    for i in range(codes.shape[0]):
        before = counts[codes[i]]
        out[i] = 1.0 if before < most else 0.0
        counts[codes[i]] = before + 1
    for i in range(codes.shape[0]):
        out[i] /= max(min(counts[codes[i]], most), full)


@compiled(**_OPTIONS)
def by_person(codes, weights, starts, order):
    """Write rows with a weight above 0 into ``order``, person by person in the order of the table,
    and into ``starts`` where each person begins. ``starts`` begins at zero.
    """
    for i in range(codes.shape[0]):
        if weights[i] > 0.0:
            starts[codes[i] + 1] += 1
    for p in range(1, starts.shape[0]):
        starts[p] += starts[p - 1]
    for i in range(codes.shape[0] - 1, -1, -1):  # backwards: each person's end moves to its start
        if weights[i] > 0.0:
            starts[codes[i] + 1] -= 1
            order[starts[codes[i] + 1]] = i
    # now starts[p + 1] is where person p begins
    for p in range(starts.shape[0] - 1):
        starts[p] = starts[p + 1]
    used = 0
    for i in range(codes.shape[0]):
        used += weights[i] > 0.0
    starts[starts.shape[0] - 1] = used


@compiled(**_OPTIONS)
def rows_of(persons, order, starts, rows):
    """Write the rows of some persons, one person after the other."""
    filled = 0
    for k in range(persons.shape[0]):
        for q in range(starts[persons[k]], starts[persons[k] + 1]):
            rows[filled] = order[q]
            filled += 1
