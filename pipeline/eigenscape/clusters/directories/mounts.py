"""The file system of a directory: its mount options, and those that a run needs."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")

_ADVICE = {
    "fuse.glusterfs": (
        "Mount it with `glusterfs -s SERVER --volfile-id=VOLUME --attribute-timeout=0 --entry-timeout=0 "
        "--fopen-keep-cache=off DIRECTORY` (`mount -o` of GlusterFS 10 cannot pass the last), and switch "
        "the caches of its volume off: `gluster volume set VOLUME KEY off` for performance.quick-read, "
        "performance.stat-prefetch, performance.open-behind, performance.write-behind, "
        "performance.read-ahead, performance.io-cache and performance.readdir-ahead."
    ),
    "nfs": "Mount it without nocto; if that is so already, with actimeo=0,lookupcache=none.",
    "cifs": "Mount it with the options cache=none,actimeo=0.",
    "9p": "Mount it with the option cache=none.",
    "fuse.sshfs": "Mount it with the options dir_cache=no,attr_timeout=0,entry_timeout=0.",
    "fuse": (
        "Mount it without caches: attribute and entry timeouts of 0, no kernel_cache and no "
        "writeback_cache, where the file system has these options."
    ),
}
_LIKE = {"nfs4": "nfs", "smb3": "cifs"}
_ANY = "Have it mounted so that nothing of a file is kept past its closing."


@dataclass(frozen=True)
class Mount:
    """What a directory is on.

    Attributes
    ----------
    kind
        Type of the file system, such as "nfs4".
    source
        Where it comes from, such as "server:/home".
    options
        As it is mounted.
    """

    kind: str
    source: str
    options: str

    @property
    def advice(self) -> str:
        """How to mount it so that machines see what others have written: a sentence or more."""
        kind = _LIKE.get(self.kind, self.kind)
        return _ADVICE.get(kind) or _ADVICE.get(kind.partition(".")[0]) or _ANY

    def __str__(self) -> str:
        return f"{self.kind} ({self.source}), mounted with {self.options}"


def mount_of(directory: str | os.PathLike[str]) -> Mount:
    """Return what a directory is on; an unknown kind where the system does not tell."""
    path = os.path.realpath(directory)
    found, length = Mount("unknown", "unknown source", "unknown options"), -1
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return found
    for line in lines:
        own, _, system = line.partition(" - ")
        point = _plain(own.split()[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # The last of several mounts at one place hides the others.
        if inside and len(point) >= length:
            kind, source, options = (*system.split(), "", "")[:3]
            both = dict.fromkeys([*own.split()[5].split(","), *options.split(",")])
            found, length = Mount(kind, _plain(source), ",".join(filter(None, both))), len(point)
    return found


def _plain(text: str) -> str:
    """Return a path of the table of mounts, in which blanks are written as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
