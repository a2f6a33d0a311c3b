"""A process that lifts the limits when the service has ended without doing so: by `kill -9`, or for lack of memory."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Mapping
from contextlib import suppress

from tidegate._core import TidegateError
from tidegate.systems.pacing.service import left
from tidegate.systems.pacing.service.pacer import Pacer

PR_SET_NAME = 15
CLEAN = b"."
_libc = ctypes.CDLL(None)


class Keeper:
    """Watches this process, from another."""

    def __init__(self, pacer: Pacer, before: Mapping[str, str]) -> None:
        theirs, self._mine = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _keep(pacer, before, theirs, self._mine)
        os.close(theirs)
        self.descriptor = os.pidfd_open(self._pid)
        """Can be read from when the keeper has ended."""

    @property
    def pid(self) -> int:
        """Its number."""
        return self._pid

    def dismiss(self) -> None:
        """Nothing is left to do."""
        with suppress(BrokenPipeError):
            os.write(self._mine, CLEAN)
        self.forget()

    def forget(self) -> None:
        """It has ended, or is about to."""
        os.close(self._mine)
        os.close(self.descriptor)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _keep(pacer: Pacer, before: Mapping[str, str], theirs: int, mine: int) -> None:
    """Wait for the end of the other side; never returns."""
    status = 1
    try:
        os.close(mine)
        # Signals to the service's terminal or group are not for the keeper; what ends the service ends it, too.
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        _libc.prctl(PR_SET_NAME, b"tidegate-keeper", 0, 0, 0)
        if os.read(theirs, 1) != CLEAN:
            with suppress(TidegateError, OSError):
                pacer.lift()
            left.put_back(before)
            left.remove_lock_name()
        status = 0
    finally:
        os._exit(status)
