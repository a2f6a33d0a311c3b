"""Signals that end a process: here an exception, in a child of a library's what they do by default."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tidegate.lab.death import interruptible, interrupting


def test_a_child_that_has_the_handler_by_a_fork_is_ended_by_the_signal() -> None:
    before = signal.signal(signal.SIGTERM, interrupting())
    try:
        child = os.fork()
        if child == 0:
            try:
                time.sleep(20)
            finally:
                os._exit(7)
        time.sleep(0.2)
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        assert os.WTERMSIG(status) == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ctrl_c_does_not_wait_for_a_call_of_the_system() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        ended.wait()

    def interrupt() -> None:
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(work)
    finally:
        ended.set()
        signal.signal(signal.SIGINT, before)


def test_what_the_work_gives_and_raises_is_passed_on() -> None:
    assert interruptible(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)
