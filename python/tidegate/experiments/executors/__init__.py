"""Ways to carry out the runs of an experiment: in this process, in processes of this machine, and as tasks of Dask.

Each has `run(jobs, tell, ended)` (`tidegate.experiments.jobs`). Which one does not change any result.
"""

from __future__ import annotations

from tidegate.experiments.executors.here import Here
from tidegate.experiments.executors.processes import Processes, has_polars_threads
from tidegate.experiments.jobs import Executor

__all__ = ["Here", "Processes", "for_machine"]


def for_machine(processes: int, jobs: int, backend: str) -> Executor:
    """What runs so many jobs here: processes, or this one where they are of no use, or where Polars has been at work."""
    # By the real clock, one at a time: they would take time from each other.
    if processes == 1 or jobs == 1 or backend != "sim" or has_polars_threads():
        return Here()
    return Processes(processes)
