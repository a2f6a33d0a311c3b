"""Runs experiments: every case with every seed, in parallel processes; saves partial results on Ctrl-C."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Status:
    """How far an experiment is."""

    done: float
    """Runs that are done, with the parts of those that are under way."""
    total: int
    running: tuple[str, ...]
    """The cases under way."""
    finished: tuple[Run, ...]
    """The runs that have ended since the last call."""


# Set in a worker process when it is to end early.
_stop: EventType | None = None
# How far each job is, from 0 to 1, for the parent.
_parts: Any = None


def _begin(stop: EventType, parts: Any) -> None:
    """In a worker process, ignore Ctrl-C: the parent handles it and sets `stop`."""
    global _stop, _parts
    _stop, _parts = stop, parts
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _look_up(done: int, total: int) -> None:
    if _stop is not None and _stop.is_set():
        raise KeyboardInterrupt


def _run_job(job: int, *about: Any) -> Run:
    """A job in a worker process."""

    def tell(done: int, total: int) -> None:
        _parts[job] = done / total
        _look_up(done, total)

    return _run_case(tell, *about)


def _run_case(
    progress: Callable[[int, int], None],
    name: str,
    parameters: dict[str, Any],
    index: int,
    seed: int,
    backend: str,
) -> Run:
    case = find(name).plan(**parameters).cases[index]
    network = case.network(seed) if callable(case.network) else case.network
    result = network.run(case.until, backend=backend, seed=seed, progress=progress)
    rows = None
    if not result.interrupted:
        measured = case.measure(result)
        each = measured if isinstance(measured, list) else [measured]
        rows = [{"case": case.name, "seed": seed, **row} for row in each]
    tables = {table: getattr(result, table) for table in TABLES}
    return Run(case.name, seed, rows, tables, result.warnings)


def _run_all(
    jobs: list[tuple[Any, ...]],
    processes: int,
    tell: Callable[[float, list[int], list[Run]], None],
) -> tuple[list[Run], bool]:
    """The runs, and whether they were interrupted: then those that had begun, up to where they were.

    `tell` hears of the runs done with parts of those under way, of the jobs under way, and of the runs that have ended.
    """
    runs: list[Run] = []

    if processes == 1 or len(jobs) == 1:
        for number, job in enumerate(jobs):

            def part(done: int, total: int, before: int = number) -> None:
                tell(before + done / total, [before], [])
                _look_up(done, total)

            try:
                runs.append(_run_case(part, *job))
            except KeyboardInterrupt:
                # It came while the case was being set up or taken down.
                return runs, True
            if runs[-1].rows is None:
                return runs, True
            tell(len(runs), [], runs[-1:])
        return runs, False
    stop = multiprocessing.Event()
    # Each process writes numbers of its own, which are read whole.
    parts = multiprocessing.Array("d", len(jobs), lock=False)
    interrupted = False
    with ProcessPoolExecutor(min(processes, len(jobs)), initializer=_begin, initargs=(stop, parts)) as pool:
        pending = {pool.submit(_run_job, number, *job) for number, job in enumerate(jobs)}
        while pending:
            try:
                # Looks up now and then: a library's signal handler may restart the wait when Ctrl-C comes.
                done, pending = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
                ended = [future.result() for future in done]
                runs.extend(ended)
                under_way = [number for number, part in enumerate(parts) if 0 < part < 1]
                tell(max(len(runs), sum(parts)), under_way, ended)
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
    progress: Callable[[float, int], None] | None = None,
    watch: Callable[[Status], None] | None = None,
    processes: int = 1,
    resume: bool = False,
) -> dict[str, Any]:
    """Run every case with every seed, write the folder `out`, and return the contents of `--json`.

    Parameters that are not given have their defaults, with `quick` those for less time, and the backend's where it has its own.

    The folder holds `run.json` (parameters, seeds, versions, rows, claims), the tables of every run, and the figure. It
    appears when all is done. A run that is there is replaced, and what else is in its folder stays; a folder of something
    else is refused, as is one that cannot be written, before anything runs. On Ctrl-C the folder holds the tables up to then,
    `run.json` says `"interrupted": true`, and `Interrupted` is raised; a whole run that is there stays, and the folder's name
    has `.interrupted` at its end.

    `resume` takes the complete runs of an interrupted one there, which has to have the same parameters and version, and does the
    others. `progress` hears of how many runs are done, with the part of those that are under way, and of how many there are;
    `watch` also hears of which cases run and of the runs that have ended.
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
    about: dict[str, Any] = {
        "experiment": name,
        "backend": backend,
        "parameters": {**parameters, "quick": quick},
        "seeds": seeds,
    }
    earlier = folder.resumed(out, about) if resume else []
    had = {(one.case, one.seed) for one in earlier}
    jobs = [
        (name, parameters, index, seed, backend)
        for seed in seeds
        for index, case in enumerate(plan.cases)
        if (case.name, seed) not in had
    ]

    def tell(done: float, under_way: list[int], ended: list[Run]) -> None:
        done, total = len(earlier) + done, len(earlier) + len(jobs)
        if progress is not None:
            progress(done, total)
        if watch is not None:
            running = (plan.cases[jobs[number][2]].name for number in under_way)
            watch(Status(done, total, tuple(running), tuple(ended)))

    # By the real clock, one at a time: they would take time from each other.
    runs, interrupted = _run_all(jobs, processes if backend == "sim" else 1, tell)
    runs += earlier
    runs.sort(key=lambda r: (r.seed, order[r.case]))
    rows = [row for r in runs if r.rows is not None for row in r.rows]
    done = sum(r.rows is not None for r in runs)
    if interrupted and not runs:
        raise Interrupted(f"interrupted with 0 of {len(jobs)} runs done; nothing is saved")
    source = folder.interrupted(out) if resume else None
    if interrupted and folder.is_whole(out):
        out = out.with_name(f"{out.name}.interrupted")
    answer = {
        **about,
        "rows": rows,
        "claims": [] if interrupted else [asdict(claim) for claim in plan.claims(rows)],
        "warnings": [f"{r.case}, seed {r.seed}: {warning}" for r in runs for warning in r.warnings],
        "out": str(out),
    }
    folder.write(out, answer, runs, None if interrupted else plan)
    if source is not None and source != out:
        folder.remove(source)
    if interrupted:
        raise Interrupted(
            f"interrupted with {done} of {len(earlier) + len(jobs)} runs done; tables up to then are in {out}; "
            "the same command with --resume goes on"
        )
    return answer
