"""Runs experiments: every case with every seed, each in a process of its own; keeps what is done, however it ends.

A process that dies loses its own run. Ctrl-C, SIGTERM and SIGHUP end a run early, and what is done is saved. If this process is killed,
the kernel kills the others, and `--resume` finds what they had done.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tidegate._core import TidegateError
from tidegate.experiments import folder, user_code
from tidegate.experiments.plan import Case, Plan, Run
from tidegate.experiments.registry import demand_backend, find
from tidegate.lab.death import die_with, handled, interrupting
from tidegate.results import TABLES

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN_S = 2.0
"""A signal so long after the first is another one: `timeout` and terminals send one twice."""
LOOK_S = 0.1
"""How often the parent of the processes looks whether it is to end."""


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
    """The runs that have ended since the last call, without their tables."""


Job = tuple[int, int]
"""The number of a case, and a seed."""
Tell = Callable[[float, list[int], list[Run]], None]
"""Hears of the runs done with parts of those under way, of the jobs under way, and of the runs that have ended."""

# In the process of a run: whether it is to end early (a byte, without a lock that a killed process could hold).
_stop: Any = None


def _look_up(done: int, total: int) -> None:
    if _stop is not None and _stop.value:
        raise KeyboardInterrupt


def _run_case(progress: Callable[[int, int], None], case: Case, seed: int, backend: str) -> Run:
    with user_code.blamed():
        network = case.network(seed) if callable(case.network) else case.network
        result = network.run(case.until, backend=backend, seed=seed, progress=progress)
        measured = [] if result.interrupted else case.measure(result)
    rows = None
    if not result.interrupted:
        each = measured if isinstance(measured, list) else [measured]
        rows = [{"case": case.name, "seed": seed, **row} for row in each]
    tables = {table: getattr(result, table) for table in TABLES}
    return Run(case.name, seed, rows, tables, result.warnings)


def _written(
    work: folder.Work, progress: Callable[[int, int], None], case: Case, seed: int, backend: str
) -> Run:
    """Run a case and write its tables; give the rest."""
    run = _run_case(progress, case, seed, backend)
    work.write_tables(run)
    return replace(run, tables={})


@dataclass
class _Ended:
    """What has come of the runs."""

    runs: list[Run] = field(default_factory=list)
    """Without their tables; those that were interrupted have no rows."""
    interrupted: bool = False
    lost: list[str] = field(default_factory=list)
    """Why others have not come to their end."""
    error: BaseException | None = None
    """What has ended the rest."""


def _run_here(
    plan: Callable[[], Plan], jobs: list[Job], backend: str, work: folder.Work, tell: Tell, ended: _Ended
) -> None:
    """One run after the other, in this process; each of a plan of its own, as a run leaves its traces in controllers and agents."""
    for number, (index, seed) in enumerate(jobs):

        def part(done: int, total: int, before: int = number) -> None:
            tell(before + done / total, [before], [])
            _look_up(done, total)

        try:
            ended.runs.append(_written(work, part, plan().cases[index], seed, backend))
            work.add(ended.runs[-1])
            if ended.runs[-1].rows is None:
                ended.interrupted = True
                return
            tell(len(ended.runs), [], ended.runs[-1:])
        except KeyboardInterrupt:
            # It came while the case was being set up or taken down.
            ended.interrupted = True
            return
        except Exception as error:
            ended.error = error
            return


class _Processes:
    """Simulations in processes of their own, so many at once."""

    def __init__(self, cases: Sequence[Case], jobs: list[Job], work: folder.Work, ended: _Ended) -> None:
        # Forked: a process starts at once, with all that is imported here, and with cases that nobody has run.
        self._context = multiprocessing.get_context("fork")
        self._cases = cases
        self._jobs = jobs
        self._work = work
        self._waiting = deque(range(len(jobs)))
        self._running: dict[Connection, tuple[Any, int]] = {}
        self._stop = self._context.Value("b", 0, lock=False)
        # Each process writes numbers of its own, which are read whole.
        self._parts = self._context.Array("d", len(jobs), lock=False)
        self.ended = ended

    def run(self, most: int, tell: Tell) -> None:
        """Run all; fewer if something ends it."""
        with _told() as told:
            try:
                while self._running or (self._waiting and not self._stop.value):
                    if told and told[-1] - told[0] > AGAIN_S:
                        # Who asks twice does not wait.
                        break
                    if told or self.ended.error is not None:
                        self._stop.value = 1
                        self.ended.interrupted = bool(told)
                    while self._waiting and len(self._running) < most and not self._stop.value:
                        self._start(self._waiting.popleft())
                    before = len(self.ended.runs)
                    for pipe in wait(list(self._running), timeout=LOOK_S):
                        assert isinstance(pipe, Connection)
                        self._hear(pipe)
                    under_way = sorted(number for _, number in self._running.values())
                    done = max(float(len(self.ended.runs)), sum(self._parts))
                    tell(done, under_way, self.ended.runs[before:])
            except KeyboardInterrupt:
                self.ended.interrupted = True
            except Exception as error:
                # What is done is kept: it is not of those.
                self.ended.error = self.ended.error or error
            finally:
                for process, _ in self._running.values():
                    process.kill()
                    process.join()

    def _start(self, number: int) -> None:
        mine, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=self._child, args=(number, theirs, os.getpid()))
        process.start()
        theirs.close()
        self._running[mine] = (process, number)

    def _child(self, number: int, pipe: Connection, parent: int) -> None:
        """A run, in its process; never returns."""
        global _stop
        status = 1
        try:
            die_with(parent)
            # The parent hears them, and tells this process by `_stop`.
            for each in ENDING:
                signal.signal(each, signal.SIG_IGN)
            # Somebody may have put something in their place that has locks.
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
            _stop = self._stop

            def tell(done: int, total: int) -> None:
                self._parts[number] = done / total
                _look_up(done, total)

            try:
                index, seed = self._jobs[number]
                said: Any = _written(self._work, tell, self._cases[index], seed, "sim")
            except KeyboardInterrupt:
                said = None
            except BaseException as error:
                said = _sendable(error)
            try:
                pipe.send(said)
            except Exception as error:
                pipe.send(_sendable(error))
            status = 0
        finally:
            os._exit(status)

    def _hear(self, pipe: Connection) -> None:
        process, number = self._running.pop(pipe)
        try:
            said = pipe.recv()
        except (EOFError, OSError):
            said = None
            process.join()
            if process.exitcode != 0:
                self._lose(number, process.exitcode)
        finally:
            pipe.close()
        process.join()
        if isinstance(said, Run):
            self.ended.runs.append(said)
            self._work.add(said)
        elif said is not None and self.ended.error is None:
            self.ended.error = said

    def _lose(self, number: int, code: int) -> None:
        index, seed = self._jobs[number]
        how = f"has ended with status {code}"
        if code < 0:
            with suppress(ValueError):
                how = f"was killed by {signal.Signals(-code).name}"
        if code == -signal.SIGKILL:
            how += ", as the kernel does when memory runs out"
        self.ended.lost.append(f"{self._cases[index].name}, seed {seed}: its process {how}")


def _has_polars_threads() -> bool:
    """Whether Polars has been at work in this process: one that is forked from it would wait for those threads for ever."""
    for thread in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):
            if re.fullmatch(r"polars-\d+", thread.read_text().strip()):
                return True
    return False


def _sendable(error: BaseException) -> BaseException:
    """An error that can be sent to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


