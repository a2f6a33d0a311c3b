"""Processes that do not outlive the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None)


def die_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel signal this process when its parent dies. Call this first after a fork."""
    _libc.prctl(PR_SET_PDEATHSIG, by, 0, 0, 0)
    # It may be gone already.
    if os.getppid() != parent:
        os._exit(1)
