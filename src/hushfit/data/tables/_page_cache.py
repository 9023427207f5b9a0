"""Packed rows that stay on disk because their owner asked for it: a table is parsed once."""

import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushfit.data.rows import PackedLayout
from hushfit.data.schema import Schema, schema_hash
from hushfit.data.tables._files import STDIN, Table
from hushfit.data.tables._page_file import PageFile
from hushfit.errors import InvalidArgument

_UNFINISHED = re.compile(r"[0-9a-f]{32}\.\d+")  # with the number of the process


@dataclass(frozen=True)
class PageCache:
    """A file of packed rows in a folder, named after the tables and the schema they come from.

    Parameters
    ----------
    folder : Path
    key : str
        Hash of the tables' places, rows, sizes and times of change, and of the schema.
    """

    folder: Path
    key: str

    @classmethod
    def of(cls, folder: str, tables: Sequence[Table], schema: Schema) -> "PageCache":
        """The cache of some tables.

        Parameters
        ----------
        folder : str
            Made if it does not exist, for its owner alone.
        tables : sequence of Table
            Files; what comes from a pipe or a database cannot be known again.
        schema : Schema

        Returns
        -------
        PageCache

        Raises
        ------
        InvalidArgument
            If the tables are no files, the schema names persons, whose ids are not kept, or the
            folder cannot be made.
        """
        if schema.person is not None:
            raise InvalidArgument(
                f"rows of persons are not cached, since their ids in column {schema.person!r} "
                "would have to be kept too. Nothing was spent. Leave the cache out."
            )
        known = [_identity(table) for table in tables]
        key = hashlib.sha256(json.dumps([known, schema_hash(schema)]).encode()).hexdigest()
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError as error:
            raise InvalidArgument(
                f"the folder {folder!r} of the cache cannot be made ({error.strerror}). Nothing "
                "was spent. Give another one."
            ) from None
        return cls(Path(folder), key)

    @property
    def path(self) -> Path:
        return self.folder / f"{self.key[:32]}.rows"

    @property
    def _unfinished(self) -> Path:
        return self.folder / f"{self.key[:32]}.{os.getpid()}"

    def opened(self, layout: PackedLayout) -> PageFile | None:
        """The packed rows, if they are there and whole."""
        try:
            number = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error.strerror or "no file") from None
        file = os.fdopen(number, "r+b", buffering=0)
        found = os.fstat(number)
        # Rows that somebody else could change must not be fitted.
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            file.close()
            raise self._unusable("others may write or read it")
        pages = PageFile.read(layout, file, self.key)
        if pages is None:
            file.close()
        return pages

    def new_file(self) -> Any:
        """A file for the rows, which only its owner may read."""
        # Exclusive: whoever may write into the folder could have put a file of their own there.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._discard_abandoned()
        number = os.open(self._unfinished, flags, 0o600)
        with suppress(OSError):  # a file system without locks: nobody will take it for abandoned
            fcntl.flock(number, fcntl.LOCK_EX)  # as long as this process lives
        return os.fdopen(number, "r+b", buffering=0)

    def _discard_abandoned(self) -> None:
        """Remove the unfinished files of processes that were killed: nobody holds them locked."""
        for path in self.folder.iterdir():
            if _UNFINISHED.fullmatch(path.name) is None:
                continue
            with suppress(OSError):  # of another user, or of a process that writes it
                number = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink(missing_ok=True)
                finally:
                    os.close(number)

    def keep(self) -> None:
        """Give the finished file its name."""
        with suppress(FileNotFoundError):  # taken for abandoned, before it was locked
            os.replace(self._unfinished, self.path)

    def discard(self) -> None:
        """Remove a file that was not finished."""
        self._unfinished.unlink(missing_ok=True)

    def _unusable(self, reason: str) -> InvalidArgument:
        return InvalidArgument(
            f"the cache {self.path} cannot be used ({reason}). Nothing was spent. Delete the "
            "file, or give another folder."
        )


def _identity(table: Table) -> list[Any]:
    """What identifies a version of a file."""
    if table.path == STDIN or not os.path.isfile(table.path):
        raise InvalidArgument(
            f"{table.title} is no file that could be known again, so its rows are not cached. "
            "Nothing was spent. Leave the cache out."
        )
    found, form = os.stat(table.path), table.form
    where = os.path.realpath(table.path), found.st_dev, found.st_ino
    # Programs that copy files set the time of the last write, but not that of the last change.
    version = found.st_size, found.st_mtime_ns, found.st_ctime_ns
    rows = None if table.rows is None else [table.rows.start, table.rows.stop, table.rows.step]
    return [*where, *version, rows, table.format, form.encoding, form.delimiter, form.header]
