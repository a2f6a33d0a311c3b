"""Runs experiments: every case with every seed, in parallel processes; saves partial results on Ctrl-C."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict
from multiprocessing.synchronize import Event as EventType
from pathlib import Path
from typing import Any

from tidegate._core import TidegateError
from tidegate.experiments import folder
from tidegate.experiments.plan import Run
from tidegate.experiments.registry import demand_backend, find
from tidegate.results import TABLES


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; the results so far are saved, and the text says where."""


# Set in a worker process when it is to end early.
_stop: EventType | None = None


def _begin(stop: EventType) -> None:
    """In a worker process, ignore Ctrl-C: the parent handles it and sets `stop`."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _look_up(done: int, total: int) -> None:
    if _stop is not None and _stop.is_set():
        raise KeyboardInterrupt


def _run_case(name: str, parameters: dict[str, Any], index: int, seed: int, backend: str) -> Run:
    case = find(name).plan(**parameters).cases[index]
    network = case.network(seed) if callable(case.network) else case.network
    result = network.run(case.until, backend=backend, seed=seed, progress=_look_up)
    rows = None
    if not result.interrupted:
        measured = case.measure(result)
        each = measured if isinstance(measured, list) else [measured]
        rows = [{"case": case.name, "seed": seed, **row} for row in each]
    tables = {table: getattr(result, table) for table in TABLES}
    return Run(case.name, seed, rows, tables, result.warnings)


def _run_all(
    jobs: list[tuple[Any, ...]], processes: int, progress: Callable[[int, int], None] | None
) -> tuple[list[Run], bool]:
    """The runs, and whether they were interrupted: then those that had begun, up to where they were."""
    runs: list[Run] = []

    def tell() -> None:
        if progress is not None:
            progress(len(runs), len(jobs))

    if processes == 1 or len(jobs) == 1:
        for job in jobs:
            try:
                runs.append(_run_case(*job))
            except KeyboardInterrupt:
                # It came while the case was being set up or taken down.
                return runs, True
            if runs[-1].rows is None:
                return runs, True
            tell()
        return runs, False
    stop = multiprocessing.Event()
    interrupted = False
    with ProcessPoolExecutor(min(processes, len(jobs)), initializer=_begin, initargs=(stop,)) as pool:
        pending = {pool.submit(_run_case, *job) for job in jobs}
        while pending:
            try:
                # Looks up now and then: a library's signal handler may restart the wait when Ctrl-C comes.
                done, pending = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
                runs.extend(future.result() for future in done)
                tell()
            except KeyboardInterrupt:
                interrupted = True
                stop.set()
                pending = {future for future in pending if not future.cancel()}
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return runs, interrupted


def run(
    name: str,
    parameters: dict[str, Any],
    *,
    backend: str = "sim",
    seeds: list[int],
    quick: bool = False,
    out: Path,
    progress: Callable[[int, int], None] | None = None,
    processes: int = 1,
) -> dict[str, Any]:
    """Run every case with every seed, write the folder `out`, and return the contents of `--json`.

    Parameters that are not given have their defaults, with `quick` those for less time, and the backend's where it has its own.

    The folder holds `run.json` (parameters, seeds, versions, rows, claims), the tables of every run, and the figure. It
    appears when all is done. A run that is there is replaced, and what else is in its folder stays; a folder of something
    else is refused, as is one that cannot be written, before anything runs. On Ctrl-C the folder holds the tables up to then,
    `run.json` says `"interrupted": true`, and `Interrupted` is raised; a whole run that is there stays, and the folder's name
    has `.interrupted` at its end.
    """
    one = find(name)
    name = one.name
    demand_backend(one, backend)
    parameters = {**one.parameters(quick, backend), **parameters}
    one.check(parameters)
    plan = one.plan(**parameters)
    if not plan.cases:
        raise TidegateError(f"{name}: with these parameters there is nothing to run")
    order = {case.name: index for index, case in enumerate(plan.cases)}
    if len(order) < len(plan.cases):
        twice = next(case.name for index, case in enumerate(plan.cases) if order[case.name] != index)
        raise TidegateError(f"{name}: two cases are {twice}; give each value once")
    folder.demand(out)
    jobs = [(name, parameters, index, seed, backend) for seed in seeds for index in range(len(plan.cases))]
    # By the real clock, one at a time: they would take time from each other.
    runs, interrupted = _run_all(jobs, processes if backend == "sim" else 1, progress)
    runs.sort(key=lambda r: (r.seed, order[r.case]))
    rows = [row for r in runs if r.rows is not None for row in r.rows]
    done = sum(r.rows is not None for r in runs)
    if interrupted and not runs:
        raise Interrupted(f"interrupted with 0 of {len(jobs)} runs done; nothing is saved")
    if interrupted and folder.is_whole(out):
        out = out.with_name(f"{out.name}.interrupted")
    answer = {
        "experiment": name,
        "backend": backend,
        "parameters": {**parameters, "quick": quick},
        "seeds": seeds,
        "rows": rows,
        "claims": [] if interrupted else [asdict(claim) for claim in plan.claims(rows)],
        "warnings": [f"{r.case}, seed {r.seed}: {warning}" for r in runs for warning in r.warnings],
        "out": str(out),
    }
    folder.write(out, answer, runs, None if interrupted else plan)
    if interrupted:
        raise Interrupted(f"interrupted with {done} of {len(jobs)} runs done; tables up to then are in {out}")
    return answer
