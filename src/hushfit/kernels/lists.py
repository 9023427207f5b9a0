"""Passes over lists of documents, one list at a time: targets, scores, gradients, sums.

What a list contributes is computed from its own documents and public numbers, by the same machine
code for every list, and rounded to the grid as it is added (docs/proofs/gradient.md, lemma 1). So
sums over neighbouring tables differ by the contribution of one list and by few grid steps.

A scorer is linear (``hidden`` is 0, weights are those of the columns) or a network with one hidden
layer of rectified linear units: weights of shape (columns, hidden), then the thresholds of the
hidden units, then their weights.
"""

import math

import numpy as np

from hushfit.kernels._compile import compiled
from hushfit.kernels.gradient import ROUNDER

LISTNET, LISTMLE, BAYESRANK = 0, 1, 2
ALL, ONE_HOT, SIMPLEX = 0, 1, 2

# Scores further below the best one of their list count as this far below: probabilities stay
# above 1e-18, and their quotients finite.
_FURTHEST = 40.0
_DISCOUNT = 1.0 / math.log2(3.0)  # of the second position
_TINY = 1e-300
_LEAST_SQUARE = 1e-200  # sums of squares below have lost precision
_LEAST_FACTOR = 1e-290  # and so have factors below: what they would shrink counts as zero

_STRICT = {"nogil": True, "error_model": "numpy"}
_ANY_ORDER = {**_STRICT, "fastmath": {"contract", "reassoc", "nsz"}}


@compiled(**_STRICT)
def _gain(grade):
    return 2.0**grade - 1.0


@compiled(**_STRICT)
def _copy_list(X, start, stop, centred, F):
    """Copy the documents of a list; a document with a value that is not finite becomes zeros.

    With ``centred`` the mean of the list is subtracted from every document.
    """
    n, d = stop - start, X.shape[1]
    for i in range(n):
        odd = 0  # counted and not branched on, which vectorises
        for k in range(d):
            value = X[start + i, k]
            F[i, k] = value
            odd += 0 if abs(value) < math.inf else 1
        if odd > 0:
            for k in range(d):
                F[i, k] = 0.0
    if centred:
        mean = np.zeros(d)
        for i in range(n):
            for k in range(d):
                mean[k] += F[i, k]
        for k in range(d):
            mean[k] /= n
        for i in range(n):
            for k in range(d):
                F[i, k] -= mean[k]


@compiled(**_STRICT)
def _scale_list(n, F):
    """Scale a centred list to a mean squared length of one; a list of equal documents is zero."""
    largest = 0.0
    for i in range(n):
        for k in range(F.shape[1]):
            largest = max(largest, abs(F[i, k]))
    if not (largest > _TINY and math.isfinite(largest)):
        F[:n] = 0.0
        return
    square = 0.0
    for i in range(n):
        own = 0.0  # document by document: errors grow with their number, not with that of values
        for k in range(F.shape[1]):
            own += (F[i, k] / largest) ** 2
        square += own
    root = math.sqrt(square / n)
    for i in range(n):
        for k in range(F.shape[1]):
            F[i, k] = F[i, k] / largest / root


@compiled(**_STRICT)
def centred_lists(X, starts, first, last, out):
    """Write the documents of lists ``first`` to ``last``, centred in their lists."""
    for j in range(first, last):
        place = starts[j] - starts[first]
        _copy_list(X, starts[j], starts[j + 1], True, out[place:])


@compiled(**_STRICT)
def list_sizes(X, starts, first, last, unit, out):
    """Write the root mean square lengths of centred documents, columns multiplied by ``unit``."""
    d = X.shape[1]
    total, square = np.empty(d), np.empty(d)
    for j in range(first, last):
        start, stop = starts[j], starts[j + 1]
        total[:], square[:] = 0.0, 0.0
        for i in range(start, stop):
            for k in range(d):
                value = float(X[i, k]) - X[start, k]  # shifted, so that squares do not cancel
                total[k] += value
                square[k] += value * value
        n, size = stop - start, 0.0
        for k in range(d):
            size += max(square[k] - total[k] * total[k] / n, 0.0) * unit[k] * unit[k]
        out[j] = math.sqrt(size / n)


