"""Check that processes see each other's locks and journals of a ledger file.

A file that is itself a mount point, as containers mount single files, has another name and another
folder outside: processes that use the other name write another journal. Network file systems do not
implement locks reliably.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hushfit.errors import LedgerError

# File systems on which SQLite's locks, or what was synchronised to disk, depend on another machine.
_NETWORK: Final = frozenset(
    (
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "smbfs",
            "ncpfs",
            "afs",
            "ceph",
            "lustre",
            "gpfs",
            "beegfs",
        ),
        *("glusterfs", "ocfs2", "gfs2", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs"),
        *("fuse.rclone", "fuse.davfs", "fuse.gcsfuse", "fuse.juicefs"),
    )
)
_REMEDY: Final = "Nothing was spent or released."


@dataclass(frozen=True)
class Mount:
    """A mount point, as ``/proc/self/mountinfo`` lists it."""

    point: str
    kind: str


def mounts() -> list[Mount] | None:
    """Mount points that this process sees; None where the system cannot mount single files."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return parse_mounts(
            Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        )
    except OSError as error:
        raise LedgerError(
            "cannot find out how the ledger's file is mounted: /proc/self/mountinfo cannot be "
            f"read ({error.strerror}). {_REMEDY} Mount /proc, or use a ledger on PostgreSQL."
        ) from None


def parse_mounts(text: str) -> list[Mount]:
    """Parse ``mountinfo``, in which spaces in a name are octal escapes."""
    found = []
    for line in text.splitlines():
        place, _, system = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), place.split(" ")[4])
        found.append(Mount(point, system.split(" ")[0]))
    return found


def refuse_unsafe_place(path: str, mounted: list[Mount] | None) -> None:
    """Refuse a ledger file that two processes could use without seeing each other's locks."""
    if mounted is None:
        return
    real = Path(path).resolve()
    if any(mount.point == str(real) for mount in mounted):
        raise LedgerError(
            f"the ledger at {path!r} is itself a mount point, so it has another name elsewhere, "
            f"and processes that use different names do not see each other's journal. {_REMEDY} "
            "Mount the folder that holds the ledger, not the file."
        )
    inside = [mount for mount in mounted if real.is_relative_to(mount.point)]
    # Of several mounts on one point the last one is visible.
    kind = (
        max(enumerate(inside), key=lambda item: (len(Path(item[1].point).parts), item[0]))[1].kind
        if inside
        else ""
    )
    if kind in _NETWORK:
        raise LedgerError(
            f"the ledger at {path!r} is on a network file system ({kind}), whose locks and writes "
            f"cannot be relied on. {_REMEDY} Keep it on a local disk, or on PostgreSQL."
        )