@contextmanager
def _told() -> Iterator[list[float]]:
    """When signals have come. An exception could come in the middle of what belongs together."""
    came: list[float] = []
    with handled(lambda number, _: came.append(time.monotonic()), ENDING):
        yield came


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What ends this process waits until this is done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
    else is refused, as is one that cannot be written, before anything runs. On Ctrl-C, SIGTERM and SIGHUP the folder holds the
    tables up to then, `run.json` says `"interrupted": true`, and `Interrupted` is raised; a whole run that is there stays, and the
    folder's name has `.interrupted` at its end. The same holds where a run fails, or its process dies: the error says where the
    complete runs are.

    `resume` takes the complete runs of an interrupted one there, which has to have the same parameters and version, and does the
    others. `processes` is how many run at once; where this process has worked with Polars already, it is one. `progress` hears of
    how many runs are done, with the part of those that are under way, and of how many there are; `watch` also hears of which cases
    run and of the runs that have ended.
    """
    one = find(name)
    name = one.name
    demand_backend(one, backend)
    parameters = {**one.parameters(quick, backend), **parameters}
    one.check(parameters)
    plan = one.planned(parameters)
    if not plan.cases:
        raise TidegateError(f"{name}: with these parameters there is nothing to run")
    order = {case.name: index for index, case in enumerate(plan.cases)}
    if len(order) < len(plan.cases):
        twice = next(case.name for index, case in enumerate(plan.cases) if order[case.name] != index)
        raise TidegateError(f"{name}: two cases are {twice}; give each value once")
    about: dict[str, Any] = {
        "experiment": name,
        "backend": backend,
        "parameters": {**parameters, "quick": quick},
        "seeds": seeds,
    }
    if one.source is not None:
        about["source"] = one.source
    work = folder.Work(out)
    ended = _Ended()
    try:
        source = folder.interrupted(out) if resume else None
        earlier = folder.resumed(source, about) if source is not None else []
        work.begin(about)
        if source is not None:
            work.take_over(source, earlier)
        had = {(one.case, one.seed) for one in earlier}
        jobs = [
            (index, seed)
            for seed in seeds
            for index, case in enumerate(plan.cases)
            if (case.name, seed) not in had
        ]
        total = len(earlier) + len(jobs)

        def tell(done: float, under_way: list[int], ended: list[Run]) -> None:
            done += len(earlier)
            if progress is not None:
                progress(done, total)
            if watch is not None:
                running = (plan.cases[jobs[number][0]].name for number in under_way)
                watch(Status(done, total, tuple(running), tuple(ended)))

        # By the real clock, one at a time: they would take time from each other.
        if processes == 1 or len(jobs) == 1 or backend != "sim" or _has_polars_threads():
            with handled(interrupting(), (signal.SIGTERM, signal.SIGHUP)):
                _run_here(lambda: one.planned(parameters), jobs, backend, work, tell, ended)
        else:
            _Processes(plan.cases, jobs, work, ended).run(processes, tell)
    except BaseException as error:
        if not ended.runs or not isinstance(error, KeyboardInterrupt):
            work.discard()
            raise
        # It came between two steps.
        ended.interrupted = True
    with _undisturbed():
        return _kept(plan, about, order, earlier, ended, work, source, total)


def _report(answer: dict[str, Any], runs: list[Run], figure: bytes) -> str | None:
    """The run's report. A fault in it costs the report, not the run: a warning says so."""
    from tidegate import report

    try:
        return report.of_run({**answer, "versions": folder.versions()}, runs, figure)
    except Exception as error:
        answer["warnings"].append(
            f"{folder.REPORT} could not be made: {type(error).__name__}: {error}; `tidegate report` on the run's folder shows why"
        )
        return None