@compiled(**_STRICT)
def _ordered_dot(a, b):
    """Inner product in one fixed order, with four sums that run at the same time."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    k = 0
    while k + 4 <= len(a):
        first += a[k] * b[k]
        second += a[k + 1] * b[k + 1]
        third += a[k + 2] * b[k + 2]
        fourth += a[k + 3] * b[k + 3]
        k += 4
    while k < len(a):
        first += a[k] * b[k]
        k += 1
    return (first + second) + (third + fourth)


@compiled(**_STRICT)
def _length(g):
    """Euclidean norm, to relative precision for short vectors too; not finite if an entry, or the
    square of the norm, is not.
    """
    total = _ordered_dot(g, g)
    if not total <= _LEAST_SQUARE:  # the usual one, infinity or nan
        return math.sqrt(total)
    largest, total = 0.0, 0.0  # squares underflowed: a short vector must not look like none
    for k in range(len(g)):
        largest = max(largest, abs(g[k]))
    if largest == 0.0:
        return 0.0
    for k in range(len(g)):
        total += (g[k] / largest) ** 2
    return largest * math.sqrt(total)


@compiled(**_STRICT)
def label_statistic(X, starts, lists, y, scales, shares, B, clip, grid, total):
    """Write the sum over lists of their shares of scale times B' (target' documents), clipped to
    length ``clip`` (infinity for none), into ``total``.

    Documents are centred in their lists. The target of a list is its gains over their sum, or
    uniform (which contributes zero) if no document is relevant.
    """
    total[:] = ROUNDER * grid
    longest = 0
    for j in lists:
        longest = max(longest, starts[j + 1] - starts[j])
    F, t, c = np.empty((longest, X.shape[1])), np.empty(X.shape[1]), np.empty(B.shape[1])
    for j in lists:
        start, n = starts[j], starts[j + 1] - starts[j]
        gains = 0.0
        for i in range(n):
            gains += _gain(y[start + i])
        if gains > 0.0:
            _copy_list(X, start, start + n, True, F)
            t[:] = 0.0
            for i in range(n):
                share = _gain(y[start + i]) / gains
                if share > 0.0:
                    for k in range(X.shape[1]):
                        t[k] += share * F[i, k]
            c[:] = 0.0
            for k in range(X.shape[1]):
                for l in range(B.shape[1]):
                    c[l] += t[k] * B[k, l]
            factor = scales[j]
            length = factor * _length(c)
            if length > clip:
                factor *= clip / length
            share = shares[j] if shares.shape[0] > 1 else shares[0]
            # A list whose documents are too large for floats contributes nothing: one nan in the
            # sum would tell that it has a relevant document.
            if factor > _LEAST_FACTOR and math.isfinite(length):
                for l in range(B.shape[1]):
                    total[l] += (share * factor) * c[l]
    for l in range(len(total)):
        total[l] -= ROUNDER * grid


@compiled(**_ANY_ORDER)
def _dot(a, b):
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled(**_STRICT)
def _log_partition_of(X, start, n, theta, p):
    """Log-partition of the scores of a list, relative to their mean; probabilities of its
    documents in ``p``.
    """
    highest = -math.inf
    for i in range(n):
        p[i] = _dot(X[start + i], theta)
        highest = max(highest, p[i])
    middle, partition = 0.0, 0.0
    for i in range(n):
        middle += p[i]
        p[i] = math.exp(p[i] - highest)
        partition += p[i]
    for i in range(n):
        p[i] /= partition
    return highest - middle / n + math.log(partition)


@compiled(**_STRICT)
def log_partition(X, starts, first, last, weights, theta, gradient):
    """Weighted sum over lists of the log-partition of centred scores; its gradient is written."""
    gradient[:] = 0.0
    value, longest = 0.0, 0
    for j in range(first, last):
        longest = max(longest, starts[j + 1] - starts[j])
    p = np.empty(longest)
    for j in range(first, last):
        if weights[j] > 0.0:
            start, n = starts[j], starts[j + 1] - starts[j]
            value += weights[j] * _log_partition_of(X, start, n, theta, p)
            for i in range(n):
                # The expected document less the mean one, in one pass.
                factor = weights[j] * (p[i] - 1.0 / n)
                for k in range(X.shape[1]):
                    gradient[k] += factor * X[start + i, k]
    return value


@compiled(**_STRICT)
def probabilities(n, scores, p):
    """Probabilities proportional to the exponentials of scores, none far below the largest."""
    highest = -math.inf
    for i in range(n):
        highest = max(highest, scores[i])
    partition = 0.0
    for i in range(n):
        p[i] = math.exp(max(scores[i] - highest, -_FURTHEST))
        partition += p[i]
    for i in range(n):
        p[i] /= partition


@compiled(**_STRICT)
def _listnet_residual(n, scores, y, r):
    gains = 0.0
    for i in range(n):
        gains += _gain(y[i])
    probabilities(n, scores, r)
    for i in range(n):
        r[i] -= _gain(y[i]) / gains if gains > 0.0 else 1.0 / n


@compiled(**_STRICT)
def _listmle_residual(n, scores, y, r):
    """Gradient of minus the log-likelihood of the order by grades, down to the last relevant one.

    Documents of one grade are in the order in which they are given.
    """
    order = np.argsort(-y[:n], kind="mergesort")
    highest = -math.inf
    for i in range(n):
        highest = max(highest, scores[i])
    e = np.empty(n)
    for i in range(n):
        e[i] = math.exp(max(scores[i] - highest, -_FURTHEST))
    below = np.empty(n)  # sum over the documents at this position and all later ones
    total = 0.0
    for position in range(n - 1, -1, -1):
        total += e[order[position]]
        below[position] = total
    heavy = 0.0
    for position in range(n):
        a = order[position]
        relevant = y[a] > 0.0
        if relevant:
            heavy += 1.0 / below[position]
        r[a] = e[a] * heavy - (1.0 if relevant else 0.0)


@compiled(**_STRICT)
def utilities(n, y, depth, target, u):
    """What each document adds to NDCG at ``depth`` when ranked first: between 0 and 1.

    ``ONE_HOT`` keeps the first of the most relevant documents, ``SIMPLEX`` divides by the sum.
    """
    best, second, first_best = 0.0, 0.0, 0
    for i in range(n):
        gain = _gain(y[i])
        if gain > best:
            best, second, first_best = gain, best, i
        elif gain > second:
            second = gain
    u[:n] = 0.0
    if best <= 0.0:
        return
    if target == ONE_HOT:
        u[first_best] = 1.0
        return
    total = 0.0
    for i in range(n):
        total += _gain(y[i])
    ideal = best if depth == 1 else best + _DISCOUNT * second
    for i in range(n):
        u[i] = _gain(y[i]) / (total if target == SIMPLEX else ideal)


@compiled(**_STRICT)
def expected_slope(n, scores, u, depth, r):
    """Derivatives by the scores of the expected utility of the top ``depth`` documents.

    A document's utility counts with the probability of being first, and for ``depth`` 2 with the
    discounted probability of being second. All terms are products of probabilities and utilities:
    nothing large cancels.
    """
    p = np.empty(n)
    probabilities(n, scores, p)
    mean = 0.0
    for i in range(n):
        mean += u[i] * p[i]
    for i in range(n):
        r[i] = p[i] * (u[i] - mean)
    if depth == 1 or n == 1:
        return
    # rest[a] is the probability that another document than a is first; following[a] the expected
    # utility of the second if a is first.
    rest, following, mean = np.zeros(n), np.zeros(n), 0.0
    for a in range(n):
        for b in range(n):
            if b != a:
                rest[a] += p[b]
                following[a] += u[b] * p[b]
        following[a] /= rest[a]
        mean += p[a] * following[a]
    for c in range(n):
        slope = p[c] * (following[c] - mean)
        for a in range(n):
            if a != c:
                slope += p[a] * (p[c] / rest[a]) * (u[c] - following[a])
        r[c] += _DISCOUNT * slope


@compiled(**_STRICT)
def utility_slopes(scores, depth, Q):
    """Derivatives by the scores (columns) of what each document's utility counts (rows)."""
    n = len(scores)
    u = np.zeros(n)
    for i in range(n):
        u[i] = 1.0
        expected_slope(n, scores, u, depth, Q[i])
        u[i] = 0.0


