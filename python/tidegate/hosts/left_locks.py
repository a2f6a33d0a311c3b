"""Locks of interfaces that killed switches and routers have left: empty files of root's folders in /run, which nobody has locked.

Who takes such a lock (`crates/live/src/claim.rs`, `interface_lock.py`) looks after locking whether the file still has its name, and
begins again if not. So a name is removed under the lock: nobody has it meanwhile, or afterwards by another file of the name.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import closing, suppress
from pathlib import Path

from tidegate.hosts import interface_lock

SWITCHES = Path("/run/tidegate-switch")
NAME = re.compile(r"(interface-)?\d+-\d+\.lock")


def remove() -> list[str]:
    """Remove locks that are free; gives their files. Does nothing in a folder that others than root can write."""
    return [name for folder in (SWITCHES, interface_lock.FOLDER) for name in _remove_in(folder)]


def _remove_in(place: Path) -> list[str]:
    removed = []
    with suppress(OSError):
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            about = os.fstat(folder)
            if about.st_uid != 0 or about.st_mode & 0o022:
                return []
            for name in sorted(os.listdir(folder)):
                if NAME.fullmatch(name) is not None and _remove_free(folder, name):
                    removed.append(str(place / name))
        finally:
            os.close(folder)
    return removed


def _remove_free(folder: int, name: str) -> bool:
    """Remove a lock that nobody has."""
    with suppress(OSError):
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with closing(os.fdopen(os.open(name, flags, dir_fd=folder), "rb", buffering=0)) as held:
            about = os.fstat(held.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size:
                return False
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who had it may have removed the name since it was opened here, and another one have made it again.
            if os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino == about.st_ino:
                os.unlink(name, dir_fd=folder)
                return True
    return False
