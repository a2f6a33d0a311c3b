"""`--cluster-option`: settings of Dask's LocalCluster and SLURMCluster, checked before anything starts."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from tidegate import units
from tidegate._core import TidegateError
from tidegate.suggest import did_you_mean

EXTRA = 'clusters need more packages: pip install "tidegate[cluster]"'
OPTION = "--cluster-option"
OURS = ("security", "silence_logs", "asynchronous", "loop")
"""What Tidegate sets itself."""
COUNTS = ("n_workers", "threads_per_worker", "jobs", "cores", "processes")


def read(where: str, options: Iterable[str]) -> dict[str, Any]:
    """The settings of a cluster; raises `TidegateError` for what is no setting of it, or no value of one."""
    given: dict[str, Any] = {}
    for text in options:
        name, value = parsed(text)
        if name in given:
            raise TidegateError(f"{OPTION} {text}: {name} is given twice")
        given[name] = value
    if given and where in ("local", "slurm"):
        known = _of_local() if where == "local" else _of_slurm()
        for name, value in given.items():
            if name not in known:
                raise TidegateError(
                    f"{OPTION} {name}={value}: {where} has no such setting; "
                    f"{did_you_mean(name, known)}known: {', '.join(sorted(known))}"
                )
            if name in COUNTS and not (type(value) is int and value > 0):
                raise TidegateError(f"{OPTION} {name}={value}: {name} is a whole number from 1 on")
    return given


def parsed(text: str) -> tuple[str, Any]:
    """A name and its value: true or false, a number, or text."""
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise TidegateError(f"{OPTION} {text}: write it as name=value")
    if value.lower() in ("true", "false"):
        return name, value.lower() == "true"
    number = units.decimal(value)
    return name, value if number is None else number


def _of_local() -> set[str]:
    from distributed import LocalCluster, Nanny, Worker
    from distributed.core import Server

    # One process for each worker: runs have to be alone in theirs.
    return _arguments(LocalCluster, Nanny, Worker, Server) - {"processes"}


def _of_slurm() -> set[str]:
    try:
        from dask_jobqueue.core import Job, JobQueueCluster
        from dask_jobqueue.slurm import SLURMJob
    except ImportError:
        raise TidegateError(EXTRA) from None
    return _arguments(JobQueueCluster, Job, SLURMJob) - {"n_workers", "job_cls"} | {"jobs"}


def _arguments(*classes: Any) -> set[str]:
    found = {
        one.name
        for each in classes
        for one in inspect.signature(each).parameters.values()
        if one.kind is not one.VAR_KEYWORD
    }
    return found - set(OURS)
