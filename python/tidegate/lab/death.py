"""Processes that do not outlive the one that started them, and signals that end a process."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
Handler = Callable[[int, FrameType | None], None]

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None)


def die_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel signal this process when its parent dies. Call this first after a fork."""
    _libc.prctl(PR_SET_PDEATHSIG, by, 0, 0, 0)
    # It may be gone already.
    if os.getppid() != parent:
        os._exit(1)


def interrupting() -> Handler:
    """A handler of signals that raises `KeyboardInterrupt` in this process.

    In a child that has it by a fork, a signal does what it does by default. Libraries fork such children, and end them by SIGTERM;
    an exception there would go through all that the parent is doing.
    """
    owner = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:
        if os.getpid() == owner:
            raise KeyboardInterrupt
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    return stop


@contextmanager
def handled(
    handler: Handler, numbers: Collection[signal.Signals], *, only_default: bool = False
) -> Iterator[None]:
    """Handle signals so, but those that are ignored; with `only_default` but those too that somebody else handles.

    On the main thread, which alone can; elsewhere nothing changes.
    """
    kept: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            there = signal.getsignal(number)
            if there == signal.SIG_DFL or (there != signal.SIG_IGN and not only_default):
                kept[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)


def interruptible(work: Callable[[], T]) -> T:
    """Do what takes long in one call of the system, which a signal would not end in Python: it is done by a thread.

    After Ctrl-C the thread ends with this process, which is to end then: what the call gives has no owner. Gives and raises what
    `work` does.
    """
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        # Signals are for the main thread, which waits.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
