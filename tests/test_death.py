"""Signals that end a process: here an exception, in a child of a library's what they do by default."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tidegate.lab.death import interrupting


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
