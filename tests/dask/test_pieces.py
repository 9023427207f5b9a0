"""Which rows each part of a table has: all rows once, in order, in the blocks of one machine."""

from hypothesis import given
from hypothesis import strategies as st

from hushfit.dask._pieces import parts_of
from hushfit.data import MOST_BLOCK_ROWS, one_place_each

sizes = st.lists(
    st.sampled_from([0, 1, 2, 3, 1000, MOST_BLOCK_ROWS - 1, MOST_BLOCK_ROWS, 3 * MOST_BLOCK_ROWS]),
    min_size=1,
    max_size=8,
).filter(lambda found: sum(found) >= 2)


@given(sizes, st.integers(1, 5))
def test_every_row_is_in_one_part_in_order(sizes, workers):
    spans = [span for part in parts_of(sizes, workers) for span in part]
    rows = [(span.place, row) for span in spans for row in (span.rows[0], span.rows[-1])]
    assert rows == sorted(rows)
    for place, size in enumerate(sizes):
        own = [span.rows for span in spans if span.place == place]
        ends = [end for rows in own for end in (rows.start, rows.stop)]
        assert sum(map(len, own)) == size
        assert ends[1:-1:2] == ends[2::2]


@given(sizes, st.integers(1, 5))
def test_parts_begin_where_blocks_do_and_have_two_rows(sizes, workers):
    """Otherwise the number of blocks would exceed what the bound on rounding supposes."""
    lengths = [sum(len(span.rows) for span in part) for part in parts_of(sizes, workers)]
    assert all(length % MOST_BLOCK_ROWS == 0 for length in lengths[:-1])
    assert min(lengths) >= 2


@given(st.lists(st.sets(st.sampled_from("abc"))))
def test_a_part_is_added_up_in_one_of_its_places(places):
    found = one_place_each(places)
    assert sorted(number for _, numbers in found for number in numbers) == list(range(len(places)))
    for place, numbers in found:
        assert all(place in places[i] if place else not places[i] for i in numbers)
    used = [place for place, _ in found if place]
    assert len(used) == len(set(used))
