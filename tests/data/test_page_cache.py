"""Packed rows on disk: named on request, for their owner alone, and found again or made anew."""

import fcntl
import os
import stat
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema, schema_to_toml
from hushfit.data.tables import CodedRows, SchemaFile, find_tables
from hushfit.data.tables import _encoded_rows as encoded
from hushfit.data.tables._page_cache import PageCache
from hushfit.data.tables._page_file import PAGE_ROWS, RowVectors
from hushfit.errors import InvalidArgument

SCHEMA = Schema(
    (NumericColumn("a", 0, 1), CategoricalColumn("c", ("u", "v"))),
    CategoricalColumn("y", ("no", "yes")),
)
ROWS = PAGE_ROWS + 10


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    lines = (
        f"{a},{'uvw'[c]},{'no' if k else 'yes'}\n"
        for a, c, k in zip(
            rng.random(ROWS), rng.integers(0, 3, ROWS), rng.integers(0, 2, ROWS), strict=True
        )
    )
    path.write_text("a,c,y\n" + "".join(lines))
    return path


def packed(table, cache, schema=SCHEMA, watch=None):
    found = find_tables([str(table)])
    with CodedRows.from_tables(found, schema, watch=watch, cache=cache) as rows:
        records = np.vstack([block.records().toarray() for block in rows.blocks()])
        return records, rows.y.copy()


def test_a_cache_is_for_its_owner_alone_and_is_read_instead_of_the_table(
    table, tmp_path, monkeypatch
):
    cache = str(tmp_path / "cache")
    first = packed(table, cache)
    (file,) = os.listdir(cache)
    assert stat.S_IMODE(os.stat(f"{cache}/{file}").st_mode) == 0o600
    assert stat.S_IMODE(os.stat(cache).st_mode) == 0o700

    def unread(*given, **settings):
        raise AssertionError("the table was read")

    monkeypatch.setattr(encoded, "table_batches", unread)
    read = []
    second = packed(table, cache, watch=read.append)
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one, other)
    assert sum(read) == os.path.getsize(table)  # a progress bar comes to its end


def test_other_rows_or_another_schema_have_another_cache(table, tmp_path):
    cache = str(tmp_path / "cache")
    packed(table, cache)
    wider = Schema((NumericColumn("a", 0, 2), SCHEMA.columns[1]), SCHEMA.target)
    packed(table, cache, wider)
    table.write_text(table.read_text() + "0.5,u,no\n")
    records, _ = packed(table, cache)
    assert len(records) == ROWS + 1
    assert len(os.listdir(cache)) == 3


KILLED = """
import os, sys
from hushfit.data.tables import CodedRows, find_tables
from hushfit.data.schema import read_schema
from hushfit.data.tables._page_cache import PageCache
PageCache.keep = lambda cache: os.kill(os.getpid(), 9)
CodedRows.from_tables(find_tables(["t.csv"]), read_schema("s.toml").schema, cache="cache")
"""


def test_what_a_killed_process_left_is_removed_and_what_another_writes_stays(table, tmp_path):
    (tmp_path / "s.toml").write_text(schema_to_toml(SchemaFile(SCHEMA)))
    killed = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False)
    assert killed.returncode == -9
    cache = tmp_path / "cache"
    (left,) = os.listdir(cache)
    written = cache / f"{'a' * 32}.1"
    with written.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        packed(table, str(cache))
        assert written.name in os.listdir(cache)
    assert left not in os.listdir(cache)
    (cache / left).touch()
    packed(table, str(cache), replace(SCHEMA, features="additive"))
    assert left not in os.listdir(cache)
    assert not written.exists()


@pytest.mark.parametrize("damage", ["cut", "codes", "header"])
def test_a_damaged_cache_is_made_anew(table, tmp_path, damage):
    cache = str(tmp_path / "cache")
    first = packed(table, cache)
    (file,) = os.listdir(cache)
    with open(f"{cache}/{file}", "r+b") as raw:
        if damage == "cut":
            raw.truncate(os.fstat(raw.fileno()).st_size - 1)
        elif damage == "header":
            raw.write(b"{}")
        else:  # codes follow the numbers of the first page
            raw.seek(4096 + 4 * PAGE_ROWS)
            raw.write(b"\xff")
    for one, other in zip(first, packed(table, cache), strict=True):
        assert np.array_equal(one, other)


def test_a_cache_that_others_could_change_is_refused(table, tmp_path):
    cache = str(tmp_path / "cache")
    packed(table, cache)
    (file,) = os.listdir(cache)
    os.chmod(f"{cache}/{file}", 0o644)
    with pytest.raises(InvalidArgument, match=r"others may write or read it.*Nothing was spent"):
        packed(table, cache)


def test_rows_of_persons_and_pipes_are_not_cached(table, tmp_path):
    persons = Schema(SCHEMA.columns, SCHEMA.target, person="id")
    with pytest.raises(InvalidArgument, match="rows of persons are not cached"):
        packed(table, str(tmp_path / "cache"), persons)
    with pytest.raises(InvalidArgument, match="no file that could be known again"):
        CodedRows.from_tables(find_tables(["-"]), SCHEMA, cache=str(tmp_path / "cache"))


def test_long_vectors_of_rows_are_mapped_files_that_can_be_given_back():
    vectors = RowVectors()
    n = 40 * PAGE_ROWS
    vector = vectors.new(n)
    assert not vector.any()
    assert len(vectors._maps) == 1
    vector[:] = np.arange(n)
    for page in range(40):
        vectors.pass_by(page)
    assert np.array_equal(vector, np.arange(n))


def test_vectors_are_in_memory_where_files_cannot_be_given_room_beforehand(monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")  # as on macOS
    vectors = RowVectors()
    assert not vectors.new(40 * PAGE_ROWS).any()
    assert not vectors._maps


def test_a_table_that_was_overwritten_and_given_its_old_time_is_read_anew(table, tmp_path):
    cache = str(tmp_path / "cache")
    packed(table, cache)
    before = os.stat(table)
    time.sleep(0.02)  # longer than a tick of the clock of file systems
    with table.open("r+") as raw:  # in place: the same file, of the same size
        text = raw.read()
        raw.seek(0)
        raw.write(text.replace(",yes\n", ",zzz\n"))
    os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns))
    records, _ = packed(table, cache)
    assert np.all(records[np.array([line.endswith("zzz") for line in rows_of(table)])] == 0)


def rows_of(table):
    return table.read_text().splitlines()[1:]


def test_rows_are_not_written_into_a_file_that_somebody_put_there(table, tmp_path):
    """Whoever may write into the folder knows the name that an unfinished cache will have."""
    cache = tmp_path / "cache"
    cache.mkdir()
    tables = find_tables([str(table)])
    planted = PageCache.of(str(cache), tables, SCHEMA)._unfinished
    planted.touch(mode=0o644)
    with planted.open("rb") as watched:
        packed(table, str(cache))
        assert watched.read() == b""


def test_other_rows_of_one_file_have_another_cache(table, tmp_path):
    (whole,) = find_tables([str(table)])
    parts = [replace(whole, rows=range(start, start + 5)) for start in (0, 5)]
    keys = {PageCache.of(str(tmp_path), [part], SCHEMA).key for part in (whole, *parts)}
    assert len(keys) == 3
