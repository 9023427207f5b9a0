"""Packed rows answer as the same rows in compressed sparse form do: bit by bit, but for gradients,
whose margins are added up in another order.
"""

import numpy as np
import pytest

from hushfit.data.rows import WHOLE, PackedBlock, PackedLayout
from hushfit.losses import Logistic, Softmax

GRID = 2.0**-40
LAYOUTS = {
    "mixed": (1, 3, 1, 1, 5, 2, 1),
    "numbers": (1, 1, 1),
    "labels": (4, 2, 9),
    "two bytes": (1, 300, 1, 3),
    "four bytes": (70_000, 1),
}


def packed(widths, n=101, classes=2, shares=WHOLE, seed=0):
    """A block with zero records and entries of 0 and 1 among others."""
    rng = np.random.default_rng(seed)
    layout = PackedLayout(widths)
    numbers = rng.random((n, len(layout.number_at))).astype(np.float32)
    numbers[rng.random(numbers.shape) < 0.2] = 0.0
    highest = [widths[at] for at in layout.code_at]
    codes = rng.integers(0, highest or 1, (n, len(highest))).astype(layout.code_type)
    y = rng.integers(0, classes, n).astype(float)
    scale = rng.random(n) * (rng.random(n) < 0.9)
    y = 2 * y - 1 if classes == 2 else y
    return PackedBlock(layout, numbers, codes, slice(0, n), y, scale, shares, 1.0)


def same(block, question):
    """Whether the question has the same answer, to the last bit, for packed and sparse rows."""
    own, sparse = question(block), question(block.unpacked)
    assert np.any(np.nan_to_num(own) != 0)
    return np.array_equal(own, sparse, equal_nan=True)


def gradients_agree(block, w, caps, loss):
    """Whether sums of gradients are those of sparse rows, up to a step of the grid, and exact: the
    contribution of a row is the same to the last bit among others and alone.
    """

    def summed(part):
        return part.gradient_sum(w, caps, loss.code, loss.parameter, GRID)

    total, n = summed(block), len(block.y)
    alone = [summed(part(block, slice(i, i + 1))) for i in range(n)]
    turned = summed(part(block, np.arange(n)[::-1]))
    assert np.any(total != 0)
    assert np.array_equal(total, np.sum(alone, axis=0))
    assert np.array_equal(total, turned)
    return np.abs(total - summed(block.unpacked)).max() <= GRID


def part(block, rows):
    """Some rows of a block, in another order perhaps."""
    shares = block.shares if len(block.shares) == 1 else block.shares[rows]
    columns = (block.numbers, block.codes, np.arange(len(block.y)), block.y, block.scale)
    numbers, codes, place, y, scale = (np.ascontiguousarray(column[rows]) for column in columns)
    return PackedBlock(block.layout, numbers, codes, place, y, scale, shares, block.unit)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_codes_take_the_smallest_integers_that_hold_them(kind):
    bytes_ = {"two bytes": 2, "four bytes": 4}.get(kind, 1)
    assert PackedLayout(LAYOUTS[kind]).code_type == np.dtype(f"u{bytes_}")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", LAYOUTS)
def test_sums_and_margins_have_the_bits_of_sparse_rows(kind, weighted):
    rng = np.random.default_rng(1)
    block = packed(LAYOUTS[kind], shares=rng.random(101) if weighted else WHOLE)
    w, v = rng.normal(size=(2, block.layout.n_features + 1))
    loss = Logistic().kernel
    settings = loss.code, loss.parameter
    mixes, bounds = np.array([[1.0, 0.0], [1.0, 0.5]]), np.array([0.3])
    assert gradients_agree(block, w, np.array([0.6]), loss)
    assert same(block, lambda b: b.difference_sum(w, v, 0.6, 0.2, *settings, GRID))
    vectors, grids = np.stack([w, v]), np.array([GRID])
    assert same(block, lambda b: b.drop_sum(vectors, mixes, bounds, *settings, grids))
    assert same(block, lambda b: b.margins(w))
    inverse = rng.random(101)
    assert same(block, lambda b: b.counted_gradient_sum(w, inverse, (0.7, 0.4), *settings, GRID))


@pytest.mark.parametrize("kind", ["mixed", "numbers", "labels", "two bytes"])
def test_lengths_and_second_moments_have_the_bits_of_sparse_rows(kind):
    rng = np.random.default_rng(2)
    block, factors = packed(LAYOUTS[kind], shares=rng.random(101)), rng.random(101)
    A = np.tril(rng.normal(size=(block.layout.n_features + 1,) * 2))
    assert same(block, lambda b: b.lengths(A))
    assert same(block, lambda b: b.second_moment(2.0**20))
    assert same(block, lambda b: b.second_moment(2.0**20, factors))


@pytest.mark.parametrize("kind", ["mixed", "labels"])
def test_several_outputs_have_the_bits_of_sparse_rows(kind):
    rng = np.random.default_rng(3)
    block, loss = packed(LAYOUTS[kind], classes=3), Softmax(3).kernel
    w, v = rng.normal(size=(2, 3, block.layout.n_features + 1))
    settings = loss.code, loss.parameter
    mixes, bounds, grids = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0.4]), np.array([GRID])
    assert gradients_agree(block, w, np.array([0.5]), loss)
    assert same(block, lambda b: b.difference_sum(w, v, 0.6, 0.2, *settings, GRID))
    assert same(block, lambda b: b.drop_sum(np.stack([w, v]), mixes, bounds, *settings, grids))


def test_one_row_is_summed_alone():
    """A share per row of a block with one row is not taken for one share of all."""
    block = packed((1, 3), n=1, shares=np.array([0.25]), seed=5)
    block.scale[:] = 0.5
    w, loss = np.ones(5), Logistic().kernel
    assert gradients_agree(block, w, np.ones(1), loss)
