"""What Dask loads into the workers that `--cluster local` starts."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Ctrl-C in a terminal goes to all its processes; the command hears it, and ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