@compiled(**_STRICT)
def _residual(n, scores, y, code, depth, target, u, r):
    """Derivatives of the loss of one list by its scores."""
    if code == LISTNET:
        _listnet_residual(n, scores, y, r)
    elif code == LISTMLE:
        _listmle_residual(n, scores, y, r)
    else:
        utilities(n, y, depth, target, u)
        expected_slope(n, scores, u, depth, r)
        for i in range(n):
            r[i] = -r[i]


@compiled(**_STRICT)
def _add_scaled(value, row, total):
    """Add a multiple of a row; rows as arguments of their own are what vectorises."""
    for h in range(len(total)):
        total[h] += value * row[h]


@compiled(**_STRICT)
def _add_four(a, b, c, d, first, second, third, fourth, total):
    """Add multiples of four rows, one after the other, with a quarter of the reads and writes."""
    for h in range(len(total)):
        total[h] = (((total[h] + a * first[h]) + b * second[h]) + c * third[h]) + d * fourth[h]


@compiled(**_STRICT)
def _add_product(values, rows, total):
    """Add the sum of multiples of rows to ``total``, in the order of the rows."""
    k, v, r = 0, values, rows
    while k + 4 <= len(v):
        _add_four(v[k], v[k + 1], v[k + 2], v[k + 3], r[k], r[k + 1], r[k + 2], r[k + 3], total)
        k += 4
    while k < len(v):
        _add_scaled(v[k], r[k], total)
        k += 1


