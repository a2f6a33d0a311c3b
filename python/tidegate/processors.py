"""How many processors there are for this process."""

from __future__ import annotations

import os
import sys


def processors() -> int:
    """Those that it may run on: fewer than the machine's under `taskset`, in a cpuset or in a job of SLURM."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