def _kept(
    plan: Plan,
    about: dict[str, Any],
    order: dict[str, int],
    earlier: list[Run],
    ended: _Ended,
    work: folder.Work,
    source: Path | None,
    total: int,
) -> dict[str, Any]:
    """Write what there is, and return it or raise why it is not all."""
    runs = sorted((*earlier, *ended.runs), key=lambda r: (r.seed, order[r.case]))
    rows = [row for r in runs if r.rows is not None for row in r.rows]
    done = sum(r.rows is not None for r in runs)
    figure, claims = None, []
    complete: list[Run] = []
    if done == total:
        # Whatever has come in the meantime: all is done.
        ended.interrupted = False
        try:
            with user_code.blamed():
                claims = [asdict(claim) for claim in plan.claims(rows)]
                complete = work.read_tables(runs)
                figure = folder.as_png(plan.draw(complete))
        except Exception as error:
            ended.error = error
    new = [r for r in ended.runs if ended.interrupted or r.rows is not None]
    if figure is None and not new:
        work.discard()
        if ended.error is not None:
            raise ended.error
        if ended.lost:
            raise TidegateError(f"{'; '.join(ended.lost)}; no run was done, and nothing is saved")
        raise Interrupted(f"interrupted with 0 of {total - len(earlier)} runs done; nothing is saved")
    answer = {
        **about,
        "rows": rows,
        "claims": claims if figure is not None else [],
        "warnings": [f"{r.case}, seed {r.seed}: {warning}" for r in runs for warning in r.warnings],
    }
    report = _report(answer, complete, figure) if figure is not None else None
    shown = work.finish(answer, figure, report)
    if source is not None and source != shown:
        folder.remove(source)
    if figure is not None:
        folder.remove_left(work.out)
        return {**answer, "out": str(shown)}
    there = f"{done} of {total} runs are done and in {shown}; the same command with --resume does the others"
    if isinstance(ended.error, TidegateError):
        raise TidegateError(f"{ended.error}; {there}")
    if ended.error is not None:
        ended.error.add_note(there)
        raise ended.error
    if ended.lost:
        raise TidegateError(f"{'; '.join(ended.lost)}; {there}")
    raise Interrupted(
        f"interrupted with {done} of {total} runs done; tables up to then are in {shown}; "
        "the same command with --resume goes on"
    )