@compiled(**_STRICT)
def _layers(theta, d, hidden):
    """Inner weights, thresholds and outer weights of a network, as views."""
    inner, outer = d * hidden, (d + 1) * hidden
    return theta[:inner].reshape(d, hidden), theta[inner:outer], theta[outer:]


@compiled(**_STRICT)
def _scores_of(n, F, theta, hidden, units, scores):
    """Scores of the documents of a list; ``units`` keeps what goes into the hidden units."""
    d = F.shape[1]
    if hidden == 0:
        for i in range(n):
            scores[i] = _ordered_dot(F[i], theta)
        return
    inner, thresholds, outer = _layers(theta, d, hidden)
    for i in range(n):
        units[i] = thresholds
        _add_product(F[i], inner, units[i])
        score = 0.0
        for h in range(hidden):
            score += max(units[i, h], 0.0) * outer[h]
        scores[i] = score


@compiled(**_STRICT)
def list_scores(F, theta, hidden, units, scores):
    """Scores of one list, and what goes into the hidden units, to the last bit as `gradient_sum`
    has them: bounds are computed from these. Other rounding would be another ranking where scores
    nearly agree, and another gradient where a hidden unit is near zero.
    """
    _scores_of(len(F), F, theta, hidden, units, scores)


@compiled(**_STRICT)
def _backward(n, F, theta, hidden, units, r, g):
    """Gradient of the list: the sum of r_i times the derivative of the score by the weights.
    ``F`` and ``units`` are overwritten.
    """
    d = F.shape[1]
    g[:] = 0.0
    if hidden == 0:
        for i in range(n):
            for k in range(d):
                g[k] += r[i] * F[i, k]
        return
    outer = _layers(theta, d, hidden)[2]
    by_inner, by_threshold, by_outer = _layers(g, d, hidden)
    used = 0  # documents with a residual, moved to the front
    for i in range(n):
        if r[i] != 0.0:
            own, slopes = units[i], units[used]
            for h in range(hidden):
                active = own[h] > 0.0
                by_outer[h] += r[i] * own[h] if active else 0.0
                slopes[h] = r[i] * outer[h] if active else 0.0
                by_threshold[h] += slopes[h]
            F[used] = F[i]
            used += 1
    for k in range(d):
        _add_product(F[:used, k], units[:used], by_inner[k])


