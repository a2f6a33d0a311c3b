"""Locks of interfaces: who has set one up is there as long as the lock is held, and was killed otherwise.

A lock is a file of /run/tidegate-router, for an interface of a network namespace, which only its owner can open. It goes with the last
process that has it. Whoever cannot write there, as root of a user namespace, has no lock.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from tidegate._core import TidegateError

FOLDER = Path("/run/tidegate-router")
OWN = Path("/proc/thread-self/ns/net")


class InterfaceLock:
    """Held until `close`."""

    def __init__(self, interface: str, index: int, namespace: str | None = None) -> None:
        """`namespace`: the name or path of a network namespace, if it is not this process's.

        Raises `TidegateError` if another one has the lock of this interface.
        """
        at = OWN if namespace is None else Path("/run/netns") / namespace
        self._file = FOLDER / f"{at.stat().st_ino}-{index}.lock"
        self._held: int | None = None
        with suppress(OSError):
            FOLDER.mkdir(mode=0o755)
        try:
            while self._held is None:
                self._held = self._take()
        except BlockingIOError:
            raise TidegateError(
                f"{interface} has a router already, of this process or another one; close that first"
            ) from None
        except OSError:
            # Not permitted here: the interface is used without.
            pass

    def _take(self) -> int | None:
        """The file; `None`: who had it has removed its name meanwhile."""
        found = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(self._file).st_ino == os.fstat(found).st_ino:
                return found
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(found)
            raise
        os.close(found)
        return None

    def close(self) -> None:
        """Give it back."""
        if self._held is not None:
            self._file.unlink(missing_ok=True)
            os.close(self._held)
            self._held = None
