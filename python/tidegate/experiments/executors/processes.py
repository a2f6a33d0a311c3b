"""Simulations in processes of their own, so many at once. A process that dies loses its own run; if this one dies, so do the others."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import time
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tidegate.backends import common
from tidegate.experiments.jobs import AGAIN_S, ENDING, LOOK_S, Ended, Jobs, Tell, sendable, told, written
from tidegate.experiments.plan import Run
from tidegate.lab.death import die_with

PATIENCE_S = 10.0
"""Runs that have not ended by then after they were told to are ended, and are lost: they look often, and write their tables at the end."""

# In the process of a run: whether it is to end early (a byte, without a lock that a killed process could hold).
_stop: Any = None


def _look_up() -> None:
    if _stop is not None and _stop.value:
        raise KeyboardInterrupt


class Processes:
    """Runs in processes, on so many processors: as many at once, or fewer where each has several threads.

    Runs that begin when the first one has ended have as many threads as that had at its end.
    """

    def __init__(self, processors: int) -> None:
        self._processors = processors

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        """Run all; fewer if something ends it."""
        _Pool(jobs, ended).run(self._processors, tell)


class _Pool:
    """The processes of some jobs."""

    def __init__(self, jobs: Jobs, ended: Ended) -> None:
        # Forked: a process starts at once, with all that is imported here, and with cases that nobody has run.
        self._context = multiprocessing.get_context("fork")
        self._jobs = jobs
        self._waiting = deque(range(len(jobs.jobs)))
        self._running: dict[Connection, tuple[Any, int, int]] = {}
        self._stop = self._context.Value("b", 0, lock=False)
        # Each process writes numbers of its own, which are read whole.
        self._parts = self._context.Array("d", len(jobs.jobs), lock=False)
        # What a run may have, and what the first one has: 0 until that is known.
        self._threads = jobs.threads
        self._first = self._context.Value("i", 0, lock=False)
        self.ended = ended

    def run(self, processors: int, tell: Tell) -> None:
        """Run all; fewer if something ends it."""
        with told() as came:
            try:
                while self._running or (self._waiting and not self._stop.value):
                    if came and came[-1] - came[0] > AGAIN_S:
                        # Who asks twice does not wait.
                        break
                    if came and time.monotonic() - came[0] > PATIENCE_S:
                        break
                    if came or self.ended.error is not None:
                        self._stop.value = 1
                        self.ended.interrupted = bool(came)
                    while self._waiting and self._has_room(processors) and not self._stop.value:
                        self._start(self._waiting.popleft())
                    before = len(self.ended.runs)
                    for pipe in wait(list(self._running), timeout=LOOK_S):
                        assert isinstance(pipe, Connection)
                        self._hear(pipe)
                    under_way = sorted(number for _, number, _ in self._running.values())
                    done = max(float(len(self.ended.runs)), sum(self._parts))
                    tell(done, under_way, self.ended.runs[before:])
            except KeyboardInterrupt:
                self.ended.interrupted = True
            except Exception as error:
                # What is done is kept: it is not of those.
                self.ended.error = self.ended.error or error
            finally:
                for process, *_ in self._running.values():
                    process.kill()
                    process.join()

    def _has_room(self, processors: int) -> bool:
        """Whether there are processors for one run more."""
        taken = sum(threads for *_, threads in self._running.values())
        return not self._running or taken + self._threads <= processors

    def _start(self, number: int) -> None:
        mine, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=self._child, args=(number, theirs, os.getpid()))
        process.start()
        theirs.close()
        self._running[mine] = (process, number, self._threads)

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
                _look_up()

            def use(threads: int) -> None:
                self._first.value = threads

            common.on_threads = use if number == 0 else None

            try:
                index, seed = self._jobs.jobs[number]
                case = self._jobs.cases[index]
                said: Any = written(
                    self._jobs.store, tell, case, seed, self._jobs.backend, threads=self._threads
                )
            except KeyboardInterrupt:
                said = None
            except BaseException as error:
                said = sendable(error)
            try:
                pipe.send(said)
            except Exception as error:
                pipe.send(sendable(error))
            status = 0
        finally:
            os._exit(status)

    def _hear(self, pipe: Connection) -> None:
        process, number, _ = self._running.pop(pipe)
        try:
            said = pipe.recv()
        except (EOFError, OSError):
            said = None
            process.join()
            self._lose(number, process.exitcode)
        finally:
            pipe.close()
        process.join()
        if number == 0 and self._first.value:
            self._threads = self._first.value
        if isinstance(said, Run):
            self.ended.runs.append(said)
            self._jobs.store.add(said)
        elif said is not None and self.ended.error is None:
            self.ended.error = said

    def _lose(self, number: int, code: int) -> None:
        how = f"has ended with status {code}"
        if code == 0:
            how += " before it had a result"
        if code < 0:
            with suppress(ValueError):
                how = f"was killed by {signal.Signals(-code).name}"
        if code == -signal.SIGKILL:
            how += ", as the kernel does when memory runs out"
        self.ended.lost.append(f"{self._jobs.named(number)}: its process {how}")


def has_polars_threads() -> bool:
    """Whether Polars has been at work in this process: one that is forked from it would wait for those threads for ever."""
    for thread in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):
            if re.fullmatch(r"polars-\d+", thread.read_text().strip()):
                return True
    return False