@compiled(**_STRICT)
def gradient_sum(
    X, starts, lists, y, shares, theta, hidden, code, depth, target, A, clip, factors, grid, total
):
    """Write the sum of the gradients of some lists into ``total``.

    With ``clip`` above zero, gradients are multiplied by the symmetric matrix ``A`` (by none if it
    is empty) and clipped to that length; otherwise they are multiplied by ``factors``. Lists of a
    linear scorer with ``clip`` are centred and scaled to a mean squared length of one.
    """
    total[:] = ROUNDER * grid
    longest = 0
    for j in lists:
        longest = max(longest, starts[j + 1] - starts[j])
    F, units = np.empty((longest, X.shape[1])), np.empty((longest, hidden))
    scores, u, r = np.empty(longest), np.empty(longest), np.empty(longest)
    g, moved = np.empty(len(total)), np.empty(len(total))
    for j in lists:
        start, n = starts[j], starts[j + 1] - starts[j]
        _copy_list(X, start, start + n, hidden == 0, F)
        if hidden == 0 and clip > 0.0:
            _scale_list(n, F)
        _scores_of(n, F, theta, hidden, units, scores)
        _residual(n, scores, y[start : start + n], code, depth, target, u, r)
        _backward(n, F, theta, hidden, units, r, g)
        if A.shape[0] > 0:
            moved[:] = 0.0
            for k in range(len(g)):
                for l in range(len(g)):
                    moved[l] += g[k] * A[k, l]
            g[:] = moved
        factor = factors[j] if clip <= 0.0 else 1.0
        if clip > 0.0:
            length = _length(g)
            if not math.isfinite(length):
                factor = 0.0
            elif length > clip:
                factor = clip / length
        share = shares[j] if shares.shape[0] > 1 else shares[0]
        if factor > _LEAST_FACTOR:
            for k in range(len(g)):
                total[k] += (share * factor) * g[k]
    for k in range(len(total)):
        total[k] -= ROUNDER * grid


@compiled(**_STRICT)
def second_moment(X, starts, lists, shares, grid, total):
    """Write the weighted sum over lists of the mean outer products of their documents, centred and
    scaled to a mean squared length of one, into ``total``: the upper triangle, row by row.
    """
    total[:] = ROUNDER * grid
    longest, d = 0, X.shape[1]
    for j in lists:
        longest = max(longest, starts[j + 1] - starts[j])
    F, M = np.empty((longest, d)), np.empty((d, d))
    for j in lists:
        start, n = starts[j], starts[j + 1] - starts[j]
        share = shares[j] if shares.shape[0] > 1 else shares[0]
        _copy_list(X, start, start + n, True, F)
        _scale_list(n, F)
        M[:] = 0.0
        for i in range(n):
            for k in range(d):
                value = F[i, k]
                for l in range(k, d):
                    M[k, l] += value * F[i, l]
        square = 0.0
        for k in range(d):
            for l in range(k, d):
                M[k, l] /= n
                square += (1.0 if l == k else 2.0) * M[k, l] * M[k, l]
        # Its norm is at most one but for the rounding errors of a long list.
        share /= max(1.0, math.sqrt(square))
        place = 0
        for k in range(d):
            for l in range(k, d):
                total[place] += share * M[k, l]
                place += 1
    for place in range(len(total)):
        total[place] -= ROUNDER * grid
